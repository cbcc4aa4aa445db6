"""What a plan's budget can decide, said before it runs: minutes of jobs, and the smallest loss each contrast finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from harness.domain.case import ContrastCheck, PitfallCheck
from harness.domain.job import Job
from harness.domain.policy import Policy
from harness.domain.spread import Spread
from harness.judging.budget import EFFECTS, NEARLY_SURE, Pace, assumed_spread, smallest_effect
from harness.judging.sequential import Limits
from harness.judging.throughput import limits_of
from harness.planning.plan import Plan, PlannedCase
from harness.running.known_spreads import KnownSpreads

_PAIR = 2
_LONGER = "or more, as the first quad of each job is measured whatever it takes"


@dataclass(frozen=True, slots=True)
class CaseForecast:
    """One case before it runs.

    Attributes:
        job: Id of its job.
        minutes: What the whole job takes at most; ``None``: not known.
        quads: Quads that the budget has for a contrast; ``None``: it is none, or how many fit is not known.
        smallest: Smallest loss of speed that they find with 95 %, where their number is not known all of ``if_all``;
            ``None``: none up to 90 %, or it is no contrast.
        margin: Change that is still equivalent.
        spread: What that rests on; ``None`` where nothing is compared.
        quarantine: Why it will not be decided, whatever it measures; empty otherwise.
        if_all: Quads of the schedule, where it is not known how many of them fit in the budget; ``None`` elsewhere.
    """

    job: str
    minutes: float | None
    quads: int | None = None
    smallest: float | None = None
    margin: float | None = None
    spread: Spread | None = None
    quarantine: str = ""
    if_all: int | None = None


@dataclass(frozen=True, slots=True)
class PlanForecast:
    """A plan before it runs.

    Attributes:
        cases: By case id, those that can run.
        minutes: Of all jobs, at most; ``None``: of some it is not known.
        bounded: No job takes longer; otherwise the first quads of some may, which are measured whatever they take.
    """

    cases: Mapping[str, CaseForecast]
    minutes: float | None
    bounded: bool = True

    @property
    def contrasts(self) -> tuple[CaseForecast, ...]:
        """Those in which speeds are compared."""
        return tuple(case for case in self.cases.values() if case.spread is not None)

    def lines(self) -> tuple[str, ...]:
        """In words: spreads and where they are from, what the budget does not decide, what is in quarantine."""
        return (*self._sources(), *self._untimed(), *self._undecidable(), *self._quarantined())

    @property
    def time(self) -> str:
        """What all jobs take, in words; empty where nothing is known."""
        if self.minutes is None:
            return ""
        return f"{_minutes_text(self.minutes)} {'at most' if self.bounded else _LONGER}"

    def headline(self) -> str:
        """In one line; empty where nothing is compared."""
        if not self.contrasts:
            return ""
        found = sorted({case.smallest for case in self.contrasts if case.smallest})
        time = f" in {self.time}" if self.time else ""
        losses = f"losses of {_range(found)} are found with 95 %" if found else "no loss is found with 95 %"
        untimed = sum(case.if_all is not None for case in self.contrasts)
        if untimed:
            which = "" if untimed == len(self.contrasts) else f" of {untimed}"
            losses += f" if all quads{which} fit, which no calibration tells"
        ill = sum(bool(case.quarantine) for case in self.contrasts)
        assumed = sum(not _is_known(case) for case in self.contrasts)
        notes = [f"{assumed} by an assumed spread"] if assumed else []
        notes += [f"{ill} quarantined"] if ill else []
        return f"{_count(len(self.contrasts))}{time}: {losses}" + (f" ({', '.join(notes)})" if notes else "")

    def _sources(self) -> list[str]:
        counts = Counter(case.spread.source for case in self.contrasts if case.spread)
        spreads: dict[str, list[float]] = {source: [] for source in counts}
        for case in self.contrasts:
            if case.spread:
                spreads[case.spread.source].append(case.spread.quad_sd)
        return [
            f"spread ({_count(count)}): quad SD {_range(sorted(set(spreads[source])))}, {source}"
            for source, count in counts.items()
        ]

    def _untimed(self) -> list[str]:
        counts = Counter((case.minutes, case.if_all) for case in self.contrasts if case.if_all is not None)
        return [
            f"it is not known how many quads fit in {_minutes_text(minutes or 0.0)} of a job ({_count(count)}), no"
            f" calibration of this node tells what a process takes: what is said to be found holds if all {quads} do"
            for (minutes, quads), count in counts.items()
        ]

    def _undecidable(self) -> list[str]:
        told = []
        for effect in EFFECTS:
            missed = sum(case.smallest is None or case.smallest > effect for case in self.contrasts)
            told += [f"{100 * effect:g} % in {missed}"] if missed else []
        count = _count(len(self.contrasts))
        return [f"not decided within the budget (of {count}): a loss of {', '.join(told)}"] if told else []

    def _quarantined(self) -> list[str]:
        counts = Counter(case.quarantine for case in self.contrasts if case.quarantine)
        return [f"inconclusive whatever is measured ({_count(count)}): {why}" for why, count in counts.items()]


def forecast_plan(plan: Plan, known: KnownSpreads) -> PlanForecast:
    """Look ahead.

    Args:
        plan: The plan.
        known: What is known of spreads where it will run.
    """
    jobs = [known.informed(job) for job in plan.jobs]
    by_case = {case: job for job in jobs for case in job.cases}
    seconds = {job.id: known.process_seconds(job) for job in jobs}
    minutes = {job.id: job_minutes(job, seconds[job.id]) for job in jobs}
    cases = {
        planned.id: _forecast(planned, job, minutes[job.id], seconds[job.id], plan.policy.judging)
        for planned in plan.cases
        if (job := by_case.get(planned.id)) is not None
    }
    told = [each for each in minutes.values() if each is not None]
    bounded = all(seconds[job.id] is not None or job.design.minutes is None for job in jobs)
    return PlanForecast(cases, sum(told) if jobs and len(told) == len(jobs) else None, bounded)


def _forecast(
    planned: PlannedCase, job: Job, minutes: float | None, process_s: float | None, policy: Policy
) -> CaseForecast:
    case = planned.case
    if len(case.arms) != _PAIR or not isinstance(case.check, ContrastCheck | PitfallCheck):
        return CaseForecast(job.id, minutes)
    name = case.workload_name
    limits = limits_of(policy, job, name)
    spread = job.spread_of(name) or assumed_spread(name)
    quads, timed = limits.max_quads, True
    if job.design.minutes is not None:
        timed = process_s is not None
        quads = min(quads, Pace(process_s, job.design.burn_in).measured(job.design.minutes)) if process_s else quads
    return CaseForecast(
        job=job.id,
        minutes=minutes,
        quads=quads if timed else None,
        smallest=_smallest(quads, spread.quad_sd, spread.df, limits),
        margin=limits.margin,
        spread=spread,
        quarantine=next((each.reason for each in job.quarantines if each.workload == name), ""),
        if_all=None if timed else quads,
    )


@lru_cache(maxsize=1024)
def _smallest(quads: int, quad_sd: float, df: float, limits: Limits) -> float | None:
    return smallest_effect(quads, NEARLY_SURE, Spread("", quad_sd, df, ""), limits)


def job_minutes(job: Job, process_s: float | None) -> float | None:
    """The whole schedule, or the budget where that is less, but the first quad: jobs end before, once decided.

    Args:
        job: The job.
        process_s: Wall time of one of its process starts; ``None``: not known.

    Returns:
        Minutes at most; ``None``: not known.
    """
    if process_s is None:
        return job.design.minutes
    whole = job.process_starts * process_s / 60
    if job.design.minutes is None:
        return whole
    first = (job.design.burn_in + job.blocks_at_once) * len(job.arms) * process_s / 60
    return min(whole, max(first, job.design.minutes))


def _is_known(case: CaseForecast) -> bool:
    return case.spread is not None and case.spread.df > 0


def _count(number: int) -> str:
    return f"{number} contrast" + ("" if number == 1 else "s")


def _minutes_text(minutes: float) -> str:
    return f"{minutes:.0f} min" if minutes >= 1 else f"{60 * minutes:.0f} s"


def _range(shares: Sequence[float]) -> str:
    low, high = f"{100 * shares[0]:.2g}", f"{100 * shares[-1]:.2g}"
    return f"{low} %" if low == high else f"{low} to {high} %"
