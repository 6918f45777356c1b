"""Turns prompt blocks into what a pydantic-ai agent gets of a user. Order is kept, nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    UserContent,
    VideoUrl,
)

from .. import blocks
from ..protocol import Json


def user_prompt(prompt: Sequence[Json]) -> str | list[UserContent]:
    """One text block alone is a plain string, everything else a list in block order."""
    if len(prompt) == 1 and prompt[0].get("type") == "text":
        return str(prompt[0].get("text") or "")
    return [_content(block) for block in prompt]


def _content(block: Json) -> UserContent:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text") or "")
    if kind == "image":
        return BinaryContent.narrow_type(_binary(block.get("data"), blocks.mime_of(block)))
    if kind == "audio":
        return _binary(block.get("data"), blocks.mime_of(block))
    if kind == "resource_link":
        return _linked(block)
    if kind == "resource":
        return _embedded(block.get("resource") or {})
    raise ValueError(f"attache sent a block of type {kind!r}, which this attache_agents does not know")


def _binary(data: str | None, mime: str) -> BinaryContent:
    return BinaryContent(data=blocks.decoded(data or ""), media_type=mime or "application/octet-stream")


def _linked(block: Json) -> UserContent:
    uri, mime = str(block.get("uri") or ""), blocks.mime_of(block)
    if not mime or mime.startswith("text/") or not blocks.is_web(uri):
        return blocks.link(block.get("name"), uri)
    if mime.startswith("image/"):
        return ImageUrl(url=uri, media_type=mime)
    if mime.startswith("audio/"):
        return AudioUrl(url=uri, media_type=mime)
    if mime.startswith("video/"):
        return VideoUrl(url=uri, media_type=mime)
    return DocumentUrl(url=uri, media_type=mime)


def _embedded(resource: Json) -> UserContent:
    uri = str(resource.get("uri") or "")
    if "blob" in resource:
        return BinaryContent.narrow_type(_binary(resource["blob"], blocks.mime_of(resource)))
    return blocks.embedded(uri, str(resource.get("text", blocks.GONE)))
