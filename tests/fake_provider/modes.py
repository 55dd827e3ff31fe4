"""The ways in which the model of the fake provider is broken, and what the engine must see of each.

In: the interface of a request, its instruction and its prompt. Out: the answer, and what the
connection does with it. Errors are those of `tests/fixtures/model-answers.json`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import talk  # noqa: F401  first: it finds the modules of the integrations
import provider
import server as loops

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures/model-answers.json"
ERRORS = {one["what"]: one for one in json.loads(FIXTURE.read_text(encoding="utf-8"))}
CUT = "They spoke of a garden, then of a river beside the market, and at last of a"
REFUSAL = "I will not write about this conversation."


@dataclass
class Mode:
    """A way to be broken."""

    name: str
    code: str | None = None
    """The failure that the engine sees; `None`: an answer arrives."""
    rule: str | None = None
    """Why the engine rejects an answer that arrives."""
    errors: tuple[str, str] | None = None
    """Errors of the fixture that OpenAI and Anthropic answer; `None`: the model says something."""
    headers: dict[str, str] = field(default_factory=dict)
    act: str = "answer"
    """What the connection does: `answer`, `reset`, `hang-up`, `wait`, `stall`, `break-off`."""
    say: Callable[[str, str], str] = lambda instruction, prompt: CUT
    """The text of an answer to an instruction and a prompt."""
    end: str = "stop"
    """How an answer ends: `stop`, `length`, `refusal`, `filter`."""
    is_kept: bool = False
    """Whether a summary may have the text: it says something and was cut off twice, or is of the
    material."""
    retries: int = 0
    """How often the package of the provider asks again."""

    @property
    def is_late(self) -> bool:
        """Whether an answer never ends."""
        return self.act in ("wait", "stall")

    @property
    def has_pause(self) -> bool:
        """Whether the engine lets the model rest: not after an answer, nor for one long prompt."""
        return self.code not in (None, "context-too-long")

    def answer(self, api: Any, told: tuple[str, str]) -> tuple[int, Any, str]:
        """Returns the status and the body of the answer, and the text that the model says in it."""
        if self.errors is not None:
            error = ERRORS[self.errors[api is loops.Anthropic]]
            return error["status"], error["body"], ""
        said = self.say(*told)
        return 200, ENDS[self.end](api, said), said


def stop(api: Any, text: str) -> Any:
    """A whole answer."""
    return api.answer("0", text, [], 400)


def length(api: Any, text: str) -> Any:
    """An answer that reached its limit."""
    body = stop(api, text)
    if api is provider.Chat:
        body["choices"][0]["finish_reason"] = "length"
    elif api is provider.Responses:
        body |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    else:
        body["stop_reason"] = "max_tokens"
    return body


def refusal(api: Any, text: str) -> Any:
    """A refusal in the interface's own member."""
    body = stop(api, text)
    if api is provider.Chat:
        body["choices"][0]["message"] |= {"content": None, "refusal": text}
    elif api is provider.Responses:
        body["output"][0]["content"] = [{"type": "refusal", "refusal": text}]
    else:
        body["stop_reason"] = "refusal"
    return body


def filtered(api: Any, text: str) -> Any:
    """An answer that a filter took away."""
    body = stop(api, "")
    if api is provider.Chat:
        body["choices"][0]["finish_reason"] = "content_filter"
    elif api is provider.Responses:
        body |= {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    else:
        body["stop_reason"] = "refusal"
    return body


ENDS = {"stop": stop, "length": length, "refusal": refusal, "filter": filtered}


def fails(name: str, openai: str, anthropic: str = "", **more: Any) -> Mode:
    """An error of the fixture; `anthropic`: empty if both answer the same."""
    what = (openai, anthropic or openai)
    codes = {ERRORS[one]["code"] for one in what}
    assert len(codes) == 1, what
    return Mode(name, code=codes.pop(), errors=what, **more)


def says(name: str, text: str) -> Mode:
    """An answer that says nothing."""
    return Mode(name, rule="blank", say=lambda *told: text)


def repeat_instruction(instruction: str, prompt: str) -> str:
    """Returns the first line of the instruction that says something."""
    return next(line for line in instruction.splitlines() if len(line) > 40)


def repeat_line(instruction: str, prompt: str) -> str:
    """Returns a line of the material."""
    return next(line for line in prompt.splitlines() if "garden river" in line)


LIMITED = ("OpenAI: too many requests", "Anthropic: too many requests")
STATUSES = [
    fails("401", "OpenAI: a wrong key", "Anthropic: a wrong key"),
    fails("403", "Anthropic: no permission"),
    fails("429, a second", *LIMITED, headers={"retry-after": "1"}),
    fails("429, two minutes", *LIMITED, headers={"retry-after": "120"}),
    fails("429, no credit", "OpenAI: no credit"),
    fails("429, the package asks again", *LIMITED, headers={"retry-after-ms": "50"}, retries=2),
    fails("400, too long", "OpenAI Chat: too long", "Anthropic: too long"),
    fails("400, policy", "OpenAI Responses: flagged prompt", "Anthropic: content filter"),
    fails("400, a parameter", "OpenAI: a wrong parameter", "Anthropic: a wrong parameter"),
    fails("404", "OpenAI: no such model"),
    fails("500", "Anthropic: its own fault"),
    fails("502", "a proxy without JSON"),
    fails("503", "OpenAI: overloaded", "Anthropic: overloaded"),
    fails("504", "Anthropic: too late"),
]
CONNECTIONS = [
    Mode("reset", "unavailable", act="reset"),
    Mode("hang-up", "unavailable", act="hang-up"),
    Mode("time-out", "timeout", act="wait"),
    Mode("body that stalls", "timeout", act="stall"),
    Mode("body that breaks off", "unavailable", act="break-off"),
]
ENDINGS = [
    says("empty", ""),
    says("blanks", " \n\n "),
    Mode("cut off", rule="cut-off", end="length", is_kept=True),
    Mode("cut off at once", rule="blank", end="length", say=lambda *told: ""),
    Mode("refusal", rule="refusal", end="refusal", say=lambda *told: REFUSAL),
    Mode("filter", rule="refusal", end="filter"),
]
SAYS_NOTHING = [
    says("acknowledgement", "OK."),
    says("dots", "..."),
    says("line", "---"),
    says("none", "None"),
    says("not applicable", "N/A"),
    says("apology", "I'm sorry, but I can't assist with that request."),
    says("excuse", "I cannot summarize this conversation."),
    says("offer", "Sure! What would you like me to do next?"),
    says("error as a text", "Error: rate limit exceeded, please try again later."),
    Mode("instruction", rule="blank", say=repeat_instruction),
    Mode("line of it", rule="blank", say=repeat_line, is_kept=True),
    says("a sentence 60 times", "They spoke of a garden beside a river. " * 60),
]
MODES = {mode.name: mode for mode in STATUSES + CONNECTIONS + ENDINGS + SAYS_NOTHING}

if __name__ == "__main__":
    print("\n".join(MODES))
