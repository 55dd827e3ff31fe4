"""The ways in which the model of the fake provider is broken, and the result in the engine.

In: the API of a request, its instruction and its prompt. Out: the answer, and how the connection
delivers it. Errors come from `tests/fixtures/model-answers.json`.
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
    """A way in which a model is broken."""

    name: str
    code: str | None = None
    """The failure that the engine sees; `None`: an answer arrives."""
    rule: str | None = None
    """The rule by which the engine rejects an answer that arrives."""
    errors: tuple[str, str] | None = None
    """Names of fixture errors, for OpenAI and for Anthropic; `None`: the model answers a text."""
    headers: dict[str, str] = field(default_factory=dict)
    act: str = "answer"
    """Behaviour of the connection: `answer, reset, hang-up, wait, stall, break-off`."""
    say: Callable[[str, str], str] = lambda instruction, prompt: CUT
    """The text of an answer to an instruction and a prompt."""
    end: str = "stop"
    """End of an answer: `stop`, `length`, `refusal`, `filter`, `full`."""
    is_kept: bool = False
    """Whether a summary may contain the text: a usable text that was cut off twice, or a text from
    the material itself."""
    retries: int = 0
    """Number of retries by the provider's package."""

    @property
    def is_late(self) -> bool:
        """Whether the answer never arrives completely."""
        return self.act in ("wait", "stall")

    @property
    def has_pause(self) -> bool:
        """Whether the engine begins a pause: not after an answer, nor after one long prompt."""
        return self.code not in (None, "context-too-long")

    def answer(self, api: Any, told: tuple[str, str]) -> tuple[int, Any, str]:
        """Returns the status and the body of the answer, and the model's text in it."""
        if self.errors is not None:
            error = ERRORS[self.errors[api is loops.Anthropic]]
            return error["status"], error["body"], ""
        said = self.say(*told)
        return 200, ENDS[self.end](api, said), said


def stop(api: Any, text: str) -> Any:
    """Returns a complete answer."""
    return api.answer("0", text, [], 400)


def length(api: Any, text: str) -> Any:
    """Returns an answer that was cut off at its token limit."""
    body = stop(api, text)
    if api is provider.Chat:
        body["choices"][0]["finish_reason"] = "length"
    elif api is provider.Responses:
        body |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    else:
        body["stop_reason"] = "max_tokens"
    return body


def refusal(api: Any, text: str) -> Any:
    """Returns a refusal in the API's own member."""
    body = stop(api, text)
    if api is provider.Chat:
        body["choices"][0]["message"] |= {"content": None, "refusal": text}
    elif api is provider.Responses:
        body["output"][0]["content"] = [{"type": "refusal", "refusal": text}]
    else:
        body["stop_reason"] = "refusal"
    return body


def filtered(api: Any, text: str) -> Any:
    """Returns an answer that a content filter removed."""
    body = stop(api, "")
    if api is provider.Chat:
        body["choices"][0]["finish_reason"] = "content_filter"
    elif api is provider.Responses:
        body |= {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    else:
        body["stop_reason"] = "refusal"
    return body


def full(api: Any, text: str) -> Any:
    """Returns an answer that ended because the model's window is full."""
    body = stop(api, text)
    if api is provider.Chat:
        body["choices"][0]["finish_reason"] = "model_length"
    elif api is provider.Responses:
        details = {"reason": "model_context_window_exceeded"}
        body |= {"status": "incomplete", "incomplete_details": details}
    else:
        body["stop_reason"] = "model_context_window_exceeded"
    return body


ENDS = {"full": full, "stop": stop, "length": length, "refusal": refusal, "filter": filtered}


FORMS = [
    "{}",
    "<think>They want it short.</think>{}",
    "Here is the summary:\n\n{}",
    "```markdown\n{}\n```",
    "<analysis>\nThey want it short.\n</analysis>\n<summary>\n{}\n</summary>",
    "[THINK]They want it short.[/THINK]{}",
    "<|channel|>analysis<|message|>They want it short.<|end|><|start|>assistant<|channel|>final"
    "<|message|>{}<|return|>",
    "\u25c1think\u25b7They want it short.\u25c1/think\u25b7{}",
    "<seed:think>They want it short.</seed:think>{}",
]
"""Forms of a good answer, around its text."""
FORM_MARKS = ("short", "Here is", "```", "<", "[THINK]", "\u25c1")
"""Parts of the forms, which no summary may contain."""
GOOD_ENDS = ("stop", "STOP", "end_turn", "", "stop_sequence", "COMPLETE")
"""Words with which servers end a good answer."""


def good(api: Any, text: str, number: int) -> Any:
    """Returns a good answer; each number gives another form and another word for its end."""
    body = stop(api, FORMS[number % len(FORMS)].format(text))
    word = GOOD_ENDS[number % len(GOOD_ENDS)]
    if api is provider.Chat:
        body["choices"][0]["finish_reason"] = word
    elif api is loops.Anthropic:
        body["stop_reason"] = word
    return body


def fails(name: str, openai: str, anthropic: str = "", **more: Any) -> Mode:
    """Returns the mode of a fixture error; `anthropic` empty: both providers have one error."""
    what = (openai, anthropic or openai)
    codes = {ERRORS[one]["code"] for one in what}
    assert len(codes) == 1, what
    return Mode(name, code=codes.pop(), errors=what, **more)


def says(name: str, text: str) -> Mode:
    """Returns the mode of a text that says nothing."""
    return Mode(name, rule="blank", say=lambda *told: text)


def repeat_instruction(instruction: str, prompt: str) -> str:
    """Returns the first line of the instruction with more than 40 characters."""
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
    fails("403, no credit", "a gateway: no credit is 403"),
    fails("402", "DeepSeek: no credit"),
    fails("429, the package asks again", *LIMITED, headers={"retry-after-ms": "50"}, retries=2),
    fails("400, too long", "OpenAI Chat: too long", "Anthropic: too long"),
    fails("400, too long, a bare text", "xAI: too long"),
    fails("400, too long, in Chinese", "a Chinese gateway, the model's limit: too long"),
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
    Mode("reasoning cut off", rule="blank", end="length", say=lambda *told: "<think>They want it"),
    Mode("full window", "context-too-long", end="full"),
    Mode("refusal", rule="refusal", end="refusal", say=lambda *told: REFUSAL),
    Mode("filter", rule="refusal", end="filter"),
]
SAYS_NOTHING = [
    says("reasoning alone", "<think>They want a summary.</think>"),
    says("analysis alone", "<analysis>\nThey want a summary.\n</analysis>\n"),
    says("channel alone", "<|channel|>analysis<|message|>They want a summary.<|end|>"),
    says("empty fence", "```\n```"),
    says("announcement alone", "Here is the summary:\n\n"),
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
