"""What every child does around its work: a last line whatever happens, and the exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

from .channel import Channel
from .errors import EXIT_INTERNAL, EmbeddedError


def exit_code_of(work: Callable[[str, Channel], None]) -> int:
    """Do the work of a child and return its exit code.

    Args:
        work: Gets the request, as it stands on standard input, and where to tell what comes of it.
    """
    channel = Channel.take_stdout()
    try:
        work(sys.stdin.read(), channel)
    except EmbeddedError as error:
        channel.emit("failed", {"slug": error.slug, "message": error.message, **error.facts})
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the parent must get a last line whatever happens
        traceback.print_exc()
        channel.emit("failed", {"slug": "E-internal", "message": f"{type(error).__name__}: {error}"})
        return EXIT_INTERNAL
    return 0
