"""Graphs over the pipe: what comes of what they stream, and of what they interrupt for."""

from __future__ import annotations

import unittest

from child import LANGCHAIN, ChildCase, chunks, kinds, outputs, said

AGENT = (
    LANGCHAIN
    + """
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, TodoListMiddleware
from langgraph.config import get_stream_writer

def calls(*named):
    made = [{"name": name, "args": args, "id": id, "type": "tool_call"} for id, name, args in named]
    return AIMessage("let me", tool_calls=made)

def script(messages):
    word = told(messages)
    if messages[-1].type == "tool":
        return AIMessage("got " + word)
    if word == "deploy":
        return calls(("c1", "deploy", {"to": "x"}), ("c2", "look", {"n": 1}))
    if word == "todo":
        return calls(("c3", "write_todos", {"todos": [{"content": "a", "status": "in_progress"}]}))
    if word == "nest":
        return calls(("c4", "nest", {"words": "inner words"}))
    if word == "broken":
        return calls(("c5", "broken", {}))
    if word == "progress":
        return calls(("c6", "work", {}))
    if word == "think":
        return AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "thought"}])
    if word == "history":
        return AIMessage(f"{sum(message.type != 'system' for message in messages)} messages")
    return AIMessage("you said " + word)

def deploy(to: str) -> str:
    "Deploys."
    return "deployed to " + to

def look(n: int) -> str:
    "Looks."
    return f"saw {n}"

def broken() -> str:
    "Fails."
    raise ValueError("no such place")

def work() -> str:
    "Works."
    get_stream_writer()({"type": "progress", "percent": 7})
    get_stream_writer()("just words")
    return "ok"

async def nest(words: str) -> str:
    "Asks another agent."
    return (await inner.ainvoke({"messages": [("user", words)]}))["messages"][-1].text

async def editor(path: str) -> str:
    "Asks the editor."
    return await client.read_text_file(path)

inner = create_agent(Scripted(script=script), [deploy, look], name="inner",
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"deploy": True})])
TOOLS = [deploy, look, broken, work, nest]
agent = create_agent(Scripted(script=script), TOOLS,
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"deploy": True}), TodoListMiddleware()])
asks = HumanInTheLoopMiddleware(interrupt_on={"deploy": True, "look": True}, interrupt_mode="per_call")
alone = create_agent(Scripted(script=script), TOOLS, middleware=[asks])
"""
)


