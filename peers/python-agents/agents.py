"""Agents that Python programs have: one of pydantic-ai, one of LangChain. No model is asked anything."""

import asyncio
import json

from attache_agents import client


def pydantic_agent():
    from pydantic_ai import Agent
    from pydantic_ai.messages import RetryPromptPart, UserPromptPart
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    async def model(messages, info):
        part = messages[-1].parts[-1]
        if not isinstance(part, UserPromptPart):
            yield f"Result: {part.model_response() if isinstance(part, RetryPromptPart) else part.content}"
            return
        word = part.content if isinstance(part.content, str) else "parts"
        if word == "hi":
            yield "Hello "
            yield "world"
        elif word == "parts":
            yield repr(part.content)
        elif word == "talk long":
            for number in range(2_000):
                yield f"word {number} "
                await asyncio.sleep(0.005)
        elif word == "never ends":
            yield "waiting"
            await asyncio.sleep(600)
        elif word == "history":
            told = [p.content for m in messages for p in m.parts if isinstance(p, UserPromptPart)]
            yield " | ".join(str(content) for content in told)
        elif word == "fail":
            raise RuntimeError("the model is broken")
        else:
            yield {0: DeltaToolCall(word, json.dumps({"to": "x"}), tool_call_id=f"call-{word}")}

    agent = Agent(FunctionModel(stream_function=model))

    @agent.tool_plain(requires_approval=True)
    def deploy(to: str) -> str:
        return f"deployed to {to}"

    @agent.tool_plain
    async def read(to: str) -> str:
        return await client.read_text_file("notes.txt")

    @agent.tool_plain
    async def outside(to: str) -> str:
        try:
            return await client.read_text_file("/etc/passwd")
        except client.Refused as refused:
            return f"refused: {refused}"

    @agent.tool_plain
    async def shell(to: str) -> str:
        done = await client.terminal("echo from the shell")
        return f"{done.output.strip()} {done.exit_code}"

    @agent.tool_plain
    async def ask(to: str) -> str:
        return " ".join(await client.ask("Which?", ["red", "blue"]))

    @agent.tool_plain
    def leave(to: str) -> str:
        import os

        os._exit(7)

    return agent


def graph():
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self):
            return "scripted"

        def bind_tools(self, tools, **named):
            return self

        def _said(self, messages):
            if messages[-1].type == "tool":
                return AIMessage("Result: " + messages[-1].text)
            word = messages[-1].text
            if word == "deploy":
                call = {"name": "deploy", "args": {"to": "x"}, "id": "c1"}
                return AIMessage("", tool_calls=[call])
            if word == "history":
                return AIMessage(" | ".join(m.text for m in messages if m.type == "human"))
            return AIMessage("Hello world")

        def _generate(self, messages, stop=None, run_manager=None, **named):
            return ChatResult(generations=[ChatGeneration(message=self._said(messages))])

        def _stream(self, messages, stop=None, run_manager=None, **named):
            said = self._said(messages)
            if said.text:
                yield ChatGenerationChunk(message=AIMessageChunk(said.text))
            for index, call in enumerate(said.tool_calls):
                fragment = {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": index}
                yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[fragment]))

    def deploy(to: str) -> str:
        "Deploys."
        return f"deployed to {to}"

    asks = HumanInTheLoopMiddleware(interrupt_on={"deploy": True})
    return create_agent(Scripted(), [deploy], middleware=[asks])
