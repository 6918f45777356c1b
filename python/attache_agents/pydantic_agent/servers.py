"""Makes pydantic-ai's own toolsets of the MCP servers that the client named. Connects to none itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..failures import AgentFailure
from ..protocol import Json


def are_taken() -> bool:
    """Whether pydantic-ai has its MCP client here."""
    try:
        import pydantic_ai.mcp  # noqa: F401
    except ImportError:
        return False
    return True


def toolsets(servers: Sequence[Json], directory: str) -> list[Any]:
    """One toolset for each server, its tools named `<server>_<tool>`. Programs run in the directory."""
    if not servers:
        return []
    try:
        from pydantic_ai.mcp import MCPToolset
    except ImportError as error:
        raise AgentFailure(
            "extra",
            "the MCP servers of the client need pydantic-ai's own MCP client, which is not installed",
            f"`{sys.executable} -m pip install 'pydantic-ai-slim[mcp]>=2'`",
        ) from error
    return [
        MCPToolset(_transport(server, directory), id=str(server["name"])).prefixed(_prefix(server))
        for server in servers
    ]


def _prefix(server: Json) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in str(server["name"]))


def _transport(server: Json, directory: str) -> Any:
    from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

    kind = server.get("type")
    headers = {entry["name"]: entry["value"] for entry in server.get("headers") or []}
    if kind == "http":
        return StreamableHttpTransport(url=server["url"], headers=headers)
    if kind == "sse":
        return SSETransport(url=server["url"], headers=headers)
    environment = {entry["name"]: entry["value"] for entry in server.get("env") or []}
    place = server.get("directory") or directory or None
    return StdioTransport(server["command"], list(server.get("args") or []), env=environment, cwd=place)
