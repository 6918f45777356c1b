"""Makes the chunks of one answer (AI SDK v6), in their order. Knows no framework.

Whatever a framework reports, and in whatever order: a delta comes between its start and its end, a call has its
input before its output and exactly one output, and a step ends with nothing open.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from . import values
from .protocol import Json

# A call that has no result when its step ends.
NO_RESULT = "The agent gave no result for this call."

# Names of data that mean something to attache and its clients.
OWN_DATA = frozenset(
    [
        "approval",
        "command",
        "compaction",
        "context",
        "file-ref",
        "mention",
        "mode",
        "notice",
        "plan",
        "status",
        "title",
        "usage",
    ]
)


class _Call(Enum):
    STREAMING = 1
    WHOLE = 2
    SETTLED = 3


class CallNames:
    """The ids of calls as clients see them: unique in a session, though models repeat theirs."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def fresh(self, call: str) -> str:
        """A name for a new call."""
        call = call or "call"
        count = self._used.get(call, 0) + 1
        self._used[call] = count
        return call if count == 1 else f"{call}~{count}"

    def learn(self, call: str) -> None:
        """A call that the conversation has already."""
        base, _, number = call.rpartition("~")
        if base and number.isdigit():
            self._used[base] = max(self._used.get(base, 1), int(number))
        self._used.setdefault(call, 1)


