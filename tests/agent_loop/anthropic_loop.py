"""An agent with Anthropic's Messages API: python anthropic_loop.py BASE_URL STORE SCRIPT

Every turn stores the new messages, compacts if due, assembles, asks and answers the tool calls.
"""

import json
import sys
from pathlib import Path

import lcm_engine
from anthropic import Anthropic

base_url, store, script = sys.argv[1:]
played = json.loads(Path(script).read_text(encoding="utf-8"))
anthropic = Anthropic(base_url=base_url, api_key="none")
MODEL, BUDGET, DIALECT = "scripted-1", 6_000, "anthropic"
time = 1_700_000_000_000  # your own program leaves out `clock`


def complete(request, timeout):
    """Completes a request of the engine (a summary or an answer) with the same provider."""
    answer = anthropic.messages.create(
        model=MODEL,
        max_tokens=request["output_tokens_max"],
        system=request["system"],
        messages=[{"role": "user", "content": request["prompt"]}],
        timeout=timeout,
    )
    text, usage = answer.content[0].text, answer.usage
    counted = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return {"text": text, "model": answer.model} | counted


READ_FILE = {
    "name": "read_file",
    "description": "Reads a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


def read_file(path):
    """Returns the text of a file, or an error."""
    text = played["files"].get(path)
    if text is None:
        return {"text": f"no such file: {path}", "is_error": True}
    return {"text": text, "is_error": False}


def answered(lcm, calls):
    """Returns the next messages: one message with the results of all calls, or no message."""
    results = []
    for call in calls:
        if call.name.startswith("lcm_"):
            done = lcm.call_tool("chat", call.name, call.input)
        else:
            done = read_file(**call.input)
        result = {"content": done["text"], "is_error": done["is_error"]}
        results.append({"type": "tool_result", "tool_use_id": call.id} | result)
    return [{"role": "user", "content": results}] if results else []


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
            answer = anthropic.messages.create(
                model=MODEL,
                max_tokens=1_000,
                system=lcm.instructions(DIALECT, True),
                tools=tools,
                messages=context["messages"],
            )
            said = {"role": "assistant", "content": [block.to_dict() for block in answer.content]}
            lcm.append("chat", [said], dialect=DIALECT, append_mode="new")
            messages = answered(lcm, [one for one in answer.content if one.type == "tool_use"])
    print(lcm.digest())
