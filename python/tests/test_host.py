"""The process behind the pipe: hello, what is wrong with an agent, several sessions, cancel, reload."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from child import PACKAGE, PYDANTIC, SECONDS, ChildCase, said

SIMPLE = (
    PYDANTIC
    + """
import asyncio, time

async def model(messages, info):
    word = last(messages).content
    if word == "sleep":
        yield "sleeping"
        await asyncio.sleep(60)
    elif word == "stubborn":
        yield "stubborn"
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.5)
            raise
    elif word == "exit":
        raise SystemExit(4)
    else:
        yield "v1 " + word

agent = Agent(FunctionModel(stream_function=model))
"""
)


class Hello(ChildCase):
    def test_the_versions_are_told_before_the_agent_is_looked_for(self) -> None:
        child = self.child(SIMPLE)
        first = child.next()
        self.assertEqual((first["type"], first["protocol"]), ("hello", 1))
        self.assertEqual(child.next()["framework"], "pydantic-ai")

    def test_another_version_of_the_pipe_is_refused(self) -> None:
        found = self.child(SIMPLE, protocol=2).until("ready", "failed")[-1]
        self.assertEqual(found["kind"], "protocol")
        self.assertIn("version 2", found["message"])

    def test_it_ends_when_attache_is_gone(self) -> None:
        child = self.ready(SIMPLE)
        child.start("sleep")
        child.until("chunk")
        started = time.monotonic()
        child.end()
        self.assertEqual(child.process.returncode, 0)
        self.assertLess(time.monotonic() - started, 20)


class Failures(ChildCase):
    def failure(self, program: str, module: str = "app:agent") -> dict[str, str]:
        found = self.child(program, module=module).until("ready", "failed")[-1]
        self.assertEqual(found["type"], "failed", found)
        return found

    def test_a_missing_module_is_named_with_one_that_is_there(self) -> None:
        found = self.failure(SIMPLE, "ap:agent")
        self.assertEqual(found["kind"], "module")
        self.assertIn("there is no module `ap`", found["message"])
        self.assertEqual(found["hint"], "Is it `app`?")

    def test_a_missing_attribute_is_named_with_the_agents_of_the_module(self) -> None:
        found = self.failure(SIMPLE, "app:robot")
        self.assertEqual((found["kind"], found["message"]), ("attribute", "`app` has no `robot`"))
        self.assertIn("`agent`", found["hint"])

    def test_a_name_without_an_attribute_is_told_how_to_write_it(self) -> None:
        self.assertIn("the_module:the_agent", self.failure(SIMPLE, "app")["hint"])

    def test_an_exception_at_import_comes_with_its_traceback_and_without_secrets(self) -> None:
        found = self.failure("import os\nkey = os.environ['MY_API_KEY']\nraise ValueError('bad key ' + key)\n")
        self.assertEqual(found["kind"], "import")
        self.assertEqual(found["message"], "`app` fails when it is imported: ValueError: bad key [MY_API_KEY]")
        self.assertIn("app.py", found["details"])
        self.assertNotIn("a-very-secret-value", json.dumps(found))

    def test_a_missing_package_comes_with_the_command_that_installs_it(self) -> None:
        found = self.failure("import a_package_that_is_missing\n")
        self.assertIn("`a_package_that_is_missing`", found["message"])
        self.assertIn("-m pip install 'a_package_that_is_missing'", found["hint"])

    def test_a_missing_framework_is_an_extra(self) -> None:
        hidden = "import sys\nsys.modules['langgraph'] = None\nimport langgraph\n"
        found = self.failure(hidden)
        self.assertEqual(found["kind"], "extra")
        self.assertIn("-m pip install 'langgraph>=1'", found["hint"])

    def test_what_is_no_agent_is_called_what_it_is(self) -> None:
        self.assertIn("is no agent but a int", self.failure("agent = 7\n")["message"])

    def test_a_graph_that_is_not_compiled_is_told_what_to_do(self) -> None:
        program = "from langgraph.graph import MessagesState, StateGraph\nagent = StateGraph(MessagesState)\n"
        self.assertIn(".compile()", self.failure(program)["hint"])

    def test_a_graph_without_messages_is_refused(self) -> None:
        program = """
            from langgraph.graph import START, StateGraph

            agent = StateGraph(dict).add_node("a", lambda s: s).add_edge(START, "a").compile()
            """
        self.assertIn("has no `messages`", self.failure(program)["message"])

    def test_a_prompt_to_an_agent_that_is_not_there_fails_with_the_reason(self) -> None:
        child = self.child("raise ValueError('broken')\n")
        got = child.run("hello")
        self.assertEqual(got[-1]["type"], "failed")
        self.assertIn("ValueError: broken", got[-1]["message"])

    def test_an_old_interpreter_is_named(self) -> None:
        pretended = (
            "import sys, runpy; sys.version_info = (3, 8, 1); "
            "sys.argv = ['x']; runpy.run_module('attache_agents', run_name='__main__')"
        )
        found = subprocess.run(
            [sys.executable, "-c", pretended],
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        failure = json.loads(found.stdout)
        self.assertEqual((failure["type"], failure["kind"]), ("failed", "python"))
        self.assertIn("is Python 3.8; agents need 3.10", failure["message"])

    def test_a_function_makes_the_agent(self) -> None:
        program = SIMPLE + "\nasync def make():\n    return agent\n"
        self.assertEqual(said(self.ready(program, module="app:make").run("x")), "v1 x")

    def test_a_file_is_a_module_too(self) -> None:
        self.assertEqual(said(self.ready(SIMPLE, module="app.py:agent").run("x")), "v1 x")


class Scripts(ChildCase):
    def test_a_script_serves_what_it_hands_to_run_acp(self) -> None:
        program = (
            SIMPLE + "\nfrom attache_agents import run_acp\nif __name__ == '__main__':\n    run_acp(agent)\n"
        )
        self.assertEqual(said(self.ready(program, module="app.py:run_acp()").run("x")), "v1 x")

    def test_a_script_that_never_calls_it_is_told(self) -> None:
        found = self.child(SIMPLE, module="app.py:run_acp()").until("ready", "failed")[-1]
        self.assertIn("ended without calling `run_acp`", found["message"])

    def test_run_acp_starts_attache_with_the_script_as_its_agent(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            (home / "config.toml").write_text('model = "a/b"\n')
            binary = home / "attache"
            binary.write_text('#!/bin/sh\necho "$@"; cat "$3"\n')
            binary.chmod(0o755)
            script = home / "script.py"
            script.write_text(SIMPLE + "\nfrom attache_agents import run_acp\nrun_acp(agent, name='mine')\n")
            found = subprocess.run(
                [sys.executable, str(script), "--own", "argument"],
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")]),
                    "ATTACHE_HOME": folder,
                    "ATTACHE_BIN": str(binary),
                    "XDG_CACHE_HOME": folder,
                },
                capture_output=True,
                timeout=SECONDS,
                check=True,
                text=True,
            )
        lines = found.stdout.splitlines()
        self.assertTrue(lines[0].startswith("acp --config ") and lines[0].endswith("--agent mine"), lines)
        self.assertIn('model = "a/b"', lines)
        self.assertIn(f'module = "{script.resolve()}:run_acp()"', lines)
        self.assertIn("[agents.mine]", lines)
        self.assertIn('["--own", "argument"]', found.stdout.replace('\\"', '"'))


class Runs(ChildCase):
    def test_several_sessions_run_at_once(self) -> None:
        child = self.ready(SIMPLE)
        child.start("sleep", session="one")
        child.until("chunk")
        child.start("quick", session="two")
        ended = child.until("ended", "failed")[-1]
        self.assertEqual((ended["type"], ended["run"]), ("ended", "r2"))

    def test_a_cancelled_run_ends_and_the_session_goes_on(self) -> None:
        child = self.ready(SIMPLE)
        child.start("sleep")
        child.until("chunk")
        started = time.monotonic()
        child.send(type="cancel", run="r1")
        self.assertEqual(child.until("cancelled", "ended", "failed")[-1]["type"], "cancelled")
        self.assertLess(time.monotonic() - started, 10)
        self.assertEqual(said(child.run("x")), "v1 x")

    def test_code_that_overhears_the_message_is_cancelled_by_asyncio(self) -> None:
        child = self.ready(SIMPLE)
        child.start("stubborn")
        child.until("chunk")
        child.send(type="cancel", run="r1")
        self.assertEqual(child.until("cancelled", "ended", "failed")[-1]["type"], "cancelled")

    def test_an_agent_that_exits_ends_its_process(self) -> None:
        # asyncio lets nothing in between; attache starts it again for the next prompt.
        child = self.ready(SIMPLE)
        child.start("exit")
        self.assertEqual(child.process.wait(SECONDS), 4)

    def test_a_cancel_of_a_run_that_ended_is_nothing(self) -> None:
        child = self.ready(SIMPLE)
        child.run("x")
        child.send(type="cancel", run="r1")
        child.send(type="forget", session="ses")
        self.assertEqual(said(child.run("y")), "v1 y")


class Watching(ChildCase):
    def reload(self, child: object, program: str) -> dict[str, object]:
        time.sleep(0.7)
        child.write(program)  # type: ignore[attr-defined]
        found: dict[str, object] = child.until("ready", "failed")[-1]  # type: ignore[attr-defined]
        return found

    def test_a_changed_module_is_loaded_anew(self) -> None:
        child = self.ready(SIMPLE, watch=True)
        self.assertEqual(said(child.run("x")), "v1 x")
        self.assertEqual(self.reload(child, SIMPLE.replace("v1 ", "v2 "))["type"], "ready")
        self.assertEqual(said(child.run("x")), "v2 x")

    def test_a_broken_module_says_so_and_a_repaired_one_works_again(self) -> None:
        child = self.ready(SIMPLE, watch=True)
        self.assertEqual(self.reload(child, SIMPLE + "\nraise ValueError('oops')\n")["type"], "failed")
        self.assertEqual(self.reload(child, SIMPLE.replace("v1 ", "v3 "))["type"], "ready")
        self.assertEqual(said(child.run("x")), "v3 x")

    def test_without_it_nothing_changes(self) -> None:
        child = self.ready(SIMPLE)
        time.sleep(0.7)
        child.write(SIMPLE.replace("v1 ", "v2 "))
        time.sleep(1.5)
        self.assertEqual(said(child.run("x")), "v1 x")


class Package(unittest.TestCase):
    def test_importing_it_imports_no_framework(self) -> None:
        program = (
            "import sys, attache_agents, attache_agents.client, attache_agents.host; "
            "print([name for name in ('pydantic', 'langgraph', 'langchain_core') if name in sys.modules])"
        )
        found = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        self.assertEqual(found.stdout.strip(), b"[]")

    def test_it_says_that_it_is_typed(self) -> None:
        self.assertTrue(Path(PACKAGE, "attache_agents", "py.typed").is_file())


if __name__ == "__main__":
    unittest.main()
