"""Cases of a journal by what a person types: an id, a part of one, a glob, or a contrast's name."""

from __future__ import annotations

from harness.domain.errors import BadInput
from harness.planning.select import matcher, nearest
from harness.reporting.state import JournalState

_MOST_LISTED = 12


def cases_like(state: JournalState, pattern: str) -> tuple[str, ...]:
    """Ids of the cases that a pattern names, in plan order; an id itself names that case alone.

    Raises:
        BadInput: ``E-no-case``: there is none.
    """
    if pattern in state.planned:
        return (pattern,)
    meant = matcher(pattern)
    found = tuple(case for case, planned in state.planned.items() if meant(case, planned.case.contrast))
    if not found:
        known = ((case, planned.case.contrast) for case, planned in state.planned.items())
        hint = nearest(pattern, known) or "the journal has no cases"
        raise BadInput("E-no-case", f"no case matches '{pattern}'", hint=hint, where=f"{state.path}")
    return found


def the_case(state: JournalState, pattern: str) -> str:
    """The one case that a pattern names.

    Raises:
        BadInput: ``E-no-case``; ``E-case-ambiguous``: it names several.
    """
    found = cases_like(state, pattern)
    if len(found) > 1:
        more = len(found) - _MOST_LISTED
        listed = "\n  ".join([*found[:_MOST_LISTED], *([f"and {more} more"] if more > 0 else [])])
        hint = f"say more of the id of one:\n  {listed}"
        raise BadInput("E-case-ambiguous", f"'{pattern}' names {len(found)} cases", hint=hint, where=f"{state.path}")
    return found[0]
