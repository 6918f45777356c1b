"""What agents receive of a prompt, beside what pydantic-acp and langchain-acp hand over for the same blocks."""

from __future__ import annotations

import base64
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)
from langchain_acp.runtime._prompt_conversion import prompt_to_langchain_content
from pydantic_acp.runtime.prompts import prompt_to_input
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    BinaryImage,
    DocumentUrl,
    ImageUrl,
    VideoUrl,
)

from attache_agents.langgraph_agent.prompt import content_items
from attache_agents.pydantic_agent.prompt import user_prompt

PIXEL = base64.b64encode(b"\x89PNG not really").decode()
SOUND = base64.b64encode(b"RIFF not really").decode()
BYTES = base64.b64encode(b"\x00\x01\x02\x03").decode()

Json = dict[str, Any]


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def link(uri: str, name: str = "", **more: Any) -> Json:
    return {"type": "resource_link", "uri": uri, "name": name, **more}


def embedded(uri: str, said: str, **more: Any) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "text": said, **more}}


def blob(uri: str, mime: str, data: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "blob": data}}


def of_sdk(block: Json) -> Any:
    """The same block as the Python SDK of ACP has it."""
    kind = block["type"]
    if kind == "resource":
        inner = block["resource"]
        of = BlobResourceContents if "blob" in inner else TextResourceContents
        return EmbeddedResourceContentBlock(type="resource", resource=of.model_validate(inner))
    types = {
        "text": TextContentBlock,
        "image": ImageContentBlock,
        "audio": AudioContentBlock,
        "resource_link": ResourceContentBlock,
    }
    return types[kind].model_validate(block)


IMAGE = {"type": "image", "mimeType": "image/png", "data": PIXEL}
AUDIO = {"type": "audio", "mimeType": "audio/wav", "data": SOUND}
SELECTION = "file:///w/_hook.py?symbol=wrap_run#L79:79"

# Name → blocks for which both hand over the same.
SAME_PYDANTIC: dict[str, list[Json]] = {
    "one text is a plain string": [text("hello")],
    "a rule is just text": [text("@rule write concise code")],
    "an image": [text("see"), IMAGE],
    "audio": [text("hear"), AUDIO],
    "a link to a file": [text("read"), link("file:///w/README.md", "README.md")],
    "a link to a folder": [link("file:///w/acpkit", "acpkit")],
    "a link without a name": [link("file:///w/notes.md")],
    "a link of another scheme without a name": [link("git:abc")],
    "a link to a text": [link("https://example.org/a.txt", "a", mimeType="text/plain")],
    "a link to an image of the web": [link("https://example.org/a.png", "a", mimeType="image/png")],
    "a link to audio of the web": [link("https://example.org/a.mp3", "a", mimeType="audio/mpeg")],
    "a link to a document of the web": [link("https://example.org/a.pdf", "a", mimeType="application/pdf")],
    "an embedded text": [embedded("file:///w/a.py", "def f():\n    pass\n")],
    "a selection": [embedded(SELECTION, "    async def wrap_run(")],
    "a branch diff": [embedded("zed:///agent/git-diff?base=main", "-old\n+new")],
    "an image as a blob": [blob("file:///w/a.png", "image/png", PIXEL)],
    "another blob": [blob("file:///w/a.bin", "application/octet-stream", BYTES)],
    "order is kept": [text("a"), IMAGE, embedded("file:///b", "b"), AUDIO, text("c")],
}

# Name → blocks, what we hand over, what pydantic-acp hands over. The reasons are in docs/foreign-python.md.
OTHER_PYDANTIC: dict[str, tuple[list[Json], Any, Any]] = {
    "several texts stay parts": ([text("a"), text("b")], ["a", "b"], "a\n\nb"),
    "a file is no url that a provider could fetch": (
        [link("file:///w/a.png", "a.png", mimeType="image/png")],
        ["[@a.png](file:///w/a.png)"],
        [ImageUrl(url="file:///w/a.png", media_type="image/png")],
    ),
    "a document of an editor neither": (
        [link("zed:///a.pdf", "a.pdf", mimeType="application/pdf")],
        ["[@a.pdf](zed:///a.pdf)"],
        [DocumentUrl(url="zed:///a.pdf", media_type="application/pdf")],
    ),
    "a video is a video": (
        [link("https://example.org/a.mp4", "a", mimeType="video/mp4")],
        [VideoUrl(url="https://example.org/a.mp4", media_type="video/mp4")],
        [DocumentUrl(url="https://example.org/a.mp4", media_type="video/mp4")],
    ),
    "a folder is named by its last segment": (
        [link("file:///w/dir/")],
        ["[@dir](file:///w/dir/)"],
        ["[@/w/dir/](file:///w/dir/)"],
    ),
    "a slash in a query is no path": (
        [embedded("zed:///agent/git-diff?base=feature/x", "d")],
        [
            "[@git-diff?base=feature/x](zed:///agent/git-diff?base=feature/x)\n"
            '<context ref="zed:///agent/git-diff?base=feature/x">\nd\n</context>'
        ],
        [
            "[@x](zed:///agent/git-diff?base=feature/x)\n"
            '<context ref="zed:///agent/git-diff?base=feature/x">\nd\n</context>'
        ],
    ),
    "a text can't end its own frame": (
        [embedded("file:///w/a.md", "x</context>y")],
        ['[@a.md](file:///w/a.md)\n<context ref="file:///w/a.md">\nx<\\/context>y\n</context>'],
        ['[@a.md](file:///w/a.md)\n<context ref="file:///w/a.md">\nx</context>y\n</context>'],
    ),
    "an address can't end its attribute": (
        [embedded('file:///w/a".md', "x")],
        ['[@a".md](file:///w/a".md)\n<context ref="file:///w/a%22.md">\nx\n</context>'],
        ['[@a".md](file:///w/a".md)\n<context ref="file:///w/a".md">\nx\n</context>'],
    ),
}

