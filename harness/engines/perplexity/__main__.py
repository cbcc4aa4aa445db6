"""Start of a child: ``python -m harness.engines.perplexity < request.json``."""

from __future__ import annotations

import sys

from harness.engines.embedded.child import exit_code_of

from .request import parse_request
from .session import run


def main() -> int:
    """Read a request from standard input, do it, and return the exit code."""
    return exit_code_of(lambda request, channel: run(parse_request(request), channel))


if __name__ == "__main__":
    sys.exit(main())
