"""A model that answers from the script of a vector."""

from __future__ import annotations

from typing import Any

from .matching import Mismatch
from .shorthand import padded, repeats_expanded

_FIELDS = {"text", "tokens", "error", "finish", "model", "purpose", "times"}


class ScriptedModel:
    """A model that answers with the first fitting completion that is not used up."""

    def __init__(self, script: list[dict[str, Any]]) -> None:
        self._script = []
        for completion in repeats_expanded(script):
            unknown = set(completion) - _FIELDS
            if unknown or len({"text", "tokens", "error"} & set(completion)) != 1:
                raise Mismatch("a completion has one of `text`, `tokens` and `error`")
            self._script.append(completion | {"left": completion.get("times", 1) or None})
        self._used = 0
        self.mark()
        self.missing = False
        """Whether a request found no completion that fits."""

    def mark(self) -> None:
        """Records at the beginning of a call how often each completion was used."""
        self._marked = (self._used, [scripted["left"] for scripted in self._script])

    def rewind(self) -> None:
        """Takes back the answers since `mark`: the call wrote nothing and is repeated."""
        self._used, left = self._marked
        for scripted, count in zip(self._script, left, strict=True):
            scripted["left"] = count

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to a request, as `done` or `failed`."""
        for scripted in self._script:
            fits = scripted.get("purpose") in (None, request["purpose"])
            if scripted["left"] != 0 and fits:
                break
        else:
            self.missing = True
            return {"failed": {"code": "other", "message": "no scripted completion fits"}}
        if scripted["left"] is not None:
            scripted["left"] -= 1
        self._used += 1
        if "error" in scripted:
            return {"failed": {"message": ""} | scripted["error"]}
        text = scripted.get("text")
        if text is None:
            text = padded(f"summary {self._used} ", "s", scripted["tokens"])
        finish, model = scripted.get("finish", "stop"), scripted.get("model", "scripted")
        return {"done": {"text": text, "finish": finish, "model": model}}
