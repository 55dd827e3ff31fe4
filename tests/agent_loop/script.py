"""All texts of the agent loop: of the user, of files, and of the model.

A seed and the number of the turn determine every text, so that all loops have the same texts. The
user says twelve codes in the first quarter and asks for them in the second half. By then the codes
are only below summaries that omit codes, so the model must find them with the engine's tools, or
the loop fails. Run as a program, prints the input of a loop: {"said": [...], "files": {...}}.
"""

import json
import random
import re

TURNS = 200
SEED = 7
FIRST_TOLD, TELL_EVERY = 4, 4
FIRST_ASKED, ASK_EVERY = 102, 8
LOG_TURN = 60
LOG, LOG_LINES, LOG_FAULT = "logs/build.log", 2_400, 1_207
PROJECTS = [
    "Albatross", "Bittern", "Cormorant", "Dunlin", "Egret", "Fulmar",
    "Gannet", "Harrier", "Ibis", "Jacana", "Kestrel", "Lapwing",
]  # fmt: skip
WORDS = (
    "store file line test value path guard commit batch window queue worker index page reader"
    " writer number signal report column table branch record cursor thread buffer handler client caf\u00e9"
).split()
CODE = re.compile(r"[A-Z]{2}-\d{4}-[A-Z]{2}")


class Broken(Exception):
    """The loop broke an assumption of the script."""


def words(rng: random.Random, count: int) -> str:
    """Returns `count` random words."""
    return " ".join(rng.choice(WORDS) for _ in range(count))


def code(project: str) -> str:
    """Returns the release code of a project."""
    rng = random.Random(f"{SEED} {project}")
    letters = "".join(rng.choice("ABCDEFGHKLMNPQRSTUVWXYZ") for _ in range(4))
    return f"{letters[:2]}-{rng.randrange(1000, 10000)}-{letters[2:]}"


TOLD = {FIRST_TOLD + TELL_EVERY * at: project for at, project in enumerate(PROJECTS)}
ASKED = {FIRST_ASKED + ASK_EVERY * at: project for at, project in enumerate(PROJECTS)}
PATHS = [f"src/{word}.txt" for word in WORDS[:24]]


def log() -> str:
    """Returns a build log that is too large for a context."""
    rng = random.Random(f"{SEED} log")
    lines = [f"{number:05} info {words(rng, 8)}" for number in range(1, LOG_LINES + 1)]
    lines[LOG_FAULT - 1] = f"{LOG_FAULT:05} error E4031 the guard of the batch window is missing"
    return "\n".join(lines)


def files() -> dict[str, str]:
    """Returns the files that `read_file` can read: text by path."""
    rng = random.Random(f"{SEED} files")
    return {path: words(rng, rng.randrange(40, 160)) for path in PATHS} | {LOG: log()}


def said(turn: int) -> str:
    """Returns the user's message of a turn."""
    if project := TOLD.get(turn):
        return f"[{turn}] Keep in mind: the release code of {project} is {code(project)}."
    if project := ASKED.get(turn):
        return f"[{turn}] Which release code did I give you for {project}? Look it up."
    if turn == LOG_TURN:
        return f"[{turn}] Read {LOG} and tell me what line {LOG_FAULT} says."
    rng = random.Random(f"{SEED} said {turn}")
    return f"[{turn}] {words(rng, rng.randrange(20, 90))}?"


SAID = [said(turn) for turn in range(TURNS)]


def one_with(results: list[str], wanted: str) -> str:
    """Returns the first line of the tool results that contains `wanted`."""
    for line in "\n".join(results).splitlines():
        if wanted in line:
            return line
    raise Broken(f"`{wanted}` is not in the answer of the tool: {results}")


def id_in(text: str, kind: str) -> str:
    """Returns the first id of a kind in a text."""
    found = re.search(rf"\b{kind}_[0-9a-f]{{16}}\b", text)
    if not found:
        raise Broken(f"there is no id of a {kind} in: {text}")
    return found[0]


