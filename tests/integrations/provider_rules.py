"""Rules by which the Responses API of OpenAI and `generateContent` of Gemini refuse requests.

The rules follow the documentation of the providers and not the engine, as in `rules.py` of the
agent loop.
"""

import base64
from typing import Any

from rules import CALL_ID, TOOL_NAME, is_json_object, members, require, text

# The Responses API of OpenAI.

REQUEST = {
    "include", "instructions", "max_output_tokens", "metadata", "model", "parallel_tool_calls",
    "prompt_cache_key", "reasoning", "store", "stream", "temperature", "text", "tool_choice",
    "tools", "top_p", "truncation", "user",
}  # fmt: skip
PART_TYPES = {"user": "input_text", "system": "input_text", "developer": "input_text"}
STATUS = ("completed", "in_progress", "incomplete")


def responses_message(item: dict[str, Any], where: str) -> None:
    """Checks an item that is a message."""
    members(item, where, {"type", "id", "status", "phase"}, {"role", "content"})
    require(item["role"] in (*PART_TYPES, "assistant"), f"{where}: role `{item['role']}`")
    if isinstance(item["content"], str):
        text(item["content"], where)
        return
    require(isinstance(item["content"], list) and item["content"], f"{where}: content")
    for part in item["content"]:
        members(part, where, {"annotations", "logprobs"}, {"type", "text"})
        expected = PART_TYPES.get(item["role"], "output_text")
        require(part["type"] == expected, f"{where}: `{part['type']}` is not `{expected}`")
        text(part["text"], where)


def responses_item(item: Any, where: str, due: set[str]) -> set[str]:
    """Checks an item. `due`: ids of calls without outputs yet. Returns the ids due after it."""
    require(isinstance(item, dict), f"{where}: not an object")
    require(item.get("status", "completed") in STATUS, f"{where}: status `{item.get('status')}`")
    match item.get("type", "message"):
        case "message":
            require(str(item.get("id", "msg_")).startswith("msg_"), f"{where}: id of a message")
            responses_message(item, where)
        case "reasoning":
            known = {"content", "encrypted_content", "status"}
            members(item, where, known, {"type", "id", "summary"})
            require(item["id"].startswith("rs_"), f"{where}: id of a reasoning item")
        case "function_call":
            members(item, where, {"id", "status"}, {"type", "call_id", "name", "arguments"})
            require(str(item.get("id", "fc_")).startswith("fc_"), f"{where}: id of a call")
            require(CALL_ID.match(item["call_id"]), f"{where}: call_id")
            require(TOOL_NAME.match(item["name"]), f"{where}: name")
            require(is_json_object(item["arguments"]), f"{where}: arguments")
            require(item["call_id"] not in due, f"{where}: call_id is used twice")
            return due | {item["call_id"]}
        case "function_call_output":
            members(item, where, {"id", "status"}, {"type", "call_id", "output"})
            require(item["call_id"] in due, f"{where}: no tool call found for its call_id")
            require(isinstance(item["output"], (str, list)), f"{where}: output")
            return due - {item["call_id"]}
        case kind:
            require(False, f"{where}: `{kind}` is not supported")
    return due


def responses(headers: Any, body: dict[str, Any]) -> None:
    """Refuses the requests that the Responses API refuses."""
    require((headers.get("authorization") or "").startswith("Bearer "), "no API key")
    members(body, "request", REQUEST, {"model", "input"})
    for one in body.get("tools", []):
        members(one, "tools", {"description", "strict"}, {"type", "name", "parameters"})
        require(TOOL_NAME.match(one["name"]), f"tools: name `{one['name']}`")
    items = body["input"]
    require(isinstance(items, list) and items, "input: must be non-empty")
    due: set[str] = set()
    for at, item in enumerate(items):
        due = responses_item(item, f"input[{at}]", due)
    require(not due, f"no tool output found for function calls {sorted(due)}")
    ids = [item["id"] for item in items if item.get("id")]
    require(len(set(ids)) == len(ids), "input: duplicate item found with id")
    thought = False
    for item, after in zip(items, [*items[1:], {}], strict=True):
        kind, by_model = item.get("type", "message"), after.get("role") == "assistant"
        follows = by_model or after.get("type") in ("reasoning", "function_call")
        require(kind != "reasoning" or follows, "input: reasoning without its following item")
        lonely = kind == "function_call" and "id" in item and not thought
        require(not lonely, "input: function_call without its required reasoning item")
        answered = kind == "function_call_output" or item.get("role", "assistant") != "assistant"
        thought = kind == "reasoning" or (thought and not answered)


