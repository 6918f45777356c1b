"""pydantic-ai agents over the pipe: what comes of what they do."""

from __future__ import annotations

import os
import sys
import unittest

from child import PYDANTIC, ChildCase, chunks, kinds, outputs, said

TOOLS = (
    PYDANTIC
    + """
async def model(messages, info):
    part = last(messages)
    if isinstance(part, UserPromptPart):
        word = part.content if isinstance(part.content, str) else part.content[0]
        if word == "think":
            yield {0: DeltaThinkingPart(content="hm")}
            yield {0: DeltaThinkingPart(content="m", signature="sig")}
            yield "thought"
        elif word == "history":
            yield f"{sum(isinstance(m, ModelRequest) for m in messages)} requests"
        elif word in ("weather", "deploy", "broken", "denied_by_itself", "ask", "outside", "wait", "nest"):
            for delta in call(word, f"call-{word}", to="x"):
                yield delta
        elif word == "raise":
            raise RuntimeError("the model broke: a-very-secret-value")
        else:
            yield "you said "
            yield word
    elif isinstance(part, RetryPromptPart):
        yield "retried"
    else:
        yield f"got {part.content}"

agent = Agent(FunctionModel(stream_function=model))
inner = Agent(FunctionModel(stream_function=model))

@agent.tool_plain
def weather(to: str) -> str:
    print("the program prints")
    return "sun in " + to

@agent.tool_plain(requires_approval=True)
def deploy(to: str) -> str:
    return "deployed to " + to

@agent.tool_plain
def broken(to: str) -> str:
    raise ValueError("no such place")

@agent.tool_plain
async def ask(to: str) -> str:
    client.plan(["one", {"content": "two", "status": "completed"}])
    client.title("A title")
    text = await client.read_text_file("a.txt", line=2)
    await client.write_text_file("b.txt", text + "!")
    done = await client.terminal("make")
    chosen = await client.ask("Which?", ["red", "blue"])
    return f"{text} {done.exit_code} {chosen}"

@agent.tool_plain
def wait(to: str) -> str:
    return client.wait(client.read_text_file("a.txt"))

@agent.tool_plain
async def nest(to: str) -> str:
    return (await inner.run("inner words")).output
"""
)


class Tools(ChildCase):
    def test_text_streams_in_one_step(self) -> None:
        got = self.ready(TOOLS).run("hello")
        self.assertEqual(
            kinds(got), ["start-step", "text-start", "text-delta", "text-delta", "text-end", "finish-step"]
        )
        self.assertEqual(said(got), "you said hello")
        self.assertEqual(got[-1], {"type": "ended", "run": "r1", "reason": "stop"})

    def test_thoughts_are_reasoning_and_keep_their_signature(self) -> None:
        got = chunks(self.ready(TOOLS).run("think"))
        thought = "".join(chunk["delta"] for chunk in got if chunk["type"] == "reasoning-delta")
        ends = [chunk for chunk in got if chunk["type"] == "reasoning-end"]
        self.assertEqual(thought, "hmm")
        self.assertEqual(ends[0]["providerMetadata"]["pydantic_ai"]["signature"], "sig")

    def test_a_call_is_one_call_from_its_first_fragment_to_its_result(self) -> None:
        got = self.ready(TOOLS).run("weather")
        self.assertEqual(
            kinds(got)[:5],
            ["start-step", "tool-input-start", "tool-input-available", "tool-output-available", "finish-step"],
        )
        deltas = [chunk["inputTextDelta"] for chunk in chunks(got) if chunk["type"] == "tool-input-delta"]
        self.assertEqual("".join(deltas), '{"to": "x"}')
        self.assertGreater(len(deltas), 1)
        self.assertEqual(outputs(got), {"call-weather": "sun in x"})
        self.assertEqual(said(got), "got sun in x")

    def test_each_model_call_tells_its_usage(self) -> None:
        got = self.ready(TOOLS).run("weather")
        used = [message["usage"] for message in got if message["type"] == "usage"]
        self.assertEqual(len(used), 2)
        self.assertEqual(set(used[0]), {"input", "output", "reasoning", "cache_read", "cache_write"})
        self.assertGreater(used[1]["input"], 0)

    def test_what_the_program_prints_stays_off_the_pipe(self) -> None:
        child = self.child(TOOLS)
        child.run("weather")
        child.end()
        self.assertIn(b"the program prints", child.errors)

    def test_ids_of_calls_are_unique_in_a_session(self) -> None:
        child = self.ready(TOOLS)
        child.run("weather")
        self.assertEqual(list(outputs(child.run("weather", previous="a-r1"))), ["call-weather~2"])

    def test_an_exception_of_the_model_fails_the_turn_with_its_last_line_and_no_secret(self) -> None:
        got = self.ready(TOOLS).run("raise")
        self.assertEqual(got[-1]["type"], "failed")
        self.assertEqual(got[-1]["message"], "RuntimeError: the model broke: [MY_API_KEY]")
        self.assertIn("Traceback", got[-1]["details"])
        self.assertNotIn("a-very-secret-value", got[-1]["details"])

    def test_an_exception_of_a_tool_is_the_error_of_its_call(self) -> None:
        got = self.ready(TOOLS).run("broken")
        errors = [chunk for chunk in chunks(got) if chunk["type"] == "tool-output-error"]
        self.assertEqual(errors[0]["errorText"], "ValueError: no such place")
        self.assertEqual(got[-1]["type"], "failed")

    def test_nested_agents_show_under_the_call_that_runs_them(self) -> None:
        got = self.ready(TOOLS).run("nest")
        shown = [chunk for chunk in chunks(got) if chunk.get("preliminary")]
        self.assertTrue(shown)
        self.assertIn("you said", shown[0]["output"])
        self.assertEqual(said(got), "got you said inner words")


