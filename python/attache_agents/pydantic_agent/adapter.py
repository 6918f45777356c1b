"""Runs a pydantic-ai agent: history, approvals, results. What its events become is in `events`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.tools import (
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolApproved,
    ToolDenied,
)

from .. import blocks, values
from ..parts import calls_in
from ..protocol import Abilities, ApprovalRequest, Decided, FinishReason, Json
from ..run import Run
from . import servers
from .events import Events, arguments, reason_of, usage_of
from .history import messages
from .nested import CALL, watch_nested_runs
from .prompt import user_prompt

# Calls that something outside the agent has to answer: attache has nothing that would.
NOT_EXECUTED_HERE = (
    "This tool is executed outside of the agent, and nothing here executes it. Go on without it."
)

DENIED = "The user rejected this tool call."


class PydanticAgent:
    """An agent and the histories of its sessions."""

    framework = "pydantic-ai"

    def __init__(self, agent: AbstractAgent[Any, Any]) -> None:
        self._agent = agent
        watch_nested_runs()
        # Session → the answer that it ends with, and the messages. Another end means a rewind or a fork.
        self._histories: dict[str, tuple[str, list[ModelMessage]]] = {}

    def abilities(self) -> Abilities:
        """The model decides in the end what it takes; the agent takes everything."""
        return {
            "images": True,
            "audio": True,
            "mcp_servers": servers.are_taken(),
            "runtime_context": True,
            "approvals": True,
            "resumes": True,
        }

    def forget(self, session: str) -> None:
        """A session is closed."""
        self._histories.pop(session, None)

    async def run(self, run: Run) -> FinishReason:
        """Answers the prompt of the run."""
        prompt = run.prompt
        kept = self._histories.pop(prompt.session, None)
        results: DeferredToolResults | None = None
        if prompt.decisions:
            history, results = await _taken_up(run)
        elif prompt.previous is None:
            history = []
        elif kept is not None and kept[0] == prompt.previous:
            history = kept[1]
        else:
            history = await _rebuilt(run)
        reason, history = await self._answer(run, history, results)
        self._histories[prompt.session] = (prompt.answer, history)
        return reason

    async def _answer(
        self, run: Run, history: Sequence[ModelMessage], results: DeferredToolResults | None
    ) -> tuple[FinishReason, list[ModelMessage]]:
        prompt, events = run.prompt, Events(run.answer)
        last: ModelResponse | None = None
        async with self._agent.iter(
            None if results is not None else user_prompt(prompt.blocks),
            message_history=list(history) or None,
            deferred_tool_results=results,
            instructions=blocks.runtime_context(prompt.context) or None,
            toolsets=servers.toolsets(prompt.mcp_servers, prompt.directory) or None,
            capabilities=[ToldToAttache(run)],
        ) as agent_run:
            run.on_cancel = agent_run.cancel
            run.check()
            async for node in agent_run:
                if Agent.is_model_request_node(node):
                    events.begin_response(_output_tools(agent_run))
                    if _streams(agent_run.ctx.deps.model):
                        async with node.stream(agent_run.ctx) as stream:
                            async for event in stream:
                                events.take(event)
                elif Agent.is_call_tools_node(node):
                    if last is not node.model_response and results is None:
                        last = node.model_response
                        events.whole_response(last)
                        run.usage(usage_of(last))
                    results = None
                    async with node.stream(agent_run.ctx) as stream:
                        async for event in stream:
                            events.take(event)
            result = agent_run.result
        if result is None:
            return "other", []
        self._show_output(run, result.output)
        return reason_of(last), result.all_messages()

    def _show_output(self, run: Run, output: Any) -> None:
        """A result that was never streamed as text."""
        if output is None or isinstance(output, DeferredToolRequests) or run.answer.has_text:
            return
        if isinstance(output, str):
            run.answer.text("output", output)
            return
        text = values.line(values.plain(output)).decode().rstrip("\n")
        run.answer.text("output", text)


class ToldToAttache(AbstractCapability[Any]):
    """What an agent does not say by itself: which call is on its way, and what a person has to decide. Deciding
    happens inside the run, which goes on where it was."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        """Runs the tool, and lets agents in it be seen."""
        token = CALL.set((self._run, call.tool_call_id))
        try:
            return await handler(args)
        finally:
            CALL.reset(token)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults:
        """What is decided about each call."""
        results = DeferredToolResults(calls={call.tool_call_id: _not_executed() for call in requests.calls})
        if not requests.approvals:
            return results
        for call in requests.approvals:
            self._run.answer.call_input(call.tool_call_id, call.tool_name, arguments(call))
        asked = {self._run.answer.id_of(call.tool_call_id): call for call in requests.approvals}
        about = requests.metadata
        decided = await self._run.ask(
            [_request(id, call, about.get(call.tool_call_id, {})) for id, call in asked.items()]
        )
        decisions = {entry["call"]: decision(entry) for entry in decided}
        for id, call in asked.items():
            results.approvals[call.tool_call_id] = decisions.get(id, ToolDenied(DENIED))
        return results


def _request(id: str, call: ToolCallPart, about: Json) -> ApprovalRequest:
    request: ApprovalRequest = {
        "approval": f"approve-{id}",
        "call": id,
        "tool": call.tool_name,
        "input": values.plain(arguments(call)),
        "decisions": ["approve", "edit", "reject"],
    }
    if isinstance(about.get("title"), str):
        request["title"] = about["title"]
    description = about.get("description", about.get("reason"))
    if isinstance(description, str):
        request["description"] = description
    return request


def decision(decided: Decided) -> ToolApproved | ToolDenied:
    """A person's decision in the framework's words."""
    if decided["type"] == "approve":
        return ToolApproved()
    if decided["type"] == "edit" and isinstance(decided.get("input"), dict):
        return ToolApproved(override_args=decided["input"])
    return ToolDenied(decided.get("message") or DENIED)


def _not_executed() -> Any:
    from pydantic_ai.exceptions import ToolFailed

    return ToolFailed(NOT_EXECUTED_HERE)


async def _rebuilt(run: Run) -> list[ModelMessage]:
    conversation = await run.history()
    for call, _ in calls_in(conversation):
        run.names.learn(call)
    return messages(conversation)


async def _taken_up(run: Run) -> tuple[list[ModelMessage], DeferredToolResults]:
    """A run that waited for a person when its process ended."""
    conversation = await run.history()
    decided = {entry["call"]: entry for entry in run.prompt.decisions}
    open_calls = [call for call, _ in calls_in(conversation) if call in decided]
    for call, _ in calls_in(conversation):
        run.names.learn(call)
    run.answer.goes_on({call: call for call in open_calls})
    results = DeferredToolResults(approvals={call: decision(decided[call]) for call in open_calls})
    return messages(conversation, open_calls=frozenset(open_calls)), results


def _output_tools(agent_run: Any) -> frozenset[str]:
    """The names under which a model hands in its result."""
    toolset = getattr(agent_run.ctx.deps.output_schema, "toolset", None)
    return frozenset(getattr(toolset, "processors", None) or ())


def _streams(model: Model[Any]) -> bool:
    """Whether the model can stream: some that stand in for one in tests can't."""
    inner: Any = model
    while hasattr(inner, "wrapped"):
        inner = inner.wrapped
    for one in getattr(inner, "models", None) or [inner]:
        if type(one).request_stream is Model.request_stream:
            return False
        if type(one).__name__ == "FunctionModel" and getattr(one, "stream_function", None) is None:
            return False
    return True
