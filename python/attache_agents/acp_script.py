"""Makes a script an ACP agent: starts attache with the script itself as its agent."""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

from . import loading
from .failures import AgentFailure

# In the place of an attribute: what the script hands to `run_acp`.
HANDED_OVER = "run_acp()"

# The script's own arguments, as JSON.
ARGUMENTS = "ATTACHE_AGENTS_ARGUMENTS"


class _HandedOver(BaseException):
    """Ends a script that we run for its agent."""

    def __init__(self, agent: Any) -> None:
        super().__init__("handed over")
        self.agent = agent


_is_run_for_its_agent = False


def run_acp(agent: Any, *, name: str = "agent", attache: str | None = None) -> None:
    """Serves the agent over ACP on stdin and stdout; does not return.

    `attache` is the binary; by default `$ATTACHE_BIN`, then the one on the search path. The user's settings of
    attache count; the agent is called `name` there.
    """
    if _is_run_for_its_agent:
        raise _HandedOver(agent)
    try:
        loading.adapter_for(agent, name)
    except AgentFailure as failure:
        sys.exit(f"run_acp: {failure.message}. {failure.hint}")
    binary = shutil.which(attache or os.environ.get("ATTACHE_BIN") or "attache")
    if binary is None:
        sys.exit("run_acp: the `attache` binary is missing: install it, or set ATTACHE_BIN to its path")
    script = Path(sys.argv[0]).resolve()
    if not script.is_file():
        sys.exit("run_acp: call it in a script that Python is started with, not in a shell")
    configuration = write_configuration(script, name, sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # It is no setting of attache's: the binary refuses names that it does not know.
    os.environ.pop("ATTACHE_BIN", None)
    arguments = [binary, "acp", "--config", str(configuration), "--agent", name]
    os.execv(binary, arguments)


def agent_of(script: Path) -> Any:
    """What a script hands to `run_acp`: it is run up to there."""
    global _is_run_for_its_agent
    _is_run_for_its_agent = True
    sys.argv = [str(script), *json.loads(os.environ.pop(ARGUMENTS, "[]"))]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except _HandedOver as handed_over:
        return handed_over.agent
    raise AgentFailure(
        "agent", f"{script} ended without calling `run_acp`", "Call `run_acp(agent)` at its end."
    )


def write_configuration(script: Path, name: str, arguments: list[str]) -> Path:
    """The user's configuration and the agent beside it, in a file that only the user can read."""
    entry = {
        "backend": "python",
        "module": f"{script}:{HANDED_OVER}",
        "directory": str(script.parent),
        "python": sys.executable,
    }
    lines = [f"\n[agents.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]
    if arguments:
        lines.append(f"env = {{ {ARGUMENTS} = {json.dumps(json.dumps(arguments))} }}")
    of_user = _user_configuration()
    text = of_user.read_text() if of_user.is_file() else ""
    places = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(places, "attache-agents")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256(f"{script}\0{name}\0{arguments}".encode()).hexdigest()[:16]
    path = folder / f"{name}-{digest}.toml"
    half = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n".join(lines) + "\n")
    half.replace(path)
    return path


def _user_configuration() -> Path:
    home = os.environ.get("ATTACHE_HOME")
    if home:
        return Path(home, "config.toml")
    places = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(places, "attache", "config.toml")
