"""Rebuilds LangChain messages from attache's conversation: for a thread that is not there any more, and after a
rewind or a fork."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from .. import values
from ..parts import calls_of, denial_of, steps_of, tool_of
from ..protocol import Json
from .prompt import content_items


def messages(conversation: Iterable[Json], *, open_calls: frozenset[str] = frozenset()) -> list[AnyMessage]:
    """The conversation as messages. `open_calls` wait for a decision and get no result."""
    found: list[AnyMessage] = []
    for message in conversation:
        if message.get("role") == "user":
            found.append(HumanMessage(content_items(message.get("blocks") or [])))
            continue
        for step in steps_of(message):
            found.extend(_step(step, open_calls))
    return found


def _step(step: list[Json], open_calls: frozenset[str]) -> Iterator[AnyMessage]:
    text = "".join(str(part.get("text") or "") for part in step if part.get("type") == "text")
    called = [
        ToolCall(name=tool_of(part), args=_arguments(part.get("input")), id=id, type="tool_call")
        for id, part in calls_of(step)
    ]
    if text or called:
        yield AIMessage(text, tool_calls=called)
    for id, part in calls_of(step):
        if id not in open_calls:
            yield _result(id, part)


def _arguments(input: Any) -> dict[str, Any]:
    return input if isinstance(input, dict) else {"input": input}


def _result(id: str, part: Json) -> ToolMessage:
    if part.get("state") == "output-available":
        output = values.plain(part.get("output"))
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        return ToolMessage(text, tool_call_id=id, name=tool_of(part))
    denied = part.get("state") == "output-denied"
    text = denial_of(part) if denied else str(part.get("errorText") or "The call was aborted.")
    return ToolMessage(text, tool_call_id=id, name=tool_of(part), status="error")
