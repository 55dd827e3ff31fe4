"""Rules of OpenAI's Chat Completions API. Used by rules.py."""

import re

import openai.types.chat as chat

from shapes import Shapes, refuse

SHAPES = Shapes(nulls=False)
TYPES = {
    "assistant": chat.ChatCompletionAssistantMessageParam,
    "developer": chat.ChatCompletionDeveloperMessageParam,
    "function": chat.ChatCompletionFunctionMessageParam,
    "system": chat.ChatCompletionSystemMessageParam,
    "tool": chat.ChatCompletionToolMessageParam,
    "user": chat.ChatCompletionUserMessageParam,
}
# Members of responses that no provider of the dialect takes back. Others of assistant messages,
# such as `reasoning_content`, are those of compatible providers.
NOT_SENT = {"annotations", "id", "index", "parsed", "timestamp"}
OF_API = {"role", "content", "refusal", "name", "audio", "tool_calls", "function_call"}
# Types of content parts that a role may have, of those that the API knows.
PARTS = {
    "assistant": {"text", "refusal"},
    "developer": {"text"},
    "system": {"text"},
    "tool": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
}
KNOWN_PARTS = set().union(*PARTS.values())
ID_CHARACTERS_MAX = 40
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")
IMAGE = re.compile(r"https?://.+|data:image/[a-z+.-]+;base64,[A-Za-z0-9+/]+=*")
FILE = re.compile(r"data:[a-z0-9+./-]+;base64,[A-Za-z0-9+/]+=*")


def check(messages):
    """Refuses an array that the API does not accept."""
    open_ids = []
    for message in messages:
        check_message(message)
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                refuse("tool message without its call directly before", message)
            open_ids.remove(message["tool_call_id"])
        elif open_ids:
            refuse("call without its tool message", open_ids)
        if message["role"] == "assistant":
            open_ids = [call["id"] for call in message.get("tool_calls", ())]
            if len(open_ids) != len(set(open_ids)):
                refuse("id of two calls of a message", message)
    if open_ids:
        refuse("call without its tool message", open_ids)


def check_message(message):
    """Refuses a message that may not be so, whatever is around it."""
    role = message.get("role")
    if role not in TYPES:
        refuse("unknown role", message)
    typed = message
    if role == "assistant":
        if unsent := NOT_SENT & set(message):
            refuse(f"member {sorted(unsent)[0]} of a response", message)
        nulls = [name for name, value in message.items() if value is None and name != "content"]
        if nulls:
            refuse(f"assistant.{nulls[0]}: null", message)
        typed = {name: value for name, value in message.items() if name in OF_API}
        if typed.get("content", "") is None:
            typed.pop("content")
        if not typed.keys() & {"content", "tool_calls", "function_call", "refusal", "audio"}:
            refuse("assistant message without content or calls", message)
        check_calls(message)
    SHAPES.check(TYPES[role], typed, role)
    if not SPEAKER.fullmatch(message.get("name", "a")):
        refuse("name with other characters", message)
    content = message.get("content")
    if content == []:
        refuse("empty array of content", message)
    if isinstance(content, list):
        for part in content:
            check_part(part, role)


def check_calls(message):
    """Refuses the calls of a message."""
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not calls:
        refuse("empty array of calls", message)
    for call in calls:
        if not isinstance(call.get("id"), str) or not 1 <= len(call["id"]) <= ID_CHARACTERS_MAX:
            refuse("id of a call empty or over 40 characters", call)
        name = call.get(call.get("type"), {}).get("name", "")
        if not TOOL_NAME.fullmatch(name):
            refuse("name of a tool with other characters or too long", call)


def check_part(part, role):
    """Refuses a content part."""
    kind = part["type"]
    if kind in KNOWN_PARTS - PARTS[role]:
        refuse(f"{kind} in a message of {role}", part)
    if kind == "image_url" and not IMAGE.fullmatch(part["image_url"]["url"]):
        refuse("image without a URL of http or data", part)
    if kind == "input_audio" and not part["input_audio"]["data"]:
        refuse("audio without data", part)
    if kind == "file":
        file = part["file"]
        if ("file_id" in file) == ("file_data" in file):
            refuse("file without its id or its data", part)
        if "file_data" in file and not FILE.fullmatch(file["file_data"]):
            refuse("file without a URL of data", part)
