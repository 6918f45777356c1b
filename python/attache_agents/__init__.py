"""Runs pydantic-ai agents and LangGraph graphs for attache. Needs neither of them to be imported itself.

`run_acp(agent)` makes a script an ACP agent; `attache_agents.client` asks the editor from inside a run.
"""

# Plain statements only: an interpreter that is too old has to get as far as `__main__`, which says so.
from ._version import __version__

__all__ = ["__version__", "client", "run_acp"]


def __getattr__(name):  # type: ignore[no-untyped-def]
    if name == "run_acp":
        from .acp_script import run_acp

        return run_acp
    if name == "client":
        import importlib

        return importlib.import_module(".client", __name__)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))  # noqa: UP031