class Approvals(ChildCase):
    def ask(self, **decision: object) -> list[dict[str, object]]:
        child = self.ready(TOOLS)
        child.start("deploy")
        asked = child.until("ask")
        (request,) = asked[-1]["requests"]
        self.assertEqual(request["tool"], "deploy")
        self.assertEqual(request["input"], {"to": "x"})
        self.assertEqual(request["decisions"], ["approve", "edit", "reject"])
        decided = {"approval": request["approval"], "call": request["call"], **decision}
        child.send(type="decide", run="r1", decisions=[decided])
        return asked + child.until("ended", "failed")

    def test_an_approved_call_runs(self) -> None:
        got = self.ask(type="approve")
        self.assertEqual(outputs(got), {"call-deploy": "deployed to x"})
        self.assertEqual(said(got), "got deployed to x")

    def test_an_edited_call_runs_with_the_new_arguments(self) -> None:
        self.assertEqual(outputs(self.ask(type="edit", input={"to": "y"})), {"call-deploy": "deployed to y"})

    def test_a_rejected_call_is_denied_and_the_model_told_why(self) -> None:
        got = self.ask(type="reject", message="not today")
        self.assertIn("tool-output-denied", kinds(got))
        self.assertEqual(said(got), "got not today")

    def test_a_cancel_while_open_ends_the_run(self) -> None:
        child = self.ready(TOOLS)
        child.start("deploy")
        child.until("ask")
        child.send(type="cancel", run="r1")
        self.assertEqual(child.until("ended", "failed", "cancelled")[-1]["type"], "cancelled")
        self.assertEqual(said(child.run("hello")), "you said hello")

    def test_another_process_goes_on_with_the_decision(self) -> None:
        first = self.ready(TOOLS)
        first.start("deploy")
        first.until("ask")
        first.process.kill()
        second = self.ready(TOOLS)
        decided = {"approval": "x", "call": "call-deploy", "type": "edit", "input": {"to": "z"}}
        second.start(previous="a-r0", decisions=[decided])
        second.until("want_history")
        call = {
            "type": "dynamic-tool",
            "toolName": "deploy",
            "toolCallId": "call-deploy",
            "state": "approval-requested",
            "input": {"to": "x"},
        }
        messages = [
            {"role": "user", "blocks": [{"type": "text", "text": "deploy"}]},
            {"role": "assistant", "parts": [{"type": "step-start"}, call]},
        ]
        second.send(type="history", run="r1", messages=messages)
        got = second.until("ended", "failed")
        # The step of the call is open already.
        self.assertEqual(kinds(got)[:3], ["tool-output-available", "finish-step", "start-step"])
        self.assertEqual(outputs(got), {"call-deploy": "deployed to z"})
        self.assertEqual(said(got), "got deployed to z")


class Clients(ChildCase):
    def test_a_tool_asks_the_client(self) -> None:
        child = self.ready(TOOLS)
        child.start("ask")
        asked = []
        results = [
            "text",
            None,
            {"output": "ok", "exit_code": 0},
            ["blue"],
        ]
        got = []
        for result in results:
            got += child.until("request", "failed")
            asked.append((got[-1]["method"], got[-1]["params"]))
            child.send(type="answer", id=got[-1]["id"], result=result)
        got += child.until("ended", "failed")
        self.assertEqual(
            asked,
            [
                ("read_text_file", {"path": "a.txt", "line": 2}),
                ("write_text_file", {"path": "b.txt", "content": "text!"}),
                ("terminal", {"command": "make", "args": []}),
                (
                    "ask",
                    {
                        "question": "Which?",
                        "options": [{"label": "red"}, {"label": "blue"}],
                        "multi_select": False,
                    },
                ),
            ],
        )
        self.assertEqual(said(got), "got text 0 ['blue']")
        plan = [chunk["data"]["entries"] for chunk in chunks(got) if chunk["type"] == "data-plan"]
        self.assertEqual([entry["status"] for entry in plan[0]], ["pending", "completed"])
        self.assertIn({"type": "data-title", "data": {"title": "A title"}}, chunks(got))

    def test_a_plain_function_waits_for_the_client(self) -> None:
        child = self.ready(TOOLS)
        child.start("wait")
        request = child.until("request")[-1]
        child.send(type="answer", id=request["id"], result="the text")
        self.assertEqual(said(child.until("ended", "failed")), "got the text")

    def test_a_refusal_is_an_exception_of_the_tool(self) -> None:
        child = self.ready(TOOLS)
        child.start("wait")
        request = child.until("request")[-1]
        child.send(type="answer", id=request["id"], error="outside of the workspace")
        got = child.until("ended", "failed")
        errors = [chunk["errorText"] for chunk in chunks(got) if chunk["type"] == "tool-output-error"]
        self.assertEqual(errors, ["attache_agents.run.Refused: outside of the workspace"])