def recall(project: str, step: int, results: list[str]) -> tuple[str | None, list]:
    """Returns a step of the model to find a code: a search, a look at the message, a question."""
    wanted = code(project)
    if step == 0:
        return "I look it up.", [("lcm_grep", {"pattern": f"+{project} release code"})]
    line = one_with(results, wanted)
    if step == 1:
        return None, [("lcm_describe", {"id": id_in(line, "msg")})]
    if step == 2:
        question = f"What is the release code of {project}?"
        query = f"{project} release code"
        return None, [("lcm_expand_query", {"prompt": question, "query": query})]
    return f"The release code of {project} has been given as I found it.", []


def read_log(step: int, results: list[str]) -> tuple[str | None, list]:
    """Returns a step of the model to read one line of a file that its context only references."""
    if step == 0:
        return None, [("read_file", {"path": LOG})]
    if step == 1:
        lines = {"expandFile": True, "startLine": LOG_FAULT, "endLine": LOG_FAULT}
        return None, [("lcm_describe", {"id": id_in(results[0], "file")} | lines)]
    one_with(results, "error E4031")
    return f"Line {LOG_FAULT} reports that a guard is missing.", []


def answer(turn: int, step: int, results: list[str]) -> tuple[str | None, list]:
    """Returns the model's answer: a text or None, and tool calls as (name, arguments).

    `step`: number of earlier answers of the model in this turn; `results`: results of its last
    tool calls.
    """
    if project := ASKED.get(turn):
        return recall(project, step, results)
    if turn == LOG_TURN:
        return read_log(step, results)
    rng = random.Random(f"{SEED} answer {turn} {step}")
    reads = [("read_file", {"path": rng.choice(PATHS)}) for _ in range(2)]
    match turn % 4, step:
        case 1, 0:
            return None, reads[:1]
        case 2, 0:
            return f"I read two files: {words(rng, 6)}.", reads
        case 3, 0:
            return f"First {words(rng, 6)}.", reads[:1]
        case 3, 1:
            return None, [("read_file", {"path": f"src/none-{turn}.txt"})]
    if turn % 4 == 3 and "no such file" not in results[0]:
        raise Broken(f"a file that is not there was read: {results}")
    return f"Answer: {words(rng, rng.randrange(10, 60))}.", []


def fenced(prompt: str, tag: str) -> str:
    """Returns the text in an element of a prompt; material that is quoted never has these tags."""
    found = re.search(rf"^<{tag}>\n(.*?)\n</{tag}>$", prompt, re.S | re.M)
    if not found:
        raise Broken(f"there is no <{tag}> in the prompt")
    return found[1]


def complete(prompt: str) -> str:
    """Returns the completion of a prompt of the engine: a summary, or the answer to a question."""
    if prompt.startswith("The question:"):
        question, passages = fenced(prompt, "question"), fenced(prompt, "source")
        project = next(name for name in PROJECTS if name in question)
        for passage in passages.split("\n\n["):
            if code(project) in passage:
                return f"It is {code(project)} [{id_in(passage, 'msg')}]."
        return "NOT FOUND"
    most = int(re.search(r"^Length: at most (\d+) tokens\.$", prompt, re.M)[1]) * 2
    # A repeated request lists the failures that the rejected answer left out.
    found = re.findall(r"^failure left out: (.*)$", prompt, re.M)
    named = [f"read_file failed: {failure}" for failure in found]
    begun = [line.split()[:7] for line in fenced(prompt, "source").splitlines()]
    text, seen = "", set()
    for line in named + [" ".join(line) for line in begun if len(line) == 7 and line[0][0] != "["]:
        line = CODE.sub("a code", line).removesuffix(".").removesuffix(",")
        if line not in seen and len(text) + len(line) < most:
            seen.add(line)
            text += f"{line}.\n"
    return f"{text}Expand for details about: codes, files, words"


if __name__ == "__main__":
    print(json.dumps({"said": SAID, "files": files()}))
