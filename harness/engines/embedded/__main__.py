"""Start of a child: ``python -m harness.engines.embedded < request.json``."""

from __future__ import annotations

import faulthandler
import sys

from .child import exit_code_of
from .request import parse_request
from .session import run


def main() -> int:
    """Read a request from standard input, do it, and return the exit code."""
    # An abort inside the library ends the process; where it was goes to standard error.
    faulthandler.enable()
    return exit_code_of(lambda request, channel: run(parse_request(request), channel))


if __name__ == "__main__":
    sys.exit(main())