# generateContent of Gemini.


def gemini_part(part: Any, where: str, role: str) -> str:
    """Checks a part and returns its kind."""
    kinds = {"text", "functionCall", "functionResponse"} & set(part)
    require(len(kinds) == 1, f"{where}: must have exactly one of text, call, response")
    kind = kinds.pop()
    members(part, where, {"thoughtSignature", "thought"}, {kind})
    match kind, role:
        case "text", _:
            text(part["text"], where)
        case "functionCall", "model":
            call = members(part[kind], where, {"id", "args"}, {"name"})
            require(TOOL_NAME.match(call["name"]), f"{where}: name")
            require(isinstance(call.get("args", {}), dict), f"{where}: args")
        case "functionResponse", "user":
            answer = members(part[kind], where, {"id"}, {"name", "response"})
            require(isinstance(answer["response"], dict), f"{where}: response must be an object")
        case _:
            require(False, f"{where}: `{kind}` is not allowed for {role}")
    return kind


def gemini_names(content: dict[str, Any], kind: str) -> list[str]:
    """Returns the names of the calls or of the responses in a content."""
    return [part[kind]["name"] for part in content["parts"] if kind in part]


def gemini(headers: Any, body: dict[str, Any]) -> None:
    """Refuses the requests that `generateContent` refuses."""
    require(headers.get("x-goog-api-key"), "API key not valid")
    known = {"systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"}
    members(body, "request", known | {"labels"}, {"contents"})
    contents = body["contents"]
    require(isinstance(contents, list) and contents, "contents is not specified")
    before: dict[str, Any] = {"role": "", "parts": []}
    for at, content in enumerate(contents):
        where = f"contents[{at}]"
        members(content, where, set(), {"role", "parts"})
        require(content["role"] in ("user", "model"), f"{where}: role `{content['role']}`")
        require(content["parts"], f"{where}: must include at least one parts field")
        kinds = {gemini_part(part, where, content["role"]) for part in content["parts"]}
        calls = gemini_names(before, "functionCall")
        answers = gemini_names(content, "functionResponse")
        require(sorted(calls) == sorted(answers), f"{where}: as many responses as calls")
        turn = before["role"] == "user"
        require("functionCall" not in kinds or turn, f"{where}: a call comes after a user turn")
        before = content
    require(before["role"] == "user", "contents: must end with a user turn")
    last = max(at for at, one in enumerate(contents) if is_said(one))
    for content in contents[last:]:
        calls = [part for part in content["parts"] if "functionCall" in part]
        signed = not calls or is_signed(calls[0])
        require(signed, "the first call of a step of the current turn has its thought signature")


def is_said(content: dict[str, Any]) -> bool:
    """Returns whether a content begins a turn: a text of the user, and no response."""
    return content["role"] == "user" and any("text" in part for part in content["parts"])


def signature(id: str) -> bytes:
    """Returns the signature of a call. Its base64 has both characters that base64url lacks."""
    return b"\xfb\xef\xff" + id.encode()


def is_signed(part: dict[str, Any]) -> bool:
    """Returns whether a call has its signature, in either alphabet of base64."""
    signed = base64.urlsafe_b64decode(part.get("thoughtSignature", "").translate(URL_SAFE))
    return signed == signature(part["functionCall"]["id"])


URL_SAFE = str.maketrans("+/", "-_")
