"""Rebuilds the message history of pydantic-ai from attache's conversation: for a process that does not hold it
any more, and after a rewind or a fork."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from .. import values
from ..parts import denial_of, steps_of, tool_of
from ..protocol import Json
from .prompt import user_prompt

# Under what name a part's own metadata travel.
AUTHOR = "pydantic_ai"


def messages(conversation: Iterable[Json], *, open_calls: frozenset[str] = frozenset()) -> list[ModelMessage]:
    """The conversation as the agent's own messages. `open_calls` wait for a decision and get no result."""
    found: list[ModelMessage] = []
    for message in conversation:
        if message.get("role") == "user":
            found.append(ModelRequest(parts=[UserPromptPart(user_prompt(message.get("blocks") or []))]))
        else:
            for step in steps_of(message):
                found.extend(_step(step, open_calls))
    return found


def _step(parts: Sequence[Json], open_calls: frozenset[str]) -> Iterator[ModelMessage]:
    said: list[ModelResponsePart] = []
    given: list[ModelRequestPart] = []
    for part in parts:
        kind = part.get("type")
        own = ((part.get("providerMetadata") or {}).get(AUTHOR)) or {}
        if kind == "text" and part.get("text"):
            said.append(TextPart(str(part["text"])))
        elif kind == "reasoning" and own.get("signature"):
            # A thought without the signature of its author is refused by some models and nothing to others.
            said.append(_thought(part, own))
        elif "toolCallId" in part:
            call, id = tool_of(part), str(part["toolCallId"])
            said.append(ToolCallPart(call, _arguments(part.get("input")), id))
            if id not in open_calls:
                given.append(_result(call, id, part))
    if said:
        yield ModelResponse(parts=said)
    if given:
        yield ModelRequest(parts=given)


def _thought(part: Json, own: Json) -> ThinkingPart:
    return ThinkingPart(
        str(part.get("text") or ""),
        id=own.get("id"),
        signature=own["signature"],
        provider_name=own.get("provider_name"),
        provider_details=own.get("provider_details"),
    )


def _arguments(input: Any) -> str | dict[str, Any]:
    return input if isinstance(input, (str, dict)) else json.dumps(input)


def _result(tool: str, id: str, part: Json) -> ToolReturnPart:
    state = part.get("state")
    if state == "output-available":
        return ToolReturnPart(tool, values.plain(part.get("output")), id)
    if state == "output-denied":
        return ToolReturnPart(tool, denial_of(part), id, outcome="denied")
    text = str(part.get("errorText") or "The call was aborted.")
    return ToolReturnPart(tool, text, id, outcome="failed")
