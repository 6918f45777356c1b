"""One run: what an adapter gets of a prompt and whom it answers. Knows no framework."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from .answer import Answer, CallNames
from .pipe import Pipe
from .protocol import Abilities, ApprovalRequest, Decided, FinishReason, Json, Usage

# Between the message that cancels and the cancellation that no code can overlook.
CANCEL_SECONDS = 1.0


@dataclass
class Prompt:
    """What a run answers, as attache sent it."""

    session: str
    run: str
    # The id that the answer will have: the name of the conversation as it is after it.
    answer: str
    # ACP content blocks. Empty when the run goes on with decisions.
    blocks: list[Json]
    # The answer before this one; `None` at the beginning of a conversation.
    previous: str | None = None
    context: list[Json] = field(default_factory=list)
    directory: str = ""
    mcp_servers: list[Json] = field(default_factory=list)
    offers: frozenset[str] = frozenset()
    # Of a run that waited in an earlier process.
    decisions: list[Decided] = field(default_factory=list)

    @classmethod
    def from_json(cls, message: Json) -> Prompt:
        """Of a `run` message."""
        return cls(
            session=message["session"],
            run=message["run"],
            answer=message["answer"],
            blocks=message.get("prompt") or [],
            previous=message.get("previous"),
            context=message.get("context") or [],
            directory=message.get("directory") or "",
            mcp_servers=message.get("mcp_servers") or [],
            offers=frozenset(message.get("offers") or ()),
            decisions=message.get("decisions") or [],
        )


class Refused(Exception):
    """A request to the client that it, or a person, answered with no."""


class Cancelled(Exception):
    """The run was cancelled; raised where an adapter looks, or waits for a person."""


class Run:
    """One run of one session."""

    def __init__(self, pipe: Pipe, prompt: Prompt, names: CallNames) -> None:
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()
        self.prompt = prompt
        self.names = names
        self.answer = Answer(self._emit, names)
        self.is_cancelled = False
        self.on_cancel: Callable[[], None] | None = None
        self.task: asyncio.Task[None] | None = None
        self._awaited: dict[str, asyncio.Future[Any]] = {}
        self._requests = 0

    # What an adapter says

    def _emit(self, chunk: Json) -> None:
        self._tell({"type": "chunk", "run": self.prompt.run, "chunk": chunk})

    def usage(self, usage: Usage) -> None:
        """What one model call used."""
        self._tell({"type": "usage", "run": self.prompt.run, "usage": usage})

    def notice(self, severity: str, title: str, description: str = "") -> None:
        """A line for the user that is no part of the answer."""
        notice = {"type": "notice", "session": self.prompt.session, "severity": severity, "title": title}
        self._tell(notice | ({"description": description} if description else {}))

    def _tell(self, message: Json) -> None:
        self._pipe.send(message)

    def in_loop(self, call: Callable[[], None]) -> None:
        """Runs it in the loop of the pipe, now if this is it: tools may run in threads."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            call()
        else:
            self._loop.call_soon_threadsafe(call)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the pipe."""
        return self._loop

    # What it asks

    async def ask(self, requests: list[ApprovalRequest]) -> list[Decided]:
        """What a person decides about calls. May take days."""
        message = {"type": "ask", "run": self.prompt.run, "requests": requests}
        decided: list[Decided] = await self._wait("decide", message)
        return decided

    async def history(self) -> list[Json]:
        """The conversation before this prompt, from attache's store."""
        messages: list[Json] = await self._wait("history", {"type": "want_history", "run": self.prompt.run})
        return messages

    async def request(self, method: str, params: Json) -> Any:
        """Something that the client or attache does for the agent."""
        self._requests += 1
        id = f"{self.prompt.run}/{self._requests}"
        message = {"type": "request", "run": self.prompt.run, "id": id, "method": method, "params": params}
        return await self._wait(id, message)

    async def _wait(self, key: str, message: Json) -> Any:
        if self.is_cancelled:
            raise Cancelled
        answer = self._loop.create_future()
        self._awaited[key] = answer
        self._tell(message)
        try:
            return await answer
        finally:
            self._awaited.pop(key, None)

    def answered(self, key: str, value: Any = None, refused: str | None = None) -> None:
        """attache answered. Nobody may be waiting any more."""
        answer = self._awaited.get(key)
        if answer is None or answer.done():
            return
        if refused is not None:
            answer.set_exception(Refused(refused))
        else:
            answer.set_result(value)

    # How it ends early

    def cancel(self) -> None:
        """The message first: whoever waits is told, the framework's own cancel is used. A second later the task
        is cancelled."""
        if self.is_cancelled:
            return
        self.is_cancelled = True
        for answer in list(self._awaited.values()):
            if not answer.done():
                answer.set_exception(Cancelled())
        if self.on_cancel is not None:
            self.on_cancel()
        self._loop.call_later(CANCEL_SECONDS, self._cancel_task)

    def _cancel_task(self) -> None:
        if self.task is not None and not self.task.done():
            self.task.cancel()

    def check(self) -> None:
        """Ends the run here if it was cancelled."""
        if self.is_cancelled:
            raise Cancelled


class Adapter(Protocol):
    """An agent of one framework."""

    # As it is called to users.
    framework: str

    def abilities(self) -> Abilities:
        """What sessions with it can do."""

    def run(self, run: Run) -> Awaitable[FinishReason]:
        """Answers the prompt of the run."""

    def forget(self, session: str) -> None:
        """A session is closed."""


# The run that code of the program is called by; tasks and threads inherit it.
CURRENT: ContextVar[Run | None] = ContextVar("attache_run", default=None)
