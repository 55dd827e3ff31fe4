"""Converts between plain Python values and values of the component's types.

Plain values are JSON values: records are dicts with snake_case keys, enum cases kebab-case
strings, none is None, variants are `{"case": payload}`. An argument that is left out of a dict
gets the neutral value of its type. `lift_result` raises errors of the engine.
"""

from __future__ import annotations

from typing import Any

from wasmtime.component import _types as types

from .errors import LcmError

Record = types.Record
Variant = types.Variant
_NUMBERS = (
    types.U8, types.U16, types.U32, types.U64, types.S8, types.S16, types.S32, types.S64,
)  # fmt: skip


def neutral(ty: Any) -> Any:
    """Returns the value of an absent argument: none, empty, false, 0 or the first case."""
    if isinstance(ty, types.OptionType):
        return None
    if isinstance(ty, types.ListType):
        return []
    if isinstance(ty, types.EnumType):
        return ty.name(0)
    if isinstance(ty, types.String):
        return ""
    if isinstance(ty, types.Bool):
        return False
    if isinstance(ty, _NUMBERS):
        return 0
    if isinstance(ty, types.RecordType):
        return {}
    raise LcmError("invalid-input", "a variant cannot be left out")


def lower(ty: Any, value: Any, field: str) -> Any:
    """Converts a plain value to the component's type; `field` names the value in errors."""
    if isinstance(ty, types.OptionType):
        return None if value is None else lower(ty.payload, value, field)
    if isinstance(ty, types.ListType):
        if isinstance(ty.element, types.U8):
            return bytes(value)
        if not isinstance(value, (list, tuple)):
            raise _unfit(field, "a list", value)
        element = ty.element
        return [lower(element, one, field) for one in value]
    if isinstance(ty, types.RecordType):
        return _lower_record(ty.fields, value, field)
    if isinstance(ty, types.VariantType):
        if not isinstance(value, dict) or len(value) != 1:
            raise _unfit(field, "an object with one key", value)
        ((case, payload),) = value.items()
        payload_type = dict(ty.cases).get(case)
        return Variant(
            case, payload if payload_type is None else lower(payload_type, payload, field)
        )
    if isinstance(ty, types.EnumType):
        if value not in ty.names:
            raise _unfit(field, "one of " + ", ".join(ty.names), value)
        return value
    if isinstance(ty, types.String):
        return _lower_string(value, field)
    if isinstance(ty, _NUMBERS):
        return _lower_number(ty, value, field)
    if isinstance(ty, types.Bool) and not isinstance(value, bool):
        raise _unfit(field, "true or false", value)
    return value


def _unfit(field: str, wanted: str, value: Any) -> LcmError:
    got = repr(value)[:80] if isinstance(value, str) else type(value).__name__
    return LcmError("invalid-input", f"`{field}` must be {wanted}, not {got}")


def _lower_string(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise _unfit(field, "a string", value)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise LcmError("invalid-input", f"`{field}` must not hold a lone surrogate") from error
    return value


def _lower_number(ty: Any, value: Any, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unfit(field, "a whole number", value)
    name = type(ty).__name__
    bits = int(name[1:])
    lowest, highest = (0, 1 << bits) if name[0] == "U" else (-1 << (bits - 1), 1 << (bits - 1))
    if not lowest <= value < highest:
        message = f"`{field}` must be from {lowest} to {highest - 1}, got {value}"
        raise LcmError("invalid-input", message)
    return value


def _lower_record(fields: Any, value: Any, field: str) -> Any:
    if not isinstance(value, dict):
        raise _unfit(field, "an object", value)
    record = Record()
    known = set()
    for name, ty in fields:
        key = name.replace("-", "_")
        known.add(key)
        given = value[key] if key in value else neutral(ty)
        setattr(record, name, lower(ty, given, f"{field}.{key}"))
    unknown = set(value) - known
    if unknown:
        raise LcmError("invalid-input", f"`{field}` has no field `{min(unknown)}`")
    return record


def lower_arguments(params: Any, given: dict[str, Any]) -> list[Any]:
    """Returns all arguments of a function, from a dict by snake_case names."""
    record = _lower_record(params, given, "arguments")
    return [getattr(record, name) for name, _ in params]


def lift(value: Any) -> Any:
    """Converts a value of the component to a plain value."""
    if isinstance(value, Record):
        return {name.replace("-", "_"): lift(one) for name, one in vars(value).items()}
    if isinstance(value, Variant):
        return {value.tag: lift(value.payload)}
    if isinstance(value, (list, tuple)):
        return [lift(one) for one in value]
    return value


def lift_result(ty: Any, value: Any) -> Any:
    """Converts the result of a function; raises the error that a `result` holds."""
    if not isinstance(ty, types.ResultType):
        return lift(value)
    if isinstance(value, Variant) and value.tag in ("ok", "err"):
        failed, value = value.tag == "err", value.payload
    else:
        # Only results of two records are tagged, so an untagged record is the error.
        failed = isinstance(value, Record)
    if failed:
        raise LcmError(value.code, value.message)
    return lift(value)
