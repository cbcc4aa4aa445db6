"""Count how cases ended, and derive the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.domain.errors import EXIT_FINDING, EXIT_OK, EXIT_UNDECIDED
from harness.domain.verdict import Verdict
from harness.domain.words import Pitfall, Status

_UNDECIDED = frozenset({Status.ERROR, Status.INCONCLUSIVE, Status.NOT_JUDGED})

_BADNESS = (
    Status.NOT_APPLICABLE,
    Status.PASS,
    Status.UNSUPPORTED,
    Status.INCONCLUSIVE,
    Status.NOT_JUDGED,
    Status.ERROR,
    Status.FAIL,
)


def badness(status: Status) -> int:
    """Of several verdicts on one case the one with the most of it counts.

    A node that can't answer gives way to one that did, an error to a finding.
    """
    return _BADNESS.index(status)


def exit_code(verdicts: Sequence[Verdict], *, complete: bool = True) -> int:
    """The exit code of a run: a finding first, then what is undecided or has erred, else fine.

    Args:
        verdicts: All verdicts. None at all is no success.
        complete: Whether they are of the whole plan.
    """
    statuses = {verdict.status for verdict in verdicts}
    if Status.FAIL in statuses:
        return EXIT_FINDING
    return EXIT_UNDECIDED if statuses & _UNDECIDED or not verdicts or not complete else EXIT_OK


def counts_line(verdicts: Sequence[Verdict]) -> str:
    """How many cases ended how, in the contract's words, e.g. ``12 cases: 10 pass, 1 fail, 1 error``."""
    counts = Counter(verdict.status for verdict in verdicts)
    listed = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
    return f"{len(verdicts)} {'case' if len(verdicts) == 1 else 'cases'}: {listed or 'none'}"


def gone_pitfalls(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Pitfalls whose advice is out of date: they pass, and the summary warns of them."""
    return [verdict for verdict in verdicts if verdict.pitfall is Pitfall.GONE]
