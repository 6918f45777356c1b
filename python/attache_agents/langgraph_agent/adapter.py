"""Runs a compiled graph: its thread, its interrupts, its end. What it streams becomes chunks in `events`."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from ..failures import AgentFailure
from ..parts import calls_in, tool_of
from ..protocol import Abilities, FinishReason
from ..run import Run
from . import interrupts
from .events import Events
from .history import messages
from .prompt import content_items
from .threads import Threads

# The node of LangChain's agents that calls the model: a thread can be filled as if it had just spoken.
MODEL_NODE = "model"

STREAM_MODES = ["messages", "updates", "custom", "tasks"]


class GraphAgent:
    """A graph and the threads of its sessions."""

    framework = "langgraph"

    def __init__(self, graph: Any) -> None:
        if "messages" not in graph.channels:
            raise AgentFailure(
                "agent",
                f"the state of the graph `{graph.name}` has no `messages`",
                "Its state has to hold the conversation there, as `MessagesState` does.",
            )
        self._threads = Threads(graph)
        self._graph = self._threads.graph

    def abilities(self) -> Abilities:
        """The model decides in the end what it takes. A thread keeps all it gets: nothing is for one turn."""
        return {
            "images": True,
            "audio": True,
            "mcp_servers": False,
            "runtime_context": False,
            "approvals": True,
            "resumes": True,
        }

    def forget(self, session: str) -> None:
        """A session is closed."""
        self._threads.forget(session)

    async def run(self, run: Run) -> FinishReason:
        """Answers the prompt of the run."""
        events = Events(run)
        given = await self._taken_up(run, events) if run.prompt.decisions else await self._input(run, events)
        while True:
            asked_for = await self._stream(run, events, given)
            if not asked_for:
                break
            given = Command(resume=await self._decided(run, events, asked_for))
        events.finish()
        self._threads.tidy(run.prompt)
        return events.reason

    async def _input(self, run: Run, events: Events) -> Any:
        """What the graph gets of the prompt: with the whole conversation where its thread does not have it."""
        prompt = run.prompt
        told: list[Any] = [HumanMessage(content_items(prompt.blocks))]
        if prompt.previous is not None and not await self._threads.goes_on(prompt):
            conversation = await run.history()
            for call, _ in calls_in(conversation):
                run.names.learn(call)
            self._threads.begin_anew(prompt)
            told = messages(conversation) + told
        elif prompt.previous is None:
            state = await self._graph.aget_state(self._threads.config(prompt))
            if state.values:
                # What is there was rewound.
                self._threads.begin_anew(prompt)
        state = await self._graph.aget_state(self._threads.config(prompt))
        events.know((state.values or {}).get("messages") or [])
        return {"messages": told}

    async def _stream(self, run: Run, events: Events, given: Any) -> list[Any]:
        """Runs the graph until it ends or waits. Gives what it waits for."""
        options: dict[str, Any] = {}
        if self._threads.durability is not None:
            options["durability"] = self._threads.durability
        found: dict[str, Any] = {}
        stream = self._graph.astream(
            given, self._threads.config(run.prompt), stream_mode=STREAM_MODES, subgraphs=True, **options
        )
        async for namespace, mode, data in stream:
            run.check()
            if mode == "updates" and isinstance(data, dict) and "__interrupt__" in data:
                found.update((interrupt.id, interrupt) for interrupt in data["__interrupt__"])
            else:
                events.take(namespace, mode, data)
        return list(found.values())

    async def _decided(self, run: Run, events: Events, waiting: list[Any]) -> dict[str, Any]:
        about = interrupts.asked(waiting, events)
        decided = await interrupts.decide(run, about) if about else []
        for one, entry in zip(about, decided, strict=True):
            events.decided(one.call, one.tool, entry["type"])
        answers = await interrupts.answer_questions(run, waiting, about)
        return interrupts.resume_value(about, decided) | answers

    async def _taken_up(self, run: Run, events: Events) -> Any:
        """A run that waited for a person when its process ended."""
        prompt = run.prompt
        conversation = await run.history()
        decided = {entry["call"]: entry for entry in prompt.decisions}
        for call, part in calls_in(conversation):
            run.names.learn(call)
            if call in decided:
                is_edited = decided[call]["type"] == "edit"
                events.expect(call, tool_of(part), part.get("input"), edited=is_edited)
        run.answer.goes_on({call: call for call in decided})
        waiting = await self._threads.interrupts(prompt)
        if not waiting:
            waiting = await self._refilled(run, conversation, frozenset(decided))
        state = await self._graph.aget_state(self._threads.config(prompt))
        events.know((state.values or {}).get("messages") or [])
        about = interrupts.asked(waiting, events)
        given = [decided.get(one.call, {"approval": "", "call": one.call, "type": "reject"}) for one in about]
        for one, entry in zip(about, given, strict=True):
            events.decided(one.call, one.tool, entry["type"])
        return Command(resume=interrupts.resume_value(about, given))

    async def _refilled(self, run: Run, conversation: Any, open_calls: frozenset[str]) -> list[Any]:
        """An agent asks again about the calls of its last message when its thread is filled up to there."""
        if MODEL_NODE not in self._graph.nodes:
            raise AgentFailure(
                "run",
                "the graph waited for a person when its process ended, and its state is not kept",
                "Give the graph a checkpointer that keeps it (SQLite, PostgreSQL).",
            )
        self._threads.begin_anew(run.prompt)
        config = self._threads.config(run.prompt)
        filled = {"messages": messages(conversation, open_calls=open_calls)}
        await self._graph.aupdate_state(config, filled, as_node=MODEL_NODE)
        await self._graph.ainvoke(None, self._threads.config(run.prompt))
        return await self._threads.interrupts(run.prompt)
