"""Rules of Anthropic's Messages API. Used by rules.py."""

import base64
import binascii
import re
import typing

import anthropic.types

from shapes import Shapes, refuse

# Members that responses have and requests accept as null, such as `citations`.
SHAPES = Shapes(nulls=True)
TYPES = {
    "assistant": anthropic.types.AssistantMessageParam,
    "system": anthropic.types.SystemMessageParam,
    "user": anthropic.types.UserMessageParam,
}
ID = re.compile(r"[a-zA-Z0-9_-]+")
SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CACHE_CONTROLS_MAX = 4
OF_USER = {"image", "document", "search_result", "container_upload", "tool_result"}
SERVER_CALLS = {"server_tool_use", "mcp_tool_use"}
OF_MODEL = {"thinking", "redacted_thinking", "tool_use"} | SERVER_CALLS


def is_server_result(kind):
    """Returns whether a block type is the result of a call that the provider runs."""
    return kind.endswith("_tool_result")


def expected_result(call):
    """Returns the type of the result of a server call."""
    if call["type"] == "mcp_tool_use":
        return "mcp_tool_result"
    name = call["name"]
    return ("tool_search" if name.startswith("tool_search_tool") else name) + "_tool_result"


def callers_of(calls):
    """Returns the ids of the server calls whose code made calls."""
    return {(call.get("caller") or {}).get("tool_id") for call in calls.values()}


def check(messages):
    """Refuses an array that the API does not accept."""
    cached = 0
    for message in messages:
        role = message.get("role")
        if role not in TYPES:
            refuse("unknown role", message)
        SHAPES.check(TYPES[role], message, role)
        for block in blocks_of(message):
            check_block(block, role)
            cached += count_cache_controls(block)
    if cached > CACHE_CONTROLS_MAX:
        refuse("more than 4 cache_control", cached)
    check_turns(turns_of(messages))


def blocks_of(message):
    """Returns the content of a message as blocks."""
    content = message["content"]
    if not content:
        refuse("empty content", message)
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def count_cache_controls(block):
    """Returns the number of cache breakpoints of a block and the blocks in its content."""
    content = block.get("content")
    inner = content if block["type"] == "tool_result" and isinstance(content, list) else []
    own = 0 if block.get("cache_control") is None else 1
    return own + sum(count_cache_controls(one) for one in inner)


def turns_of(messages):
    """Returns (role, blocks) for each run of messages of one role. System messages follow a user
    turn, and end it."""
    turns = []
    for message in messages:
        role = message["role"]
        if role == "system" and (not turns or turns[-1][0] != "user"):
            refuse("system message not behind a user turn", message)
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks_of(message))
        else:
            turns.append((role, list(blocks_of(message))))
    return [turn for turn in turns if turn[0] != "system"]


def check_block(block, role):
    """Refuses a block that may not be so, whatever is around it."""
    kind = block["type"]
    if kind == "text" and not block["text"].strip():
        refuse("blank text", block)
    if role != "user" and kind in OF_USER:
        refuse(f"{kind} not of the user", block)
    if role != "assistant" and (kind in OF_MODEL or is_server_result(kind)):
        refuse(f"{kind} not of the model", block)
    if kind == "thinking" and not block["signature"]:
        refuse("thinking without a signature", block)
    if kind == "redacted_thinking" and not block["data"]:
        refuse("redacted_thinking without data", block)
    if kind in ("tool_use", "mcp_tool_use"):
        if not ID.fullmatch(block["id"]):
            refuse("id of a call with other characters", block)
        if not NAME.fullmatch(block["name"]):
            refuse("name of a tool with other characters or too long", block)
    if kind == "server_tool_use" and not SERVER_ID.fullmatch(block["id"]):
        refuse("id of a server call without srvtoolu_", block)
    if kind in ("image", "document"):
        check_source(block)
    if kind == "tool_result":
        check_tool_result(block)
    if kind == "search_result":
        for inner in block["content"]:
            check_block(inner, role)


