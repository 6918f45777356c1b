"""A child of attache, driven over its pipe as attache drives it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from pathlib import Path
from typing import Any

SECONDS = 60
PACKAGE = Path(__file__).resolve().parent.parent


def text(said: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": said}


class Child:
    """One process, with the program `app.py` in a directory of its own."""

    def __init__(
        self, program: str, *, module: str = "app:agent", protocol: int = 1, watch: bool = False
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory()
        self.directory = Path(self._temporary.name)
        self.write(program)
        path = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attache_agents"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "MY_API_KEY": "a-very-secret-value"},
        )
        self._lines: queue.Queue[Any] = queue.Queue()
        self.errors = b""
        threading.Thread(target=self._read, daemon=True).start()
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()
        self._runs = 0
        self.send(type="hello", protocol=protocol, module=module, directory=str(self.directory), watch=watch)

    def write(self, program: str, name: str = "app.py") -> None:
        """A file of the program."""
        (self.directory / name).write_text(textwrap.dedent(program))

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()

    def send(self, **message: Any) -> None:
        """One message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def next(self) -> dict[str, Any]:
        """The next message; fails after a while, and at the end."""
        message = self._lines.get(timeout=SECONDS)
        assert message is not None, "the child ended"
        found: dict[str, Any] = message
        return found

    def until(self, *kinds: str) -> list[dict[str, Any]]:
        """All messages up to the first of a kind."""
        got = [self.next()]
        while got[-1]["type"] not in kinds:
            got.append(self.next())
        return got

    def start(self, *blocks: Any, session: str = "ses", previous: str | None = None, **more: Any) -> str:
        """Begins a run; gives its id. The answer is called `a` and that id."""
        self._runs += 1
        run = f"r{self._runs}"
        prompt = [text(block) if isinstance(block, str) else block for block in blocks]
        self.send(
            type="run", session=session, run=run, answer=f"a-{run}", previous=previous, prompt=prompt, **more
        )
        return run

    def run(self, *blocks: Any, **more: Any) -> list[dict[str, Any]]:
        """A run to its end."""
        self.start(*blocks, **more)
        return self.until("ended", "failed", "cancelled")

    def end(self) -> None:
        """Closes the pipe, as attache does."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=SECONDS)
        self._drain.join(SECONDS)
        self.process.stdout.close()
        assert self.process.stderr is not None
        self.process.stderr.close()
        self._temporary.cleanup()


class ChildCase(unittest.TestCase):
    """Tests with children that end with them."""

    maxDiff = None

    def child(self, program: str, **more: Any) -> Child:
        """A child whose agent is ready."""
        child = Child(program, **more)
        self.addCleanup(child.end)
        return child

    def ready(self, program: str, **more: Any) -> Child:
        """A child whose agent was found."""
        child = self.child(program, **more)
        found = child.until("ready", "failed")[-1]
        self.assertEqual(found["type"], "ready", found)
        return child


def chunks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chunks among messages."""
    return [message["chunk"] for message in messages if message["type"] == "chunk"]


def kinds(messages: list[dict[str, Any]]) -> list[str]:
    """Their types, without the tool input that streams."""
    return [chunk["type"] for chunk in chunks(messages) if chunk["type"] != "tool-input-delta"]


def said(messages: list[dict[str, Any]]) -> str:
    """The text of an answer."""
    return "".join(chunk["delta"] for chunk in chunks(messages) if chunk["type"] == "text-delta")


def outputs(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Call → output."""
    return {
        chunk["toolCallId"]: chunk["output"]
        for chunk in chunks(messages)
        if chunk["type"] == "tool-output-available" and not chunk.get("preliminary")
    }


# The beginning of programs whose model is scripted: what it says depends on what it was told last.
PYDANTIC = """
import json
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart, RetryPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from attache_agents import client

def last(messages):
    return messages[-1].parts[-1]

def call(name, id, **arguments):
    written = json.dumps(arguments)
    yield {0: DeltaToolCall(name, written[:3], tool_call_id=id)}
    yield {0: DeltaToolCall(None, written[3:], tool_call_id=id)}
"""

LANGCHAIN = """
import json
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from attache_agents import client

class Scripted(BaseChatModel):
    '''Says what `script` makes of the messages: an AIMessage.'''
    script: object = None

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **named):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **named):
        return ChatResult(generations=[ChatGeneration(message=self.script(messages))])

    def _stream(self, messages, stop=None, run_manager=None, **named):
        said = self.script(messages)
        for block in said.content if isinstance(said.content, list) else said.text.split(" "):
            content = [block] if isinstance(block, dict) else block + " "
            yield ChatGenerationChunk(message=AIMessageChunk(content))
        for index, call in enumerate(said.tool_calls):
            written = json.dumps(call["args"])
            for name, id, part in ((call["name"], call["id"], written[:3]), (None, None, written[3:])):
                fragment = {"name": name, "args": part, "id": id, "index": index}
                yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[fragment]))
        usage = said.usage_metadata or {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=usage))

def told(messages):
    '''The text of the last message.'''
    return messages[-1].text
"""
