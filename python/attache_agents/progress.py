"""What a call shows while a nested agent works in it: its calls, a line each, and the end of its text."""

from __future__ import annotations

import time
from collections.abc import Callable

# A client redraws the whole of it each time.
SECONDS_BETWEEN = 0.2
LONGEST_TEXT = 2_000
MOST_CALLS = 20


class Progress:
    """Of one call. Shown at most some times a second, and at its end."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._calls: dict[str, str] = {}
        self._text = ""
        self._shown = 0.0

    def text(self, delta: str) -> None:
        """The nested agent says something."""
        self._text = (self._text + delta)[-LONGEST_TEXT:]
        self._tell()

    def step(self) -> None:
        """It thinks anew: what it said before was on its way."""
        self._text = ""

    def call(self, id: str, tool: str, mark: str = "…") -> None:
        """It calls a tool, or the tool returned."""
        self._calls[id] = f"{mark} {tool}"
        self._tell(at_once=True)

    def settled(self, id: str, mark: str) -> None:
        """A call of its ended."""
        if id in self._calls:
            self.call(id, self._calls[id].partition(" ")[2], mark)

    def _tell(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if not at_once and now - self._shown < SECONDS_BETWEEN:
            return
        self._shown = now
        lines = list(self._calls.values())
        if len(lines) > MOST_CALLS:
            lines = [f"({len(lines) - MOST_CALLS} earlier calls)", *lines[-MOST_CALLS:]]
        self._show("\n".join([*lines, self._text] if self._text else lines))
