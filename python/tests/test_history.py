"""What a rebuilt conversation tells a model about calls that were not allowed."""

from __future__ import annotations

import sys
import unittest
from typing import Any

from child import PACKAGE

sys.path.insert(0, str(PACKAGE))

from attache_agents.langgraph_agent import history as langgraph  # noqa: E402
from attache_agents.pydantic_agent import history as pydantic  # noqa: E402


def conversation(approval: dict[str, Any]) -> list[dict[str, Any]]:
    call = {
        "type": "tool-deploy",
        "toolCallId": "c1",
        "state": "output-denied",
        "input": {"to": "x"},
        "approval": approval,
    }
    asked = {"role": "user", "blocks": [{"type": "text", "text": "deploy"}]}
    return [asked, {"role": "assistant", "parts": [{"type": "step-start"}, call]}]


class Denials(unittest.TestCase):
    def test_the_reason_of_the_user_is_told(self) -> None:
        told = conversation({"id": "a", "approved": False, "reason": "the user said: not on Fridays"})
        self.assertEqual(langgraph.messages(told)[-1].content, "the user said: not on Fridays")
        self.assertEqual(pydantic.messages(told)[-1].parts[0].content, "the user said: not on Fridays")

    def test_without_a_reason_it_is_told_who_rejected_it(self) -> None:
        told = conversation({"id": "a", "approved": False})
        self.assertEqual(langgraph.messages(told)[-1].content, "The user rejected this tool call.")
        self.assertEqual(pydantic.messages(told)[-1].parts[0].content, "The user rejected this tool call.")
