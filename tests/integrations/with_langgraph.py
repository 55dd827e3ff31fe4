"""LangGraph: a middleware of the agent stores all messages and sends a context that fits."""

import lcm_engine
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import convert_to_messages, convert_to_openai_messages
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from played import BASE_URL, SAID, STORE, read_file


@wrap_model_call
def remember(request, handler):
    chat.turn(convert_to_openai_messages(request.messages))
    messages = convert_to_messages(chat.assemble()["messages"])
    response = handler(request.override(messages=messages))
    chat.append(convert_to_openai_messages(response.result))
    return response


model = ChatOpenAI(model="scripted-1", base_url=BASE_URL, api_key="none")
agent = create_agent(model, [read_file], middleware=[remember], checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "1"}}
with lcm_engine.open(STORE) as lcm:
    chat = lcm.conversation("chat", budget=6_000, dialect="openai-chat")
    for text in SAID:
        agent.invoke({"messages": [{"role": "user", "content": text}]}, thread)
