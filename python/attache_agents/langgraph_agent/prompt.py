"""Turns prompt blocks into content items of a LangChain message. Order is kept, nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence

from .. import blocks
from ..protocol import Json


def content_items(prompt: Sequence[Json]) -> list[str | Json]:
    """One item for each block."""
    return [_item(block) for block in prompt]


def _item(block: Json) -> Json:
    kind = block.get("type")
    if kind == "text":
        return _text(str(block.get("text") or ""))
    if kind == "image":
        return _image(str(block.get("mimeType") or ""), str(block.get("data") or ""))
    if kind == "audio":
        return _audio(str(block.get("mimeType") or ""), str(block.get("data") or ""))
    if kind == "resource_link":
        return _text(_linked(block))
    if kind == "resource":
        return _embedded(block.get("resource") or {})
    raise ValueError(f"attache sent a block of type {kind!r}, which this attache_agents does not know")


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _image(mime: str, data: str) -> Json:
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}


def _audio(mime: str, data: str) -> Json:
    return {"type": "audio", "base64": data, "mime_type": mime}


def _linked(block: Json) -> str:
    uri = str(block.get("uri") or "")
    name = block.get("title") or block.get("name") or _last_segment(uri) or "resource"
    lines = [f"Resource: {name}", f"URI: {uri}"]
    if block.get("description"):
        lines.append(f"Description: {block['description']}")
    if block.get("mimeType"):
        lines.append(f"MIME: {block['mimeType']}")
    if block.get("size") is not None:
        lines.append(f"Size: {block['size']} bytes")
    return "\n".join(lines)


def _last_segment(uri: str) -> str:
    path = uri.split("://", 1)[-1].partition("?")[0].partition("#")[0]
    return path.rstrip("/").rpartition("/")[2]


def _embedded(resource: Json) -> Json:
    uri, mime = str(resource.get("uri") or ""), str(resource.get("mimeType") or "")
    head = f"Embedded resource: {uri}" + (f"\nMIME: {mime}" if mime else "")
    if "blob" not in resource:
        return _text(f"{head}\n{resource.get('text', blocks.GONE)}")
    blob = str(resource["blob"])
    if mime.startswith("image/"):
        return _image(mime, blob)
    if mime.startswith("audio/"):
        return _audio(mime, blob)
    return _text(f"{head}\nEmbedded binary payload ({blocks.size_of(blob)} bytes)")
