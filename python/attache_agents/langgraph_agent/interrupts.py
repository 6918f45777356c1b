"""Puts the interrupts of a graph to a person: approvals of the human-in-the-loop middleware, and questions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .. import values
from ..protocol import ApprovalRequest, Decided, Decision, Json
from ..run import Refused, Run
from .events import Events

_ALL: list[Decision] = ["approve", "edit", "reject", "respond"]

# Where programs put the words of a question.
_WORDS = ("question", "message", "prompt", "text", "query", "description")


@dataclass
class Asked:
    """A call that an interrupt is about."""

    interrupt: str
    call: str
    tool: str
    input: Any
    description: str
    decisions: list[Decision]
    # One decision answers the interrupt, instead of a list with the others of it.
    alone: bool


def asked(interrupts: list[Any], events: Events) -> list[Asked]:
    """The calls that are asked about, in order. Interrupts that are no approvals are questions."""
    found: list[Asked] = []
    taken: set[str] = set()
    for interrupt in interrupts:
        value = interrupt.value
        if not isinstance(value, dict):
            continue
        if value.get("type") == "tool_approval":
            call = str(value.get("tool_call_id") or "")
            call = events.show_call(call, value["name"], value.get("args"), taken)
            allowed = _allowed_by_schema(getattr(interrupt, "response_schema", None))
            found.append(_asked(interrupt.id, call, value, allowed, alone=True))
        elif "action_requests" in value:
            allowed_of = {
                config.get("action_name"): config.get("allowed_decisions")
                for config in value.get("review_configs") or []
            }
            for action in value["action_requests"]:
                call = events.show_call("", action["name"], action.get("args"), taken)
                found.append(_asked(interrupt.id, call, action, allowed_of.get(action["name"]), alone=False))
    return found


def _asked(interrupt: str, call: str, action: Json, allowed: Any, *, alone: bool) -> Asked:
    return Asked(
        interrupt=interrupt,
        call=call,
        tool=action["name"],
        input=values.plain(action.get("args") or {}),
        description=str(action.get("description") or ""),
        decisions=[decision for decision in _ALL if decision in (allowed or _ALL)],
        alone=alone,
    )


def _allowed_by_schema(schema: Any) -> list[str] | None:
    """The decisions that a JSON schema, or the type that it is made of, names."""
    if schema is None:
        return None
    text = json.dumps(values.plain(schema)) if isinstance(schema, dict) else repr(schema)
    names = {"approve": "Approve", "edit": "Edit", "reject": "Reject", "respond": "Respond"}
    found = [name for name, title in names.items() if f'"{name}"' in text or title in text]
    return found or None


async def decide(run: Run, about: list[Asked]) -> list[Decided]:
    """What a person says about each, in order."""
    requests: list[ApprovalRequest] = []
    for one in about:
        id = run.answer.id_of(one.call)
        request: ApprovalRequest = {
            "approval": f"approve-{id}",
            "call": id,
            "tool": one.tool,
            "input": one.input,
            "decisions": one.decisions,
        }
        if one.description:
            request["description"] = one.description
        requests.append(request)
    decided = {entry["call"]: entry for entry in await run.ask(requests)}
    return [decided.get(request["call"], _rejected(request["call"])) for request in requests]


def _rejected(call: str) -> Decided:
    return {"approval": "", "call": call, "type": "reject"}


def resume_value(about: list[Asked], decided: list[Decided]) -> dict[str, Any]:
    """Interrupt → what the graph goes on with."""
    resumed: dict[str, Any] = {}
    for one, entry in zip(about, decided, strict=True):
        decision = _decision(one, entry)
        if one.alone:
            resumed[one.interrupt] = decision
        else:
            resumed.setdefault(one.interrupt, {"decisions": []})["decisions"].append(decision)
    return resumed


def _decision(one: Asked, decided: Decided) -> Json:
    kind = decided["type"]
    message = decided.get("message")
    if kind == "edit":
        return {"type": "edit", "edited_action": {"name": one.tool, "args": decided.get("input") or {}}}
    if kind == "respond":
        return {"type": "respond", "message": message or ""}
    if kind == "reject":
        return {"type": "reject"} | ({"message": message} if message else {})
    return {"type": "approve"}


async def answer_questions(run: Run, interrupts: list[Any], about: list[Asked]) -> dict[str, Any]:
    """Interrupts of the graph's own: the person's words are what it goes on with."""
    are_approvals = {one.interrupt for one in about}
    answers: dict[str, Any] = {}
    for interrupt in interrupts:
        if interrupt.id in are_approvals:
            continue
        try:
            given = await run.request("ask", question_of(interrupt.value))
        except Refused as refused:
            raise RuntimeError(f"the graph asks, and nobody answers: {refused}") from refused
        answers[interrupt.id] = given[0] if len(given) == 1 else given
    return answers


def question_of(value: Any) -> Json:
    """An interrupt's value as a question: its words, and the answers that it names."""
    if not isinstance(value, dict):
        text = value if isinstance(value, str) else json.dumps(values.plain(value), ensure_ascii=False)
        return {"question": text, "options": [], "multi_select": False}
    words = next((value[key] for key in _WORDS if isinstance(value.get(key), str)), None)
    options = value.get("options") or value.get("choices") or []
    labels = [option if isinstance(option, dict) else {"label": str(option)} for option in options]
    shown = words or json.dumps(values.plain(value), ensure_ascii=False)
    return {"question": shown, "options": values.plain(labels), "multi_select": bool(value.get("multi_select"))}
