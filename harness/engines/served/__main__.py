"""Start of a child: ``python -m harness.engines.served < request.json``."""

from __future__ import annotations

import sys
import traceback

from harness.engines.embedded.channel import Channel
from harness.engines.embedded.errors import EXIT_INTERNAL, EmbeddedError

from .errors import ServerDied
from .request import parse_request
from .session import run


def main() -> int:
    """Read a request from standard input, do it, and return the exit code."""
    channel = Channel.take_stdout()
    try:
        run(parse_request(sys.stdin.read()), channel)
    except EmbeddedError as error:
        died = {"server_exit": error.returncode} if isinstance(error, ServerDied) else {}
        channel.emit("failed", {"slug": error.slug, "message": error.message, **died})
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the parent must get a last line whatever happens
        traceback.print_exc()
        channel.emit("failed", {"slug": "E-internal", "message": f"{type(error).__name__}: {error}"})
        return EXIT_INTERNAL
    return 0


if __name__ == "__main__":
    sys.exit(main())
