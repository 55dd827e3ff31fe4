"""Moves byte lists in bulk and keeps reflected types, several times faster than the plain path.

`wasmtime.component` converts a byte list one byte at a time, and looks up every type again at every
call. The classes here are subclasses of its types: they cache the types, and one moves byte lists
in bulk. They use private names of the library; `available` tells whether the installed version has
the names. Without the names the plain path does the same work, only slower.

The library collects the classes of a variant's case in one set for all threads, so a valid value
can be refused when two threads convert at the same time (wasmtime-py 50.0.1). Here each thread gets
its own set.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from wasmtime import StoreContext, WasmtimeError
from wasmtime.component import _types as types

try:
    from wasmtime import _ffi as ffi
    from wasmtime.component._func import Func

    _VAL = ffi.wasmtime_component_val_t
    _SIZE = ctypes.sizeof(_VAL)
    _KIND, _BYTE = _VAL.kind.offset, _VAL.of.offset
    _U8 = ffi.WASMTIME_COMPONENT_U8.value
    _LIST = ffi.WASMTIME_COMPONENT_LIST
    _NEEDED = (
        ffi.wasmtime_component_linker_instance_add_func,
        ffi.wasmtime_component_func_callback_t,
        ffi.wasmtime_component_vallist_new_uninit,
        ffi.wasmtime_component_vallist_delete,
        types.VariantLikeType._tagged,
        types.FuncType._from_ptr,
        StoreContext._invalidate,
        WasmtimeError._consume,
    )
    available = _VAL.kind.size == 1
except (ImportError, AttributeError):  # pragma: no cover - another version of the library
    available = False


class _ClassesOfThread(threading.local):
    """The classes of a variant's case, in a separate set for each thread."""

    def __init__(self) -> None:
        self._classes: set[type] = set()

    def clear(self) -> None:
        self._classes.clear()

    def add(self, one: type) -> None:
        self._classes.add(one)

    def __iter__(self) -> Iterator[type]:
        return iter(self._classes)


types.case_test_cache = _ClassesOfThread()  # type: ignore[assignment]


class _Bytes(types.ValType):
    """`list<u8>`: the bytes stand at a fixed stride among the library's tagged values."""

    def add_classes(self, s: set[type]) -> None:
        s.add(bytes)

    def convert_to_c(self, store: Any, val: Any, ptr: Any) -> None:
        if not isinstance(val, bytes):
            raise TypeError("expected bytes value")
        raw = ffi.wasmtime_component_vallist_t()
        ffi.wasmtime_component_vallist_new_uninit(raw, len(val))
        if val:
            image = bytearray(_SIZE * len(val))
            image[_KIND::_SIZE] = bytes((_U8,)) * len(val)
            image[_BYTE::_SIZE] = val
            source = (ctypes.c_char * len(image)).from_buffer(image)
            ctypes.memmove(raw.data, source, len(image))
        ptr.contents.kind = _LIST
        ptr.contents.of.list = raw

    def convert_from_c(self, c: Any) -> bytes:
        raw = c.of.list
        try:
            return ctypes.string_at(raw.data, raw.size * _SIZE)[_BYTE::_SIZE] if raw.size else b""
        finally:
            ffi.wasmtime_component_vallist_delete(ctypes.byref(raw))


class _List(types.ListType):
    element: Any = None

    def _is_bytes(self) -> bool:
        return False


class _Record(types.RecordType):
    fields: Any = None


class _Tuple(types.TupleType):
    elements: Any = None


class _Cases:
    known_cases: Any = None
    known_tagged = False

    def _cases(self) -> Any:
        return self.known_cases

    def _tagged(self) -> bool:
        return self.known_tagged


class _Variant(_Cases, types.VariantType):
    cases: Any = property(lambda self: self.known_cases)


class _Option(_Cases, types.OptionType):
    payload: Any = property(lambda self: self.known_cases[1][1])


class _Result(_Cases, types.ResultType):
    pass


class _Enum(types.EnumType):
    names: Any = None

    def name(self, n: int) -> str | None:
        return self.names[n] if n < len(self.names) else None


def _remembered(cls: Any, **answers: Any) -> Any:
    made = cls.__new__(cls)
    made.__dict__.update(answers)
    return made


def remember(ty: Any) -> Any:
    """Returns a copy of a type that caches its reflected properties."""
    if isinstance(ty, types.ListType):
        element = ty.element
        if isinstance(element, types.U8):
            return _Bytes()
        return _remembered(_List, element=remember(element))
    if isinstance(ty, types.RecordType):
        return _remembered(_Record, fields=[(name, remember(t)) for name, t in ty.fields])
    if isinstance(ty, types.TupleType):
        return _remembered(_Tuple, elements=[remember(t) for t in ty.elements])
    if isinstance(ty, types.EnumType):
        return _remembered(_Enum, names=ty.names)
    for plain, cls in (
        (types.VariantType, _Variant),
        (types.OptionType, _Option),
        (types.ResultType, _Result),
    ):
        if isinstance(ty, plain):
            cases = [(name, t if t is None else remember(t)) for name, t in ty._cases()]
            return _remembered(cls, known_cases=cases, known_tagged=ty._tagged())
    return ty


class Signature:
    """The cached parameter and result types of a function."""

    def __init__(self, func_type: Any) -> None:
        self.params = [(name, remember(ty)) for name, ty in func_type.params]
        result = func_type.result
        self.result = None if result is None else remember(result)


def remembered_func(func: Any, signature: Signature) -> Any:
    """Returns an exported function that converts values with cached types."""
    fast = _RememberedFunc.__new__(_RememberedFunc)
    fast._func = func._func
    fast.signature = signature
    return fast


if available:

    class _RememberedFunc(Func):
        signature: Signature

        def type(self, store: Any) -> Any:
            return self.signature

    class _Import:
        def __init__(self, function: Callable[..., Any]) -> None:
            self.function = function
            self.signature: Signature | None = None

    _imports: dict[int, _Import] = {}
    _indexes = itertools.count(1)

    @ffi.wasmtime_component_func_callback_t
    def _call_import(index, context, ty_raw, args, nargs, results, nresults):  # type: ignore
        # The library reads the result of this function as the address of an error, or None. If
        # an exception left the function, the address would be wrong and the process would end.
        store = StoreContext(context)
        try:
            entry = _imports[index]
            if entry.signature is None:
                entry.signature = Signature(types.FuncType._from_ptr(ty_raw, owner=store))
            params = entry.signature.params
            values = [params[i][1].convert_from_c(args[i]) for i in range(nargs)]
            answer = entry.function(store, *values)
            if entry.signature.result is not None:
                entry.signature.result.convert_to_c(store, answer, results)
            return 0
        except BaseException as error:
            line = " ".join(f"{type(error).__name__}: {error}".split())
            failure = WasmtimeError(line.encode("utf-8", "replace").decode())
            return ctypes.cast(failure._consume(), ctypes.c_void_p).value
        finally:
            store._invalidate()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def _drop_import(index):  # type: ignore
        if _imports:
            _imports.pop(index, None)


def add_import(linker_instance: Any, name: str, function: Callable[..., Any]) -> None:
    """Defines an import whose values are converted with cached types."""
    index = next(_indexes)
    _imports[index] = _Import(function)
    raw = name.encode()
    error = ffi.wasmtime_component_linker_instance_add_func(
        linker_instance.ptr(),
        ctypes.create_string_buffer(raw),
        len(raw),
        _call_import,
        index,
        _drop_import,
    )
    if error:
        raise WasmtimeError._from_ptr(error)
