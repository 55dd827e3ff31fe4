"""Writes contexts as TypeScript, for `tsc` to check by the types of the providers' own packages.

Reads JSON lines as check.py does and writes a module that declares each array with its type. Run
by tests/sdk/run.
"""

import json
import sys

TYPES = {
    "anthropic": "Anthropic.MessageParam[]",
    "gemini": "Content[]",
    "openai-chat": "OpenAI.Chat.Completions.ChatCompletionMessageParam[]",
    "openai-responses": "OpenAI.Responses.ResponseInput",
}
# Gemini accepts both spellings, its types only one; enum values are no strings in the types.
GEMINI = {
    '"code_execution_result": ': '"codeExecutionResult": ',
    '"language": "PYTHON"': '"language": Language.PYTHON',
    '"outcome": "OUTCOME_OK"': '"outcome": Outcome.OUTCOME_OK',
}
IMPORTS = """import type Anthropic from "@anthropic-ai/sdk";
import { Language, Outcome, type Content } from "@google/genai";
import type OpenAI from "openai";
"""


def main(source, target):
    out = [IMPORTS]
    with open(source, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            context = json.loads(line)
            for message in context["messages"]:
                # A member that only other providers of this dialect have.
                message.pop("reasoning_content", None)
            array = json.dumps(context["messages"])
            if context["dialect"] == "gemini":
                for given, typed in GEMINI.items():
                    array = array.replace(given, typed)
            out.append(f"export const line{number}: {TYPES[context['dialect']]} = {array};\n")
    # An array that `tsc` must refuse, to show that the check can fail.
    out.append("// @ts-expect-error\n")
    out.append(f'export const odd: {TYPES["anthropic"]} = [{{ role: "user", content: 5 }}];\n')
    with open(target, "w", encoding="utf-8") as file:
        file.write("".join(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
