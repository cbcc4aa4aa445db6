"""Which stage a cell has, and why: by its row of the policy, or by what its alerts turned out to be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from harness.gating.cells import named_by
from harness.gating.labels import Label
from harness.gating.policy import CellsEntry, Policy, PromotionEntry, StepEntry, default_policy
from harness.gating.words import Stage

_AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Staged:
    """A cell's stage.

    Attributes:
        stage: The stage.
        why: The row or the labels that say so.
        row: The row; ``None``: no row names the cell.
    """

    stage: Stage
    why: str
    row: CellsEntry | None


class Stages:
    """Gives each cell its stage.

    Args:
        policy: The policy.
        labels: What is known of earlier alerts, oldest first.
    """

    def __init__(self, policy: Policy, labels: Sequence[Label] = ()) -> None:
        self._policy = policy
        self._labels = labels
        self._is_default = policy == default_policy()
        self._named = [named_by(row.cells) for row in policy.cells]
        self._earned: dict[int | str, tuple[Stage, str]] = {}

    def of(self, case: str, contrast: str) -> Staged:
        """The stage of a cell, by its id and the name of its contrast: of the last row that names it."""
        number = self.row_of(case, contrast)
        if number is None:
            return Staged(self._policy.unnamed, "no [[cells]] names it", None)
        row = self._policy.cells[number]
        named = "without a policy every cell blocks" if self._is_default else _row_text(number, row)
        if row.stage == _AUTO:
            stage, why = self._promoted(number, case)
            return Staged(stage, f"{named}, auto: {why}", row)
        return Staged(Stage(row.stage), named, row)

    def row_of(self, case: str, contrast: str) -> int | None:
        """Number of the last row that names a cell; ``None``: none does."""
        named = (number for number in reversed(range(len(self._named))) if self._named[number](case, contrast))
        return next(named, None)

    def _promoted(self, number: int, case: str) -> tuple[Stage, str]:
        """What the labels of a row, or of a cell, have earned; worked out once."""
        rules = self._policy.promotion
        about: int | str = case if rules.over == "cell" else number
        if about not in self._earned:
            named = self._named[number]
            counted = [
                label.label
                for label in self._labels
                if (label.case == case if rules.over == "cell" else named(label.case, label.contrast))
            ]
            self._earned[about] = promoted(counted[-rules.window :], rules)
        return self._earned[about]


def _row_text(number: int, row: CellsEntry) -> str:
    return f"cells[{number}] {row.cells[0]}" + (", ..." if len(row.cells) > 1 else "")


def promoted(labels: Sequence[bool], rules: PromotionEntry) -> tuple[Stage, str]:
    """The stage that labels have earned, and why not the next one.

    Args:
        labels: The newest ones, whether each alert was true.
        rules: What a stage needs.
    """
    true, count = sum(labels), len(labels)
    low = precision_at_least(true, count, rules.confidence)
    told = _told(true, count, low, rules)
    if _is_earned(rules.block, count, low):
        return Stage.BLOCK, told
    if _is_earned(rules.warn, count, low):
        return Stage.WARN, f"{told}; to block it needs {_needs(rules.block)}"
    return Stage.SHADOW, f"{told}; to warn it needs {_needs(rules.warn)}"


def precision_at_least(true: int, count: int, confidence: float) -> float:
    """Lower bound of Wilson's two-sided interval of the share of true alerts; 0 without a label."""
    if true == 0:
        return 0.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, of = true / count, z * z / count
    return (share + of / 2 - z * math.sqrt(share * (1 - share) / count + of / (4 * count))) / (1 + of)


def _is_earned(step: StepEntry, count: int, low: float) -> bool:
    return count >= step.alerts and low >= step.precision


def _told(true: int, count: int, low: float, rules: PromotionEntry) -> str:
    if count == 0:
        return "no labelled alert"
    of = f"of {count} labelled alerts" if count > 1 else "of 1 labelled alert"
    return f"{true} {of} true, precision at least {100 * low:.0f} % ({100 * rules.confidence:g} % Wilson)"


def _needs(step: StepEntry) -> str:
    return f"{step.alerts} labels and {100 * step.precision:g} %"
