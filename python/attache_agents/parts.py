"""Reads the stored parts of an answer (AI SDK UI messages). Makes nothing of any framework."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .protocol import Json


def steps_of(message: Json) -> Iterator[list[Json]]:
    """The parts of each step of an answer."""
    step: list[Json] = []
    for part in message.get("parts") or []:
        if part.get("type") == "step-start":
            if step:
                yield step
            step = []
        else:
            step.append(part)
    if step:
        yield step


def calls_of(parts: Iterable[Json]) -> Iterator[tuple[str, Json]]:
    """The calls among parts: id and part."""
    for part in parts:
        if "toolCallId" in part:
            yield str(part["toolCallId"]), part


def calls_in(conversation: Iterable[Json]) -> Iterator[tuple[str, Json]]:
    """Every call of a conversation."""
    for message in conversation:
        yield from calls_of(message.get("parts") or [])


def tool_of(part: Json) -> str:
    """The tool of a call."""
    return str(part.get("toolName") or str(part.get("type") or "").removeprefix("tool-"))


def denial_of(part: Json) -> str:
    """What a model is told about a call that was not allowed: the reason as it was given."""
    reason = (part.get("approval") or {}).get("reason")
    return str(reason or "The user rejected this tool call.")