class Streams(ChildCase):
    def test_text_streams_in_one_step(self) -> None:
        got = self.ready(AGENT).run("hello")
        self.assertEqual(kinds(got)[:2], ["start-step", "text-start"])
        self.assertEqual(kinds(got)[-2:], ["text-end", "finish-step"])
        self.assertEqual(said(got), "you said hello ")
        self.assertEqual(got[-1], {"type": "ended", "run": "r1", "reason": "stop"})

    def test_thoughts_are_reasoning(self) -> None:
        got = self.ready(AGENT).run("think")
        thought = "".join(chunk["delta"] for chunk in chunks(got) if chunk["type"] == "reasoning-delta")
        self.assertEqual((thought, said(got)), ("hm", "thought"))

    def test_todos_are_the_plan(self) -> None:
        got = chunks(self.ready(AGENT).run("todo"))
        plans = [chunk["data"]["entries"] for chunk in got if chunk["type"] == "data-plan"]
        self.assertEqual(plans, [[{"content": "a", "status": "in_progress", "priority": "medium"}]])

    def test_custom_events_keep_their_name(self) -> None:
        got = self.ready(AGENT).run("progress")
        data = [(chunk["type"], chunk["data"]) for chunk in chunks(got) if chunk["type"].startswith("data-")]
        self.assertEqual(data, [("data-progress", {"percent": 7}), ("data-custom", "just words")])
        self.assertEqual(outputs(got), {"c6": "ok"})

    def test_an_exception_of_a_tool_is_the_error_of_its_call(self) -> None:
        got = self.ready(AGENT).run("broken")
        errors = [chunk["errorText"] for chunk in chunks(got) if chunk["type"] == "tool-output-error"]
        self.assertEqual(errors, ["ValueError: no such place"])
        self.assertEqual(got[-1]["message"], "ValueError: no such place")

    def test_nested_agents_show_under_the_call_that_runs_them(self) -> None:
        got = self.ready(AGENT).run("nest")
        shown = [chunk["output"] for chunk in chunks(got) if chunk.get("preliminary")]
        self.assertTrue(any("you" in output for output in shown), shown)
        self.assertEqual(said(got), "let me got you said inner words  ")

    def test_a_subgraph_that_is_a_node_speaks_for_the_graph(self) -> None:
        program = (
            LANGCHAIN
            + """
from langgraph.graph import START, MessagesState, StateGraph

def speak(state):
    return {"messages": [Scripted(script=lambda messages: AIMessage("from below")).invoke(state["messages"])]}

below = StateGraph(MessagesState).add_node("speak", speak).add_edge(START, "speak").compile()
agent = StateGraph(MessagesState).add_node("below", below).add_edge(START, "below").compile()
"""
        )
        self.assertEqual(said(self.ready(program).run("x")), "from below ")

    def test_a_message_that_no_model_streamed_is_text(self) -> None:
        program = """
            from langchain_core.messages import AIMessage
            from langgraph.graph import START, MessagesState, StateGraph

            def speak(state):
                return {"messages": [AIMessage("written by hand")]}

            agent = StateGraph(MessagesState).add_node("speak", speak).add_edge(START, "speak").compile()
            """
        child = self.ready(program)
        self.assertEqual(said(child.run("x")), "written by hand")
        self.assertEqual(said(child.run("y", previous="a-r1")), "written by hand")

    def test_a_structured_response_is_text(self) -> None:
        program = """
            from langchain_core.messages import AIMessage
            from langgraph.graph import START, MessagesState, StateGraph

            class State(MessagesState):
                structured_response: dict

            def speak(state):
                return {"structured_response": {"city": "Rome"}}

            agent = StateGraph(State).add_node("speak", speak).add_edge(START, "speak").compile()
            """
        self.assertEqual(said(self.ready(program).run("x")), '{"city":"Rome"}')


