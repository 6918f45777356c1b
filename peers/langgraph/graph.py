"""A graph and an agent with a fake chat model: the last word of the last message decides what the model does."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.types import interrupt
import time


def texts(message) -> list[str]:
    if isinstance(message.content, str):
        return [message.content]
    return [item["text"] for item in message.content if item.get("type") == "text"]


class FakeModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools, **kwargs):
        return self

    def _answer(self, messages) -> AIMessage:
        humans = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
        last = messages[humans[-1]]
        results = [message for message in messages[humans[-1]:] if isinstance(message, ToolMessage)]
        word = " ".join(texts(last)).split(" ")[-1]
        if results:
            return AIMessage(content="Result: " + "; ".join(str(message.content) for message in results))
        calls = lambda *wanted: AIMessage(content="", tool_calls=[
            {"name": name, "args": args, "id": f"call-{number}"} for number, (name, args) in enumerate(wanted, 1)])
        match word:
            case "weather":
                return calls(("weather", {"city": "Oslo"}))
            case "refund":
                return calls(("refund", {"amount": 5}))
            case "refunds":
                return calls(("refund", {"amount": 1}), ("refund", {"amount": 2}))
            case "both":
                return calls(("refund", {"amount": 1}), ("pay", {"amount": 2}))
            case "ask":
                return calls(("ask_user", {"question": "Which colour?"}))
            case "history":
                return AIMessage(content=" ".join(message.type for message in messages if message.type != "system"))
            case "attached":
                return AIMessage(content=str(last.content))
            case "fail":
                raise ValueError("the model is broken")
            case "long":
                return AIMessage(content=" ".join(f"w{number}" for number in range(2000)))
            case _:
                return AIMessage(content="Hello world")

    def _generate(self, messages, stop=None, run_manager=None, **kwargs) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(self, messages, stop=None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any):
        answer = self._answer(messages)
        usage = {"input_tokens": 12, "output_tokens": 5, "total_tokens": 17}
        pieces = str(answer.content).split(" ") if answer.content else []
        for number, piece in enumerate(pieces):
            if len(pieces) > 100:
                time.sleep(0.002)
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece if number == 0 else f" {piece}"))
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.message.content), chunk=chunk)
            yield chunk
        last = AIMessageChunk(content="", usage_metadata=usage, chunk_position="last", tool_call_chunks=[
            {"name": call["name"], "args": __import__("json").dumps(call["args"]), "id": call["id"], "index": number}
            for number, call in enumerate(answer.tool_calls)])
        chunk = ChatGenerationChunk(message=last)
        if run_manager:
            run_manager.on_llm_new_token("", chunk=chunk)
        yield chunk


@tool
def weather(city: str) -> str:
    """The weather."""
    get_stream_writer()({"progress": f"looking at {city}"})
    return "clear"


@tool
def refund(amount: int) -> str:
    """Refunds."""
    return f"refunded {amount}"


@tool
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@tool
def ask_user(question: str) -> str:
    """Asks the user."""
    return f"the user said {interrupt(question)}"


agent = create_agent(
    FakeModel(),
    tools=[weather, refund, pay, ask_user],
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"refund": True, "pay": True})],
)
