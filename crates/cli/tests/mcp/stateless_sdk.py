#!/usr/bin/env python3
"""A server of the official Python SDK that knows no hello (revision 2026-07-28), over stdio or over HTTP.

The SDK itself would take a hello, too; here it is refused as a server does that has left it behind.
"""

import json
import os
import sys
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel, Field

REFUSAL = {
    "code": -32022,
    "message": "Unsupported protocol version",
    "data": {"supported": ["2026-07-28"], "requested": "2025-11-25"},
}

server = MCPServer("sdk")


class Colour(BaseModel):
    colour: str = Field(title="Colour")


async def ask_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


async def ask_roots() -> ListRoots:
    return ListRoots()


async def ask_model() -> Sample:
    said = SamplingMessage(role="user", content=TextContent(type="text", text="What is 2+2?"))
    return Sample([said], max_tokens=50, system_prompt="Be brief")


@server.tool()
async def echo(text: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Text"})]) -> str:
    """Says what it was told"""
    return "echo: " + text


@server.tool()
async def paint(answer: Annotated[Colour, Resolve(ask_colour)], roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    """Asks its user first"""
    return "%s in %s" % (answer.colour, roots.roots[0].uri)


@server.tool()
async def think(answer: Annotated[object, Resolve(ask_model)]) -> str:
    """Asks a model first"""
    return "the model says " + answer.content.text


@server.tool()
async def count(context: Context) -> str:
    """Tells how far it is"""
    for step in range(3):
        await context.report_progress(step + 1, 3, "step")
        await anyio.sleep(0.05)
    return "counted"


@server.tool()
async def wait(context: Context) -> str:
    """Takes its time"""
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        with open(os.environ["STOPPED"], "w") as file:
            file.write("yes")
        raise
    return "waited"


@server.tool()
async def grow(context: Context) -> str:
    """Adds a tool, and changes a resource"""
    server.add_tool(lambda: "here", name="grown", description="New")
    await context.notify_tools_changed()
    await context.notify_resource_updated("demo://one")
    return "grown"


@server.resource("demo://one")
def one() -> str:
    return "what it holds"


@server.prompt()
def greet(who: str) -> str:
    return "Greet %s." % who


def over_stdio():
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1)
    hello = json.loads(line)
    assert hello["method"] == "initialize", hello
    answer = {"jsonrpc": "2.0", "id": hello["id"], "error": REFUSAL}
    os.write(1, (json.dumps(answer) + "\n").encode())
    server.run("stdio")


def over_http():
    import uvicorn

    inner = server.streamable_http_app()

    async def app(scope, receive, send):
        headers = dict(scope.get("headers") or [])
        if scope["type"] != "http" or headers.get(b"mcp-protocol-version") == b"2026-07-28":
            return await inner(scope, receive, send)
        request = json.loads((await receive())["body"] or b"{}")
        answer = json.dumps({"jsonrpc": "2.0", "id": request.get("id"), "error": REFUSAL}).encode()
        kind = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 400, "headers": kind})
        await send({"type": "http.response.body", "body": answer})

    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")


over_stdio() if sys.argv[1] == "stdio" else over_http()
