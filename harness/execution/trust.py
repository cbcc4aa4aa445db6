"""Which nodes are set aside because they fail everything.

The rule: a node on which three different jobs failed by infrastructure one after another, with none that ended well
between them. Three tries of one job say as much about the job as about the node, so they count once.
"""

from __future__ import annotations

from collections import defaultdict

from harness.domain.failure import Failure

JOBS = 3
"""Different jobs in succession."""


class Trust:
    """Keeps count of what happens where."""

    def __init__(self) -> None:
        self._failures: defaultdict[str, dict[str, Failure]] = defaultdict(dict)
        self._aside: set[str] = set()

    @property
    def aside(self) -> frozenset[str]:
        """Nodes that were set aside, as the executor calls them."""
        return frozenset(self._aside)

    def ended(self, place: str, job: str, failure: Failure | None) -> None:
        """Take in how a try ended. A failure that is not infrastructure's says nothing of the node.

        Args:
            place: Where, as the executor calls it.
            job: The job.
            failure: Its own failure.
        """
        if failure is None:
            self._failures[place].clear()
        elif failure.may_be_retried:
            self._failures[place][job] = failure

    def is_suspect(self, place: str) -> bool:
        """Whether enough failed on a node that is not aside yet."""
        return place not in self._aside and len(self._failures[place]) >= JOBS

    def set_aside(self, place: str) -> str:
        """Set a node aside.

        Returns:
            Why, in words.
        """
        self._aside.add(place)
        failures = self._failures[place]
        told = "; ".join(f"{job}: {failure.message}" for job, failure in failures.items())
        return f"{len(failures)} different jobs failed there by infrastructure, one after another ({told})"
