"""Rules by which providers refuse requests, as far as an agent loop can break them.

In: headers and body of a request. Out: nothing, or `Refused`. The rules follow the providers' own
documentation and not the engine, so that a wrong rule in the engine is found.
"""

import json
import re
from typing import Any

TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
CALL_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


class Refused(Exception):
    """The reason for which the provider would answer 400 or 401."""


def require(holds: Any, why: str) -> None:
    """Raises `Refused` unless `holds`."""
    if not holds:
        raise Refused(why)


def members(value: Any, where: str, known: set[str], needed: set[str]) -> dict[str, Any]:
    """Returns an object, checked to have the needed members and no unknown member."""
    require(isinstance(value, dict), f"{where}: not an object")
    unknown = sorted(value.keys() - known - needed)
    require(not unknown, f"{where}: unknown {unknown}")
    require(needed <= value.keys(), f"{where}: missing {sorted(needed - value.keys())}")
    return value


def text(value: Any, where: str) -> str:
    """Returns a text, checked not to be blank."""
    require(isinstance(value, str) and value.strip(), f"{where}: text must be non-empty")
    return value


def is_json_object(text: Any) -> bool:
    """Returns whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


# The Messages API of Anthropic.


def block(value: Any, where: str, role: str) -> str:
    """Checks a content block and returns its type."""
    require(isinstance(value, dict) and "type" in value, f"{where}: no type")
    match value["type"], role:
        case "text", _:
            text(members(value, where, {"cache_control"}, {"type", "text"})["text"], where)
        case "tool_use", "assistant":
            members(value, where, {"cache_control"}, {"type", "id", "name", "input"})
            require(CALL_ID.match(value["id"]), f"{where}: id")
            require(TOOL_NAME.match(value["name"]), f"{where}: name")
            require(isinstance(value["input"], dict), f"{where}: input must be an object")
        case "tool_result", "user":
            known = {"content", "is_error", "cache_control"}
            members(value, where, known, {"type", "tool_use_id"})
            require(CALL_ID.match(value["tool_use_id"]), f"{where}: tool_use_id")
            content = value.get("content")
            require(content is None or isinstance(content, (str, list)), f"{where}: content")
            for number, inner in enumerate(content if isinstance(content, list) else []):
                require(block(inner, f"{where}.{number}", "result") == "text", f"{where}: content")
        case kind, _:
            raise Refused(f"{where}: `{kind}` is not allowed for {role}")
    return value["type"]


def anthropic_message(message: Any, where: str, due: set[str], last: bool) -> set[str]:
    """Checks a message. `due`: ids of calls that need results in it. Returns the calls it makes."""
    role = members(message, where, set(), {"role", "content"})["role"]
    require(role in ("user", "assistant"), f"{where}: role `{role}`")
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    require(isinstance(content, list) and content, f"{where}: content must be non-empty")
    kinds = [block(one, f"{where}.content.{at}", role) for at, one in enumerate(content)]
    results = [one["tool_use_id"] for one in content if one["type"] == "tool_result"]
    require(len(set(results)) == len(results), f"{where}: two results for one call")
    require(set(results) <= due, f"{where}: unexpected tool_use_id, no call just before")
    require(due <= set(results), f"{where}: calls without results: {sorted(due - set(results))}")
    first_other = kinds.index("text") if "text" in kinds and results else len(kinds)
    require("tool_result" not in kinds[first_other:], f"{where}: results must come first")
    calls = [one["id"] for one in content if one["type"] == "tool_use"]
    require(len(set(calls)) == len(calls), f"{where}: ids of calls must be unique")
    require(not (last and role == "assistant"), f"{where}: must end with a user message")
    return set(calls)


def anthropic(headers: Any, body: dict[str, Any]) -> None:
    """Refuses the requests that the Messages API refuses."""
    require(headers.get("x-api-key") or headers.get("authorization"), "authentication: no key")
    require(headers.get("anthropic-version"), "anthropic-version: header is required")
    known = {"system", "tools", "tool_choice", "temperature", "metadata", "stop_sequences"}
    members(body, "request", known | {"model", "max_tokens", "messages"}, {"model", "max_tokens"})
    require(isinstance(body["max_tokens"], int) and body["max_tokens"] > 0, "max_tokens")
    system = body.get("system", "none")
    for one in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        require(block(one, "system", "system") == "text", "system: only text")
    for one in body.get("tools", []):
        members(one, "tools", {"description", "cache_control"}, {"name", "input_schema"})
        require(TOOL_NAME.match(one["name"]), f"tools: name `{one['name']}`")
        require(one["input_schema"].get("type") == "object", "tools: input_schema")
    messages = body.get("messages")
    require(isinstance(messages, list) and messages, "messages: at least one message is required")
    require(messages[0].get("role") == "user", "messages: first message must use the user role")
    due, before = set(), "assistant"
    for at, message in enumerate(messages):
        due = anthropic_message(message, f"messages.{at}", due, at + 1 == len(messages))
        require(message["role"] != before, f"messages.{at}: roles must alternate")
        before = message["role"]
        require(not due or "tools" in body, f"messages.{at}: calls, and no tools in the request")


# Chat Completions of OpenAI.


def parts(content: Any, where: str) -> None:
    """Checks content: a text or a list of text parts."""
    if isinstance(content, str):
        text(content, where)
        return
    require(isinstance(content, list) and content, f"{where}: content")
    for part in content:
        require(members(part, where, set(), {"type", "text"})["type"] == "text", f"{where}: part")
        text(part["text"], where)


def openai_assistant(message: dict[str, Any], where: str) -> set[str]:
    """Checks an assistant message and returns the calls that it makes."""
    members(message, where, {"role", "content", "refusal", "tool_calls", "name"}, {"role"})
    calls = message.get("tool_calls")
    require(calls is None or calls, f"{where}: tool_calls must be non-empty")
    if message.get("content") not in (None, "") or not calls:
        parts(message.get("content"), where)
    for call in calls or []:
        members(call, where, set(), {"id", "type", "function"})
        function = members(call["function"], where, set(), {"name", "arguments"})
        require(CALL_ID.match(call["id"]), f"{where}: id")
        require(TOOL_NAME.match(function["name"]), f"{where}: name")
        require(is_json_object(function["arguments"]), f"{where}: arguments: text of an object")
    ids = [call["id"] for call in calls or []]
    require(len(set(ids)) == len(ids), f"{where}: ids of calls must be unique")
    return set(ids)


def openai_message(message: Any, where: str, due: set[str]) -> set[str]:
    """Checks a message. `due`: ids of calls without results yet. Returns the ids due after it."""
    require(isinstance(message, dict) and "role" in message, f"{where}: no role")
    role = message["role"]
    if role == "tool":
        members(message, where, {"name"}, {"role", "tool_call_id", "content"})
        require(message["tool_call_id"] in due, f"{where}: tool must follow a call of its id")
        if message["content"] != "":
            parts(message["content"], where)
        return due - {message["tool_call_id"]}
    require(not due, f"{where}: calls without tool messages: {sorted(due)}")
    if role == "assistant":
        return openai_assistant(message, where)
    require(role in ("system", "developer", "user"), f"{where}: role `{role}`")
    parts(members(message, where, {"name"}, {"role", "content"})["content"], where)
    return set()


def openai(headers: Any, body: dict[str, Any]) -> None:
    """Refuses the requests that Chat Completions refuses."""
    require((headers.get("authorization") or "").startswith("Bearer "), "no API key")
    known = {"tools", "tool_choice", "temperature", "max_tokens", "max_completion_tokens"}
    known |= {"parallel_tool_calls", "stream"}
    members(body, "request", known | {"model", "messages"}, {"model", "messages"})
    for one in body.get("tools", []):
        members(one, "tools", set(), {"type", "function"})
        known = {"description", "parameters", "strict"}
        function = members(one["function"], "tools", known, {"name"})
        require(TOOL_NAME.match(function["name"]), f"tools: name `{function['name']}`")
        require(function.get("parameters", {}).get("type") == "object", "tools: parameters")
    require(isinstance(body["messages"], list) and body["messages"], "messages: too short")
    due: set[str] = set()
    for at, message in enumerate(body["messages"]):
        due = openai_message(message, f"messages.{at}", due)
    require(not due, f"calls without tool messages: {sorted(due)}")
    require(body["messages"][-1]["role"] != "assistant", "messages: nothing to answer")
