"""Serves the graph by the LangGraph API with its in-memory runtime, as `langgraph dev` does. Says its address; ends with its input.

Arguments: the port (0: any).
"""

import os
import shutil
import socket
import sys
import tempfile
import threading
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here / "python"))
os.environ["PYTHONPATH"] = str(here / "python")
PREFIX = "attache-langgraph-"


def remove_left_over() -> None:
    """What servers left behind that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        number = left.name.removeprefix(PREFIX).split("-")[0]
        if number.isdigit() and not Path("/proc", number).exists():
            shutil.rmtree(left, ignore_errors=True)


remove_left_over()
# What the runtime keeps of its threads is for this run alone.
kept = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
os.chdir(kept)
os.environ.update(LANGSMITH_TRACING="false", LANGGRAPH_CLI_NO_ANALYTICS="1", LOG_LEVEL="WARNING")

from langgraph_api.cli import run_server  # noqa: E402

port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
if port == 0:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]


def tell_when_ready() -> None:
    import time
    import urllib.request

    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ok", timeout=1).read()
            break
        except OSError:
            time.sleep(0.1)
    os.write(address, f"http://127.0.0.1:{port}\n".encode())


def end_with_input() -> None:
    sys.stdin.buffer.read()
    # Whatever its threads still write goes along.
    for _ in range(3):
        shutil.rmtree(kept, ignore_errors=True)
    os._exit(0)


# The server greets on its standard output; ours is for the address alone.
address = os.dup(1)
os.dup2(2, 1)
threading.Thread(target=tell_when_ready, daemon=True).start()
threading.Thread(target=end_with_input, daemon=True).start()
run_server(
    "127.0.0.1",
    port,
    reload=False,
    graphs={"agent": f"{here}/graph.py:agent", "other": f"{here}/graph.py:agent"},
    open_browser=False,
    allow_blocking=True,
)
