"""Serves attache over the pipe: loads the agent, starts runs and passes on what belongs to them."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from . import loading, secrets, watching
from ._version import __version__
from .answer import CallNames
from .failures import AgentFailure, details_of, last_line, of_run
from .pipe import Pipe
from .protocol import PROTOCOL, Json
from .run import CURRENT, Adapter, Cancelled, Prompt, Run


class Host:
    """One agent, any number of sessions."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._loaded: asyncio.Future[Adapter] | None = None
        self._runs: dict[str, Run] = {}
        self._names: dict[str, CallNames] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    async def serve(self) -> None:
        """Until attache closes the pipe."""
        self._loaded = asyncio.get_running_loop().create_future()
        self._pipe.listen(self._take, self._ended.set)
        await self._ended.wait()
        for run in self._runs.values():
            run.cancel()
        running = [run.task for run in self._runs.values() if run.task is not None]
        if running:
            await asyncio.wait(running, timeout=2)

    # What attache says

    def _take(self, message: Json) -> None:
        kind = message.get("type")
        if kind == "hello":
            self._spawn(self._begin(message))
        elif kind == "run":
            self._start(Prompt.from_json(message))
        elif kind == "forget":
            self._forget(message["session"])
        else:
            self._pass_on(kind, message)

    def _pass_on(self, kind: Any, message: Json) -> None:
        run = self._runs.get(str(message.get("run") or str(message.get("id", "")).rpartition("/")[0]))
        if run is None:
            # It ended in the meantime.
            return
        if kind == "cancel":
            run.cancel()
        elif kind == "decide":
            run.answered("decide", message["decisions"])
        elif kind == "history":
            run.answered("history", message["messages"])
        elif kind == "answer" and "error" in message:
            run.answered(message["id"], refused=str(message["error"]))
        elif kind == "answer":
            run.answered(message["id"], message.get("result"))

    # The agent

    async def _begin(self, hello: Json) -> None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
        self._pipe.send({"type": "hello", "protocol": PROTOCOL, "version": __version__, "python": version})
        spoken = hello.get("protocol")
        if spoken != PROTOCOL:
            failure = AgentFailure(
                "protocol",
                f"attache speaks version {spoken} of the pipe, attache_agents {__version__} version {PROTOCOL}",
                "Install the attache_agents of this attache, or none: it brings its own.",
            )
            self._pipe.send({"type": "failed"} | failure.to_json())
            return
        named, directory = str(hello.get("module") or ""), str(hello.get("directory") or "")
        loading.add_paths(directory)
        await self._load(named, directory)
        if hello.get("watch"):
            await self._watch(named, directory)

    async def _load(self, named: str, directory: str) -> None:
        loaded = self._loaded
        if loaded is None:
            return
        try:
            adapter = await loading.load(named, directory)
        except Exception as error:
            # Runs that wait for the agent get the same words.
            failure = error if isinstance(error, AgentFailure) else _of_load(named, error)
            self._pipe.send({"type": "failed"} | failure.to_json())
            loaded.set_exception(failure)
            loaded.exception()
            return
        loaded.set_result(adapter)
        self._pipe.send({"type": "ready", "framework": adapter.framework, "abilities": adapter.abilities()})

    async def _watch(self, named: str, directory: str) -> None:
        watch = watching.Watch(directory, named.partition(":")[0])
        while True:
            await asyncio.sleep(watching.SECONDS_BETWEEN_LOOKS)
            if not watch.has_changed():
                continue
            watch.forget_modules()
            # Runs that are on their way keep the agent that they began with.
            self._loaded = asyncio.get_running_loop().create_future()
            await self._load(named, directory)

    # Runs

    def _start(self, prompt: Prompt) -> None:
        names = self._names.setdefault(prompt.session, CallNames())
        run = Run(self._pipe, prompt, names)
        self._runs[prompt.run] = run
        run.task = asyncio.get_running_loop().create_task(self._answer(run))

    async def _answer(self, run: Run) -> None:
        id = run.prompt.run
        CURRENT.set(run)
        try:
            if self._loaded is None:
                raise AgentFailure("protocol", "a run before the hello")
            adapter = await asyncio.shield(self._loaded)
            run.check()
            reason = await adapter.run(run)
            # The step's end belongs to the run: an exception leaves it open, and attache closes it.
            run.answer.end_step()
            end: Json = {"type": "ended", "run": id, "reason": reason}
        except (Cancelled, asyncio.CancelledError):
            end = {"type": "cancelled", "run": id}
        except Exception as error:
            run.answer.fail_open_calls(secrets.cut(last_line(error)))
            failed: Json = (
                {"type": "cancelled"} if run.is_cancelled else {"type": "failed"} | of_run(error).to_json()
            )
            end = failed | {"run": id}
        self._runs.pop(id, None)
        run.answer.close()
        self._pipe.send(end)

    def _forget(self, session: str) -> None:
        self._names.pop(session, None)
        loaded = self._loaded
        if loaded is not None and loaded.done() and loaded.exception() is None:
            loaded.result().forget(session)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _of_load(named: str, error: Exception) -> AgentFailure:
    return AgentFailure("import", f"`{named}`: {last_line(error)}", details=details_of(error))


def main() -> int:
    """Serves until the pipe ends."""
    pipe = Pipe.take_standard_streams()

    async def serve() -> None:
        await Host(pipe).serve()
        pipe.flush()

    asyncio.run(serve())
    # Threads of tools that never end must not keep the process.
    sys.stderr.flush()
    os._exit(0)