class Interrupts(ChildCase):
    def ask(self, *types: dict[str, object], module: str = "app:agent") -> list[dict[str, object]]:
        child = self.ready(AGENT, module=module)
        child.start("deploy")
        got = []
        given = list(types)
        while given:
            got += child.until("ask", "failed", "ended")
            self.assertEqual(got[-1]["type"], "ask", got[-1])
            decisions = []
            for request in got[-1]["requests"]:
                decisions.append({"approval": request["approval"], "call": request["call"], **given.pop(0)})
            child.send(type="decide", run="r1", decisions=decisions)
        return got + child.until("ended", "failed")

    def test_the_call_that_is_asked_about_is_the_one_of_the_message(self) -> None:
        got = self.ask({"type": "approve"})
        (request,) = next(message["requests"] for message in got if message["type"] == "ask")
        self.assertEqual((request["call"], request["input"]), ("c1", {"to": "x"}))
        self.assertEqual(request["decisions"], ["approve", "edit", "reject", "respond"])
        self.assertEqual(outputs(got), {"c1": "deployed to x", "c2": "saw 1"})
        self.assertEqual(kinds(got).count("start-step"), 2)

    def test_an_edited_call_runs_with_the_new_arguments(self) -> None:
        got = self.ask({"type": "edit", "input": {"to": "y"}})
        self.assertIn("deployed to y", outputs(got)["c1"])

    def test_a_rejected_call_is_denied(self) -> None:
        got = self.ask({"type": "reject", "message": "not today"})
        denied = [chunk["toolCallId"] for chunk in chunks(got) if chunk["type"] == "tool-output-denied"]
        self.assertEqual(denied, ["c1"])

    def test_a_person_answers_for_the_tool(self) -> None:
        got = self.ask({"type": "respond", "message": "by hand"})
        self.assertEqual(outputs(got)["c1"], "by hand")

    def test_a_middleware_that_interrupts_per_call_is_answered_per_call(self) -> None:
        got = self.ask({"type": "approve"}, {"type": "reject"}, module="app:alone")
        rounds = [message["requests"] for message in got if message["type"] == "ask"]
        asked = [request["call"] for requests in rounds for request in requests]
        self.assertEqual(sorted(asked), ["c1", "c2"])
        self.assertEqual(outputs(got), {asked[0]: {"c1": "deployed to x", "c2": "saw 1"}[asked[0]]})

    def test_a_cancel_while_open_ends_the_run_and_the_next_prompt_works(self) -> None:
        child = self.ready(AGENT)
        child.start("deploy")
        child.until("ask")
        child.send(type="cancel", run="r1")
        self.assertEqual(child.until("ended", "failed", "cancelled")[-1]["type"], "cancelled")
        child.start("history", previous="a-r1")
        child.until("want_history")
        messages = [
            {"role": "user", "blocks": [{"type": "text", "text": "deploy"}]},
            {"role": "assistant", "parts": [{"type": "text", "text": "let me"}]},
        ]
        child.send(type="history", run="r2", messages=messages)
        self.assertEqual(said(child.until("ended", "failed")), "3 messages ")

    def test_a_question_with_other_arguments_than_the_call_has_shows_its_own(self) -> None:
        program = """
            from langchain_core.messages import AIMessage, ToolMessage
            from langgraph.checkpoint.memory import InMemorySaver
            from langgraph.graph import START, MessagesState, StateGraph
            from langgraph.types import interrupt

            def speak(state):
                call = {"name": "deploy", "args": {"to": "x"}, "id": "c1"}
                return {"messages": [AIMessage("", tool_calls=[call])]}

            def check(state):
                asked = [{"name": "deploy", "args": {"to": to}} for to in ("prod", "x")]
                said = interrupt({"action_requests": asked})["decisions"]
                return {"messages": [ToolMessage(" ".join(one["type"] for one in said), tool_call_id="c1")]}

            graph = StateGraph(MessagesState).add_node("speak", speak).add_node("check", check)
            agent = graph.add_edge(START, "speak").add_edge("speak", "check").compile(InMemorySaver())
            """
        child = self.ready(program)
        child.start("deploy")
        got = child.until("ask", "failed", "ended")
        requests = got[-1]["requests"]
        self.assertEqual([request["input"] for request in requests], [{"to": "prod"}, {"to": "x"}])
        self.assertEqual([request["call"] for request in requests], ["asked-deploy-1", "c1"])
        whole = [chunk for chunk in chunks(got) if chunk["type"] == "tool-input-available"]
        told = {chunk["toolCallId"]: chunk["input"] for chunk in whole}
        self.assertEqual(told, {"c1": {"to": "x"}, "asked-deploy-1": {"to": "prod"}})
        # In another order than they were asked.
        decisions = [
            {"approval": request["approval"], "call": request["call"], "type": kind}
            for request, kind in zip(requests[::-1], ["reject", "approve"], strict=True)
        ]
        child.send(type="decide", run="r1", decisions=decisions)
        got += child.until("ended", "failed")
        self.assertEqual(outputs(got), {"asked-deploy-1": "allowed", "c1": "approve reject"}, got[-1])

    def test_another_process_goes_on_with_the_decision(self) -> None:
        second = self.ready(AGENT)
        decided = {"approval": "x", "call": "c1", "type": "approve"}
        second.start(previous="a-r0", decisions=[decided])
        second.until("want_history")
        call = {"type": "dynamic-tool", "toolName": "deploy", "toolCallId": "c1", "input": {"to": "x"}}
        messages = [
            {"role": "user", "blocks": [{"type": "text", "text": "deploy"}]},
            {
                "role": "assistant",
                "parts": [
                    {"type": "step-start"},
                    {"type": "text", "text": "let me"},
                    {**call, "state": "approval-requested"},
                ],
            },
        ]
        second.send(type="history", run="r1", messages=messages)
        got = second.until("ended", "failed")
        self.assertEqual(outputs(got), {"c1": "deployed to x"}, got[-1])
        self.assertEqual(said(got), "got deployed to x ")
        self.assertEqual(kinds(got)[0], "tool-output-available")

    def test_an_interrupt_of_the_graph_is_a_question(self) -> None:
        program = """
            from langchain_core.messages import AIMessage
            from langgraph.graph import START, MessagesState, StateGraph
            from langgraph.types import interrupt

            def speak(state):
                answer = interrupt({"question": "Which city?", "options": ["Rome", "Oslo"]})
                return {"messages": [AIMessage("to " + answer)]}

            agent = StateGraph(MessagesState).add_node("speak", speak).add_edge(START, "speak").compile()
            """
        child = self.ready(program)
        child.start("x")
        request = child.until("request", "failed")[-1]
        self.assertEqual(request["params"]["question"], "Which city?")
        self.assertEqual(request["params"]["options"], [{"label": "Rome"}, {"label": "Oslo"}])
        child.send(type="answer", id=request["id"], result=["Oslo"])
        self.assertEqual(said(child.until("ended", "failed")), "to Oslo")


