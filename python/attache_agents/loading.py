"""Finds the agent that `module = "my_app:agent"` names, and says what is wrong where it can't."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from .failures import AgentFailure, details_of, last_line
from .run import Adapter

# What the frameworks are imported as, and the command that installs them.
_EXTRAS = {
    "pydantic_ai": "pydantic-ai-slim>=2",
    "langgraph": "langgraph>=1",
    "langchain": "langchain>=1",
    "langchain_core": "langgraph>=1",
    "deepagents": "deepagents",
}


def add_paths(directory: str) -> None:
    """Modules are looked for in the directory first."""
    if directory and (not sys.path or sys.path[0] != directory):
        sys.path.insert(0, directory)


async def load(named: str, directory: str) -> Adapter:
    """The agent, ready to run. Raises `AgentFailure`."""
    module_name, _, attribute = named.partition(":")
    if not module_name or not attribute:
        raise AgentFailure(
            "module", f"`{named}` names no agent", 'Write `module = "the_module:the_agent"` for this agent.'
        )
    if attribute == "run_acp()":
        return adapter_for(_of_script(Path(directory, module_name)), named)
    module = _import(module_name, directory)
    return adapter_for(await _made(_find(module, module_name, attribute), named), named)


def adapter_for(agent: Any, named: str = "agent") -> Adapter:
    """The adapter of the framework that an object is an agent of."""
    framework = _framework_of(agent)
    if framework == "pydantic-ai":
        _demand("pydantic-ai-slim", 2, "pydantic_ai")
        from .pydantic_agent.adapter import PydanticAgent

        return PydanticAgent(agent)
    if framework == "langgraph":
        _demand("langgraph", 1, "langgraph")
        from .langgraph_agent.adapter import GraphAgent

        return GraphAgent(agent)
    hint = "It has to be a pydantic-ai `Agent`, a compiled LangGraph graph, or a function that makes one."
    if framework == "uncompiled":
        hint = "It is a graph that is not compiled yet: name the result of its `.compile()`."
    raise AgentFailure("agent", f"`{named}` is no agent but a {type(agent).__name__}", hint)


def _framework_of(agent: Any) -> str | None:
    """By the classes it derives from, so that nothing is imported that the program has not."""
    for base in type(agent).__mro__:
        name = f"{base.__module__}.{base.__qualname__}"
        if name == "pydantic_ai.agent.abstract.AbstractAgent":
            return "pydantic-ai"
        if name == "langgraph.pregel.main.Pregel":
            return "langgraph"
        if name == "langgraph.graph.state.StateGraph":
            return "uncompiled"
    return None


def _of_script(path: Path) -> Any:
    from .acp_script import agent_of

    if not path.is_file():
        raise AgentFailure("module", f"there is no script {path}")
    try:
        return agent_of(path)
    except AgentFailure:
        raise
    except Exception as error:
        raise AgentFailure("import", f"{path} fails: {last_line(error)}", details=details_of(error)) from error


def _import(name: str, directory: str) -> ModuleType:
    try:
        if name.endswith(".py"):
            return _import_file(Path(directory, name))
        return importlib.import_module(name)
    except AgentFailure:
        raise
    except ModuleNotFoundError as error:
        raise _not_found(name, directory, error) from error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise AgentFailure(
            "import", f"`{name}` fails when it is imported: {last_line(error)}", details=details_of(error)
        ) from error


def _import_file(path: Path) -> ModuleType:
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise AgentFailure("module", f"there is no file {path}", "`module` is looked up in `directory`.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _not_found(name: str, directory: str, error: ModuleNotFoundError) -> AgentFailure:
    missing = error.name or ""
    if missing == name or name.startswith(missing + "."):
        where = directory or str(Path.cwd())
        nearest = get_close_matches(name, _modules_in(where), n=1)
        hint = f"Is it `{nearest[0]}`?" if nearest else "Set `directory` to the folder that holds the module."
        return AgentFailure(
            "module", f"there is no module `{name}` in {where} nor among the packages of {sys.executable}", hint
        )
    extra = _EXTRAS.get(missing.partition(".")[0])
    command = f"{sys.executable} -m pip install '{extra or missing.partition('.')[0]}'"
    return AgentFailure(
        "extra" if extra else "import",
        f"`{name}` needs the package `{missing}`, which {sys.executable} does not have",
        f"`{command}`, or set `python` to the interpreter that has it.",
        details_of(error),
    )


def _modules_in(directory: str) -> list[str]:
    try:
        return [path.stem for path in Path(directory).iterdir() if path.suffix == ".py" or path.is_dir()]
    except OSError:
        return []


def _find(module: ModuleType, module_name: str, attribute: str) -> Any:
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [name for name in dir(found) if not name.startswith("_")]
            nearest = get_close_matches(part, names, n=1)
            agents = [name for name in names if _framework_of(getattr(found, name, None))]
            hint = ""
            if nearest:
                hint = f"Is it `{nearest[0]}`?"
            elif agents:
                hint = f"It has {', '.join(f'`{name}`' for name in agents)}."
            raise AgentFailure("attribute", f"`{module_name}` has no `{part}`", hint)
        found = getattr(found, part)
    return found


async def _made(found: Any, named: str) -> Any:
    """A function without arguments makes the agent."""
    if _framework_of(found) is not None or not callable(found) or isinstance(found, type):
        return found
    factory: Callable[[], Any] = found
    try:
        made = factory()
        return await made if inspect.isawaitable(made) else made
    except Exception as error:
        raise AgentFailure(
            "import", f"`{named}()` fails: {last_line(error)}", details=details_of(error)
        ) from error


def _demand(distribution: str, major: int, imported: str) -> None:
    try:
        found = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        # Installed in a way that left no record; what it offers is seen when it is used.
        return
    if int(found.partition(".")[0]) < major:
        raise AgentFailure(
            "extra",
            f"{distribution} is {found}; attache needs {major} or newer",
            f"`{sys.executable} -m pip install --upgrade '{_EXTRAS[imported]}'`",
        )
