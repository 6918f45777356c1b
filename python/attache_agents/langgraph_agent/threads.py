"""Keeps the threads of sessions: which one a session is in, and whether it is where attache left it."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from ..run import Prompt

# In the metadata of each checkpoint: the answer that the run makes.
ANSWER = "attache_answer"


class Threads:
    """The threads of one graph. A graph without a checkpointer gets one in memory, with the newest state of
    each thread only: older ones would grow with the square of the conversation."""

    def __init__(self, graph: Any) -> None:
        self._own: InMemorySaver | None = None
        if graph.checkpointer is None or isinstance(graph.checkpointer, bool):
            self._own = InMemorySaver()
            graph = graph.copy({"checkpointer": self._own})
        self.graph = graph
        self._threads: dict[str, str] = {}

    @property
    def durability(self) -> str | None:
        """Nothing but the end of a run is worth keeping in memory."""
        return "exit" if self._own is not None else None

    def config(self, prompt: Prompt) -> RunnableConfig:
        """For the thread that the session is in."""
        thread = self._threads.setdefault(prompt.session, prompt.session)
        return {"configurable": {"thread_id": thread}, "metadata": {ANSWER: prompt.answer}}

    async def goes_on(self, prompt: Prompt) -> bool:
        """Whether the thread ends with the answer before this prompt, and nothing in it is unfinished."""
        state = await self.graph.aget_state(self.config(prompt))
        is_ours = (state.metadata or {}).get(ANSWER) == prompt.previous
        return is_ours and not state.next and bool(state.values)

    async def interrupts(self, prompt: Prompt) -> list[Any]:
        """What the thread waits for."""
        state = await self.graph.aget_state(self.config(prompt))
        return list(state.interrupts)

    def begin_anew(self, prompt: Prompt) -> None:
        """The session goes on in another thread, which is empty."""
        self.forget(prompt.session)
        self._threads[prompt.session] = f"{prompt.session}:{prompt.answer}"

    def tidy(self, prompt: Prompt) -> None:
        """Lets go of all but the newest state."""
        if self._own is None:
            return
        thread = self._threads.get(prompt.session, prompt.session)
        for namespace, kept in self._own.storage.get(thread, {}).items():
            newest = max(kept, default=None)
            for checkpoint in [id for id in kept if id != newest]:
                del kept[checkpoint]
                self._own.writes.pop((thread, namespace, checkpoint), None)
        self._tidy_values(thread)

    def _tidy_values(self, thread: str) -> None:
        """Values of channels are kept by version; a checkpoint names the ones that it needs."""
        own = self._own
        if own is None:
            return
        needed = set()
        for namespace, kept in own.storage.get(thread, {}).items():
            for stored, *_ in kept.values():
                for channel, version in own.serde.loads_typed(stored)["channel_versions"].items():
                    needed.add((thread, namespace, channel, version))
        for key in [key for key in own.blobs if key[0] == thread and key not in needed]:
            del own.blobs[key]

    def forget(self, session: str) -> None:
        """A session is closed. A checkpointer of the program keeps what it has."""
        thread = self._threads.pop(session, session)
        if self._own is not None:
            self._own.delete_thread(thread)
