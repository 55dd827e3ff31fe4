"""Runs conversations ("lives") with a broken model, each in one mode and with one API, through the
packages of OpenAI and Anthropic, blocking and with asyncio: python lives.py URL MODE... Prints a
line of JSON about each.
"""

import asyncio
import inspect
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.request import Request, urlopen

import anthropic
import openai

import lcm_engine

MINUTE_MS = 60_000
REST_MS = 31 * MINUTE_MS
"""A time longer than the longest pause of a model."""
MAINTAINS_MAX = 10
TOGETHER = 8
"""Number of concurrent lives."""
LATE_SECONDS, TIMEOUT_SECONDS = 0.3, 30
"""Timeouts of a provider's package: for a model that never answers, and for all other models; even
a busy machine does not reach the second."""

url, *modes = sys.argv[1:]


def read(path: str) -> Any:
    with urlopen(f"{url}/{path}") as answer:
        return json.load(answer)


def put(path: str, body: str = "") -> None:
    urlopen(Request(f"{url}/{path}", body.encode(), method="PUT")).close()


def read_chat(answer):
    message = answer.choices[0].message
    reason = "refusal" if message.refusal else answer.choices[0].finish_reason
    return {"text": message.content, "finish": reason}


def read_responses(answer):
    is_refusal = any(part.type == "refusal" for item in answer.output for part in item.content)
    details = answer.incomplete_details
    reason = "refusal" if is_refusal else details and details.reason
    return {"text": answer.output_text, "finish": reason}


def read_messages(answer):
    text = "".join(block.text for block in answer.content)
    return {"text": text, "finish": answer.stop_reason}


def begin_client(name: str, is_async: bool, base_url: str, **options: Any):
    """Returns the client of an API, and a `complete` that uses the client."""
    if name == "messages":
        client = (anthropic.AsyncAnthropic if is_async else anthropic.Anthropic)(
            base_url=base_url, **options
        )
        create, take = client.messages.create, read_messages
    else:
        client = (openai.AsyncOpenAI if is_async else openai.OpenAI)(
            base_url=f"{base_url}/v1", **options
        )
        chat = name == "chat"
        create = client.chat.completions.create if chat else client.responses.create
        take = read_chat if chat else read_responses

    def fields(request):
        system, most = request["system"], request["output_tokens_max"]
        said = [{"role": "user", "content": request["prompt"]}]
        if name == "chat":
            lead = {"role": "system", "content": system}
            return {"model": "m", "messages": [lead, *said], "max_completion_tokens": most}
        if name == "responses":
            return {"model": "m", "instructions": system, "input": said, "max_output_tokens": most}
        return {"model": "m", "system": system, "messages": said, "max_tokens": most}

    def complete(request):
        return take(create(**fields(request)))

    async def complete_later(request):
        return take(await create(**fields(request)))

    return client, complete_later if is_async else complete


async def done(value: Any) -> Any:
    """Returns the result of a call, blocking or awaitable."""
    return await value if inspect.isawaitable(value) else value


async def listed(chat: Any) -> list[dict[str, Any]]:
    """Returns the summaries of a conversation that were not replaced."""
    found = [await done(chat.describe(one["id"])) for one in await done(chat.listing("summaries"))]
    names = ("text", "model", "provisional")
    return [{name: one[name] for name in names} for one in found if one["replaced_by"] is None]


async def live(mode: str, name: str, host: str) -> dict[str, Any]:
    """Runs a conversation with a broken model, then with a working model; returns a report."""
    is_async = host == "asyncio"
    run = f"{host}-{name}-{re.sub(r'[^a-z0-9]', '-', mode)}"
    put(run, mode)
    now = 1_700_000_000_000
    codes, rules, failures = set(), set(), set()

    def listen(event):
        if event["kind"] == "model-called":
            codes.add(event["error"])
        if event["kind"] == "summary-rejected":
            rules.add(event["rule"])

    store = lcm_engine.MemoryStore()
    retries, is_late = talk["modes"][mode]

    async def begin(is_broken):
        limits = {"timeout": LATE_SECONDS if is_broken and is_late else TIMEOUT_SECONDS}
        limits |= {"max_retries": retries, "api_key": "k"}
        client, complete = begin_client(name, is_async, f"{url}/{run}", **limits)
        opening = lcm_engine.open_async if is_async else lcm_engine.open
        options = {"clock": lambda: now, "environment": {}, "on_event": listen}
        lcm = await done(opening(store, complete, **options))
        return client, lcm, lcm.conversation("c", budget=talk["budget"], dialect="openai-chat")

    async def end():
        await done(lcm.close())
        await done(client.close())

    client, lcm, chat = await begin(True)
    asked, tokens, before = [], 0, 0
    said = talk["said"]
    messages = [
        {"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(said)
    ]
    for at in range(0, len(said), 2):
        if at == (len(said) + 1) // 2:
            await end()
            client, lcm, chat = await begin(True)
        now += MINUTE_MS
        failure = (await done(chat.turn(messages[max(at - 1, 0) : at + 1])))["failure"]
        if is_async:
            await chat.settle()
        if failure:
            failures.add(failure["code"])
        requests = read(run)["requests"]
        if requests > before:
            asked.append([at // 2, requests - before])
        before = requests
        tokens = max(tokens, (await done(chat.assemble()))["tokens"])
    broken = await done(chat.status())
    seen = {"codes": [*codes], "rules": [*rules], "failures": [*failures]}

    await end()
    put(f"{run}/works")
    client, lcm, chat = await begin(False)
    maintains, debt = 0, True
    while debt and maintains < MAINTAINS_MAX:
        now += REST_MS
        debt = (await done(chat.maintain()))["debt"]
        maintains += 1
    after = await done(chat.status())
    stored = chat.iter_messages()
    stored = [text async for text in stored] if is_async else list(stored)
    summaries = await listed(chat)
    await done(chat.resummarize())
    asked_for = await listed(chat)
    await end()
    report = read(run)
    return {
        "host": host, "interface": name, "mode": mode, **seen, "asked": asked, "tokens": tokens,
        "provisional": broken["provisional"], "owes": broken["debt"] is not None,
        "maintains": maintains, "left": after["provisional"],
        "still_owes": after["debt"] is not None, "summaries": summaries, "asked_for": asked_for,
        "stored": [json.loads(text)["content"] for text in stored],
        "texts": report["said"], "refused": report["refused"],
    }  # fmt: skip


def lead(life: tuple[str, str, str]) -> str:
    return json.dumps(asyncio.run(live(*life)))


talk = read("talk")
interfaces = ("chat", "responses", "messages")
lives = [
    (mode, name, host) for mode in modes for name in interfaces for host in ("python", "asyncio")
]
with ThreadPoolExecutor(TOGETHER) as pool:
    for line in pool.map(lead, lives):
        print(line, flush=True)
