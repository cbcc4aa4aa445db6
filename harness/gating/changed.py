"""Changed paths: read from what git lists, and held against a policy's rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from harness import bounded
from harness.domain.errors import BadInput
from harness.gating.policy import Policy

_ESCAPED = re.compile(rb'\\([0-7]{3}|["\\abfnrtv])')
_SINGLE = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
    b'"': b'"',
    b"\\": b"\\",
}
MAX_BYTES = 64 * 1024**2
_ALL = "*"
_WILD = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?")
_MEANS = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What changed paths ask for.

    Attributes:
        changed: Number of changed paths; ``None``: they were not told.
        patterns: Patterns over cells, as of ``--moe-select``; each list adds what it names.
        asking: The paths that ask for cells.
        unlisted: Paths that no row names.
    """

    changed: int | None
    patterns: tuple[tuple[str, ...], ...]
    asking: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()

    @property
    def needed(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.patterns)


EVERYTHING = Asked(None, ((_ALL,),))
"""Without a list of changed paths."""


def read_changed(source: bytes, where: str) -> tuple[str, ...]:
    """The paths that ``git diff --name-only`` lists, with ``-z`` or without.

    Raises:
        BadInput: ``E-changed-unreadable``, or ``E-changed-empty``: a change has at least one path, so an empty list is
            taken for one that went wrong.
    """
    if len(source) > MAX_BYTES:
        raise BadInput("E-changed-unreadable", f"the list has more than {MAX_BYTES} bytes", where=where)
    separated = source.split(b"\0") if b"\0" in source else map(_unquoted, source.splitlines())
    paths = tuple(path.decode("utf-8", "replace") for path in separated if path.strip())
    if not paths:
        hint = "check the two commits that are compared; without --changed everything is asked for"
        raise BadInput("E-changed-empty", "the list of changed paths is empty", hint=hint, where=where)
    return paths


def read_changed_file(path: Path) -> tuple[str, ...]:
    """As `read_changed`, from a file."""
    try:
        return read_changed(bounded.read_bytes(path, MAX_BYTES), f"{path}")
    except OSError as error:
        hint = "write it with: git diff --name-only BASE...HEAD"
        message = f"the list of changed paths can't be read: {error.strerror or error}"
        raise BadInput("E-changed-unreadable", message, hint=hint, where=f"{path}") from error


def asked_by(policy: Policy, changed: Sequence[str]) -> Asked:
    """What changed paths ask for by a policy's rows; without any row each path asks for everything."""
    if not policy.paths:
        return Asked(len(changed), ((_ALL,),), tuple(changed))
    patterns: list[tuple[str, ...]] = []
    listed, asking = set(), set()
    for row in policy.paths:
        named = [path for path in changed if is_named(path, row.paths)]
        listed.update(named)
        if named and row.cells:
            patterns.append(tuple(row.cells))
            asking.update(named)
    unlisted = tuple(path for path in changed if path not in listed)
    if unlisted and policy.unlisted == "all":
        patterns.append((_ALL,))
        asking.update(unlisted)
    return Asked(len(changed), tuple(patterns), tuple(path for path in changed if path in asking), unlisted)


def is_named(path: str, patterns: Iterable[str]) -> bool:
    """Whether patterns name a path: the last one that matches decides, a leading ``!`` takes away."""
    named = False
    for pattern in patterns:
        if _glob(pattern.removeprefix("!")).fullmatch(path):
            named = not pattern.startswith("!")
    return named


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """GitHub's filters: ``*`` and ``?`` stop at a slash, ``**`` does not; a trailing slash is all that lies below."""
    wanted = f"{pattern}**" if pattern.endswith("/") else pattern
    parts, at = [], 0
    for found in _WILD.finditer(wanted):
        parts += [re.escape(wanted[at : found.start()]), _MEANS[found[0]]]
        at = found.end()
    return re.compile("".join(parts) + re.escape(wanted[at:]), re.DOTALL)


def _unquoted(line: bytes) -> bytes:
    """A path as git quotes it where it holds more than plain characters."""
    if not (len(line) > 1 and line.startswith(b'"') and line.endswith(b'"')):
        return line

    def plain(found: re.Match[bytes]) -> bytes:
        word = found[1]
        return _SINGLE[word] if word in _SINGLE else bytes([int(word, 8) & 0xFF])

    return _ESCAPED.sub(plain, line[1:-1])
