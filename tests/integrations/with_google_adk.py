"""Google ADK: callbacks of the agent store all messages and send a context that fits."""

import asyncio
import json
import os

import lcm_engine
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.genai import types
from played import BASE_URL, SAID, STORE, read_file

os.environ |= {"GOOGLE_GEMINI_BASE_URL": BASE_URL, "GOOGLE_API_KEY": "none"}


def to_json(content):
    return content.model_dump_json(by_alias=True, exclude_none=True)


async def before_model(callback_context, llm_request):
    await chat.turn([to_json(content) for content in llm_request.contents])
    messages = (await chat.assemble())["messages"]
    llm_request.contents = [types.Content.model_validate_json(json.dumps(m)) for m in messages]


async def after_model(callback_context, llm_response):
    await chat.append([to_json(llm_response.content)])


async def main():
    callbacks = {"before_model_callback": before_model, "after_model_callback": after_model}
    agent = LlmAgent(name="helper", model="gemini-scripted", tools=[read_file], **callbacks)
    runner = InMemoryRunner(agent)
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="ann")
    async with lcm_engine.open_async(STORE) as lcm:
        global chat
        chat = lcm.conversation("chat", budget=6_000, dialect="gemini")
        for text in SAID:
            said = types.Content(role="user", parts=[types.Part(text=text)])
            ids = {"user_id": session.user_id, "session_id": session.id}
            async for event in runner.run_async(**ids, new_message=said):
                pass


asyncio.run(main())
