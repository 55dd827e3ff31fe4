"""Objects of SDKs that are pydantic models, such as messages of `openai` or LangChain."""

from __future__ import annotations

from typing import Any, Protocol


class PydanticModel(Protocol):
    """An object with the method of pydantic that returns its members."""

    def model_dump(
        self,
        *,
        mode: str = ...,
        by_alias: bool | None = ...,
        exclude_none: bool = ...,
        warnings: bool = ...,
    ) -> dict[str, Any]:
        """Returns the members of the object."""
        ...


def dump_model(value: object) -> dict[str, Any] | None:
    """Returns the members of a pydantic model as JSON values; `None`: the value is none.

    An absent member and one that is null say the same, and SDKs set all absent members to null.
    Members of the provider that the model does not know are kept.
    """
    dump = getattr(value, "model_dump", None)
    if not callable(dump):
        return None
    members: dict[str, Any] = dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
    return members
