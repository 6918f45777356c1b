"""Turns what a graph streams into chunks: messages, updates of the state, custom events. Runs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage

from .. import values
from ..client import plan_entry
from ..progress import Progress
from ..protocol import FinishReason, Json, Usage
from ..run import Run

# Where agents keep what they have to do.
_PLANS = ("todos", "plan")

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content-filter",
    "safety": "content-filter",
    "refusal": "content-filter",
}


# What begins the id of a call that is made because no call is what an interrupt asks about.
_STAND_IN = "asked-"

# The arguments of a call that a person gave others: what the graph asked about is not known any more.
_CHANGED = object()


class Events:
    """The chunks of one run. Namespaces below a call are shown under it; a subgraph that is a node speaks for
    the graph."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._answer = run.answer
        # Message → call of each index of its fragments.
        self._fragments: dict[tuple[str, Any], str] = {}
        self._said: set[str] = set()
        self._told: set[str] = set()
        self._usage: dict[str, Usage] = {}
        # Task of the tool node → its call, and what nested agents show there.
        self._tasks: dict[str, str] = {}
        self._progress: dict[str, Progress] = {}
        # Calls without a result, those of nested agents too: id → tool and arguments.
        self._waiting: dict[str, tuple[str, Any]] = {}
        self._rejected: set[str] = set()
        self._stand_ins: set[str] = set()
        self.structured: Any = None
        self.reason: FinishReason = "stop"

    def know(self, messages: Iterable[Any]) -> None:
        """Messages that were there before the run."""
        self._told.update(str(message.id) for message in messages if getattr(message, "id", None))

    def expect(self, call: str, tool: str, input: Any, *, edited: bool) -> None:
        """A call that an earlier process told."""
        self._waiting[call] = (tool, _CHANGED if edited else input)
        if call.startswith(_STAND_IN):
            self._stand_ins.add(call)

    def decided(self, call: str, tool: str, kind: str) -> None:
        """It was decided about a call. The error of a rejected one is no failure; a stand-in gets no result."""
        if kind == "reject":
            self._rejected.add(call)
        if call not in self._stand_ins:
            return
        self._waiting.pop(call, None)
        if kind == "reject":
            self._answer.call_denied(call, tool)
        else:
            self._answer.call_returns(call, tool, "allowed")

    def take(self, namespace: tuple[str, ...], mode: str, data: Any) -> None:
        """One event of the stream."""
        if mode == "messages":
            self._message(namespace, data[0])
        elif mode == "updates":
            self._updates(namespace, data)
        elif mode == "custom":
            self._custom(data)
        elif mode == "tasks":
            self._task(data)

    def finish(self) -> None:
        """The stream is over."""
        self._flush_usage()
        if self.structured is not None and not self._answer.has_text:
            self._answer.text("output", values.line(values.plain(self.structured)).decode().rstrip("\n"))

    # Messages

    def _message(self, namespace: tuple[str, ...], message: Any) -> None:
        if not isinstance(message, BaseMessage):
            return
        nested = self._call_of(namespace)
        if isinstance(message, ToolMessage):
            self._result(message, nested)
        elif isinstance(message, AIMessageChunk):
            self._streams(message, nested)
        elif isinstance(message, AIMessage) and message.id not in self._said and message.id not in self._told:
            self._whole(message, nested)

    def _streams(self, message: AIMessageChunk, nested: str | None) -> None:
        id = str(message.id)
        is_first = id not in self._said
        self._said.add(id)
        self._count(id, message)
        if nested is not None:
            progress = self._shown_under(nested)
            if is_first:
                progress.step()
            progress.text(_text_of(message))
            return
        if is_first:
            self._answer.begin_step_if_settled()
        self._content(id, message)
        for fragment in message.tool_call_chunks:
            key = (id, fragment.get("index"))
            if fragment.get("id"):
                self._fragments[key] = str(fragment["id"])
                self._answer.call_begins(str(fragment["id"]), fragment.get("name") or "tool")
            call = self._fragments.get(key)
            if call is not None:
                self._answer.call_delta(call, fragment.get("args") or "")

    def _whole(self, message: AIMessage, nested: str | None) -> None:
        """A message that did not stream."""
        id = str(message.id)
        self._said.add(id)
        self._count(id, message)
        if nested is None:
            self._answer.begin_step_if_settled()
            self._content(id, message)
        else:
            self._shown_under(nested).text(_text_of(message))
        self._calls(message, nested)

    def _content(self, id: str, message: AIMessage) -> None:
        thought = message.additional_kwargs.get("reasoning_content")
        if isinstance(thought, str):
            self._answer.reasoning((id, "thought"), thought)
        if isinstance(message.content, str):
            if message.content:
                self._answer.end_stream((id, "thought"))
            self._answer.text((id, "text"), message.content)
            return
        for block in message.content_blocks:
            if block["type"] == "text":
                self._answer.end_stream((id, "thought"))
                self._answer.text((id, "text"), block["text"])
            elif block["type"] == "reasoning":
                self._answer.reasoning((id, "thought"), block.get("reasoning") or "")
            elif block["type"] == "image" and block.get("base64"):
                mime = block.get("mime_type") or "image/png"
                self._answer.file(mime, f"data:{mime};base64,{block['base64']}")

    def _calls(self, message: AIMessage, nested: str | None) -> None:
        """The calls of a whole message."""
        for call in message.tool_calls:
            id = str(call.get("id") or "")
            self._waiting[id] = (call["name"], call["args"])
            if nested is None:
                self._answer.call_input(id, call["name"], call["args"])
            else:
                self._shown_under(nested).call(id, call["name"])
        for wrong in message.invalid_tool_calls:
            id, tool = str(wrong.get("id") or ""), wrong.get("name") or "tool"
            if nested is None:
                self._answer.call_input(id, tool, wrong.get("args"))
                self._answer.call_failed(id, wrong.get("error") or "The arguments are not JSON.")

    def _result(self, message: ToolMessage, nested: str | None) -> None:
        call, tool = message.tool_call_id, message.name or ""
        has_failed = message.status == "error"
        self._waiting.pop(call, None)
        if nested is not None:
            self._shown_under(nested).settled(call, "✗" if has_failed else "✓")
            if not self._answer.knows(call):
                return
        if has_failed and call in self._rejected:
            self._answer.call_denied(call, tool)
        elif has_failed:
            self._answer.call_failed(call, _shown_text(message.content), tool)
        else:
            self._answer.call_returns(call, tool, _shown(message.content))

    # State

    def _updates(self, namespace: tuple[str, ...], update: Any) -> None:
        if not isinstance(update, dict):
            return
        nested = self._call_of(namespace)
        for written in update.values():
            for state in written if isinstance(written, list) else [written]:
                if isinstance(state, dict):
                    self._state(state, nested)

    def _state(self, state: Json, nested: str | None) -> None:
        messages = state.get("messages")
        for message in messages if isinstance(messages, list) else [messages]:
            if isinstance(message, AIMessage) and str(message.id) not in self._told:
                self._told.add(str(message.id))
                self._end(message, nested)
            elif isinstance(message, ToolMessage) and message.id not in self._told:
                self._result(message, nested)
        if nested is not None:
            return
        for key in _PLANS:
            if isinstance(state.get(key), list):
                self._answer.data("plan", {"entries": plan_of(state[key])})
        if state.get("structured_response") is not None:
            self.structured = state["structured_response"]

    def _end(self, message: AIMessage, nested: str | None) -> None:
        """A model call is over: its message is in the state."""
        if str(message.id) not in self._said:
            self._whole(message, nested)
        self._answer.end_stream((str(message.id), "thought"))
        self._answer.end_stream((str(message.id), "text"))
        self._calls(message, nested)
        self._flush_usage()
        if nested is None:
            reason = message.response_metadata.get("finish_reason") or message.response_metadata.get(
                "stop_reason"
            )
            self.reason = _REASONS.get(str(reason).lower(), "stop")

    def _custom(self, data: Any) -> None:
        if isinstance(data, dict):
            for key in ("type", "name", "event"):
                if isinstance(data.get(key), str) and data[key]:
                    self._answer.custom(data[key], {other: data[other] for other in data if other != key})
                    return
        self._answer.custom("custom", data)

    # Nested

    def _task(self, task: Any) -> None:
        """A task begins: one that runs a single tool call is where its nested agents are."""
        given = task.get("input") if isinstance(task, dict) else None
        call = given.get("tool_call") if isinstance(given, dict) else None
        if isinstance(call, dict) and call.get("id"):
            self._tasks[str(task["id"])] = str(call["id"])

    def _call_of(self, namespace: tuple[str, ...]) -> str | None:
        """The call below which a namespace is. `None`: it speaks for the graph."""
        for segment in namespace:
            name, _, task = segment.partition(":")
            if task in self._tasks:
                return self._tasks[task]
            if name == "tools":
                # A node that runs several calls as one task does not say for which of them.
                return next(iter(self._answer.open_calls()), None)
        return None

    def _shown_under(self, call: str) -> Progress:
        progress = self._progress.get(call)
        if progress is None:
            answer = self._answer
            progress = self._progress[call] = Progress(lambda text: answer.call_shows(call, text))
        return progress

    def show_call(self, call: str, tool: str, input: Any, taken: set[str]) -> str:
        """The call that an interrupt is about, which may name none: the first open one of that tool with equal
        arguments, or else one that shows what is asked. One of a nested agent is shown from now on, since it is
        asked about."""
        if not call:
            named = [id for id, (its_tool, _) in self._waiting.items() if id not in taken and its_tool == tool]
            same = [id for id in named if (self._waiting[id][1] or {}) == (input or {})]
            changed = [id for id in named if self._waiting[id][1] is _CHANGED]
            call = (same or changed or [f"{_STAND_IN}{tool}-{len(self._stand_ins) + 1}"])[0]
            if call.startswith(_STAND_IN):
                self._stand_ins.add(call)
        taken.add(call)
        self._answer.call_input(call, tool, input)
        return call

    # Usage

    def _count(self, id: str, message: AIMessage) -> None:
        if not message.usage_metadata:
            return
        used = usage_of(message)
        so_far = self._usage.get(id)
        if so_far is not None:
            for key in used:
                used[key] += so_far[key]  # type: ignore[literal-required]
        self._usage[id] = used

    def _flush_usage(self) -> None:
        for used in self._usage.values():
            self._run.usage(used)
        self._usage.clear()


