"""Notices that the modules of an agent changed, and forgets them, so that they are imported anew."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

# Looking at some dozens of files takes less than a millisecond.
SECONDS_BETWEEN_LOOKS = 0.5

_OTHERS = ("site-packages", "dist-packages")


class Watch:
    """The program's own modules: those below its directory that no package manager put there."""

    def __init__(self, directory: str, module: str) -> None:
        self._directory = Path(directory).resolve() if directory else Path.cwd()
        # Grows only: a module whose import failed is none, and its file is what will be repaired.
        self._paths = {self._file_of(module)}
        self._seen = self._times()

    def has_changed(self) -> bool:
        """Whether a file changed since the last call."""
        now = self._times()
        changed = any(self._seen.get(path, time) != time for path, time in now.items())
        self._seen = now
        return changed

    def forget_modules(self) -> None:
        """The next import reads them again."""
        for name in self._own():
            sys.modules.pop(name, None)
        importlib.invalidate_caches()

    def _file_of(self, module: str) -> Path:
        if module.endswith(".py"):
            return self._directory / module
        path = self._directory.joinpath(*module.split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def _own(self) -> dict[str, Path]:
        own = {}
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if not file or name == "__main__" or name.partition(".")[0] == __package__:
                continue
            path = Path(file)
            if path.is_relative_to(self._directory) and not any(other in path.parts for other in _OTHERS):
                own[name] = path
        return own

    def _times(self) -> dict[Path, int]:
        times = {}
        self._paths.update(self._own().values())
        for path in self._paths:
            try:
                times[path] = path.stat().st_mtime_ns
            except OSError:
                times[path] = 0
        return times
