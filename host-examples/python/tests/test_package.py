"""The wheel: its files, and that it works in an empty environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import unittest
import venv
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from .support import HERE, PYTHON, ROOT, child_environment

BESIDE_BYTES_MAX = 140_000
"""Most bytes of the wheel without its component; `.ci/size-budget` bounds the component."""

PROGRAM_LINES_MAX = 8
READMES = (ROOT / "README.md", HERE / "README.md")

PRELUDE = '''
import json
import types
import lcm_engine

def my_model(*arguments):
    return types.SimpleNamespace(input_tokens=20)

model, system, tools, previous, budget = "m", "You help.", [], None, 200_000
messages = [{"role": "user", "content": "Where did we leave the migration?"}]
lcm = lcm_engine.open("memory:")
lcm.append("chat-1", messages)
'''
"""Code to run before a fragment of the README, which uses these names."""

USER_PROGRAM = '''
import asyncio
import lcm_engine


def summarise(request: lcm_engine.CompletionRequest) -> str:
    return request["prompt"][:80]


class Blocked(lcm_engine.MemoryStore):
    def __len__(self) -> int:
        return len(self.entries)


def plain() -> int:
    with lcm_engine.open(Blocked(), summarise, {"fresh_tail_messages_max": 8}) as lcm:
        receipt: lcm_engine.Receipt = lcm.append("c", [{"role": "user", "content": "hello"}])
        turn = lcm.turn("c", ["{}"], 1_000, dialect="anthropic", defer=True)
        texts: list[str] = list(lcm.iter_messages("c"))
        decision = turn["decision"]
        return receipt["ingested"] + (decision["tokens"] if decision else 0) + len(texts)


def configured(config: lcm_engine.Configuration) -> list[str]:
    async def complete(request: lcm_engine.CompletionRequest) -> lcm_engine.Completion:
        return {"text": request["prompt"], "finish": "stop"}

    def timed(request: lcm_engine.CompletionRequest, timeout: float) -> str:
        return request["prompt"][: int(timeout)]

    lcm_engine.open_async(complete={"leaf": complete, "default": [timed, summarise]})
    with lcm_engine.open(config=config) as lcm:
        found = lcm.grep("c", {"pattern": "hello", "limit": 5}, scope="messages")
        described = lcm.describe("c", "sum_0", {"include_content": False})
        tools = [str(tool["name"]) for tool in lcm.tools("anthropic")]
        answer = lcm.call_tool("c", tools[0], {"pattern": "hello"})
        count = lcm.call("ingest.identify", {"dialect": "lcm", "messages": ["{}"]})
        kind = described["kind"] + lcm.listing("conversations")[0]["updated_at"]
        return [match["id"] for match in found["matches"]] + [kind, answer["text"], str(count)]


async def awaited() -> str | None:
    async with lcm_engine.open_async() as lcm:
        await asyncio.gather(lcm.append("c", []), lcm.compact("c", 1_000))
        async for page in lcm.iter_expand("c", "sum_0"):
            print(page["tokens"])
        stored = (await lcm.status("c"))["messages"] + (await lcm.status())["entries"]
        print(stored, [one["tokens"] for one in await lcm.listing("summaries", "c")])
        return (await lcm.assemble("c", 1_000))["system"]
'''

MISTAKES = {
    'lcm.append("c", 5)': "arg-type",
    'lcm.append("c", [], dialect="lmc")': "arg-type",
    'lcm.append("c", [], budget=1)': "call-arg",
    'lcm.apend("c", [])': "attr-defined",
    'lcm.append("c", [])["stored"]': "misc",
    'lcm.configure({"fresh_tail": 8})': "typeddict-unknown-key",
    'lcm.describe("c", "sum_0", {"lines": 8})': "arg-type",
    'lcm.status("c")["size"]': "typeddict-item",
    'lcm.grep("c", {"limit": "5"})': "arg-type",
}
"""Lines that a type checker must refuse, each with its code."""


def python_blocks(readme: Path) -> list[str]:
    """Returns the unchanged programs and fragments of a document."""
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    return [str(block) for block in blocks]


def component_bytes_max() -> int:
    """Returns the most bytes of the gzipped component."""
    budget = (ROOT / ".ci/size-budget").read_text(encoding="utf-8")
    (gzipped,) = re.findall(r"^gzip (\d+)$", budget, re.MULTILINE)
    return int(gzipped)


def is_program(block: str) -> bool:
    """Returns whether a block is a complete program."""
    return block.startswith("import ")


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        (cls.wheel,) = (ROOT / "dist").glob("lcm_engine-*.whl")

    def test_it_is_small_and_has_the_component_types_and_licences_inside(self):
        size = self.wheel.stat().st_size
        print(f"{self.wheel.name}: {size} bytes")
        with zipfile.ZipFile(self.wheel) as wheel:
            names = set(wheel.namelist())
            component = wheel.read("lcm_engine/lcm.wasm")
            component_size = wheel.getinfo("lcm_engine/lcm.wasm").compress_size
        self.assertLess(size - component_size, BESIDE_BYTES_MAX)
        self.assertLess(size, component_bytes_max() + BESIDE_BYTES_MAX)
        self.assertEqual(component, (ROOT / "dist/lcm.wasm").read_bytes())
        modules = (HERE / "src").rglob("*.py")
        wanted = {path.relative_to(HERE / "src").as_posix() for path in modules}
        self.assertLessEqual(wanted | {"lcm_engine/py.typed"}, names)
        self.assertTrue(any(name.endswith("LICENSE-MIT") for name in names))

    def test_the_same_sources_give_the_same_bytes(self):
        before = self.wheel.read_bytes()
        subprocess.run(["bash", HERE / "package.sh"], check=True, capture_output=True)
        self.assertEqual(self.wheel.read_bytes(), before)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        venv.create(cls.folder / "empty", with_pip=False)
        cls.python = cls.folder / "empty/bin/python"
        (wheel,) = (ROOT / "dist").glob("lcm_engine-*.whl")
        pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--python", cls.python]
        install = ["install", "--quiet", "--no-index", "--find-links", HERE / ".venv/wheels"]
        subprocess.run([*pip, *install, wheel], check=True)

    def run_program(self, name: str, program: str) -> subprocess.CompletedProcess[str]:
        """Runs a program in a separate folder, with only the wheel and its dependencies."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "program.py").write_text(program, encoding="utf-8")
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return subprocess.run(
            [self.python, "-W", "error", "program.py"],
            cwd=folder,
            env={"HOME": str(home), "PATH": os.defpath},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_the_programs_of_the_readmes_run_as_they_are_printed(self):
        programs = [block for readme in READMES for block in python_blocks(readme)]
        programs = [program for program in programs if is_program(program)]
        self.assertEqual(len(programs), 3)
        for number, program in enumerate(programs):
            lines = [line for line in program.splitlines() if line.strip()]
            self.assertLessEqual(len(lines), PROGRAM_LINES_MAX, program)
            told = "json.dumps(globals().get('request') or context)"
            shown = f"{program}\nimport json\nprint({told})\n"
            done = self.run_program(f"program-{number}", shown)
            self.assertEqual(done.returncode, 0, done.stderr)
            said = json.loads(done.stdout)[-1]["content"]
            self.assertIn("Where did we leave the migration?", said)
            self.assertTrue((self.folder / f"program-{number}/agent.lcm.db").is_file())

    def test_the_fragments_of_the_readme_run_with_what_they_take_for_granted(self):
        fragments = [block for block in python_blocks(HERE / "README.md") if not is_program(block)]
        self.assertGreater(len(fragments), 2)
        for number, fragment in enumerate(fragments):
            done = self.run_program(f"fragment-{number}", f"{PRELUDE}\n{fragment}\nlcm.close()\n")
            self.assertEqual(done.returncode, 0, f"{fragment}\n{done.stderr}")

    def test_the_compiled_component_is_kept_in_the_folder_of_the_user(self):
        program = "import lcm_engine; lcm_engine.open().close(); print(lcm_engine.__file__)"
        self.assertIn(str(self.folder / "empty"), self.run_program("cache-1", program).stdout)
        (kept,) = (self.folder / "home/.cache/lcm-engine").iterdir()
        written = kept.stat().st_mtime_ns
        started = time.perf_counter()
        self.assertEqual(self.run_program("cache-2", program).returncode, 0)
        print(f"opened from the cache, Python started, in {time.perf_counter() - started:.2f} s")
        self.assertEqual(kept.stat().st_mtime_ns, written)

    def check_types(self, program: str) -> str:
        """Returns the output of mypy for a program that uses the wheel."""
        path = self.folder / "typed.py"
        path.write_text(program, encoding="utf-8")
        mypy = [PYTHON, "-m", "mypy", "--strict", "--python-executable", self.python]
        done = subprocess.run(
            [*mypy, "--cache-dir", self.folder / "mypy", "--no-error-summary", path],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    def test_a_type_checker_reads_programs_over_the_wheel(self):
        self.assertEqual(self.check_types(USER_PROGRAM), "")
        wrong = "".join(f"    {line}\n" for line in MISTAKES)
        said = self.check_types(f"import lcm_engine\nwith lcm_engine.open() as lcm:\n{wrong}")
        codes = [line.rpartition("[")[2] for line in said.splitlines()]
        self.assertEqual(codes, [f"{code}]" for code in MISTAKES.values()], said)


class Sources(unittest.TestCase):
    def test_pages_of_the_api_are_made(self):
        with TemporaryDirectory() as folder:
            command = [PYTHON, "-W", "ignore", "-m", "pdoc", "-o", folder, "lcm_engine"]
            subprocess.run(command, env=child_environment(), check=True, capture_output=True)
            page = (Path(folder) / "lcm_engine.html").read_text(encoding="utf-8")
        for name in ("Lcm.append", "AsyncLcm.append", "Lcm.iter_messages", "Grant", "open_async"):
            self.assertIn(f'id="{name}"', page)

    def test_the_package_itself_is_typed_strictly(self):
        mypy = [PYTHON, "-m", "mypy", "--strict", "src/lcm_engine"]
        with TemporaryDirectory() as cache:
            command = [*mypy, "--cache-dir", cache, "--no-error-summary"]
            done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout + done.stderr, "")


if __name__ == "__main__":
    unittest.main()
