"""Pydantic AI: a capability stores all messages and sends a context that fits."""

import lcm_engine
from played import BASE_URL, SAID, STORE, read_file
from pydantic_ai import Agent, messages as m
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Lcm(AbstractCapability):
    async def before_model_request(self, ctx, request_context):
        chat.turn([to_chat(part) for part in request_context.messages[-1].parts], append_mode="new")
        request_context.messages = [from_chat(one) for one in chat.assemble()["messages"]]
        return request_context

    async def after_model_request(self, ctx, *, request_context, response):
        said = {"role": "assistant", "content": response.text}
        for call in response.tool_calls:
            function = {"name": call.tool_name, "arguments": call.args_as_json_str()}
            called = {"id": call.tool_call_id, "type": "function", "function": function}
            said.setdefault("tool_calls", []).append(called)
        chat.append([said], append_mode="new")
        return response


def to_chat(part):
    if part.part_kind == "user-prompt":
        return {"role": "user", "content": part.content}
    text = getattr(part, "model_response_str", None) or part.model_response  # for a retry part
    return {"role": "tool", "tool_call_id": part.tool_call_id, "content": text()}


def from_chat(one):
    if one["role"] == "user":
        return m.ModelRequest([m.UserPromptPart(one["content"])])
    if one["role"] == "tool":
        return m.ModelRequest([m.ToolReturnPart("", one["content"], one["tool_call_id"])])
    parts = [m.TextPart(one["content"])] if one["content"] else []
    for id, called in [(call["id"], call["function"]) for call in one.get("tool_calls", [])]:
        parts.append(m.ToolCallPart(called["name"], called["arguments"], id))
    return m.ModelResponse(parts)


model = OpenAIChatModel("scripted-1", provider=OpenAIProvider(base_url=BASE_URL, api_key="none"))
agent = Agent(model, tools=[read_file], capabilities=[Lcm()])
with lcm_engine.open(STORE) as lcm:
    chat = lcm.conversation("chat", budget=6_000, dialect="openai-chat")
    for text in SAID:
        agent.run_sync(text)
