"""Members of the types of the providers' own packages, as a check of one value.

Types are those of the packages for Python; a value is refused for unknown, missing or wrong
members. A value whose `type` no member of a union has is of the future, and accepted.
"""

import typing

from typing_extensions import NotRequired, Required, get_type_hints, is_typeddict

SIMPLE = {str: str, bool: bool, int: int, float: (int, float)}


class Refusal(Exception):
    """A rule of a provider that an array breaks."""


def refuse(kind, detail=""):
    """Raises a refusal; `kind` is the same for all arrays that break the rule."""
    raise Refusal(kind, detail)


class Shapes:
    """Checks of values by type. `nulls` tells whether an optional member may be null."""

    def __init__(self, nulls, lenient=()):
        self.nulls = nulls
        self.lenient = set(lenient)
        self.found = {}

    def check(self, hint, value, path):
        """Refuses a value that does not have the type `hint`."""
        if is_typeddict(hint):
            return self.check_members(hint, value, path)
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Union or type(hint).__name__ == "UnionType":
            return self.check_union(args, value, path)
        if origin is typing.Literal:
            if value not in args:
                refuse(f"{path}: none of the allowed values", value)
        elif hint in SIMPLE:
            is_bool = isinstance(value, bool) and hint is not bool
            if is_bool or not isinstance(value, SIMPLE[hint]):
                refuse(f"{path}: no {hint.__name__}", value)
        elif hint is type(None):
            if value is not None:
                refuse(f"{path}: not null", value)
        elif origin is dict or hint is dict:
            if not isinstance(value, dict):
                refuse(f"{path}: no object", value)
        elif origin is not None and args:
            if not isinstance(value, list):
                refuse(f"{path}: no array", value)
            for one in value:
                self.check(args[0], one, path)
        return None

    def check_union(self, args, value, path):
        """Refuses a value that has none of the types."""
        if value is None:
            if type(None) not in args:
                refuse(f"{path}: null")
            return
        kinds = [kind for kind in args if self.may_be(kind, value)]
        if not kinds and isinstance(value, dict) and isinstance(value.get("type"), str):
            return
        error = Refusal(f"{path}: none of the types", value)
        for kind in kinds:
            try:
                return self.check(kind, value, path)
            except Refusal as one:
                error = one
        raise error

    def may_be(self, kind, value):
        """Returns whether a member of a union is of the JSON kind and the `type` of a value."""
        origin = typing.get_origin(kind)
        if is_typeddict(kind):
            if not isinstance(value, dict):
                return False
            hint = self.members(kind).get("type", (None, False))[0]
            named = typing.get_args(hint)
            named = {name for one in named for name in (typing.get_args(one) or (one,))}
            return not named or "type" not in value or value["type"] in named
        if origin is typing.Union:
            return any(self.may_be(one, value) for one in typing.get_args(kind))
        if isinstance(value, dict):
            return origin is dict or kind is object
        if isinstance(value, list):
            return origin not in (None, dict, typing.Literal)
        return kind in SIMPLE or origin is typing.Literal

    def members(self, kind):
        """Returns the type of each member, and whether it is required."""
        if kind not in self.found:
            members = {}
            for name, hint in get_type_hints(kind, include_extras=True).items():
                origin = typing.get_origin(hint)
                required = origin is Required or (
                    name in kind.__required_keys__ and origin is not NotRequired
                )
                if origin in (Required, NotRequired):
                    hint = typing.get_args(hint)[0]
                members[name] = (hint, required and (kind.__name__, name) not in self.lenient)
            self.found[kind] = members
        return self.found[kind]

    def check_members(self, kind, value, path):
        """Refuses an object with unknown, missing or wrong members."""
        if not isinstance(value, dict):
            refuse(f"{path}: no object", value)
        members = self.members(kind)
        path = value.get("type") if isinstance(value.get("type"), str) else path
        for name, (_, required) in members.items():
            if required and name not in value:
                refuse(f"{path}: without {name}", value)
        for name, one in value.items():
            if name not in members:
                refuse(f"{path}: unknown member {name}", value)
            hint, required = members[name]
            if one is None and not required and not self.nulls:
                refuse(f"{path}.{name}: null", value)
            self.check(hint, one, f"{path}.{name}")
