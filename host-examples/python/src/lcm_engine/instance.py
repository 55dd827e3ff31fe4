"""One instance of the component: calls by name with plain values, errors as exceptions.

An instance is only a cache. The first call creates and configures it. A trap, a fault of its store
or `drop` discards it, and the next call gets a new instance. This module repeats no call.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

import wasmtime
from wasmtime.component import Linker, OptionType

from . import byte_shim, values
from .component import PACKAGE, Program
from .errors import LcmError
from .interrupts import Interrupts
from .ports import NoStore, Port

MEMORY_BYTES_MAX = 512 * 1024 * 1024
"""Largest memory of an instance, in bytes: several times the largest message."""

Model = Callable[[dict[str, Any]], dict[str, Any]]
"""Answers a completion request with `{"done": {...}}` or `{"failed": {...}}`."""


def _record(**fields: Any) -> Any:
    record = values.Record()
    record.__dict__.update(fields)
    return record


def _error(error: LcmError) -> Any:
    return _record(code=error.code, message=error.message)


class _PlainSignature:
    def __init__(self, func_type: Any) -> None:
        self.params = func_type.params
        self.result = func_type.result


class Instance:
    """A component instance that is replaced after a trap or a fault of its store."""

    def __init__(
        self,
        program: Program,
        config_json: str | None = None,
        model: Model | None = None,
        memory_bytes_max: int = MEMORY_BYTES_MAX,
        bulk_bytes: bool | None = None,
    ) -> None:
        """`config_json` configures every new instance; `bulk_bytes` None: use if available."""
        if bulk_bytes is None and not byte_shim.available:
            warnings.warn("this wasmtime moves bytes one by one: calls are slow", stacklevel=2)
        self.bulk_bytes = byte_shim.available if bulk_bytes is None else bulk_bytes
        self.made = 0
        """Number of instances made so far."""
        self.config_json = config_json
        self._program = program
        self._model = model
        self._memory_bytes_max = memory_bytes_max
        self._port: Port = NoStore()
        self._interrupts = Interrupts()
        self._broken_off: BaseException | None = None
        """The exception, raised inside an import, that broke off the running call; None: none."""
        self._store: wasmtime.Store | None = None
        self._instance: Any = None
        self._functions: dict[str, Any] = {}
        self._linker = Linker(program.engine)
        self._link()

    def _link(self) -> None:
        version = self._program.version
        with self._linker.root() as root:
            with root.add_instance(f"{PACKAGE}/store{version}") as store:
                self._add(store, "get-many", Instance._get_many)
                self._add(store, "scan", Instance._scan)
                self._add(store, "commit", Instance._commit)
            with root.add_instance(f"{PACKAGE}/llm{version}") as llm:
                self._add(llm, "complete", Instance._complete)

    def _add(self, where: Any, name: str, function: Callable[..., Any]) -> None:
        itself = weakref.ref(self)  # The library keeps a reference to the function.

        def answer(_store: Any, *arguments: Any) -> Any:
            instance = itself()
            assert instance is not None
            return instance._answer(function, arguments)

        if self.bulk_bytes:
            byte_shim.add_import(where, name, answer)
        else:
            where.add_func(name, answer)

    def _answer(self, function: Callable[..., Any], arguments: Any) -> Any:
        """Returns the answer of an import; raises only `Exception`, which is a trap.

        An exception of a signal handler breaks the call off and is no error of the store.
        """
        answer, error = None, None
        try:
            answer = self._interrupts.letting_through(function, self, *arguments)
        except BaseException as raised:
            error = raised
        of_handler = self._interrupts.raised
        if of_handler is not None and (error is of_handler or self._port.caught is of_handler):
            self._broken_off = of_handler
        elif error is not None and not isinstance(error, Exception):
            self._broken_off = error
        if self._broken_off is not None:
            raise RuntimeError("the call was broken off") from None
        if error is not None:
            raise error
        return answer

    def _get_many(self, keys: list[str]) -> Any:
        try:
            return list(self._port.get_many(keys))
        except LcmError as error:
            return _error(error)

    def _scan(self, *scan: Any) -> Any:
        try:
            entries, more = self._port.scan(scan)
        except LcmError as error:
            return _error(error)
        return ([_record(key=key, value=value) for key, value in entries], more)

    def _commit(self, guards: list[Any], puts: list[Any]) -> Any:
        try:
            self._port.commit(
                [(guard.key, guard.value) for guard in guards],
                [(put.key, put.value) for put in puts],
            )
        except LcmError as error:
            return _error(error)
        return None

    def _complete(self, request: Any) -> Any:
        answer: dict[str, Any] = {
            "failed": {"code": "unavailable", "message": "this host has no model for `run`"}
        }
        if self._model is not None:
            try:
                answer = self._model(values.lift(request))
            except Exception as error:
                self._port.fault = LcmError("completion-failed", f"the model raised {error!r}")
                answer = {"failed": {"code": "other", "message": repr(error)}}
        ((case, fields),) = answer.items()
        if case == "done":
            fields = {"finish": "stop", "model": "", "input_tokens": 0, "output_tokens": 0} | fields
        else:
            fields = {"message": "", "retry_after_ms": None} | fields
        names = {name.replace("_", "-"): value for name, value in fields.items()}
        return values.Variant(case, _record(**names))

    def drop(self) -> None:
        """Forgets the instance; the next call makes a new one."""
        self._store = None
        self._functions = {}
        self._instance = None

    def _make(self) -> None:
        store = wasmtime.Store(self._program.engine)
        store.set_limits(memory_size=self._memory_bytes_max)
        self._instance = self._linker.instantiate(store, self._program.component)
        self._store = store
        self.made += 1
        if self.config_json is not None:
            try:
                self.call("setup.configure", {"config_json": self.config_json}, NoStore())
            except LcmError:
                self.drop()
                raise

    def _function(self, name: str) -> tuple[Any, Any]:
        """Returns an exported function and its signature."""
        known = self._functions.get(name)
        if known is not None:
            return known  # type: ignore[no-any-return]
        interface, _, function = name.partition(".")
        component = self._program.component
        outer = component.get_export_index(self._program.interfaces.get(interface, interface))
        index = func = None
        if outer is not None:
            index = component.get_export_index(function.replace("_", "-"), outer)
        if index is not None:
            func = self._instance.get_func(self._store, index)
        if func is None:
            raise LcmError("unsupported", f"the component has no function `{name}`")
        key = f"{name} {self.bulk_bytes}"
        signature = self._program.signatures.get(key)
        if signature is None:
            func_type = func.type(self._store)
            kind = byte_shim.Signature if self.bulk_bytes else _PlainSignature
            signature = self._program.signatures.setdefault(key, kind(func_type))
        if self.bulk_bytes:
            func = byte_shim.remembered_func(func, signature)
        self._functions[name] = (func, signature)
        return func, signature

    def parameters(self, name: str) -> dict[str, bool]:
        """Returns the parameters of a function in snake_case, and whether each is optional."""
        if self._store is None:
            self._make()
        _, signature = self._function(name)
        return {key.replace("-", "_"): isinstance(ty, OptionType) for key, ty in signature.params}

    def call(self, name: str, arguments: dict[str, Any], port: Port) -> Any:
        """Calls `interface.function`; the store imports go to `port` meanwhile.

        Raises the error of the engine, the fault of the port, or `trap`. An exception that broke
        the call off is raised unchanged: an exception of a signal handler, or one of a store or a
        model that is no `Exception`. An error of the engine, of the port or of this module is also
        set as `answered` of the port.
        """
        outer = self._interrupts
        with Interrupts() as self._interrupts:
            try:
                return self._call(name, arguments, port)
            except LcmError as error:
                if error is not self._interrupts.raised:
                    port.answered = error
                raise
            finally:
                self._interrupts = outer

    def _call(self, name: str, arguments: dict[str, Any], port: Port) -> Any:
        if self._store is None:
            self._make()
        func, signature = self._function(name)
        lowered = values.lower_arguments(signature.params, arguments)
        outer, self._port = self._port, port
        try:
            value = func(self._store, *lowered)
        except Exception as error:
            self.drop()
            broken_off, self._broken_off = self._broken_off, None
            if broken_off is not None:
                raise broken_off
            message = str(error).strip().splitlines()
            raise LcmError("trap", message[-1] if message else repr(error)) from error
        finally:
            self._port = outer
        if port.fault is not None:
            self.drop()
            raise port.fault
        return values.lift_result(signature.result, value)
