"""One agent of pydantic-ai and one graph of LangGraph, for what serves them: attache by their names, others by
`bench.py pydantic-acp` and `bench.py langchain-acp`. The prompt says how many deltas; no model is asked."""

import sys
from pathlib import Path

DELTA = "lorem ipsum "


def deltas(prompt):
    """`10000 deltas`; anything else is answered in one."""
    word = prompt.split(" ")[0]
    return int(word) if word.isdigit() else 1


def pydantic():
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel

    async def model(messages, info):
        said = messages[-1].parts[-1].content
        said = said if isinstance(said, str) else " ".join(part for part in said if isinstance(part, str))
        for _ in range(deltas(said)):
            yield DELTA

    return Agent(FunctionModel(stream_function=model))


def graph():
    from langchain.agents import create_agent
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langgraph.checkpoint.memory import InMemorySaver

    class Fake(BaseChatModel):
        @property
        def _llm_type(self):
            return "fake"

        def bind_tools(self, tools, **named):
            return self

        def _generate(self, messages, stop=None, run_manager=None, **named):
            said = AIMessage(DELTA * deltas(messages[-1].text))
            return ChatResult(generations=[ChatGeneration(message=said)])

        def _stream(self, messages, stop=None, run_manager=None, **named):
            for _ in range(deltas(messages[-1].text)):
                yield ChatGenerationChunk(message=AIMessageChunk(DELTA))

    return create_agent(Fake(), [], checkpointer=InMemorySaver())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
    match sys.argv[1]:
        case "pydantic-acp":
            from pydantic_acp import run_acp

            run_acp(agent=pydantic())
        case "langchain-acp":
            from langchain_acp import run_acp

            run_acp(graph=graph())
        case other:
            sys.exit(f"there is no {other} here")
