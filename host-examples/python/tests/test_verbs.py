"""The calls: equal in both packages, documented, and complete for the interface."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import pkgutil
import re
import types
import unittest
from typing import Any, Literal, NotRequired, Union
from typing import get_args, get_origin, get_type_hints, is_typeddict

import lcm_engine
from lcm_engine import LcmError
from lcm_engine import results as results_of

from .support import HERE, NOW, ROOT

PLUMBING = {
    "admin.call",  # Each of its verbs has its own method.
    "compaction.apply",  # This and the next two are called by instructions of the engine.
    "ingest.append",
    "ingest.reconcile",
    "compaction.run",  # `compact` calls `plan` and `apply` instead.
    "recall.ask_run",  # `ask` calls `ask_plan` and `ask_apply` instead.
}
"""Functions of the interface whose names no verb contains, with the reason."""


def opened(**options) -> lcm_engine.Lcm:
    return lcm_engine.open(clock=lambda: NOW, environment={}, **options)


def opened_async(**options) -> lcm_engine.async_lcm.Opening:
    return lcm_engine.open_async(clock=lambda: NOW, environment={}, **options)


def said(number: int) -> dict[str, str]:
    return {"role": "user", "content": f"Locker {number} is in hall {number}. " + "word " * 60}


def waits(opened, verb) -> bool:
    """Returns whether a call of `verb` must be awaited or iterated with `async for`."""
    parameters = inspect.signature(verb).parameters.values()
    names = [one.name for one in parameters if one.default is one.empty][1:]
    called = verb(opened, **{name: {} for name in names})
    if inspect.iscoroutine(called):
        called.close()
        return True
    return inspect.isasyncgen(called)


def public(cls: type) -> dict[str, object]:
    return {name: one for name, one in inspect.getmembers(cls) if not name.startswith("_")}


def modules() -> list[object]:
    """Returns the package with all its modules."""
    prefix = "lcm_engine."
    found = pkgutil.walk_packages(lcm_engine.__path__, prefix)
    return [lcm_engine, *(importlib.import_module(one.name) for one in found)]


class Surface(unittest.TestCase):
    def test_the_types_of_every_verb_are_known_to_who_asks(self):
        for name, verb in (public(lcm_engine.Lcm) | public(lcm_engine.AsyncLcm)).items():
            self.assertIn("return", get_type_hints(verb), name)

    def test_both_packages_have_the_same_verbs_with_the_same_parameters(self):
        plain, awaited = public(lcm_engine.Lcm), public(lcm_engine.AsyncLcm)
        self.assertEqual(set(plain), set(awaited))
        self.assertGreater(len(plain), 40)
        lcm = asyncio.run(opened_async().__aenter__())
        for name, verb in plain.items():
            other = awaited[name]
            self.assertTrue(inspect.isfunction(verb), name)
            one, two = inspect.signature(verb), inspect.signature(other)
            self.assertEqual(one.parameters, two.parameters, name)
            if name == "conversation":
                continue  # `conversation` returns a handle; only calls of the handle are awaited.
            self.assertTrue(waits(lcm, other), name)
            results = [each.return_annotation for each in (one, two)]
            if inspect.isasyncgenfunction(other):
                results = [get_args(result) for result in results]
            self.assertEqual(results[0], results[1], name)

    def test_everything_public_has_a_docstring(self):
        missing = []
        for module in modules():
            tree = ast.parse(inspect.getsource(module))
            missing += [f"{module.__name__}: {name}" for name in without_docstring(tree, "module")]
        self.assertEqual(missing, [])
        aliases = set()
        for module in modules():
            aliases.update(documented_names(ast.parse(inspect.getsource(module))))
        for name in lcm_engine.__all__:
            # An alias of a type has no docstring at run time.
            described = inspect.getdoc(getattr(lcm_engine, name)) or name in aliases
            self.assertTrue(described, name)

    def test_every_function_of_the_interface_can_be_called_by_a_verb(self):
        functions = set()
        for path in (ROOT / "wit").glob("*.wit"):
            text = path.read_text(encoding="utf-8")
            interface = re.search(r"^interface ([\w-]+)", text, re.MULTILINE)
            if interface and interface[1] not in ("store", "llm", "types"):
                names = re.findall(r"^  ([\w-]+): func\(", text, re.MULTILINE)
                functions |= {f"{interface[1]}.{name.replace('-', '_')}" for name in names}
        self.assertGreater(len(functions), 25)
        sources = "\n".join(path.read_text(encoding="utf-8") for path in flows_sources())
        uncalled = {name for name in functions if f'"{name}"' not in sources}
        self.assertEqual(uncalled - PLUMBING, set())
        self.assertLessEqual(PLUMBING, functions)

    def test_every_verb_of_the_interface_has_a_name_here(self):
        text = (ROOT / "wit/admin.wit").read_text(encoding="utf-8")
        verbs = set(re.findall(r"(?:Arguments|Answer) of `(\w+)`", text))
        self.assertGreater(len(verbs), 8)
        names = {name.replace("new_session", "new") for name in public(lcm_engine.Lcm)}
        self.assertLessEqual(verbs, names)


def without_docstring(node, name):
    """Yields the names of public items in a module or class that have no docstring."""
    if not ast.get_docstring(node):
        yield name
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for inner in () if isinstance(node, kinds[1:]) else node.body:
        if isinstance(inner, kinds) and not inner.name.startswith("_"):
            yield from without_docstring(inner, inner.name)


def documented_names(module):
    """Yields the names of module variables that have a docstring."""
    for statement, docstring in zip(module.body, module.body[1:], strict=False):
        match statement, docstring:
            case (
                (ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name))),
                ast.Expr(value=ast.Constant(value=str())),
            ):
                yield name


def flows_sources():
    """Returns the source files of the package."""
    return (HERE / "src/lcm_engine").rglob("*.py")


class Results(unittest.TestCase):
    def is_described(self, kind, value, path):
        """Returns whether a value has the keys and the types of `kind`, a member of a union."""
        try:
            self.check_result(kind, value, path)
        except AssertionError:
            return False
        return True

    def check_result(self, kind, value, path):
        """Asserts that a value has the keys and the types of `kind`."""
        origin, inner = get_origin(kind), get_args(kind)
        if is_typeddict(kind):
            self.assertIsInstance(value, dict, path)
            hints = get_type_hints(kind, include_extras=True)
            self.assertLessEqual(set(value), set(hints), path)
            for name, described in hints.items():
                if get_origin(described) is NotRequired:
                    (described,) = get_args(described)
                else:
                    self.assertIn(name, value, path)
                if name in value:
                    self.check_result(described, value[name], f"{path}.{name}")
        elif origin is list:
            self.assertIsInstance(value, list, path)
            for one in value:
                self.check_result(inner[0], one, path)
        elif origin is Literal:
            self.assertIn(value, inner, path)
        elif origin in (types.UnionType, Union):
            self.assertTrue(any(self.is_described(one, value, path) for one in inner), path)
        elif kind is type(None):
            self.assertIsNone(value, path)
        elif kind is not Any:
            self.assertIsInstance(value, origin or kind, path)

    def test_results_are_what_their_types_say(self):
        prices = {"input": 3_000_000, "output": 15_000_000}
        with opened() as lcm:
            lcm.ingest("c", [said(number) for number in range(120)])
            done = lcm.turn("c", [said(120)], 4_000)
            context = lcm.assemble("c", 4_000, explain=True)
            id, grant = context["items"][0]["id"], lcm.grant("c")
            lines = list(lcm.export())
            results = [
                (results_of.TurnReport, done),
                (results_of.Receipt, lcm.append("c", [said(121)])),
                (results_of.Decision, lcm.evaluate("c", 4_000)),
                (results_of.CompactReport, lcm.compact("c", 1_500)),
                (results_of.MaintainReport, lcm.maintain("c", 4_000)),
                (results_of.AssembledContext, context),
                (results_of.ExpandResult, lcm.expand("c", id, include_messages=True)),
                (results_of.ExpandResult, lcm.expand("c", id, grant=grant["id"])),
                (results_of.GrepResult, lcm.grep("c", "hall")),
                (results_of.GrepResult, lcm.grep("c", "hall", grant=grant["id"])),
                (results_of.EmbedResult, lcm.embed("c")),
                (results_of.AskResult, lcm.ask("c", "Where is locker 7?")),
                (results_of.AskResult, lcm.ask("c", "Where is locker 7?", grant=grant["id"])),
                (results_of.QuestionPlan, lcm.ask_plan("c", "Where is locker 7?")),
                (results_of.QuestionPlan, lcm.ask_plan("c", "Locker 7?", grant=grant["id"])),
                (results_of.Grant, grant),
                (results_of.CheckResult, lcm.check("c")),
                (list[results_of.SummaryPrompt], lcm.prompts()),
                (results_of.ImportReport, lcm.import_lines(lines)),
                (results_of.UsageAnswer, lcm.usage("c", "turn", input_tokens=5)),
                (results_of.AdviseAnswer, lcm.advise("c", 4_000, prices)),
                (results_of.ToolAnswer, lcm.call_tool("c", "lcm_budget", {})),
                (results_of.ConversationStatus, lcm.status("c")),
                (results_of.StoreStatus, lcm.status()),
                (results_of.SummaryDescription, lcm.describe("c", id)),
                (results_of.ConversationDescription, lcm.describe("c", "c")),
                (list[results_of.ListedConversation], lcm.listing("conversations")),
                (list[results_of.ListedSummary], lcm.listing("summaries", "c")),
                (list[results_of.StoredMessage], lcm.listing("messages", "c")),
                (list[results_of.Grant], lcm.listing("grants", "c")),
                (results_of.FamilyAnswer, lcm.family("c", "lockers")),
                (results_of.FamilyReport, lcm.maintain_family("lockers", 4_000)),
                (results_of.CalibrateAnswer, lcm.calibrate("c", "m", 1_000, 1_200)),
                (results_of.FocusAnswer, lcm.focus("c", "Locker 7.")),
                (results_of.NewSessionAnswer, lcm.new_session("c")),
                (results_of.ResetAnswer, lcm.reset("c")),
                (results_of.ArchiveAnswer, lcm.archive("c#2", "session-end")),
                (results_of.DeletionResult, lcm.delete("c#2")),
                (list[results_of.ListedDeletion], lcm.listing("deletions")),
                (results_of.ConfigurationReport, lcm.configure({"enabled": True})),
            ]
        for kind, value in results:
            self.check_result(kind, value, getattr(kind, "__name__", str(kind)))
        tested = {kind for kind, _ in results}
        self.assertTrue(done["compacted"]["passes"])
        with self.assertRaises(AssertionError):
            self.check_result(results_of.Receipt, {"revision": 1}, "")
        with self.assertRaises(AssertionError):
            self.check_result(results_of.ToolAnswer, {"text": 1, "is_error": False}, "")
        self.assertGreater(len(tested), 15)


class Verbs(unittest.TestCase):
    def test_a_question_can_be_planned_without_being_asked(self):
        async def awaited():
            async with opened_async() as lcm:
                await lcm.append("c", [said(number) for number in range(3)])
                return await lcm.ask_plan("c", "Where is locker 2?")

        with opened() as lcm:
            lcm.append("c", [said(number) for number in range(3)])
            before = lcm.digest()
            plan = lcm.ask_plan("c", "Where is locker 2?")
            self.assertEqual(lcm.digest(), before)
            grant = lcm.grant("c", tokens_max=500)["id"]
            granted = lcm.ask_plan("c", "Where is locker 2?", grant=grant)
            with self.assertRaises(LcmError) as caught:
                lcm.ask_plan("c", "")
        self.assertEqual(caught.exception.code, "invalid-input")
        self.assertEqual(asyncio.run(awaited()), plan)
        self.assertEqual(plan["status"], "planned")
        (row,) = plan["conversations"]
        self.assertEqual((row["conversation"], len(row["ids"])), ("c", 3))
        actions = ("answer-directly", "expand-shallow", "delegate-traversal")
        self.assertIn(plan["routing"]["action"], actions)
        self.assertEqual(granted["grant"]["tokens"], 0)

    def test_a_stream_reads_a_page_when_its_items_are_wanted(self):
        class Counted(lcm_engine.MemoryStore):
            reads = 0

            def get_many(self, keys):
                self.reads += 1
                return super().get_many(keys)

        store = Counted()
        large = [{"role": "user", "content": f"{number} " + "x" * 400_000} for number in range(6)]
        with opened(store=store) as lcm:
            for one in large:
                lcm.append("c", [one])
            lcm.configure({})  # Starts a new instance, which has no cache.
            stream = lcm.iter_messages("c", 2)
            store.reads = 0
            first = next(stream)
            early = store.reads
            rest = list(stream)
            self.assertLess(early, store.reads)
            self.assertEqual([first, *rest], lcm.messages("c", 2))
            self.assertEqual(len(rest), 4)
            self.assertEqual(list(lcm.iter_messages("c", 7)), [])
            with self.assertRaises(LcmError) as caught:
                next(lcm.iter_messages("nobody"))
            self.assertEqual(caught.exception.code, "not-found")

    def test_pages_of_an_expansion_are_those_of_the_whole(self):
        texts = [said(number) for number in range(120)]

        async def awaited(id):
            async with opened_async() as lcm:
                await lcm.ingest("c", texts)
                await lcm.compact("c", 4_000)
                pages = lcm.iter_expand("c", id, include_messages=True, tokens_max=500)
                return [page async for page in pages]

        with opened() as lcm:
            lcm.ingest("c", texts)
            lcm.compact("c", 4_000)
            id = lcm.assemble("c", 4_000, explain=True)["items"][0]["id"]
            whole = lcm.expand("c", id, include_messages=True)
            pages = list(lcm.iter_expand("c", id, include_messages=True, tokens_max=500))
        self.assertEqual(asyncio.run(awaited(id)), pages)
        self.assertGreater(len(pages), 2)
        self.assertEqual([one for page in pages for one in page["messages"]], whole["messages"])
        self.assertEqual(sum(page["tokens"] for page in pages), whole["tokens"])

    def test_an_export_comes_in_again_in_either_package(self):
        texts = [said(number) for number in range(150)]
        with opened() as lcm:
            lcm.ingest("c", texts)
            lcm.compact("c", 4_000)
            lcm.append("d", texts[:2])
            lines, only = list(lcm.export()), list(lcm.export("d"))
            logical = lcm.digest(logical=True)
        self.assertLess(len(only), len(lines))

        async def moved():
            async with opened_async() as lcm:
                report = await lcm.import_lines(f"{line}\n" for line in lines)
                again = await lcm.import_lines(lines)
                exported = [line async for line in lcm.export()]
                return report, again, exported, await lcm.digest(logical=True)

        report, again, exported, digest = asyncio.run(moved())
        self.assertEqual((report["conversations"], report["ingested"]), (2, 152))
        self.assertEqual(again["ingested"], 0)
        self.assertEqual((exported, digest), (lines, logical))
        with opened() as lcm:
            for wrong in (lines[:-1], [*lines[:3], lines[3].replace("hall", "hell"), *lines[4:]]):
                with self.assertRaises(LcmError) as caught:
                    lcm.import_lines(wrong)
                self.assertEqual(caught.exception.code, "invalid-input")
            self.assertEqual(lcm.store.entries, {})
            for wrong in ("text", [1]):
                with self.assertRaises(LcmError):
                    lcm.import_lines(wrong)
            with self.assertRaises(LcmError):
                next(lcm.export(""))

    def test_another_configuration_holds_for_every_instance_from_then_on(self):
        off = {"enabled": False, "no_such_key": 1}

        async def awaited(store):
            async with opened_async(store=store) as lcm:
                await lcm.ingest("c", [said(number) for number in range(120)])
                report = await lcm.configure(off)
                done = await lcm.compact("c", 2_000)
                with self.assertRaises(LcmError):
                    await lcm.configure({"enabled": "maybe"})
                return report, done, await lcm.version()

        stores = (lcm_engine.MemoryStore(), lcm_engine.stores.AsyncMemoryStore())
        for report, done, version in (asyncio.run(awaited(store)) for store in stores):
            self.assertEqual(report["unknown"], ["no_such_key"])
            self.assertEqual((done["status"], done["passes"]), ("nothing-to-do", []))
            self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        with opened() as lcm:
            lcm.ingest("c", [said(number) for number in range(120)])
            lcm.configure(off)
            self.assertEqual(lcm.compact("c", 2_000)["passes"], [])
            lcm.configure({})
            self.assertTrue(lcm.compact("c", 2_000)["passes"])

    def test_how_models_are_asked_may_differ_from_call_to_call(self):
        asked = []

        def complete(request, timeout):
            asked.append(timeout)
            raise TimeoutError

        calls = [
            lambda lcm, **given: lcm.compact("c", 4_000, **given),
            lambda lcm, **given: lcm.turn("c", [said(121)], 4_000, **given),
            lambda lcm, **given: lcm.ask("c", "Where is locker 7?", **given),
        ]
        for call in calls:
            for given, times in (({}, [5]), ({"timeout_ms": 70, "retries": 1}, [0.07, 0.07])):
                with opened(complete=complete, retries=0, timeout_ms=5_000) as lcm:
                    lcm.ingest("c", [said(number) for number in range(120)])
                    asked.clear()
                    call(lcm, **given)
                    self.assertEqual(asked, times)
                    for wrong in ({"timeout_ms": 0}, {"retries": -1}, {"retries": True}):
                        with self.assertRaises(LcmError) as caught:
                            call(lcm, **wrong)
                        self.assertEqual(caught.exception.code, "invalid-input")

    def test_reserved_work_is_not_handed_out_again(self):
        plans = []

        def complete(request):
            options = {"requests_max": 1, "lease_ms": 60_000}
            plan = {"conversation": "c", "budget": 4_000, "options": options, "now": NOW}
            plans.append((request["id"], lcm.call("compaction.plan", plan)["requests"]))
            return "A summary."

        for lease_ms in (0, 60_000):
            with opened(complete=complete) as lcm:
                lcm.ingest("c", [said(number) for number in range(120)])
                lcm.compact("c", 4_000, lease_ms=lease_ms)
            id, requests = plans[0]
            self.assertEqual(id in [one["id"] for one in requests], not lease_ms)
            plans.clear()

    def test_an_opening_is_awaited_or_entered(self):
        async def both():
            lcm = await opened_async()
            await lcm.close()
            with self.assertRaises(LcmError) as caught:
                async with opened_async(config={"enabled": 7}):
                    self.fail("it must not open")
            return caught.exception.code

        self.assertEqual(asyncio.run(both()), "invalid-input")


if __name__ == "__main__":
    unittest.main()
