"""Turns the events of a pydantic-ai run into chunks. Runs nothing and decides nothing."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CustomEvent,
    FilePart,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    RetryPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
)

from .. import values
from ..answer import Answer
from ..protocol import FinishReason, Json, Usage
from .history import AUTHOR

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_call": "tool-calls",
    "error": "error",
}

_MEMBERS = ("id", "signature", "provider_name", "provider_details")


class Events:
    """The chunks of one agent. `output_tools` are how a model hands in its result: no calls for users."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._output_tools: frozenset[str] = frozenset()
        self._response = 0
        self._streamed = 0

    def begin_response(self, output_tools: frozenset[str]) -> None:
        """A model call begins."""
        self._output_tools = output_tools
        self._response += 1
        self._streamed = 0
        self._answer.begin_step()

    def take(self, event: Any) -> None:
        """One event. Those of realtime speech and of capabilities have nothing to show."""
        if isinstance(event, PartStartEvent):
            self._streamed += 1
            self._part_begins(event.index, event.part)
        elif isinstance(event, PartDeltaEvent):
            self._part_grows(event.index, event.delta)
        elif isinstance(event, PartEndEvent):
            self._part_ends(event.index, event.part)
        elif isinstance(event, FunctionToolCallEvent):
            call = event.part
            self._answer.call_input(call.tool_call_id, call.tool_name, arguments(call), _metadata(call))
        elif isinstance(event, FunctionToolResultEvent):
            self._result(event)
        elif isinstance(event, CustomEvent):
            self._answer.custom(event.name, event.to_payload())

    def whole_response(self, response: ModelResponse) -> None:
        """A response that did not stream."""
        if self._streamed:
            return
        for index, part in enumerate(response.parts):
            self._part_begins(index, part)
            self._part_ends(index, part)

    def _key(self, index: int) -> tuple[int, int]:
        return (self._response, index)

    def _part_begins(self, index: int, part: Any) -> None:
        if isinstance(part, TextPart):
            self._answer.text(self._key(index), part.content)
        elif isinstance(part, ThinkingPart):
            self._answer.reasoning(self._key(index), part.content)
        elif isinstance(part, (ToolCallPart, NativeToolCallPart)) and not self._is_output(part):
            self._answer.call_begins(part.tool_call_id, part.tool_name)
            self._answer.call_delta(part.tool_call_id, _fragment(part.args))
        elif isinstance(part, NativeToolReturnPart):
            self._native_result(part)
        elif isinstance(part, FilePart):
            self._answer.file(part.content.media_type, part.content.data_uri)

    def _part_grows(self, index: int, delta: Any) -> None:
        if isinstance(delta, TextPartDelta):
            self._answer.text(self._key(index), delta.content_delta)
        elif isinstance(delta, ThinkingPartDelta):
            self._answer.reasoning(self._key(index), delta.content_delta or "")
        elif isinstance(delta, ToolCallPartDelta) and delta.tool_call_id:
            self._answer.call_delta(delta.tool_call_id, _fragment(delta.args_delta))

    def _part_ends(self, index: int, part: Any) -> None:
        if isinstance(part, (TextPart, ThinkingPart)):
            self._answer.end_stream(self._key(index), _metadata(part))
        elif isinstance(part, (ToolCallPart, NativeToolCallPart)) and not self._is_output(part):
            self._answer.call_input(part.tool_call_id, part.tool_name, arguments(part), _metadata(part))

    def _is_output(self, part: ToolCallPart | NativeToolCallPart) -> bool:
        return part.tool_name in self._output_tools

    def _result(self, event: FunctionToolResultEvent) -> None:
        part = event.part
        call, tool = part.tool_call_id, part.tool_name or ""
        if isinstance(part, RetryPromptPart):
            self._answer.call_failed(call, part.model_response(), tool)
        elif part.outcome == "denied":
            self._answer.call_denied(call, tool)
        elif part.outcome == "failed":
            self._answer.call_failed(call, shown_text(part), tool)
        else:
            self._answer.call_returns(call, tool, shown(part.content))
            for file in _pictures(part.content) + _pictures(event.content):
                self._answer.file(file.media_type, file.data_uri)

    def _native_result(self, part: NativeToolReturnPart) -> None:
        if part.outcome == "denied":
            self._answer.call_denied(part.tool_call_id, part.tool_name)
        elif part.outcome == "failed":
            self._answer.call_failed(part.tool_call_id, shown_text(part), part.tool_name)
        else:
            self._answer.call_returns(part.tool_call_id, part.tool_name, shown(part.content))


def arguments(call: ToolCallPart | NativeToolCallPart) -> Any:
    """The arguments as JSON; as they were written where they are none."""
    if not isinstance(call.args, str):
        return call.args or {}
    try:
        return json.loads(call.args) if call.args.strip() else {}
    except ValueError:
        return call.args


def usage_of(response: ModelResponse) -> Usage:
    """Tokens of one model call: pydantic-ai counts cached ones as input, and thoughts as output."""
    used = response.usage
    cached = used.cache_read_tokens + used.cache_write_tokens
    reasoning = min(used.details.get("reasoning_tokens", 0), used.output_tokens)
    return {
        "input": max(used.input_tokens - cached, 0),
        "output": used.output_tokens - reasoning,
        "reasoning": reasoning,
        "cache_read": used.cache_read_tokens,
        "cache_write": used.cache_write_tokens,
    }


def reason_of(response: ModelResponse | None) -> FinishReason:
    """Why the last model call ended."""
    reason = response.finish_reason if response is not None else None
    return _REASONS.get(reason or "stop", "other")


def shown(content: Any) -> Any:
    """The result of a call for a client: files are named, not spelled out."""
    if isinstance(content, BinaryContent):
        return f"[{content.media_type}, {len(content.data)} bytes]"
    if isinstance(content, (list, tuple)):
        return [shown(item) for item in content]
    return values.plain(content)


def shown_text(part: ToolReturnPart | NativeToolReturnPart) -> str:
    """The words of a failed call."""
    return part.content if isinstance(part.content, str) else json.dumps(values.plain(part.content))


def _pictures(content: Any) -> list[BinaryContent]:
    items = content if isinstance(content, (list, tuple)) else [content]
    return [item for item in items if isinstance(item, BinaryContent) and (item.is_image or item.is_audio)]


def _fragment(args: Any) -> str:
    if not args:
        return ""
    return args if isinstance(args, str) else json.dumps(values.plain(args))


def _metadata(part: Any) -> Json | None:
    own = {name: values.plain(getattr(part, name, None)) for name in _MEMBERS}
    own = {name: value for name, value in own.items() if value is not None}
    return {AUTHOR: own} if own else None