class Histories(ChildCase):
    def test_a_conversation_that_goes_on_is_not_sent_again(self) -> None:
        child = self.ready(TOOLS)
        child.run("hello")
        got = child.run("history", previous="a-r1")
        self.assertEqual(said(got), "2 requests")
        self.assertNotIn("want_history", [message["type"] for message in got])

    def test_another_end_of_the_conversation_is_asked_for(self) -> None:
        child = self.ready(TOOLS)
        child.run("hello")
        child.start("history", previous="a-of-another")
        child.until("want_history")
        messages = [
            {"role": "user", "blocks": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "parts": [{"type": "text", "text": "1"}]},
            {"role": "user", "blocks": [{"type": "text", "text": "two"}]},
            {"role": "assistant", "parts": [{"type": "text", "text": "2"}]},
        ]
        child.send(type="history", run="r2", messages=messages)
        self.assertEqual(said(child.until("ended", "failed")), "3 requests")

    def test_context_for_one_turn_is_in_no_other(self) -> None:
        program = (
            PYDANTIC
            + """
async def model(messages, info):
    yield str(info.instructions)

agent = Agent(FunctionModel(stream_function=model))
"""
        )
        child = self.ready(program)
        first = said(child.run("a", context=[{"title": "now", "text": "it rains"}]))
        self.assertEqual(first, '<context title="now">\nit rains\n</context>')
        self.assertEqual(said(child.run("b", previous="a-r1")), "None")


class Servers(ChildCase):
    def test_mcp_servers_of_the_client_are_toolsets(self) -> None:
        program = (
            PYDANTIC
            + """
async def model(messages, info):
    if isinstance(last(messages), UserPromptPart):
        for delta in call(info.function_tools[0].name, "c1", a=1, b=2):
            yield delta
    else:
        yield str(last(messages).content)

agent = Agent(FunctionModel(stream_function=model))
"""
        )
        child = self.ready(program)
        child.write(
            """
            from mcp.server import MCPServer

            server = MCPServer("notes")

            @server.tool()
            def add(a: int, b: int) -> int:
                "Adds."
                return a + b

            server.run("stdio")
            """,
            "server.py",
        )
        server = {
            "name": "notes",
            "command": sys.executable,
            "args": ["server.py"],
            "env": [{"name": "PYTHONPATH", "value": os.environ.get("PYTHONPATH", "")}],
        }
        got = child.run("add", mcp_servers=[server], directory=str(child.directory))
        calls = [chunk["toolName"] for chunk in chunks(got) if chunk["type"] == "tool-input-available"]
        self.assertEqual((calls, said(got)), (["notes_add"], "3"), got[-1])


class Outputs(ChildCase):
    def test_a_structured_result_is_one_text_and_no_call(self) -> None:
        program = """
            from pydantic import BaseModel
            from pydantic_ai import Agent
            from pydantic_ai.models.test import TestModel

            class City(BaseModel):
                name: str
                people: int

            agent = Agent(TestModel(custom_output_args={"name": "Rome", "people": 3}), output_type=City)
            """
        got = self.ready(program).run("where")
        self.assertEqual(said(got), '{"name":"Rome","people":3}')
        self.assertNotIn("tool-input-start", kinds(got))

    def test_a_model_that_can_not_stream_answers_all_the_same(self) -> None:
        program = """
            from pydantic_ai import Agent
            from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
            from pydantic_ai.models.function import FunctionModel

            def model(messages, info):
                if len(messages) == 1:
                    return ModelResponse([ToolCallPart("look", {"x": 1}, "c1")])
                return ModelResponse([TextPart("seen")])

            agent = Agent(FunctionModel(model))

            @agent.tool_plain
            def look(x: int) -> int:
                return x
            """
        got = self.ready(program).run("look")
        self.assertEqual((outputs(got), said(got)), ({"c1": 1}, "seen"))

    def test_custom_events_keep_their_name(self) -> None:
        program = (
            PYDANTIC
            + """
from dataclasses import dataclass
from pydantic_ai import RunContext
from pydantic_ai.messages import CustomEvent

@dataclass(kw_only=True)
class Progress(CustomEvent):
    percent: int

async def model(messages, info):
    if isinstance(last(messages), UserPromptPart):
        for delta in call("work", "c1"):
            yield delta
    else:
        yield "done"

agent = Agent(FunctionModel(stream_function=model))

@agent.tool
async def work(ctx: RunContext) -> str:
    await ctx.emit(Progress(percent=7))
    return "ok"
"""
        )
        got = chunks(self.ready(program).run("go"))
        data = [chunk for chunk in got if chunk["type"].startswith("data-")]
        self.assertEqual([chunk["data"] for chunk in data], [{"percent": 7}])


if __name__ == "__main__":
    unittest.main()
