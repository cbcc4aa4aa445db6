"""The program ``moe-harness``, also as ``python -m harness.cli``."""

from __future__ import annotations

import sys

from harness.domain.errors import EXIT_INTERRUPTED


def start() -> None:
    """Run the command line; Ctrl-C is quiet from here on, also in the second or so that the imports take."""
    try:
        from harness.cli.main import entry  # noqa: PLC0415 - inside, so that what it brings can be interrupted

        entry()
    except KeyboardInterrupt:
        sys.stderr.write("moe-harness: interrupted\n")
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    start()
