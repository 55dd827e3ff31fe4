"""A host of `lcm.wasm` over wasmtime alone, written from README.md: host.py [FILE or FOLDER]..."""

import functools
import hashlib
import sys
from typing import Any

import wasmtime
from wasmtime import component as wit

from vectors.runner import ROOT, run_all

ENGINE = wasmtime.Engine()
COMPONENT = wit.Component(ENGINE, (ROOT / "dist/lcm.wasm").read_bytes())
EXPORTS = [name for name in COMPONENT.type.exports(ENGINE) if name.startswith("lcm:engine/")]


class Failed(Exception):
    """A failed call, of the store or of the engine: its code and one line for people."""

    code = property(lambda self: self.args[0])
    message = property(lambda self: self.args[1])


class Store:
    """An ordered map in memory; with `blocks`, every first read of a call is `would-block`."""

    def __init__(self, blocks: bool) -> None:
        self.entries, self.blocks, self.fetched, self.captured = {}, blocks, set(), None

    def _fetch(self, *reads: Any) -> None:
        if self.blocks and not self.fetched.issuperset(reads):
            self.fetched.update(reads)  # The values are in memory, so the fetch is only recorded.
            raise Failed("would-block", "it is being fetched")

    def get_many(self, keys: list[str]) -> list[bytes | None]:
        self._fetch(*keys)
        return [self.entries.get(key) for key in keys]

    def scan(self, start: str, end: str, reverse: bool, entries_max: int, bytes_max: int) -> Any:
        self._fetch((start, end, reverse, entries_max, bytes_max))
        page, room = [], bytes_max
        for key in sorted((one for one in self.entries if start <= one < end), reverse=reverse):
            room -= len(key) + len(self.entries[key])
            if page and (len(page) == entries_max or room < 0):
                return page, True
            page.append(record(key=key, value=self.entries[key]))
        return page, False

    def commit(self, guards: list[Any], puts: list[Any], later: bool = True) -> None:
        if self.blocks and later:
            self.captured = (guards, puts)
        elif any(self.entries.get(guard.key) != guard.value for guard in guards):
            raise Failed("conflict", "a guard does not hold")
        else:
            written = self.entries | {put.key: put.value for put in puts}
            self.entries = {key: value for key, value in written.items() if value is not None}


def record(**fields: Any) -> wit.Record:
    made = wit.Record()
    vars(made).update({name.replace("_", "-"): value for name, value in fields.items()})
    return made


def lower(ty: Any, value: Any, field: str = "arguments") -> Any:
    """Converts a plain value to the binding; None: absent, so the neutral value of the type."""
    if isinstance(ty, wit.OptionType):
        return None if value is None else lower(ty.payload, value, field)
    if isinstance(ty, wit.RecordType):
        return record(**dict(zip([name for name, _ in ty.fields], fields(ty.fields, value, field))))
    if isinstance(ty, wit.VariantType):
        ((case, payload),) = value.items()
        return wit.Variant(case, lower(dict(ty.cases)[case], payload, case))
    if isinstance(ty, wit.ListType):
        return [lower(ty.element, one, field) for one in value or ()]
    if isinstance(ty, wit.EnumType) and value not in (None, *ty.names):
        raise Failed("invalid-input", f"`{field}` must be one of {', '.join(ty.names)}")
    neutral = {wit.EnumType: lambda: ty.name(0), wit.String: str, wit.Bool: bool}.get(type(ty), int)
    return neutral() if value is None else value


def fields(types: Any, value: dict[str, Any] | None, field: str) -> list[Any]:
    """Returns the fields of a record, or the arguments of a function, in order."""
    given = dict(value or {})
    taken = [(name, ty, given.pop(name.replace("-", "_"), None)) for name, ty in types]
    if given:
        raise Failed("invalid-input", f"`{field}` has no field `{min(given)}`")
    return [lower(ty, one, name) for name, ty, one in taken]


def lift(value: Any) -> Any:
    """Converts a value of the binding to a plain value."""
    if isinstance(value, wit.Record):
        return {name.replace("-", "_"): lift(one) for name, one in vars(value).items()}
    if isinstance(value, wit.Variant):
        return {value.tag: lift(value.payload)}
    return [lift(one) for one in value] if isinstance(value, (list, tuple)) else value


