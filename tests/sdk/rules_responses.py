"""Rules of OpenAI's Responses API for input items. Used by rules.py."""

import re
import typing

import openai.types.responses as responses
from openai.types.responses import response_input_param

from shapes import Shapes, refuse

# The API takes messages of the model as Codex sends them, without what only responses have.
LENIENT = [
    ("ResponseOutputMessageParam", "id"),
    ("ResponseOutputMessageParam", "status"),
    ("ResponseOutputTextParam", "annotations"),
]
SHAPES = Shapes(nulls=False, lenient=LENIENT)
ITEMS = typing.get_args(response_input_param.ResponseInputItemParam)
OF_MODEL = {"output_text", "refusal"}
OF_OTHERS = {"input_text", "input_image", "input_file", "input_audio"}
# Calls that the caller answers, with the type of the answer.
OUTPUTS = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "function_call": "function_call_output",
    "local_shell_call": "local_shell_call_output",
    "program": "program_output",
    "shell_call": "shell_call_output",
}
PREFIXES = {
    "function_call": "fc",
    "message": "msg",
    "reasoning": "rs",
    "web_search_call": "ws",
}
ID_CHARACTERS_MAX = 64
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
URL = re.compile(r"https?://.+|data:[a-z0-9+./-]+;base64,[A-Za-z0-9+/]+=*")


def kind_of(item):
    """Returns the type of an item; messages and references may leave it out."""
    kind = item.get("type")
    if kind is None:
        kind = "message" if "role" in item else "item_reference"
    return kind


def is_of_model(item):
    """Returns whether the model produced an item, other than a thought."""
    kind = kind_of(item)
    if kind == "message":
        return item["role"] == "assistant"
    return kind != "reasoning" and not kind.endswith("_output")


def check(items):
    """Refuses an array that the API does not accept."""
    for at, item in enumerate(items):
        check_item(item)
        if kind_of(item) == "reasoning":
            behind = items[at + 1 :]
            following = next((one for one in behind if kind_of(one) != "reasoning"), None)
            if following is None or not is_of_model(following):
                refuse("reasoning without its following item", item)
    check_ids(items)
    check_pairs(items)


def check_item(item):
    """Refuses an item that may not be so, whatever is around it."""
    kind = kind_of(item)
    if kind == "message":
        check_message(item)
    else:
        typed = [one for one in ITEMS if SHAPES.may_be(one, {"type": kind})]
        typed = [one for one in typed if "type" in SHAPES.members(one)]
        SHAPES.check(typing.Union[tuple(typed)] if typed else object, item, "item")
    if kind == "function_call" or kind == "custom_tool_call":
        if not NAME.fullmatch(item["name"]):
            refuse("name of a tool with other characters or too long", item)
    output = item.get("output")
    if kind.endswith("tool_call_output") or kind == "function_call_output":
        if output == []:
            refuse("empty array of output", item)
        for part in output if isinstance(output, list) else ():
            check_part(part, "user")
    if "call_id" in item and not 1 <= len(item["call_id"]) <= ID_CHARACTERS_MAX:
        refuse("call_id empty or over 64 characters", item)


def check_message(item):
    """Refuses a message."""
    content, role = item.get("content"), item.get("role")
    if role not in ("user", "assistant", "system", "developer"):
        refuse("unknown role", item)
    if content == []:
        refuse("empty array of content", item)
    parts = content if isinstance(content, list) else []
    for part in parts:
        check_part(part, role)
    if role == "assistant" and parts:
        shape = responses.ResponseOutputMessageParam
    elif "status" in item and "id" not in item:
        shape = response_input_param.Message
    elif "id" in item and role == "assistant":
        # A message with an id is one of a response, whose content is an array.
        refuse("message of the model with an id and a string", item)
    else:
        shape = responses.EasyInputMessageParam
    SHAPES.check(shape, {"type": "message", **item}, "message")


def check_part(part, role):
    """Refuses a content part."""
    kind = part["type"]
    if kind in (OF_OTHERS if role == "assistant" else OF_MODEL):
        refuse(f"{kind} in a message of {role}", part)
    if role in ("system", "developer") and kind in OF_OTHERS - {"input_text"}:
        refuse(f"{kind} in a message of {role}", part)
    if kind == "input_image":
        if ("image_url" in part) == ("file_id" in part):
            refuse("image without its URL or its file", part)
        if "image_url" in part and not URL.fullmatch(part["image_url"]):
            refuse("image without a URL of http or data", part)
    if kind == "input_file":
        if sum(name in part for name in ("file_id", "file_data", "file_url")) != 1:
            refuse("file without its id, its URL or its data", part)
        if "file_data" in part and not URL.fullmatch(part["file_data"]):
            refuse("file without a URL of data", part)


def check_ids(items):
    """Refuses ids of items that are not unique or not those of their type."""
    ids = [item["id"] for item in items if kind_of(item) != "item_reference" and "id" in item]
    if len(ids) != len(set(ids)):
        refuse("id of two items", sorted(name for name in set(ids) if ids.count(name) > 1))
    for item in items:
        if kind_of(item) == "item_reference":
            if item["id"] not in ids:
                refuse("reference to a missing item", item)
            continue
        prefix = PREFIXES.get(kind_of(item), "")
        if not item.get("id", prefix).startswith(prefix):
            refuse(f"id of a {kind_of(item)} without {prefix}", item)


def check_pairs(items):
    """Refuses calls that are not answered exactly once, and answers without a call."""
    calls, open_ids, of_programs = {}, {}, {}
    for item in items:
        kind = kind_of(item)
        caller = item.get("caller")
        if caller and caller.get("type") == "program":
            if calls.get(caller["caller_id"]) != "program":
                refuse("caller names no program", item)
            is_call = kind in OUTPUTS
            if is_call and caller["caller_id"] not in open_ids:
                refuse("caller names a program that has ended", item)
            if is_call:
                of_programs.setdefault(caller["caller_id"], []).append(item["call_id"])
        if kind in OUTPUTS:
            if item["call_id"] in calls:
                refuse("call_id of two calls", item)
            calls[item["call_id"]] = open_ids[item["call_id"]] = kind
        elif kind in OUTPUTS.values():
            call = open_ids.pop(item.get("call_id"), None)
            if call is None:
                refuse("output without an open call before", item)
            if OUTPUTS[call] != kind:
                refuse("output of another type than its call", item)
            waiting = [one for one in of_programs.get(item["call_id"], ()) if one in open_ids]
            if waiting:
                refuse("output of a program before those of its calls", waiting)
    for name, kind in open_ids.items():
        is_waiting = kind == "program" and kind_of(items[-1]).endswith("_output")
        if not is_waiting or items[-1]["call_id"] not in of_programs.get(name, ()):
            refuse(f"{kind} without its output", name)
