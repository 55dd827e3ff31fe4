"""Message texts on their way into the engine: as JSON text, in batches, in pieces.

In: messages as dicts, JSON texts, or objects of an SDK. Out: JSON texts, batches of texts, and
pieces of a long text.
The numbers are the bounds of one engine call. Only the engine interprets messages.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from .errors import LcmError
from .pydantic_model import dump_model
from .results import Message

BATCH_MESSAGES_MAX = 100
BATCH_BYTES_MAX = 512 * 1024

_SURROGATE = re.compile("[\ud800-\udfff]")
# Members by which responses are known that hold messages and are none, and what to pass instead.
_RESPONSES = {
    "choices": "`completion.choices[0].message`",
    "output": "the items of `response.output`",
    "candidates": "`response.candidates[0].content`",
}


def _members_of(value: object) -> object:
    """Returns the members of a pydantic model inside another value."""
    members = dump_model(value)
    if members is None:
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return members


# `json.dumps` makes an encoder for each message.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_members_of
)


def to_json(value: object, path: str = "options") -> str:
    """Returns compact JSON text: keys in order, only lone surrogates escaped.

    `path` names the value in the error of a value that JSON cannot hold.
    """
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise LcmError("invalid-input", f"`{path}` must be a JSON value: {error}") from error
    if text.isascii():
        return text
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def to_text(message: Message, path: str) -> str:
    """Returns the JSON text of a message; `path` names the message in errors."""
    if isinstance(message, str):
        if not message.isascii() and _SURROGATE.search(message):
            raise LcmError("invalid-input", f"`{path}` must not hold a lone surrogate")
        return message
    if not isinstance(message, Mapping):
        given = type(message).__name__
        try:
            members = dump_model(message)
        except ValueError as error:
            raise LcmError("invalid-input", f"`{path}` must be a JSON value: {error}") from error
        if members is None:
            raise LcmError("invalid-input", f"`{path}` must be an object or JSON text, not {given}")
        message = members
        for member, inner in _RESPONSES.items():
            # An item of a response can have an `output`, too, and a type.
            if member in message and not {"role", "type"} & message.keys():
                raise LcmError(
                    "invalid-input", f"`{path}` must be a message, not {given}; pass {inner}"
                )
    return to_json(message, path)


def to_texts(messages: Iterable[Message]) -> list[str]:
    """Returns the JSON texts of messages."""
    if callable(getattr(messages, "model_dump", None)):
        # Iterating over a model of pydantic gives its members.
        return [to_text(cast(Message, messages), "messages")]
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        given = type(messages).__name__
        raise LcmError("invalid-input", f"`messages` must be a list, not {given}")
    return [to_text(message, f"messages.{index}") for index, message in enumerate(messages)]


def byte_length(text: str) -> int:
    """Returns the length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def batches(
    texts: Iterable[str],
    messages_max: int = BATCH_MESSAGES_MAX,
    bytes_max: int = BATCH_BYTES_MAX,
) -> Iterator[list[str]]:
    """Splits texts into the lists of single calls; a text over `bytes_max` is alone in its list."""
    batch: list[str] = []
    size = 0
    for text in texts:
        length = byte_length(text)
        if batch and (len(batch) >= messages_max or size + length > bytes_max):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


def upload_id(raw: bytes) -> str:
    """Returns the id of a staged text: its SHA-256, 64 hex digits."""
    return hashlib.sha256(raw).hexdigest()


def piece(raw: bytes, offset: int, bytes_max: int) -> str:
    """Returns the piece of a staged text at `offset`, cut between two characters."""
    end = min(offset + bytes_max, len(raw))
    while end < len(raw) and raw[end] & 0xC0 == 0x80:
        end -= 1
    try:
        return raw[offset:end].decode()
    except UnicodeDecodeError as error:
        message = f"`offset` must be between two characters, got {offset}"
        raise LcmError("corrupt", message) from error