SAME_LANGCHAIN: dict[str, list[Json]] = {
    "one text": [text("hello")],
    "several texts": [text("a"), text("b")],
    "an image": [text("see"), IMAGE],
    "audio": [AUDIO],
    "a link with everything": [
        link("file:///w/n.md", "n", title="Notes", description="All", mimeType="text/markdown", size=12)
    ],
    "a link with its name": [link("file:///w/n.md", "n.md")],
    "an empty link": [link("https://example.org/a.png", "a", mimeType="image/png", size=0)],
    "an embedded text": [embedded("file:///w/a.py", "x = 1\n", mimeType="text/x-python")],
    "an embedded text without a type": [embedded("file:///w/a.py", "x = 1")],
    "an image as a blob": [blob("file:///w/a.png", "image/png", PIXEL)],
    "audio as a blob": [blob("file:///w/a.wav", "audio/wav", SOUND)],
}

OTHER_LANGCHAIN: dict[str, tuple[list[Json], Any, Any]] = {
    "a blob's size is that of its bytes": (
        [blob("file:///w/a.bin", "application/zip", BYTES)],
        [text("Embedded resource: file:///w/a.bin\nMIME: application/zip\nEmbedded binary payload (4 bytes)")],
        [
            text(
                "Embedded resource: file:///w/a.bin\nMIME: application/zip\n"
                "Embedded binary payload (8 base64 chars)"
            )
        ],
    ),
    "a link without a name has that of its address": (
        [link("file:///w/dir/notes.md?x=1")],
        [text("Resource: notes.md\nURI: file:///w/dir/notes.md?x=1")],
        [text("Resource: \nURI: file:///w/dir/notes.md?x=1")],
    ),
    "an address without a name is a resource": (
        [link("zed://")],
        [text("Resource: resource\nURI: zed://")],
        [text("Resource: \nURI: zed://")],
    ),
}


class Conversion(unittest.TestCase):
    maxDiff = None

    def test_pydantic_ai_gets_what_pydantic_acp_hands_over(self) -> None:
        for name, prompt in SAME_PYDANTIC.items():
            with self.subTest(name):
                ours, theirs = user_prompt(prompt), prompt_to_input([of_sdk(block) for block in prompt])
                self.assertEqual(ours, theirs)
                kinds = [type(item) for item in ours], [type(item) for item in theirs]
                self.assertEqual(*kinds)

    def test_pydantic_ai_gets_something_else_for_a_reason(self) -> None:
        for name, (prompt, ours, theirs) in OTHER_PYDANTIC.items():
            with self.subTest(name):
                self.assertEqual(user_prompt(prompt), ours)
                self.assertEqual(prompt_to_input([of_sdk(block) for block in prompt]), theirs)

    def test_langchain_gets_what_langchain_acp_hands_over(self) -> None:
        for name, prompt in SAME_LANGCHAIN.items():
            with self.subTest(name):
                theirs = prompt_to_langchain_content([of_sdk(block) for block in prompt])
                self.assertEqual(content_items(prompt), theirs)

    def test_langchain_gets_something_else_for_a_reason(self) -> None:
        for name, (prompt, ours, theirs) in OTHER_LANGCHAIN.items():
            with self.subTest(name):
                self.assertEqual(content_items(prompt), ours)
                self.assertEqual(prompt_to_langchain_content([of_sdk(block) for block in prompt]), theirs)

    def test_bytes_arrive_as_they_were(self) -> None:
        image, audio, other = user_prompt([IMAGE, AUDIO, blob("file:///x", "", BYTES)])
        self.assertEqual(image, BinaryImage(data=b"\x89PNG not really", media_type="image/png"))
        self.assertEqual(audio, BinaryContent(data=b"RIFF not really", media_type="audio/wav"))
        self.assertEqual(other, BinaryContent(data=b"\0\1\2\3", media_type="application/octet-stream"))

    def test_links_of_the_web_become_urls_of_their_kind(self) -> None:
        for mime, kind in (
            ("image/png", ImageUrl),
            ("audio/mpeg", AudioUrl),
            ("video/mp4", VideoUrl),
            ("application/pdf", DocumentUrl),
        ):
            (item,) = user_prompt([link("https://example.org/x", mimeType=mime)])
            self.assertIs(type(item), kind)


if __name__ == "__main__":
    unittest.main()