class Histories(ChildCase):
    def test_a_conversation_that_goes_on_is_not_sent_again(self) -> None:
        child = self.ready(AGENT)
        child.run("hello")
        self.assertEqual(said(child.run("history", previous="a-r1")), "3 messages ")

    def test_a_checkpointer_of_the_program_is_used_and_asked_for_its_thread(self) -> None:
        program = AGENT + "\nfrom langgraph.checkpoint.memory import InMemorySaver\n"
        program += "agent = create_agent(Scripted(script=script), TOOLS, checkpointer=InMemorySaver())\n"
        child = self.ready(program)
        child.run("hello")
        self.assertEqual(said(child.run("history", previous="a-r1")), "3 messages ")

    def test_after_a_rewind_the_thread_is_filled_anew(self) -> None:
        child = self.ready(AGENT)
        child.run("hello")
        child.run("hello", previous="a-r1")
        child.start("history", previous="a-r1")
        child.until("want_history")
        messages = [
            {"role": "user", "blocks": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "parts": [{"type": "text", "text": "hi"}]},
        ]
        child.send(type="history", run="r3", messages=messages)
        self.assertEqual(said(child.until("ended", "failed")), "3 messages ")
        # And the new thread goes on.
        self.assertEqual(said(child.run("history", previous="a-r3")), "5 messages ")

    def test_memory_keeps_the_newest_state_of_a_thread_only(self) -> None:
        program = AGENT + (
            "\nimport attache_agents.langgraph_agent.threads as threads\n"
            "made = []\n"
            "class Counted(threads.InMemorySaver):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        made.append(self)\n"
            "threads.InMemorySaver = Counted\n"
            "def script_of_sizes(messages):\n"
            "    (saver,) = made\n"
            "    kept = sum(len(of) for of in saver.storage['ses'].values())\n"
            "    return AIMessage(f'{kept} {len(saver.blobs)}')\n"
            "agent = create_agent(Scripted(script=script_of_sizes), TOOLS)\n"
        )
        child = self.ready(program)
        sizes, previous = [], None
        for turn in range(1, 6):
            sizes.append(said(child.run("go", previous=previous)))
            previous = f"a-r{turn}"
        self.assertEqual(sizes[2], sizes[4], sizes)


if __name__ == "__main__":
    unittest.main()
