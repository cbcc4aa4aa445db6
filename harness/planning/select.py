"""Choosing cases by their ids, before anything is parametrized."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate

from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.planning.plan import PlannedCase

_GLOB = re.compile(r"[*?\[]")
_WORDS = re.compile(r"[/@+]|\.\.")


def select(cases: Sequence[PlannedCase], patterns: Iterable[str]) -> tuple[PlannedCase, ...]:
    """The cases that patterns ask for, in their order.

    Args:
        cases: All cases.
        patterns: Each is a glob over the whole id (if it has ``*``, ``?`` or ``[``) or a part of it, or either over
            the whole name of the case's contrast; upper and lower case alike. A leading ``!`` takes cases away.
            Without a pattern that adds, all are taken and then diminished.

    Raises:
        BadInput: ``E-nothing-selected`` for a pattern that adds nothing: a typing error must not end as a green
            night.
    """
    listed = [pattern for pattern in patterns if pattern.strip("!")]
    adding = [pattern for pattern in listed if not pattern.startswith("!")]
    removing = [matcher(pattern[1:]) for pattern in listed if pattern.startswith("!")]
    wanted = {case.id for case in cases} if not adding else set()
    for pattern in adding:
        meant = matcher(pattern)
        found = {case.id for case in cases if meant(case.id, case.case.contrast)}
        if not found:
            hint = nearest(pattern, ((case.id, case.case.contrast) for case in cases)) or "the matrix has no cases"
            raise BadInput("E-nothing-selected", f"no case matches '{pattern}'", hint=hint, where="--select")
        wanted |= found
    return tuple(
        case for case in cases if case.id in wanted and not any(gone(case.id, case.case.contrast) for gone in removing)
    )


def matcher(pattern: str) -> Callable[[str, str], bool]:
    """Whether a pattern, without a leading ``!``, names a case by its id or by the name of its contrast."""
    folded = pattern.lower()
    if _GLOB.search(folded):
        glob = re.compile(translate(folded))
        return lambda case, contrast: bool(glob.match(case) or glob.match(contrast.lower()))
    return lambda case, contrast: folded in case or folded == contrast.lower()


def nearest(pattern: str, cases: Iterable[tuple[str, str]]) -> str:
    """A hint for a pattern that names nothing: the nearest word of the cases' ids and contrasts; empty without any.

    Of a glob that names a part of an id, how it names the whole.
    """
    known = list(cases)
    whole = f"*{pattern.strip('*')}*"
    meant = matcher(whole)
    if _GLOB.search(pattern) and any(meant(*case) for case in known):
        return f"a pattern with *, ? or [ is held against the whole id: '{whole}'"
    words = {word for case, contrast in known for word in (*_WORDS.split(case), contrast) if word}
    return did_you_mean(pattern, words) if words else ""
