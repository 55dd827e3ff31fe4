"""Calls a local server with the packages of providers, and compares the failure codes of their
errors with the fixture: python errors.py URL. Run by tests/sdk_errors/run.
"""

import json
import sys
from pathlib import Path

import anthropic
import openai
from google import genai
from langchain_anthropic import ChatAnthropic
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

from lcm_engine.model_failures import read_raised, text_of

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures/model-answers.json"
MESSAGES = [{"role": "user", "content": "x"}]
LATE_SECONDS = 0.2
# LangChain's class of a 429 hides the code that the provider sent.
UNDERSTOOD_AS = {("langchain google", "Kimi: overloaded is 429"): "rate-limited"}

wrong, asked = [], 0


def calls(base, timeout):
    """Returns calls to a base URL, each of which must raise."""
    key = {"api_key": "k", "max_retries": 0, "timeout": timeout}
    options = {
        "base_url": base,
        "timeout": int(timeout * 1000),
        "retry_options": {"attempts": 1},
    }
    chat = openai.OpenAI(base_url=f"{base}/v1", **key).chat.completions
    messages = anthropic.Anthropic(base_url=base, **key).messages
    google = genai.Client(api_key="k", http_options=options)
    chains = {
        "langchain openai": ChatOpenAI(model="m", base_url=f"{base}/v1", **key),
        "langchain anthropic": ChatAnthropic(model="m", base_url=base, **key),
        "langchain google": ChatGoogleGenerativeAI(
            model="m", base_url=base, **key | {"max_retries": 1}
        ),
    }
    return {
        "openai": lambda: chat.create(model="m", messages=MESSAGES),
        "anthropic": lambda: messages.create(model="m", max_tokens=5, messages=MESSAGES),
        "google": lambda: google.models.generate_content(model="m", contents="x"),
    } | {name: lambda chain=chain: chain.invoke("x") for name, chain in chains.items()}


def check(what, expected, base, timeout, pause):
    global asked
    for name, call in calls(base, timeout).items():
        asked += 1
        try:
            call()
            wrong.append(f"{name}: {what}: no error")
        except Exception as error:
            wanted = (UNDERSTOOD_AS.get((name, what), expected), pause)
            if read_raised(error) != wanted:
                wrong.append(f"{name}: {what}: {read_raised(error)}: {text_of(error)[:200]}")


server = sys.argv[1]
for at, answer in enumerate(json.loads(FIXTURE.read_text(encoding="utf-8"))):
    if answer["status"] >= 400:
        base = f"{server}/{at}"
        check(answer["what"], answer["code"], base, 10, answer["retry_after_ms"])
check("no answer", "timeout", f"{server}/late", LATE_SECONDS, None)
check("no server", "unavailable", "http://127.0.0.1:2", 10, None)
print("\n".join([*wrong, f"python: {asked - len(wrong)} of {asked} errors understood"]))
sys.exit(1 if wrong else 0)