class Host:
    """An instance over a store, with the interface that the vector runner requires."""

    def __init__(self, vector: Any, blocks: bool) -> None:
        self.store, self.model, self.config_json = Store(blocks), vector.model, vector.config_json
        self.linker, self.instance = wit.Linker(ENGINE), None
        version = EXPORTS[0].partition("@")[2]
        with self.linker.root() as root:
            with root.add_instance(f"lcm:engine/store@{version}") as store:
                for name in ("get-many", "scan", "commit"):
                    store.add_func(name, functools.partial(self._stored, name.replace("-", "_")))
            with root.add_instance(f"lcm:engine/llm@{version}") as llm:
                llm.add_func("complete", self._complete)

    def _stored(self, name: str, _wasm: Any, *arguments: Any) -> Any:
        try:
            return getattr(self.store, name)(*arguments)
        except Failed as error:  # Returned as a value: an exception would end the instance.
            return record(code=error.code, message=error.message)

    def _complete(self, _store: Any, request: Any) -> Any:
        ((case, given),) = self.model.answer(lift(request)).items()
        left_out = {"input_tokens": 0, "output_tokens": 0, "retry_after_ms": None}
        return wit.Variant(case, record(**left_out | given))

    def _function(self, name: str) -> tuple[Any, Any]:
        if self.instance is None:
            self.wasm = wasmtime.Store(ENGINE)
            self.instance = self.linker.instantiate(self.wasm, COMPONENT)
            if self.config_json is not None:
                self._once("setup.configure", {"config_json": self.config_json})
        interface, _, function = name.replace("_", "-").partition(".")
        (full,) = (one for one in EXPORTS if one.startswith(f"lcm:engine/{interface}@"))
        index = COMPONENT.get_export_index(function, COMPONENT.get_export_index(full))
        func = self.instance.get_func(self.wasm, index)
        return func, func.type(self.wasm)

    def _once(self, name: str, arguments: dict[str, Any]) -> Any:
        func, ty = self._function(name)
        result = func(self.wasm, *fields(ty.params, arguments, name))
        failed = isinstance(result, wit.Record)
        if isinstance(result, wit.Variant) and result.tag in ("ok", "err"):
            failed, result = result.tag == "err", result.payload
        if failed and isinstance(ty.result, wit.ResultType):
            raise Failed(result.code, result.message)
        return lift(result)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        self.store.fetched, self.store.captured = set(), None
        while True:
            try:
                return self._once(name, arguments)
            except Failed as error:
                if error.code != "would-block":
                    raise
            finally:
                if self.store.captured is not None:
                    kept, self.instance = self.instance, None  # Dropped if the commit fails.
                    self.store.commit(*self.store.captured, later=False)
                    self.instance = kept

    def parameters(self, name: str) -> dict[str, bool]:
        _, ty = self._function(name)
        return {one.replace("-", "_"): isinstance(of, wit.OptionType) for one, of in ty.params}

    def restart(self, config_json: str | None) -> None:
        self.config_json, self.instance = config_json or self.config_json, None

    def sha256(self) -> str:
        digest = hashlib.sha256()
        for key, value in sorted(self.store.entries.items()):
            for part in (key.encode(), value):
                digest.update(len(part).to_bytes(4, "big") + part)
        return digest.hexdigest()

    def drive(self, arguments: dict[str, Any], offline: bool) -> Any:
        place = {name: arguments[name] for name in ("conversation", "now")}
        options = {"requests_max": 1} | arguments["options"]
        passes: list[Any] = []
        ended = {"status": "refused", "completions": 0, "passes": passes}
        while True:
            plan = self.call("compaction.plan", arguments | {"options": options})
            options["sweep"] = plan["sweep"]
            if plan["status"] != "needs-completions" and not plan["sweep"]:
                return ended | {"status": plan["status"], "reason": plan["reason"]}
            for request in plan["requests"]:
                while request is not None:
                    ended["completions"] += 1
                    out = offline and self.call("compaction.complete_offline", {"request": request})
                    answer = {"done": out} if offline else self.model.answer(request)
                    given = {"request_id": request["id"], "answer": answer}
                    passes.append(self.call("compaction.apply", place | given))
                    request = passes[-1]["next"] if passes[-1]["applied"] == "retry" else None
                reason = passes[-1]["reason"]
                if passes[-1]["applied"] == "refused" and reason.startswith("model-"):
                    return ended | {"reason": reason}


if __name__ == "__main__":
    sys.exit(run_all("kit", sys.argv[1:], Host))
