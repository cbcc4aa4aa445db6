"""Matrix to cases: one for every question that it asks, also for those that a build can't answer.

Order: single arms, contrasts and pitfalls, checks of outputs, limits of memory; each in the file's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.domain.case import (
    Case,
    Check,
    ContrastCheck,
    Expectation,
    FloorCheck,
    MemoryCheck,
    OutputCheck,
    PitfallCheck,
)
from harness.domain.errors import BadInput
from harness.domain.words import Kind, Status
from harness.domain.workload import OutputProfile, Prompt, Workload
from harness.planning.arms import PlannedArm, Workshop, expand_arms, matches
from harness.planning.pairs import Factor, Pair, find_pairs
from harness.planning.plan import PlannedCase
from harness.planning.problems import Problem, report
from harness.planning.references import workload_of
from harness.planning.schema import ContrastEntry, FloorEntry, Matrix, MemoryEntry, OutputsEntry, Where


def expand(matrix: Matrix, options: Mapping[str, frozenset[str]] | None = None) -> tuple[PlannedCase, ...]:
    """All cases of a matrix.

    Args:
        matrix: The matrix.
        options: Option spellings of a build's ``--help``, by build, where it was read.

    Raises:
        BadInput: With all problems that were found: ``E-no-contrast``, ``E-confounded``, ``E-no-arm``,
            ``E-duplicate-case``, ``E-two-output-checks``, ``E-bad-flag-value``, ``E-contradictory-flags``.
    """
    return _Expansion(matrix, options or {}).cases()


class _Expansion:
    """One matrix on its way to cases; problems are collected and raised together."""

    def __init__(self, matrix: Matrix, options: Mapping[str, frozenset[str]]) -> None:
        self._matrix = matrix
        self._workshop = Workshop(matrix, options)
        self._problems = self._workshop.problems
        self._workloads = {workload.name: workload for workload in map(workload_of, matrix.workloads)}
        self._workload_of_all = [entry.where == Where() for entry in matrix.workloads]
        self._arms = expand_arms(self._workshop)
        self._pairs: dict[str, list[Pair]] = {}

    def cases(self) -> tuple[PlannedCase, ...]:
        if not self._arms:
            message = "every arm is excluded: nothing is left to run"
            self._problems.append(Problem("E-no-arm", self._matrix.source.at("exclude"), message))
        found = [*self._singles(), *self._contrasts(), *self._outputs(), *self._memory()]
        found = _say_where_outputs_are_not_compared(found)
        if not found and not self._problems:
            message = "the matrix asks nothing: it has no workload and no check"
            hint = "add a [[workloads]] with pp or tg"
            self._problems.append(Problem("E-no-workload", self._matrix.source.at("workloads"), message, hint))
        self._refuse_duplicates(found)
        self._refuse_two_output_checks(found)
        if self._problems:
            raise report(self._matrix.source.file, self._problems)
        return tuple(found)

    def _singles(self) -> Iterator[PlannedCase]:
        floors = self._floors()
        for arm in self._arms:
            applying = [check for check in floors if matches(check.where, arm)]
            for workload in self._timed_on(arm):
                floor: float | None = None
                for check in applying:
                    if not check.workloads or workload.name in check.workloads:
                        floor = check.tokens_per_second
                yield self._single(Kind.THROUGHPUT, arm, workload, FloorCheck(floor), arm.origin)

    def _floors(self) -> list[FloorEntry]:
        floors = []
        for index, check in enumerate(self._matrix.checks):
            if check.kind == "floor":
                self._require_arm(check, index)
                floors.append(check)
        return floors

    def _contrasts(self) -> Iterator[PlannedCase]:
        for index, entry in enumerate(self._matrix.contrasts):
            origin = self._matrix.source.at("contrasts", index)
            factor = Factor(entry.factor, entry.baseline, entry.candidate, entry.where, origin)
            self._pairs[entry.name] = self._found(factor)
            check = _contrast_check(entry)
            kind = Kind.PITFALL if entry.kind == "pitfall" else Kind.THROUGHPUT
            timed = [(pair, self._timed_by(entry, pair)) for pair in self._pairs[entry.name]]
            if timed and not any(workloads for _, workloads in timed):
                message = "the contrast has nothing to time: no workload applies to its arms"
                self._problems.append(Problem("E-no-workload", origin, message, "look at [[workloads]] and 'where'"))
            for pair, workloads in timed:
                for workload in workloads:
                    yield self._paired(kind, pair, workload, check, origin)

    def _timed_on(self, *arms: PlannedArm) -> list[Workload]:
        """The workloads whose condition all arms meet."""
        return [
            workload
            for entry, for_all, workload in zip(
                self._matrix.workloads, self._workload_of_all, self._workloads.values(), strict=True
            )
            if for_all or all(matches(entry.where, arm) for arm in arms)
        ]

    def _timed_by(self, entry: ContrastEntry, pair: Pair) -> list[Workload]:
        """Those workloads of both arms that a contrast names; all if it names none."""
        both = self._timed_on(pair.baseline, pair.candidate)
        return [workload for workload in both if not entry.workloads or workload.name in entry.workloads]

    def _outputs(self) -> Iterator[PlannedCase]:
        for index, check in enumerate(self._matrix.checks):
            if check.kind != "outputs":
                continue
            origin = self._matrix.source.at("checks", index)
            profile = _profile(check)
            for factor, pairs in self._pairs_of_outputs(check, origin):
                for pair in pairs:
                    yield self._paired(Kind.EQUIVALENCE, pair, profile, OutputCheck(check.name, factor), origin)

    def _pairs_of_outputs(self, check: OutputsEntry, origin: str) -> Iterator[tuple[str, list[Pair]]]:
        if check.baseline is not None and check.candidate is not None:
            factor = Factor(check.factor, check.baseline, check.candidate, check.where, origin)
            yield factor.name, self._found(factor)
        seen: set[tuple[int, int]] = set()
        for entry in self._matrix.contrasts:
            if entry.name in check.contrasts:
                pairs = [pair for pair in self._pairs[entry.name] if _key(pair) not in seen]
                seen.update(map(_key, pairs))
                yield entry.factor, pairs

    def _memory(self) -> Iterator[PlannedCase]:
        for index, check in enumerate(self._matrix.checks):
            if check.kind != "memory":
                continue
            self._require_arm(check, index)
            origin = self._matrix.source.at("checks", index)
            for arm in self._arms:
                if matches(check.where, arm):
                    yield self._single(Kind.MEMORY, arm, None, MemoryCheck(check.max_rss_mib), origin)

    def _single(self, kind: Kind, arm: PlannedArm, workload: Workload | None, check: Check, origin: str) -> PlannedCase:
        reason = self._workshop.beyond(arm, workload)
        case = Case(kind, (arm.arm,), workload, arm.node_class, check)
        return PlannedCase(case, origin, Status.UNSUPPORTED if reason else None, reason)

    def _paired(
        self, kind: Kind, pair: Pair, workload: Workload | OutputProfile, check: Check, origin: str
    ) -> PlannedCase:
        sides = (("baseline", pair.baseline), ("candidate", pair.candidate))
        found = [(side, self._workshop.beyond(arm, workload)) for side, arm in sides]
        reasons = [f"{side}: {reason}" for side, reason in found if reason]
        case = Case(kind, (pair.baseline.arm, pair.candidate.arm), workload, pair.baseline.node_class, check)
        return PlannedCase(case, origin, Status.UNSUPPORTED if reasons else None, "; ".join(reasons), pair.note)

    def _found(self, factor: Factor) -> list[Pair]:
        try:
            return find_pairs(factor, self._arms, self._workshop)
        except BadInput as bad:
            self._problems.append(Problem(bad.slug, bad.where, bad.message, bad.hint))
            return []

    def _require_arm(self, check: FloorEntry | MemoryEntry, index: int) -> None:
        """A check that no arm meets would never be made, and nobody would notice."""
        if not any(matches(check.where, arm) for arm in self._arms):
            where = self._matrix.source.at("checks", index, "where")
            self._problems.append(Problem("E-no-arm", where, "no arm of the matrix meets this condition"))

    def _refuse_duplicates(self, cases: Sequence[PlannedCase]) -> None:
        first: dict[str, str] = {}
        told: set[tuple[str, str]] = set()
        for case in cases:
            before = first.setdefault(case.id, case.origin)
            both = (case.origin, before)
            if before is not case.origin and both not in told:
                told.add(both)
                message = f"asks the same as {before}: case {case.id}"
                self._problems.append(Problem("E-duplicate-case", case.origin, message, "remove one of the two"))

    def _refuse_two_output_checks(self, cases: Sequence[PlannedCase]) -> None:
        """A job answers one profile of prompts, and a required check has to run in the job of its contrast."""
        first: dict[tuple[str, ...], str] = {}
        for case in cases:
            if case.case.kind is not Kind.EQUIVALENCE:
                continue
            key = _arms_of(case.case)
            before = first.setdefault(key, case.origin)
            if before != case.origin:
                message = f"compares the same two arms as {before}: case {case.id}"
                hint = "put the prompts into one check"
                self._problems.append(Problem("E-two-output-checks", case.origin, message, hint))


def _key(pair: Pair) -> tuple[int, int]:
    return id(pair.baseline), id(pair.candidate)


def _contrast_check(entry: ContrastEntry) -> Check:
    if entry.kind == "pitfall":
        return PitfallCheck(entry.name, entry.factor, entry.source, entry.instead)
    return ContrastCheck(entry.name, entry.factor, Expectation(entry.expect))


def _profile(check: OutputsEntry) -> OutputProfile:
    prompts = tuple(Prompt(f"p{number}", text) for number, text in enumerate(check.prompts, start=1))
    return OutputProfile(check.name, prompts, check.n_predict, check.positions)


def _say_where_outputs_are_not_compared(cases: Sequence[PlannedCase]) -> list[PlannedCase]:
    """A contrast's speed is judged also where a build gives no outputs to compare; its cases say so."""
    lost = {
        _arms_of(case.case): f"outputs are not compared: {case.reason}"
        for case in cases
        if case.case.kind is Kind.EQUIVALENCE and case.status is Status.UNSUPPORTED
    }
    return [_with_note(case, lost.get(_arms_of(case.case), "")) if lost else case for case in cases]


def _with_note(case: PlannedCase, note: str) -> PlannedCase:
    if case.status is not None or not note:
        return case
    return replace(case, note="; ".join(filter(None, [case.note, note])))


def _arms_of(case: Case) -> tuple[str, ...]:
    return (case.node_class.name, *(arm.identity for arm in case.arms))
