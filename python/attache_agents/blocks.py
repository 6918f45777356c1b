"""What prompt blocks of ACP hold, in the forms that all frameworks need. Makes nothing of any framework."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from .protocol import Json

# A block that a session of an older attache may hold without its bytes.
GONE = "[this attachment is not kept any more]"


def is_web(uri: str) -> bool:
    """Whether a provider can fetch it. Frameworks drop other schemes, or fail."""
    return uri.lower().startswith(("http://", "https://"))


def mime_of(block: Json) -> str:
    """The media type without its parameters; empty where none was given."""
    return str(block.get("mimeType") or "").partition(";")[0].strip().lower()


def name_of_uri(uri: str) -> str | None:
    """What a `file:` or `zed:` address is called: the last segment of its path, with query and fragment as they
    stand. Nothing is decoded, and other schemes have no name."""
    for scheme in ("file:", "zed:"):
        if uri.startswith(scheme):
            rest = uri[len(scheme) :]
            break
    else:
        return None
    cut = min((at for at in (rest.find("?"), rest.find("#")) if at >= 0), default=len(rest))
    path, tail = rest[:cut], rest[cut:]
    if path.startswith("//"):
        # What is between `//` and the next slash is a machine, not a name.
        slash = path.find("/", 2)
        path = path[slash:] if slash >= 0 else ""
    segment = path.rstrip("/").rpartition("/")[2]
    return segment + tail if segment else None


def link(name: str | None, uri: str) -> str:
    """A reference as text."""
    name = name or name_of_uri(uri)
    return f"[@{name}]({uri})" if name else uri


def embedded(uri: str, text: str) -> str:
    """An embedded text. Two places could break out of the frame: the address and the end tag."""
    reference = uri.replace('"', "%22")
    inner = text.replace("</context", "<\\/context")
    return f'{link(None, uri)}\n<context ref="{reference}">\n{inner}\n</context>'


def runtime_context(items: Iterable[Json]) -> str:
    """What a client adds for this turn only, as one text."""
    texts = []
    for item in items:
        title = str(item.get("title") or "").replace('"', "%22")
        body = str(item.get("text") or "").replace("</context", "<\\/context")
        texts.append(
            f'<context title="{title}">\n{body}\n</context>' if title else f"<context>\n{body}\n</context>"
        )
    return "\n\n".join(texts)


def size_of(encoded: str) -> int:
    """Bytes that a base64 text stands for."""
    text = encoded.rstrip("=")
    return len(text) * 3 // 4


def decoded(encoded: str) -> bytes:
    """The bytes. attache has checked them when they came."""
    return base64.b64decode(encoded)
