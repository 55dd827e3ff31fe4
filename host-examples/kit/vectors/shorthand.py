"""The shorthands and defaults of vector arguments.

In: arguments as written in a vector file. Out: plain values by the names of the parameters.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .matching import Mismatch

CONVERSATION = "c"
NOW = 1_700_000_000_000
BYTES_MAX = 1_048_576
PLANS = ("compaction.plan", "compaction.evaluate", "compaction.run")
_SURROGATE = re.compile("[\ud800-\udfff]")
_REFERENCE = re.compile(r"\$(\d+)((?:\.[\w-]+)*)")
_MESSAGE_LISTS = ("messages", "live_messages")


def to_json(value: Any) -> str:
    """Returns compact JSON, keys in order; escapes only what JSON requires, and lone surrogates."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def padded(start: str, letter: str, tokens: int) -> str:
    """Returns `start`, cut or padded to 4 x `tokens` characters; 4 fewer from 5 tokens on."""
    length = 4 * (tokens if tokens < 5 else tokens - 1)
    return start[:length].ljust(length, letter)


def repeats_expanded(value: Any) -> Any:
    """Returns a value with every `{"$repeat": ...}` replaced by its string."""
    if isinstance(value, dict):
        if "$repeat" in value:
            return str(value["$repeat"]["text"]) * int(value["$repeat"]["count"])
        return {key: repeats_expanded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [repeats_expanded(one) for one in value]
    return value


def references_resolved(value: Any, results: list[Any]) -> Any:
    """Returns a value with every `$STEP.path` replaced by that value of the step's result."""
    if isinstance(value, dict):
        return {key: references_resolved(one, results) for key, one in value.items()}
    if isinstance(value, list):
        return [references_resolved(one, results) for one in value]
    if not isinstance(value, str) or not (match := _REFERENCE.fullmatch(value)):
        return value
    try:
        found = results[int(match[1])]
        for name in match[2].split(".")[1:]:
            if isinstance(found, str):
                found = json.loads(found)
            found = found[int(name)] if name.isdigit() else found[name]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise Mismatch(f"reference `{value}` leads nowhere") from error
    return found


def message_texts(elements: Any) -> list[str]:
    """Returns the texts of a list of messages that may contain shorthands."""
    texts: list[str] = []
    for element in elements:
        if isinstance(element, str):
            texts.append(element)
        elif "$generate" in element:
            made = element["$generate"]
            for index in range(made["count"]):
                number = made["first"] + index
                role = made["roles"][index % len(made["roles"])]
                content = padded(f"message {number} ", "x", made["tokens"])
                texts.append(to_json({"role": role, "content": content}))
        else:
            texts.append(to_json(element))
    return texts


def _with_texts(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns fields with their shorthands expanded and without nulls."""
    out = {}
    for key, value in fields.items():
        if value is None:
            continue
        if key in _MESSAGE_LISTS:
            value = message_texts(value)
        elif key.endswith("_json") and not isinstance(value, str):
            value = to_json(value)
        elif isinstance(value, dict):
            value = _with_texts(value)
        out[key] = value
    return out


def arguments(name: str, given: Any, parameters: dict[str, bool]) -> dict[str, Any]:
    """Returns the arguments of a call; `parameters` tells whether each parameter is optional.

    For a parameter that the result lacks, the host fills in the neutral value of its type.
    """
    filled: dict[str, Any] = {}
    defaults = {"conversation": CONVERSATION, "now": NOW, "bytes_max": BYTES_MAX}
    for parameter, optional in parameters.items():
        if optional:
            continue
        if parameter in defaults:
            filled[parameter] = defaults[parameter]
        elif parameter.endswith("_json"):
            filled[parameter] = "{}"
    filled |= _with_texts(repeats_expanded(given or {}))
    if name in PLANS:
        filled["options"] = {"requests_max": 1} | filled.get("options", {})
    if "done" in filled.get("answer", {}):
        filled["answer"] = {"done": {"model": "scripted"} | filled["answer"]["done"]}
    return filled
