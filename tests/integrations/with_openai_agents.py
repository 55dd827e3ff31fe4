"""OpenAI Agents: the conversation is the session of the agent."""

import asyncio

import lcm_engine
from agents import Agent, Runner, SessionABC, function_tool, set_default_openai_client
from agents import set_tracing_disabled
from openai import AsyncOpenAI
from played import BASE_URL, SAID, STORE, read_file


class LcmSession(SessionABC):
    """A session whose items are a context that fits."""

    def __init__(self, chat):
        self.chat, self.session_id = chat, chat.id

    async def get_items(self, limit=None):
        return (await self.chat.assemble())["messages"]

    async def add_items(self, items):
        await self.chat.turn(items, append_mode="new")

    async def pop_item(self):
        raise NotImplementedError("what was said stays")

    async def clear_session(self):
        await self.chat.delete()


async def main():
    set_tracing_disabled(True)
    set_default_openai_client(AsyncOpenAI(base_url=BASE_URL, api_key="none"))
    agent = Agent("helper", model="scripted-1", tools=[function_tool(read_file)])
    async with lcm_engine.open_async(STORE) as lcm:
        session = LcmSession(lcm.conversation("chat", budget=6_000, dialect="openai-responses"))
        for text in SAID:
            await Runner.run(agent, text, session=session)


asyncio.run(main())
