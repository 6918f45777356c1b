"""Makes JSON of whatever a program hands over. Decides nothing about what it means."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

# What is said of a value that is no JSON and knows no way to become it.
_LONGEST_REPR = 2_000


def plain(value: Any) -> Any:
    """The value in types that JSON has. Never fails: what can't be shown is described."""
    try:
        from pydantic_core import to_jsonable_python
    except ImportError:
        return _plain(value, 0)
    try:
        return to_jsonable_python(value, fallback=_described, inf_nan_mode="null", bytes_mode="base64")
    except (ValueError, TypeError, RecursionError):
        return _plain(value, 0)


def line(message: Any) -> bytes:
    """One line of the pipe. Characters that are none (lone surrogates) become `?`."""
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError):
        text = json.dumps(plain(message), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def _described(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:  # a program's own `__repr__` may do anything
        text = f"<{type(value).__name__}, whose repr failed: {type(error).__name__}>"
    return text if len(text) <= _LONGEST_REPR else text[:_LONGEST_REPR] + " …"


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > 50:
        return _described(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth + 1) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name), depth + 1) for field in dataclasses.fields(value)
        }
    return _described(value)
