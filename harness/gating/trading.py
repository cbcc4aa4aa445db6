"""What the cells of the same arms say together: limits beyond their checks, and losses that a gain pays for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.measurement import ProcessRun
from harness.domain.verdict import Estimate
from harness.domain.words import Equivalence, Kind, Throughput
from harness.gating.cells import Cell
from harness.gating.policy import MEMORY, OUTPUTS, LimitsEntry, TradeEntry
from harness.gating.words import Finding
from harness.reporting.plain_words import change

_PAIR = 2
_ORDER = tuple(Equivalence)


@dataclass(frozen=True, slots=True)
class Growth:
    """Peak memory of a candidate over its baseline's.

    Attributes:
        value: Of the largest peaks; 1.1 is a tenth more.
        low: At least; of the smallest peak of the candidate and the largest of the baseline.
        high: At most, likewise.
        where: ``resident`` or ``GPU``.
    """

    value: float
    low: float
    high: float
    where: str

    def __str__(self) -> str:
        return f"{self.where} memory {100 * (self.value - 1):+.1f} %"


@dataclass(frozen=True, slots=True)
class Group:
    """Cells of the same two arms on the same node class."""

    cells: tuple[Cell, ...]

    @property
    def outputs(self) -> Equivalence | None:
        """The worst word on their outputs; ``None``: nobody compared them."""
        words = [cell.verdict.equivalence for cell in self.cells if cell.verdict.equivalence is not None]
        return max(words, key=_ORDER.index, default=None)

    @property
    def growth(self) -> Growth | None:
        """The larger growth of resident and GPU memory; ``None`` where it was not measured."""
        cell = next((cell for cell in self.cells if cell.tried is not None and cell.tried.job is not None), None)
        if cell is None or cell.tried is None or cell.tried.job is None:
            return None
        identities = [arm.identity for arm in cell.tried.job.arms]
        wanted = [arm.identity for arm in cell.case.arms]
        if not set(wanted) <= set(identities):
            return None
        runs = [
            [run for run in cell.tried.runs if run.step.arm == identities.index(identity) and _is_like_others(run)]
            for identity in wanted
        ]
        grown = [
            _growth([peak(run) for run in runs[0]], [peak(run) for run in runs[1]], where)
            for where, peak in (("resident", _resident), ("GPU", _on_gpus))
        ]
        return max((each for each in grown if each is not None), key=lambda each: each.value, default=None)


def groups_of(cells: Sequence[Cell]) -> dict[tuple[str, ...], Group]:
    """The pairs among the cells, by their arms and node class."""
    found: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        if len(cell.case.arms) == _PAIR:
            found.setdefault(cell.arms, []).append(cell)
    return {arms: Group(tuple(each)) for arms, each in found.items()}


def beyond_limits(group: Group, limits: LimitsEntry) -> dict[str, tuple[Finding, str]]:
    """Findings about cells whose own checks pass, by case id, each with its reason.

    Growth of memory is told of the group's first cell: it is one finding, whatever was timed.
    """
    found: dict[str, tuple[Finding, str]] = {}
    growth = group.growth if limits.memory_growth is not None else None
    if growth is not None and limits.memory_growth is not None and growth.low > 1 + limits.memory_growth:
        reason = f"{growth} (at least {100 * (growth.low - 1):+.1f} %), the policy's limit is a growth of"
        found[group.cells[0].id] = (Finding.MEMORY, f"{reason} {100 * limits.memory_growth:g} %")
    for cell in group.cells:
        word = cell.verdict.equivalence
        if limits.outputs is None or word is None or cell.case.kind is not Kind.EQUIVALENCE:
            continue
        if _ORDER.index(word) > _ORDER.index(limits.outputs):
            found[cell.id] = (Finding.OUTPUTS, f"outputs are {word}, the policy wants {limits.outputs} or nearer")
    return found


def traded(cell: Cell, finding: Finding, group: Group, trades: Sequence[TradeEntry]) -> str:
    """What pays for a loss, in words; empty if nothing does.

    Both have to be certain: the bounds of the intervals keep to the trade. Wrong outputs are never paid for.
    """
    outputs = group.outputs
    if outputs is not None and not outputs.speed_may_be_judged:
        return ""
    for trade in trades:
        if not _keeps_outputs(trade, outputs) or not _is_small(cell, finding, group, trade):
            continue
        if gain := _gain(group, trade):
            return f"{gain} pays for it by the policy"
    return ""


def _keeps_outputs(trade: TradeEntry, outputs: Equivalence | None) -> bool:
    if trade.outputs is None:
        return True
    return outputs is not None and _ORDER.index(outputs) <= _ORDER.index(trade.outputs)


def _is_small(cell: Cell, finding: Finding, group: Group, trade: TradeEntry) -> bool:
    """Whether a loss is one that the trade accepts."""
    at_most = trade.at_most
    if isinstance(at_most, Equivalence):
        word = cell.verdict.equivalence
        wanted = finding is Finding.OUTPUTS and trade.is_about(OUTPUTS)
        return wanted and word is not None and _ORDER.index(word) <= _ORDER.index(at_most)
    if finding is Finding.MEMORY and len(cell.case.arms) == _PAIR:
        growth = group.growth
        return trade.is_about(MEMORY) and growth is not None and growth.high <= 1 + at_most
    ratio = cell.verdict.estimate
    wanted = finding is Finding.REGRESSED and trade.is_about(cell.case.workload_name)
    return wanted and ratio is not None and ratio.low >= 1 - at_most


def _gain(group: Group, trade: TradeEntry) -> str:
    """The gain that pays, in words."""
    if trade.gain == MEMORY:
        growth = group.growth
        return str(growth) if growth is not None and growth.high <= 1 - trade.at_least else ""
    for cell in group.cells:
        ratio, name = cell.verdict.estimate, cell.case.workload_name
        improved = cell.verdict.throughput is Throughput.IMPROVED
        if improved and ratio is not None and trade.pays_with(name) and ratio.low >= 1 + trade.at_least:
            return f"{name}, {change(ratio.value)} ({_at_least(ratio)}),"
    return ""


def _at_least(ratio: Estimate) -> str:
    return f"at least {100 * (ratio.low - 1):.1f} %"


def _growth(baseline: Sequence[float], candidate: Sequence[float], where: str) -> Growth | None:
    ours, theirs = [peak for peak in baseline if peak > 0], [peak for peak in candidate if peak > 0]
    if not ours or not theirs:
        return None
    return Growth(max(theirs) / max(ours), min(theirs) / max(ours), max(theirs) / min(ours), where)


def _is_like_others(run: ProcessRun) -> bool:
    """Processes that answer prompts too need more memory: only those that are timed are alike."""
    return run.step.scored and run.failure is None


def _resident(run: ProcessRun) -> float:
    return float(run.max_rss_bytes)


def _on_gpus(run: ProcessRun) -> float:
    """Most memory in use on the GPUs that it used, less what others held before."""
    used = [gpu for gpu in run.conditions.gpus if gpu.used and gpu.memory_peak_bytes is not None]
    return float(sum((gpu.memory_peak_bytes or 0) - (gpu.memory_before_bytes or 0) for gpu in used))
