"""Objects of SDKs that are pydantic models, such as messages of `openai` or LangChain."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Protocol


class PydanticModel(Protocol):
    """An object with the method of pydantic that returns its members."""

    def model_dump(
        self,
        *,
        mode: str = ...,
        by_alias: bool | None = ...,
        exclude: Set[str] | None = ...,
        warnings: bool = ...,
    ) -> dict[str, Any]:
        """Returns the members of the object."""
        ...


def dump_model(value: object) -> dict[str, Any] | None:
    """Returns the members of a pydantic model as JSON values; `None`: the value is none.

    Members that are null stay, because some types need them; the engine leaves the others out of
    contexts. Members of the provider that the model does not know are kept.
    """
    dump = getattr(value, "model_dump", None)
    if not callable(dump):
        return None
    try:
        members: dict[str, Any] = dump(mode="json", by_alias=True, warnings=False)
    except ValueError:
        # Beside what a model gets, a result of a tool of LangChain can hold any object.
        members = dump(mode="json", by_alias=True, exclude={"artifact"}, warnings=False)
    return members