def usage_of(message: AIMessage) -> Usage:
    """Tokens of one model call: LangChain counts cached ones among the input, and thoughts among the output."""
    used: Any = message.usage_metadata or {}
    given, made = used.get("input_token_details") or {}, used.get("output_token_details") or {}
    read, written = given.get("cache_read") or 0, given.get("cache_creation") or 0
    reasoning = min(made.get("reasoning") or 0, used.get("output_tokens", 0))
    return {
        "input": max(used.get("input_tokens", 0) - read - written, 0),
        "output": used.get("output_tokens", 0) - reasoning,
        "reasoning": reasoning,
        "cache_read": read,
        "cache_write": written,
    }


def plan_of(items: list[Any]) -> list[Json]:
    """A plan or a list of tasks of the state as entries."""
    entries = []
    for item in items:
        if isinstance(item, dict):
            content = next((item[key] for key in ("content", "title", "task", "step") if item.get(key)), "")
            entries.append(plan_entry({**item, "content": content}))
        else:
            entries.append(plan_entry({"content": str(item)}))
    return entries


def _text_of(message: AIMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(block["text"] for block in message.content_blocks if block["type"] == "text")


def _shown(content: Any) -> Any:
    if isinstance(content, list) and all(
        isinstance(item, dict) and item.get("type") == "text" for item in content
    ):
        return "".join(item.get("text") or "" for item in content)
    return values.plain(content)


def _shown_text(content: Any) -> str:
    shown = _shown(content)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
