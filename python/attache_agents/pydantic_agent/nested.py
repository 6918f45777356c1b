"""Shows agents that a tool runs under the call that runs them. Changes nothing of what they do.

pydantic-ai tells nobody of a run inside a tool: `Agent.run` is told to report its events, while a tool of one
of our runs is on its way, and nowhere else.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, Callable
from contextvars import ContextVar
from typing import Any

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolReturnPart,
)

from ..progress import Progress
from ..run import Run

# The run, and the call whose tool is on its way.
CALL: ContextVar[tuple[Run, str] | None] = ContextVar("attache_call", default=None)


def watch_nested_runs() -> None:
    """From now on. Doing it again changes nothing."""
    original: Callable[..., Any] = AbstractAgent.run
    if getattr(original, "_attache", False):
        return

    @functools.wraps(original)
    async def run(self: AbstractAgent[Any, Any], *args: Any, **named: Any) -> Any:
        call = CALL.get()
        if call is None or named.get("event_stream_handler") or self.event_stream_handler:
            return await original(self, *args, **named)
        watcher = _Watcher(*call)
        return await original(self, *args, **{**named, "event_stream_handler": watcher.watch})

    run._attache = True  # type: ignore[attr-defined]
    AbstractAgent.run = run  # type: ignore[method-assign]


class _Watcher:
    def __init__(self, run: Run, call: str) -> None:
        self._run = run
        self._progress = Progress(lambda text: run.in_loop(lambda: run.answer.call_shows(call, text)))

    async def watch(self, _context: Any, events: AsyncIterable[Any]) -> None:
        """All events of one step of the nested agent."""
        self._progress.step()
        async for event in events:
            self._take(event)

    def _take(self, event: Any) -> None:
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
            self._progress.text(event.part.content)
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
            self._progress.text(event.delta.content_delta)
        elif isinstance(event, FunctionToolCallEvent):
            self._progress.call(event.part.tool_call_id, event.part.tool_name)
        elif isinstance(event, FunctionToolResultEvent):
            good = isinstance(event.part, ToolReturnPart) and event.part.outcome == "success"
            self._progress.settled(event.tool_call_id, "✓" if good else "✗")
