"""A pydantic-ai agent with a function as its model, behind the Vercel AI adapter and uvicorn. Says its address; ends with its input.

Arguments: the port (0: any).
"""

import os
import socket
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here / "python"))

import uvicorn  # noqa: E402
from pydantic_ai import Agent, DeferredToolRequests  # noqa: E402
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart  # noqa: E402
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel  # noqa: E402
from pydantic_ai.ui.vercel_ai import VercelAIAdapter  # noqa: E402
from starlette.applications import Starlette  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.routing import Route  # noqa: E402


def last(messages: list[ModelMessage]) -> tuple[list, list]:
    """What the user said last, and what came of calls behind it."""
    said: list = []
    results: list = []
    for message in messages:
        if not isinstance(message, ModelRequest):
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                said, results = [part.content] if isinstance(part.content, str) else list(part.content), []
            elif isinstance(part, ToolReturnPart):
                results.append(part.content)
    return said, results


async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
    said, results = last(messages)
    texts = [item for item in said if isinstance(item, str)]
    word = texts[-1].split(" ")[-1] if texts else ""
    if results:
        yield "Result: " + "; ".join(str(result) for result in results)
    elif word == "weather":
        yield {0: DeltaToolCall(name="weather", json_args='{"city": "Oslo"}', tool_call_id="call-1")}
    elif word == "refund":
        yield {0: DeltaToolCall(name="refund", json_args='{"amount": 5}', tool_call_id="call-1")}
    elif word == "history":
        yield " ".join(message.kind for message in messages)
    elif word == "attached":
        yield repr(said)
    elif word == "fail":
        raise ValueError("the model is broken")
    else:
        yield "Hello"
        yield " world"


agent = Agent(FunctionModel(stream_function=model), output_type=[str, DeferredToolRequests])


@agent.tool_plain
def weather(city: str) -> str:
    """The weather."""
    return "clear"


@agent.tool_plain(requires_approval=True)
def refund(amount: int) -> str:
    """Refunds."""
    return f"refunded {amount}"


async def chat(request: Request):
    return await VercelAIAdapter.dispatch_request(request, agent=agent, sdk_version=6)


def end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
threading.Thread(target=end_with_input, daemon=True).start()
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
app = Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