class Answer:
    """The chunks of one answer. Keys of texts and calls are the framework's own."""

    def __init__(self, emit: Callable[[Json], None], names: CallNames) -> None:
        self._send = emit
        self._closed = False
        self._names = names
        self._in_step = False
        self._count = 0
        self._open: dict[object, tuple[str, str]] = {}
        self._ids: dict[str, str] = {}
        self._calls: dict[str, _Call] = {}
        self.has_text = False

    def goes_on(self, open_calls: dict[str, str]) -> None:
        """The step that an earlier process left open, with its calls that wait: framework's id → ours."""
        self._in_step = True
        for call, ours in open_calls.items():
            self._ids[call] = ours
            self._calls[call] = _Call.WHOLE

    def close(self) -> None:
        """The run is over: what tasks of the program say afterwards belongs to nothing."""
        self._closed = True

    def _emit(self, chunk: Json) -> None:
        if not self._closed:
            self._send(chunk)

    # Steps

    def begin_step(self) -> None:
        """A model call begins; what is left of the last one ends."""
        self.end_step()
        self._in_step = True
        self.has_text = False
        self._emit({"type": "start-step"})

    def end_step(self) -> None:
        """Everything open is closed. A step with nothing in it is one, too."""
        if not self._in_step:
            return
        self.end_streams()
        for call, stage in list(self._calls.items()):
            if stage is not _Call.SETTLED:
                self.call_failed(call, NO_RESULT)
        self._calls.clear()
        self._in_step = False
        self._emit({"type": "finish-step"})

    def begin_step_if_settled(self) -> None:
        """A model call begins; while another one of the same step is not over, it belongs to that step."""
        if not self._open and all(stage is _Call.SETTLED for stage in self._calls.values()):
            self.begin_step()

    def fail_open_calls(self, text: str) -> None:
        """The agent failed: so did whatever it was doing."""
        for call in list(self._calls):
            self.call_failed(call, text)

    def open_calls(self) -> list[str]:
        """The calls of this step that have no result, in their order; the framework's ids."""
        return [call for call, stage in self._calls.items() if stage is not _Call.SETTLED]

    def _need_step(self) -> None:
        if not self._in_step:
            self.begin_step()

    # Text and thinking

    def text(self, key: object, delta: str) -> None:
        """More text of one part."""
        if delta:
            self.has_text = True
            self._delta("text", key, delta)

    def reasoning(self, key: object, delta: str) -> None:
        """More of a thought."""
        if delta:
            self._delta("reasoning", key, delta)

    def end_stream(self, key: object, metadata: Json | None = None) -> None:
        """A text or thought is whole. `metadata` is what only its author understands again."""
        stream = self._open.pop(key, None)
        if stream is None:
            return
        kind, id = stream
        end: Json = {"type": f"{kind}-end", "id": id}
        if metadata:
            end["providerMetadata"] = metadata
        self._emit(end)

    def end_streams(self) -> None:
        """Ends whatever streams."""
        for key in list(self._open):
            self.end_stream(key)

    def _delta(self, kind: str, key: object, delta: str) -> None:
        stream = self._open.get(key)
        if stream is not None and stream[0] != kind:
            self.end_stream(key)
            stream = None
        if stream is None:
            self._need_step()
            self._count += 1
            stream = (kind, f"{kind[0]}{self._count}")
            self._open[key] = stream
            self._emit({"type": f"{kind}-start", "id": stream[1]})
        self._emit({"type": f"{kind}-delta", "id": stream[1], "delta": delta})

    # Calls

    def id_of(self, call: str) -> str:
        """The name under which a call went out."""
        return self._ids.get(call, call)

    def knows(self, call: str) -> bool:
        """Whether the call was told in this step."""
        return call in self._calls

    def call_begins(self, call: str, tool: str) -> None:
        """The first fragment of a call."""
        if call in self._calls:
            return
        self._need_step()
        self._ids[call] = self._names.fresh(call)
        self._calls[call] = _Call.STREAMING
        self._emit(self._of_call("tool-input-start", call, tool))

    def call_delta(self, call: str, delta: str) -> None:
        """More of the arguments, as the model writes them."""
        if delta and self._calls.get(call) is _Call.STREAMING:
            self._emit({"type": "tool-input-delta", "toolCallId": self._ids[call], "inputTextDelta": delta})

    def call_input(self, call: str, tool: str, input: Any, metadata: Json | None = None) -> None:
        """All arguments of a call."""
        self.call_begins(call, tool)
        if self._calls[call] is not _Call.STREAMING:
            return
        self._calls[call] = _Call.WHOLE
        whole = self._of_call("tool-input-available", call, tool)
        whole["input"] = values.plain(input)
        if metadata:
            whole["providerMetadata"] = metadata
        self._emit(whole)

    def call_shows(self, call: str, output: Any) -> None:
        """What a call that runs has to show so far."""
        if self._calls.get(call) is _Call.WHOLE:
            self._output(call, {"output": values.plain(output), "preliminary": True})

    def call_returns(self, call: str, tool: str, output: Any) -> None:
        """The result."""
        if self._can_settle(call, tool):
            self._calls[call] = _Call.SETTLED
            self._output(call, {"output": values.plain(output)})

    def call_failed(self, call: str, text: str, tool: str = "") -> None:
        """The call failed; the model is told why."""
        if not self._can_settle(call, tool):
            return
        self._calls[call] = _Call.SETTLED
        self._emit(
            {
                "type": "tool-output-error",
                "toolCallId": self._ids[call],
                "errorText": text,
                "providerExecuted": True,
            }
        )

    def call_denied(self, call: str, tool: str = "") -> None:
        """A person did not want it."""
        if self._can_settle(call, tool):
            self._calls[call] = _Call.SETTLED
            self._emit({"type": "tool-output-denied", "toolCallId": self._ids[call]})

    def _can_settle(self, call: str, tool: str) -> bool:
        stage = self._calls.get(call)
        if stage is None and not tool:
            return False
        if stage in (None, _Call.STREAMING):
            # Its arguments never became whole, or nobody told of the call.
            self.call_input(call, tool or "tool", {})
            stage = self._calls.get(call)
        return stage is _Call.WHOLE

    def _of_call(self, type: str, call: str, tool: str) -> Json:
        # The agent runs its own tools: for attache they are the provider's.
        return {
            "type": type,
            "toolCallId": self._ids[call],
            "toolName": tool or "tool",
            "dynamic": True,
            "providerExecuted": True,
        }

    def _output(self, call: str, rest: Json) -> None:
        chunk = {"type": "tool-output-available", "toolCallId": self._ids[call], "providerExecuted": True}
        self._emit(chunk | rest)

    # Everything else

    def file(self, media_type: str, url: str) -> None:
        """A file that the agent made."""
        self._need_step()
        self._emit({"type": "file", "mediaType": media_type, "url": url})

    def source(self, id: str, url: str, title: str | None) -> None:
        """A page that the answer rests on."""
        self._need_step()
        chunk = {"type": "source-url", "sourceId": id, "url": url}
        self._emit(chunk | ({"title": title} if title else {}))

    def data(self, name: str, data: Any) -> None:
        """Data with a name that attache knows: a plan, a title."""
        self._need_step()
        self._emit({"type": f"data-{name}", "data": values.plain(data)})

    def custom(self, name: str, data: Any) -> None:
        """An event of the program's own, under its name; names that attache gives a meaning are left to it."""
        name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name).strip("-")
        self.data(f"custom-{name}" if name in OWN_DATA else name or "custom", data)
