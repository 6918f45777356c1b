"""What a tool or node can ask of the client that its user sits at. Works inside a run only.

The functions are coroutines. A tool that is a plain function waits for one with `wait`:

    text = client.wait(client.read_text_file("notes.md"))
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

from .protocol import Json
from .run import CURRENT, Refused, Run

__all__ = [
    "NotInRun",
    "Option",
    "PlanEntry",
    "Refused",
    "TerminalResult",
    "ask",
    "plan",
    "read_text_file",
    "terminal",
    "title",
    "wait",
    "write_text_file",
]

T = TypeVar("T")


class NotInRun(RuntimeError):
    """There is no client: the code was not called by a run of attache."""


class PlanEntry(TypedDict, total=False):
    """A task of a plan. `status` is pending, in_progress or completed; `priority` high, medium or low."""

    content: str
    status: str
    priority: str


class Option(TypedDict, total=False):
    """One of the answers to choose from."""

    label: str
    description: str


@dataclass(frozen=True)
class TerminalResult:
    """How a command ended. `exit_code` is missing if a signal ended it."""

    output: str
    exit_code: int | None
    signal: str | None
    truncated: bool


async def read_text_file(path: str, *, line: int | None = None, limit: int | None = None) -> str:
    """A text file as the editor has it, unsaved changes included. `line` counts from 1."""
    params: Json = {"path": str(path)}
    params |= {} if line is None else {"line": line}
    params |= {} if limit is None else {"limit": limit}
    text: str = await _run().request("read_text_file", params)
    return text


async def write_text_file(path: str, content: str) -> None:
    """Writes a text file through the editor, so that its user can review it."""
    await _run().request("write_text_file", {"path": str(path), "content": content})


async def terminal(
    command: str,
    args: Sequence[str] = (),
    *,
    directory: str | None = None,
    environment: dict[str, str] | None = None,
    timeout: float | None = None,
) -> TerminalResult:
    """Runs a command in a terminal of the client, under attache's permissions. A command alone is one for the
    shell; with `args` it is a program."""
    params: Json = {"command": command, "args": list(args)}
    params |= {} if directory is None else {"directory": str(directory)}
    params |= {} if environment is None else {"environment": environment}
    params |= {} if timeout is None else {"timeout": timeout}
    result = await _run().request("terminal", params)
    return TerminalResult(
        output=result.get("output", ""),
        exit_code=result.get("exit_code"),
        signal=result.get("signal"),
        truncated=bool(result.get("truncated", False)),
    )


async def ask(
    question: str, options: Sequence[str | Option] = (), *, header: str = "", several: bool = False
) -> list[str]:
    """Asks the user, and gives what was chosen or written. Raises `Refused` where nobody answers."""
    choices = [{"label": option} if isinstance(option, str) else dict(option) for option in options]
    params: Json = {"question": question, "options": choices, "multi_select": several}
    if header:
        params["header"] = header
    answer: list[str] = await _run().request("ask", params)
    return answer


def plan(entries: Sequence[str | PlanEntry]) -> None:
    """Shows what the agent has to do; each call replaces the last one's list."""
    listed = [plan_entry({"content": entry} if isinstance(entry, str) else dict(entry)) for entry in entries]
    run = _run()
    run.in_loop(lambda: run.answer.data("plan", {"entries": listed}))


def title(text: str) -> None:
    """Names the session."""
    run = _run()
    run.in_loop(lambda: run.answer.data("title", {"title": text}))


def wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """Waits for one of the functions above in a tool that is no coroutine."""
    run = _run()
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is run.loop:
        coroutine.close()
        raise RuntimeError("`wait` would stop the agent's own loop here: `await` the call instead")

    async def in_run() -> T:
        # The thread's context does not reach the loop.
        CURRENT.set(run)
        return await coroutine

    return asyncio.run_coroutine_threadsafe(in_run(), run.loop).result()


def plan_entry(entry: Json) -> Json:
    """An entry with everything that clients demand of one."""
    status = entry.get("status")
    priority = entry.get("priority")
    return {
        "content": str(entry.get("content", "")),
        "status": status if status in ("pending", "in_progress", "completed") else "pending",
        "priority": priority if priority in ("high", "medium", "low") else "medium",
    }


def _run() -> Run:
    run = CURRENT.get()
    if run is None:
        raise NotInRun(
            "attache_agents.client works inside a run only: in a tool or node that attache's agent calls"
        )
    return run
