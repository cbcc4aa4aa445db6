"""Start of a child: ``python -m harness.engines.embedded < request.json``."""

from __future__ import annotations

import faulthandler
import sys
import traceback

from .channel import Channel
from .errors import EXIT_INTERNAL, EmbeddedError
from .request import parse_request
from .session import run


def main() -> int:
    """Read a request from standard input, do it, and return the exit code."""
    channel = Channel.take_stdout()
    # An abort inside the library ends the process; where it was goes to standard error.
    faulthandler.enable()
    try:
        run(parse_request(sys.stdin.read()), channel)
    except EmbeddedError as error:
        channel.emit("failed", {"slug": error.slug, "message": error.message})
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the parent must get a last line whatever happens
        traceback.print_exc()
        channel.emit("failed", {"slug": "E-internal", "message": f"{type(error).__name__}: {error}"})
        return EXIT_INTERNAL
    return 0


if __name__ == "__main__":
    sys.exit(main())
