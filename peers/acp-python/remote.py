"""The official Python SDK talks to `attache serve` over a WebSocket or streamable HTTP, with two clients on one session.

Exit code 0 only if each step came out. Environment: TEST_TRANSPORT (websocket or http), TEST_ADDRESS, TEST_TOKEN,
TEST_WORKSPACE.
"""

import asyncio
import os
import sys
import traceback

import acp
from acp.http import create_http_stream
from acp.schema import AllowedOutcome, ClientCapabilities, RequestPermissionResponse
from acp.ws import create_websocket_stream

ADDRESS = os.environ["TEST_ADDRESS"]
HEADERS = {"Authorization": f"Bearer {os.environ['TEST_TOKEN']}"}
CWD = os.environ["TEST_WORKSPACE"]


class Remote(acp.Client):
    """A client that remembers what it was told. `answers` says whether it ever answers a question."""

    def __init__(self, *, answers):
        self.updates = []
        self.asked = asyncio.Event()
        self.answers = answers
        self.other = None

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.set()
        if not self.answers:
            await asyncio.Event().wait()
        # Answers when the other client has been asked, too.
        await self.other.asked.wait()
        chosen = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append((session_id, update))

    async def ext_notification(self, method, params):
        pass

    def text(self, session):
        pieces = [
            update.content.text
            for where, update in self.updates
            if where == session and update.session_update == "agent_message_chunk"
        ]
        return "".join(pieces)

    async def connect(self):
        if os.environ["TEST_TRANSPORT"] == "websocket":
            transport = await create_websocket_stream(f"ws://{ADDRESS}/acp", headers=HEADERS)
        else:
            transport = create_http_stream(f"http://{ADDRESS}/acp", headers=HEADERS)
        self.agent = acp.connect_to_agent(self, transport)
        return await self.agent.initialize(protocol_version=1, client_capabilities=ClientCapabilities())

    async def prompt(self, session, text):
        return await self.agent.prompt(session_id=session, prompt=[acp.text_block(text)])


async def until(what, condition):
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"waited for: {what}")


async def refused(request, code):
    try:
        await request
    except acp.RequestError as error:
        assert error.code == code, error
    else:
        raise AssertionError("it was not refused")


async def steps():
    first, second = Remote(answers=True), Remote(answers=False)
    first.other, second.other = second, first

    answer = await first.connect()
    assert answer.protocol_version == 1 and answer.agent_info.name == "attache"
    await second.connect()
    yield "initialize"

    session = (await first.agent.new_session(cwd=CWD, mcp_servers=[])).session_id
    assert session.startswith("ses_")
    yield "session/new"

    answer = await first.prompt(session, "hello")
    assert answer.stop_reason == "end_turn"
    await until("the answer", lambda: first.text(session) == "Hello, editor.")
    yield "a prompt streams"

    await refused(first.agent.load_session(cwd=CWD, mcp_servers=[], session_id="ses_unknown"), -32002)
    yield "an error is an error"

    await second.agent.load_session(cwd=CWD, mcp_servers=[], session_id=session)
    await until("the history", lambda: second.text(session) == "Hello, editor.")
    yield "a second client loads the session"

    answer = await first.prompt(session, "write it")
    assert answer.stop_reason == "end_turn" and second.asked.is_set()
    await until("the end of the call", lambda: any(getattr(update, "status", None) == "completed" for _, update in first.updates))
    assert os.path.exists(os.path.join(CWD, "b.txt"))
    yield "both are asked, the first answer wins"

    before = len(first.text(session))
    assert (await second.prompt(session, "hello")).stop_reason == "end_turn"
    await until("what the other was told", lambda: first.text(session)[before:] == "Hello, editor.")
    yield "the second client prompts the same session"

    listed = await first.agent.list_sessions()
    assert any(one.session_id == session for one in listed.sessions)
    yield "session/list"

    running = asyncio.create_task(first.prompt(session, "wait"))
    await until("the first words", lambda: first.text(session).endswith("Waiting."))
    await first.agent.cancel(session_id=session)
    assert (await running).stop_reason == "cancelled"
    yield "session/cancel ends a turn"

    for one in (first, second):
        await one.agent.close()
    yield "both leave"


async def main():
    try:
        async with asyncio.timeout(120):
            async for name in steps():
                print(f"ok {name}", flush=True)
    except Exception:
        traceback.print_exc(file=sys.stdout)
        # What waits for ever is left behind.
        sys.stdout.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)


asyncio.run(main())
