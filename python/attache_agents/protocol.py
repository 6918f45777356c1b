"""The messages between attache and this process: JSON, one to a line. Says what they hold and nothing more.

attache speaks first: `hello`. The answer is `hello`, and `ready` or `failed` once the agent was looked for.
Then any number of sessions at once, each with one run at a time:

    attache → here                                  here → attache
    run {session, run, prompt, …}                   chunk {run, chunk} · usage {run, usage}
    decide {run, decisions}                         ask {run, requests}
    history {run, messages}                         want_history {run}
    answer {id, result | error}                     request {id, run, method, params}
    cancel {run}                                    ended {run, reason} · failed {run, message, details}
    forget {session}                                cancelled {run} · notice {severity, title, description}
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

PROTOCOL = 1

Json = dict[str, Any]

Decision = Literal["approve", "edit", "reject", "respond"]

FinishReason = Literal["stop", "length", "content-filter", "tool-calls", "error", "other"]


class ApprovalRequest(TypedDict, total=False):
    """One call that a person has to decide about."""

    approval: str
    call: str
    tool: str
    input: Any
    title: str
    description: str
    decisions: list[Decision]


class Decided(TypedDict, total=False):
    """What was decided about one call. `input` comes with an edit, `message` with a reject or a respond."""

    approval: str
    call: str
    type: Decision
    input: Any
    message: str


class Usage(TypedDict):
    """Tokens of one model call, in parts that do not overlap."""

    input: int
    output: int
    reasoning: int
    cache_read: int
    cache_write: int


class Abilities(TypedDict):
    """What an agent can do with a session: attache offers nothing beyond it."""

    images: bool
    audio: bool
    mcp_servers: bool
    runtime_context: bool
    approvals: bool
    resumes: bool
