"""One run of the program over one text."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.engines.embedded.errors import EXIT_DECODE, EXIT_LOAD, EmbeddedError

from .logits_file import LogitsFile, LogitsFileError, open_logits

_TOO_SHORT = re.compile(r"tokenizes to only (\d+) tokens")
_SHOWN = 20_000
"""Characters of what the program wrote that are kept, for the parent to see why it ended."""


@dataclass(frozen=True, slots=True)
class TooShort:
    """The text has fewer tokens than two contexts.

    Attributes:
        tokens: How many it has.
    """

    tokens: int


def save_logits(
    argv: Sequence[str], environment: Mapping[str, str], file: Path, timeout_s: float, doing: str
) -> LogitsFile | TooShort:
    """Run the program and look at what it saved.

    Args:
        argv: All of its arguments.
        environment: Variables beside this process's own.
        file: What it was told to save to.
        timeout_s: Seconds after which it is killed.
        doing: Which run it is, for messages.

    Raises:
        EmbeddedError: ``E-answer-timeout``, ``E-perplexity-died``, ``E-logits-file``.
    """
    written = _run(argv, environment, timeout_s, doing)
    short = _TOO_SHORT.search(written)
    if short:
        return TooShort(int(short[1]))
    try:
        return open_logits(file)
    except (LogitsFileError, OSError) as problem:
        raise EmbeddedError("E-logits-file", f"{doing}: {problem}", exit_code=EXIT_DECODE) from None


def _run(argv: Sequence[str], environment: Mapping[str, str], timeout_s: float, doing: str) -> str:
    try:
        done = subprocess.run(
            argv,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EmbeddedError("E-answer-timeout", f"llama-perplexity was not done in time {doing}") from None
    written = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        sys.stderr.write(written[-_SHOWN:])
        how = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        error = EmbeddedError("E-perplexity-died", f"llama-perplexity ended with {how} {doing}", exit_code=EXIT_LOAD)
        error.facts["server_exit"] = done.returncode
        raise error
    return written