def check_source(block):
    """Refuses an image or a document without usable data."""
    source = block["source"]
    kind = source["type"]
    if kind == "base64":
        try:
            is_filled = base64.b64decode(source["data"], validate=True)
        except binascii.Error:
            is_filled = False
        if not is_filled:
            refuse("media without base64", block)
    if kind == "url" and not source["url"].startswith(("http://", "https://")):
        refuse("media with another URL than http", block)
    if kind == "file" and not source["file_id"]:
        refuse("media without a file", block)
    if kind == "text" and not source["data"].strip():
        refuse("document without text", block)


def check_tool_result(block):
    """Refuses a result with content that the API does not accept."""
    if not ID.fullmatch(block["tool_use_id"]):
        refuse("id of a result with other characters", block)
    content = block.get("content")
    if block.get("is_error"):
        if not content:
            refuse("error without content", block)
        if isinstance(content, list) and any(one["type"] != "text" for one in content):
            refuse("error with more than text", block)
    if isinstance(content, list):
        for one in content:
            if one["type"] in OF_MODEL or one["type"] == "tool_result":
                refuse(f"{one['type']} in a result", block)
            check_block(one, "user")


class Turns:
    """State of pairing after the turns so far."""

    def __init__(self):
        self.ids: typing.Set[str] = set()
        # Calls of the turn before that wait for a result, and pending calls of the provider.
        self.open: typing.Dict[str, dict] = {}
        self.pending: typing.Dict[str, dict] = {}

    def take_model_turn(self, blocks):
        """Refuses a turn of the model whose calls do not fit."""
        if blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            refuse("thinking ends a turn", blocks[-1])
        before = set(self.pending)
        for block in blocks:
            kind = block["type"]
            if kind == "tool_use" or kind in SERVER_CALLS:
                self.take_call(block)
            elif is_server_result(kind):
                self.take_server_result(block)
            caller = block.get("caller") if kind != "tool_use" else None
            if caller and caller["type"] != "direct" and caller["tool_id"] not in self.ids:
                refuse("caller names no call", block)
        late = before & set(self.pending) - callers_of(self.open)
        if late:
            refuse("server call without a result", sorted(late))

    def take_call(self, block):
        """Adds a call."""
        name = block["id"]
        if name in self.ids:
            refuse("id of two calls", block)
        caller = block.get("caller")
        if caller and caller["type"] != "direct" and caller["tool_id"] not in self.pending:
            refuse("caller names no pending call", block)
        self.ids.add(name)
        if block["type"] == "tool_use":
            self.open[name] = block
        else:
            self.pending[name] = block

    def take_server_result(self, block):
        """Removes the call of a result."""
        call = self.pending.pop(block["tool_use_id"], None)
        if call is None:
            refuse("server result without its call", block)
        if block["type"] != expected_result(call):
            refuse("server result of another type than its call", block)
        if call["id"] in callers_of(self.open):
            refuse("server result before the results of the tools that it called", block)

    def take_user_turn(self, blocks):
        """Refuses a turn of the user whose results are not those of the calls before."""
        results = [block for block in blocks if block["type"] == "tool_result"]
        ids = [block["tool_use_id"] for block in results]
        if any(name not in self.open for name in ids):
            refuse("result without its call in the turn before", ids)
        if len(ids) != len(set(ids)):
            refuse("two results of one call", ids)
        if set(ids) != set(self.open):
            refuse("call without a result", sorted(set(self.open) - set(ids)))
        if blocks[: len(results)] != results:
            refuse("results not first in their turn", blocks)
        if set(self.pending) - callers_of(self.open):
            refuse("server call without a result", sorted(self.pending))
        if self.pending and len(results) != len(blocks):
            refuse("more than results while code of the provider waits", blocks)
        self.open = {}


def check_turns(turns):
    """Refuses turns in an order or with calls that the API does not accept."""
    if not turns or turns[0][0] != "user":
        refuse("first turn not of the user", turns[:1])
    state = Turns()
    for role, blocks in turns:
        if role == "assistant":
            state.take_model_turn(blocks)
        else:
            state.take_user_turn(blocks)
    role, blocks = turns[-1]
    is_paused = blocks[-1]["type"] in SERVER_CALLS and blocks[-1]["id"] in state.pending
    if role == "assistant" and (state.open or not is_paused):
        refuse("last turn of the model", blocks[-1])
