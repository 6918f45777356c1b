"""What goes wrong and what helps: errors with a kind, a sentence, a hint and the traceback."""

from __future__ import annotations

import traceback
from typing import Literal

from . import secrets
from .protocol import Json

FailureKind = Literal["protocol", "module", "attribute", "import", "extra", "agent", "run"]

# Of a traceback its end is what tells; attache shows it in a trace.
_LONGEST_DETAILS = 16_000


class AgentFailure(Exception):
    """An error in words for the user, with the command that helps where there is one."""

    def __init__(self, kind: FailureKind, message: str, hint: str = "", details: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.details = details

    def to_json(self) -> Json:
        """As it goes over the pipe, without secrets."""
        return {
            "kind": self.kind,
            "message": secrets.cut(self.message),
            "hint": self.hint,
            "details": secrets.cut(self.details),
        }


def last_line(error: BaseException) -> str:
    """What Python prints last of an uncaught error, on one line."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return " ".join(text.split("\n", 1)[0].split()) or type(error).__name__


def details_of(error: BaseException) -> str:
    """The traceback, the end of it where it is long."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return text if len(text) <= _LONGEST_DETAILS else "…\n" + text[-_LONGEST_DETAILS:]


def of_run(error: BaseException) -> AgentFailure:
    """An exception of the agent itself: the turn fails with its last line."""
    if isinstance(error, AgentFailure):
        return error
    return AgentFailure("run", last_line(error), details=details_of(error))
