"""`python -m attache_agents`: what attache starts. Checks the interpreter, then serves."""

import sys

OLDEST = (3, 10)


def main():  # type: ignore[no-untyped-def]
    """Serves until attache closes the pipe."""
    if sys.version_info < OLDEST:
        # Nothing of the package can be imported here, so the line is written by hand.
        found = "%d.%d" % sys.version_info[:2]  # noqa: UP031
        message = "%s is Python %s; agents need 3.10 or newer" % (sys.executable, found)  # noqa: UP031
        hint = "Set `python` of this agent to a newer interpreter."
        line = '{"type":"failed","kind":"python","message":"%s","hint":"%s","details":""}\n'
        sys.stdout.write(line % (message.replace("\\", "/").replace('"', "'"), hint))
        sys.stdout.flush()
        return 3
    from .host import main as serve

    return serve()


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[no-untyped-call]
