"""LlamaIndex: the conversation is the memory of the agent."""

import asyncio

import lcm_engine
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import BaseMemory
from llama_index.llms.openai.utils import from_openai_message_dicts, to_openai_message_dicts
from llama_index.llms.openai_like import OpenAILike
from played import BASE_URL, SAID, STORE, read_file


class LcmMemory(BaseMemory):
    chat: object

    @classmethod
    def from_defaults(cls, chat):
        return cls(chat=chat)

    def get(self, input=None, **options):
        return from_openai_message_dicts(self.chat.assemble()["messages"])

    get_all = get

    def put_messages(self, messages):
        self.chat.turn(to_openai_message_dicts(messages), append_mode="new")

    def put(self, message):
        self.put_messages([message])

    def set(self, messages):
        self.chat.turn(to_openai_message_dicts(messages))

    def reset(self):
        self.chat.delete()


async def main():
    llm = OpenAILike("scripted-1", api_base=BASE_URL, api_key="none", is_chat_model=True)
    llm.is_function_calling_model = True
    agent = FunctionAgent(tools=[read_file], llm=llm, streaming=False)
    with lcm_engine.open(STORE) as lcm:
        memory = LcmMemory(chat=lcm.conversation("chat", budget=6_000, dialect="openai-chat"))
        for text in SAID:
            await agent.run(text, memory=memory)


asyncio.run(main())
