"""Cuts secrets out of texts that leave this process: tracebacks and messages of errors."""

from __future__ import annotations

import os
import re

# What names of variables look like whose values nobody else may see.
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|COOKIE|DSN|DATABASE_URL", re.IGNORECASE)

# Shorter values stand in ordinary words.
_SHORTEST = 6

_SHAPES = (
    re.compile(r"\b(?:sk|pk|rk|xai|gsk|hf|pplx|r8|lsv2)[-_][A-Za-z0-9_-]{12,}"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{16,}|\bglpat-[A-Za-z0-9_-]{16,}"),
    re.compile(r"\bAKIA[A-Z0-9]{12,}|\bAIza[A-Za-z0-9_-]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"(?i)(?<=bearer )[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(
        r"(?i)(?:api[_-]?key|access[_-]?token|auth[_-]?token|secret|passw(?:or)?d)[\"']?\s*[=:]\s*[\"']?"
        r"([A-Za-z0-9._~+/=-]{8,})"
    ),
)


def cut(text: str) -> str:
    """The text without what looks like a secret, and without the values of variables named like one."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name) and value in text:
            text = text.replace(value, f"[{name}]")
    for shape in _SHAPES:
        text = shape.sub(_cut_match, text)
    return text


def _cut_match(match: re.Match[str]) -> str:
    whole = match.group(0)
    if match.re.groups and match.group(1):
        return whole.replace(match.group(1), "[cut]")
    return "[cut]"
