"""What each cell does to the decision, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from harness.domain.case import FloorCheck
from harness.domain.words import Kind
from harness.gating.cells import Cell, Journals
from harness.gating.findings import finding_of
from harness.gating.labels import Label, alert_id
from harness.gating.policy import CellsEntry, Policy
from harness.gating.stages import Staged, Stages
from harness.gating.trading import beyond_limits, groups_of, traded
from harness.gating.waiving import Waiver, Waivers, waiver_text
from harness.gating.words import Effect, Finding, Stage

_OF_STAGE = {Stage.BLOCK: Effect.BLOCK, Stage.WARN: Effect.WARN, Stage.SHADOW: Effect.SHADOW}
_OF_FLOORS = (Finding.FLOOR, Finding.INCONCLUSIVE)
_SPEEDS = f"{Kind.THROUGHPUT}/"
_WAIVABLE = (Effect.BLOCK, Effect.UNDECIDED, Effect.WARN)


@dataclass(frozen=True, slots=True)
class Judged:
    """A cell, and what it does to the decision.

    Attributes:
        cell: The cell.
        staged: Its stage, and why.
        finding: What is to be said of it; ``None``: nothing.
        effect: What that does.
        reason: One sentence.
        traded: What pays for a loss; empty if nothing has to.
        waiver: Who answers for it; empty if nobody does.
        alert: Id of the finding; empty where there is none, or no verdict.
        label: What somebody said the finding is.
    """

    cell: Cell
    staged: Staged
    finding: Finding | None
    effect: Effect
    reason: str
    traded: str = ""
    waiver: str = ""
    alert: str = ""
    label: bool | None = None

    @property
    def required(self) -> bool:
        """Whether a missing verdict counts."""
        return self.staged.row is not None and self.staged.row.required


class Effects:
    """Gives each cell its effect.

    Args:
        policy: The policy.
        journals: What was measured.
        labels: What earlier alerts turned out to be, oldest first.
        today: For waivers.
    """

    def __init__(self, policy: Policy, journals: Journals, labels: Sequence[Label], today: date) -> None:
        self._policy = policy
        self._stages = Stages(policy, labels)
        self._labels = {label.id: label.label for label in labels}
        self._names = journals.names
        self._waivers = Waivers(policy.waivers, self._names, today)
        self._groups = groups_of(journals.cells)
        found = (beyond_limits(group, policy.limits) for group in self._groups.values())
        self._beyond = {case: each for cases in found for case, each in cases.items()}

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """All waivers, after the cells that were asked about."""
        return self._waivers.all()

    def could_block(self, case: str, contrast: str) -> bool:
        """Whether a cell that was not measured could have blocked; the speed of one arm has a floor at most."""
        staged = self._stages.of(case, contrast)
        most = self._most_of_floors(staged) if not contrast and case.startswith(_SPEEDS) else Stage.BLOCK
        return staged.stage is Stage.BLOCK and most is Stage.BLOCK

    def may_block(self, row: CellsEntry) -> bool:
        """Whether a row decides the stage of a cell that may block, measured or left to the night."""
        staged = (self._stages.of(*name) for name in self._names)
        return any(each.row is row and each.stage is Stage.BLOCK for each in staged)

    def of(self, cell: Cell) -> Judged:
        """The cell, judged."""
        staged = self._stages.of(cell.id, cell.case.contrast)
        finding, reason = finding_of(cell), cell.verdict.reason
        if finding is None and cell.id in self._beyond:
            finding, reason = self._beyond[cell.id]
        if finding is None:
            return Judged(cell, staged, None, Effect.NONE, reason)
        staged = self._capped(cell, staged, finding)
        alert = "" if finding.is_missing else alert_id(cell, finding)
        label = self._labels.get(alert)
        if paid := self._paid(cell, finding):
            return Judged(cell, staged, finding, Effect.NONE, reason, traded=paid, alert=alert, label=label)
        effect = self._of_missing(staged, finding) if finding.is_missing else _OF_STAGE[staged.stage]
        waiver = self._waivers.waived_by(cell, finding) if effect in _WAIVABLE else None
        if waiver is not None:
            told = waiver_text(waiver)
            return Judged(cell, staged, finding, Effect.WAIVED, reason, waiver=told, alert=alert, label=label)
        return Judged(cell, staged, finding, effect, reason, alert=alert, label=label)

    def _capped(self, cell: Cell, staged: Staged, finding: Finding) -> Staged:
        """A floor does at most what the policy lets floors do; a crash or a lost case is no missed floor."""
        most = self._most_of_floors(staged)
        if not isinstance(cell.case.check, FloorCheck) or finding not in _OF_FLOORS or staged.stage.rank <= most.rank:
            return staged
        return replace(staged, stage=most, why=f"{staged.why}; floors at most {most}")

    def _most_of_floors(self, staged: Staged) -> Stage:
        return (staged.row.floors if staged.row else None) or self._policy.floors

    def _paid(self, cell: Cell, finding: Finding) -> str:
        group = self._groups.get(cell.arms)
        return "" if finding.is_missing or group is None else traded(cell, finding, group, self._policy.trades)

    def _of_missing(self, staged: Staged, finding: Finding) -> Effect:
        if staged.row is not None and not staged.row.required:
            return Effect.NONE
        if staged.stage is not Stage.BLOCK:
            return _OF_STAGE[staged.stage]
        return Effect(self._policy.action(staged.row, finding))
