#!/usr/bin/env python3
"""The official Python client, without a hello (revision 2026-07-28) and as it likes, asks attache over stdio or HTTP.

Environment: TEST_BINARY, TEST_WORKSPACE (with a.txt), and for HTTP TEST_URL and TEST_TOKEN. Prints `ok NAME` for each step.
"""

import asyncio
import os

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from httpx2 import AsyncClient
from mcp_types import ElicitResult

WORKSPACE = os.environ["TEST_WORKSPACE"]


def server():
    if "TEST_URL" not in os.environ:
        return StdioServerParameters(command=os.environ["TEST_BINARY"], args=["mcp", "serve"], cwd=WORKSPACE, env=dict(os.environ))
    http = AsyncClient(headers={"Authorization": "Bearer " + os.environ["TEST_TOKEN"]}, timeout=60)
    return streamable_http_client(os.environ["TEST_URL"], http_client=http)


async def without_hello(mode):
    told = []

    async def progress(done, total, message):
        told.append(message)

    async with Client(server(), mode=mode) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == ["ask", "sessions_search", "session_read"], tools
        print("ok", mode, "the tools")
        found = await client.call_tool("ask", {"prompt": "hello"})
        assert found.content[0].text == "Hello, other agent.", found
        session = found.structured_content["sessionId"]
        print("ok", mode, "an answer")
        found = await client.call_tool("ask", {"prompt": "read it", "session": session}, progress_callback=progress)
        assert found.content[0].text == "It says what it says.", found
        assert any("a.txt" in message for message in told), told
        print("ok", mode, "progress")
        found = await client.call_tool("ask", {"prompt": "write it"})
        assert found.structured_content["denied"], found
        print("ok", mode, "nobody is asked")
        found = await client.call_tool("ask", {"prompt": 5})
        assert found.is_error, found
        print("ok", mode, "a mistake")
        try:
            async with asyncio.timeout(1):
                await client.call_tool("ask", {"prompt": "work slowly on the walrus", "session": session})
        except TimeoutError:
            pass
        for _ in range(100):
            found = await client.call_tool("ask", {"prompt": "hello", "session": session})
            if not found.is_error:
                break
            assert "busy" in found.content[0].text, found
            await asyncio.sleep(0.05)
        assert not found.is_error, found
        print("ok", mode, "cancelled")


async def with_forms(mode):
    """What needs a person is asked of the one behind the client, in an answer that it comes back to."""
    asked, told, reply = [], [], {"decision": "allow_once"}
    written = os.path.join(WORKSPACE, "b.txt")

    async def fill(context, params):
        asked.append(params)
        return ElicitResult(action="accept", content=reply)

    async def progress(done, total, message):
        told.append((len(asked), message))

    async with Client(server(), mode=mode, elicitation_callback=fill) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        found = await client.call_tool("ask", {"prompt": "write it"}, progress_callback=progress)
        assert not found.structured_content["denied"], found
        assert open(written).read() == "first\n" and "b.txt" in asked[0].message, asked
        assert any(questions for questions, _ in told), "news go on after the question: %s" % told
        os.remove(written)
        print("ok", mode, "a person allows")
        reply = {"decision": "reject"}
        found = await client.call_tool("ask", {"prompt": "write it"})
        assert len(found.structured_content["denied"]) == 1 and not os.path.exists(written), found
        print("ok", mode, "a person rejects")
        reply = {"question_1": "blue"}
        found = await client.call_tool("ask", {"prompt": "ask me"})
        assert found.content[0].text == "So be it." and len(asked) == 3, found
        print("ok", mode, "a person answers")
        try:
            await client.call_tool("ask", {"prompt": "hello"}, request_state="unknown")
        except Exception as error:
            assert "not known any more" in str(error), error
            print("ok", mode, "an unknown state")


async def main():
    await without_hello("2026-07-28")
    await without_hello("auto")
    await with_forms("2026-07-28")
    await with_forms("auto")
    print("ok end")


asyncio.run(main())
