"""Owns the two descriptors that attache talks over. What the program prints can't reach them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from . import values

# How long the program has to end in order once attache is gone.
_GRACE_SECONDS = 3.0


class Pipe:
    """Lines in, by a thread of its own, so that an agent that blocks the loop does not hide the end of attache.
    Lines out, all of one round of the loop in one write."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: list[bytes] = []

    @classmethod
    def take_standard_streams(cls) -> Pipe:
        """Moves the pipe away from descriptors 0 and 1: reading gives nothing from now on, printing goes to
        stderr. Children of the program inherit neither end."""
        incoming, outgoing = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        sys.stdout.flush()
        os.dup2(2, 1)
        return cls(incoming, outgoing)

    def listen(self, take: Callable[[Any], None], ended: Callable[[], None]) -> None:
        """Hands each message to `take`, in the loop that runs now. `ended` when attache is gone."""
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(take, ended), name="attache-pipe", daemon=True).start()

    def send(self, message: Any) -> None:
        """Queues a message. From the loop only."""
        if self._loop is None:
            raise RuntimeError("the pipe is not listening yet")
        if not self._pending:
            self._loop.call_soon(self.flush)
        self._pending.append(values.line(message))

    def flush(self) -> None:
        """Writes what is queued. Waits while attache does not read: an agent is not faster than that."""
        data = memoryview(b"".join(self._pending))
        self._pending.clear()
        while data:
            try:
                data = data[os.write(self._outgoing, data) :]
            except OSError:
                # attache is gone; the reading thread sees it too and ends the program.
                return

    def _read(self, take: Callable[[Any], None], ended: Callable[[], None]) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            with os.fdopen(self._incoming, "rb") as lines:
                for line in lines:
                    loop.call_soon_threadsafe(take, json.loads(line))
        except (OSError, ValueError, RuntimeError) as error:
            sys.stderr.write(f"attache_agents: the pipe broke: {error}\n")
        try:
            loop.call_soon_threadsafe(ended)
        except RuntimeError:
            return
        # A tool that never gives the loop back would keep this process for ever.
        threading.Event().wait(_GRACE_SECONDS)
        os._exit(0)
