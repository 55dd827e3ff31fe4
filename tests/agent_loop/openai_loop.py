"""An agent with OpenAI's Chat Completions API: python openai_loop.py BASE_URL STORE SCRIPT

Every turn stores the new messages, compacts if due, assembles, asks and answers the tool calls.
"""

import json
import sys
from pathlib import Path

import lcm_engine
from openai import OpenAI

base_url, store, script = sys.argv[1:]
played = json.loads(Path(script).read_text(encoding="utf-8"))
openai = OpenAI(base_url=base_url, api_key="none")
MODEL, BUDGET, DIALECT = "scripted-1", 6_000, "openai-chat"
time = 1_700_000_000_000  # your own program leaves out `clock`


def complete(request, timeout):
    """Completes a request of the engine (a summary or an answer) with the same provider."""
    answer = openai.chat.completions.create(
        model=MODEL,
        max_completion_tokens=request["output_tokens_max"],
        messages=[
            {"role": "system", "content": request["system"]},
            {"role": "user", "content": request["prompt"]},
        ],
        timeout=timeout,
    )
    text, usage = answer.choices[0].message.content, answer.usage
    counted = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}
    return {"text": text, "model": answer.model} | counted


READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


def read_file(path):
    """Returns the text of a file, or an error text."""
    return played["files"].get(path, f"no such file: {path}")


def answered(lcm, calls):
    """Returns the next messages: one for the result of each call."""
    results = []
    for call in calls:
        name, arguments = call.function.name, call.function.arguments
        if name.startswith("lcm_"):
            text = lcm.call_tool("chat", name, arguments)["text"]
        else:
            text = read_file(**json.loads(arguments))
        results.append({"role": "tool", "tool_call_id": call.id, "content": text})
    return results


with lcm_engine.open(store, complete, clock=lambda: time) as lcm:
    tools = [*lcm.tools(DIALECT), READ_FILE]
    for text in played["said"]:
        time += 60_000
        messages = [{"role": "user", "content": text}]
        while messages:
            lcm.turn(
                "chat", messages, BUDGET, dialect=DIALECT, append_mode="new", defer=False
            )
            context = lcm.assemble("chat", BUDGET, dialect=DIALECT)
            system = lcm.instructions(DIALECT, True)
            request = [{"role": "system", "content": system}, *context["messages"]]
            answer = openai.chat.completions.create(model=MODEL, tools=tools, messages=request)
            said = answer.choices[0].message
            lcm.append("chat", [said.to_dict()], dialect=DIALECT, append_mode="new")
            messages = answered(lcm, said.tool_calls or [])
    print(lcm.digest())
