"""Matrix to cases: one for every question that it asks, also for those that a build can't answer.

Order: single arms, contrasts and pitfalls, checks of outputs, limits of memory; each in the file's order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.builds.known import KnownSources
from harness.domain.case import (
    AttributionCheck,
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
from harness.domain.workload import Metric, OutputProfile, ProfileWorkload, Timed, Workload, is_time
from harness.engines.abilities import beyond_together
from harness.engines.numbers import changes_numbers
from harness.pitfalls.catalogue import pitfall_named
from harness.planning.arms import PlannedArm, Workshop, expand_arms, matches
from harness.planning.configuration import Configuration
from harness.planning.content import content_claim, content_note
from harness.planning.fours import Four, find_fours
from harness.planning.goldens import against_references, unlike_prompts
from harness.planning.overlays import ArmKey, arm_key
from harness.planning.pairs import OVERLAID, Factor, Pair, Side, find_pairs
from harness.planning.pitfall_contrasts import factor_of, pitfall_pairs, pitfalls_once, suffering
from harness.planning.plan import PlannedCase
from harness.planning.problems import Problem, report
from harness.planning.profiles import workloads_of
from harness.planning.prompt_sets import output_profile
from harness.planning.schema import (
    ContrastEntry,
    FactorEntry,
    FloorEntry,
    Matrix,
    MemoryEntry,
    OutputsEntry,
    Where,
)
from harness.planning.size import few_cases
from harness.planning.values import variables_of


def expand(matrix: Matrix, options: Mapping[str, frozenset[str]] | None = None) -> tuple[PlannedCase, ...]:
    """All cases of a matrix.

    Args:
        matrix: The matrix.
        options: Option spellings of a build's ``--help``, by build, where it was read.

    Raises:
        BadInput: With all problems that were found: ``E-no-contrast``, ``E-confounded``, ``E-no-arm``,
            ``E-duplicate-case``, ``E-two-output-checks``, ``E-bad-flag-value``, ``E-contradictory-flags``;
            ``E-matrix-too-large``.
    """
    return expand_and_warn(matrix, options)[0]


def expand_and_warn(
    matrix: Matrix, options: Mapping[str, frozenset[str]] | None = None, sources: KnownSources | None = None
) -> tuple[tuple[PlannedCase, ...], tuple[str, ...]]:
    """All cases of a matrix, and what is odd about it and yet no fault.

    Args:
        matrix: The matrix.
        options: As for `expand`.
        sources: What is known of the builds' commits and numbers; ``None``: what their folders tell.

    Raises:
        BadInput: As `expand`.
    """
    expansion = _Expansion(Workshop(matrix, options or {}, sources))
    return expansion.cases(), expansion.warnings()


@dataclass(frozen=True, slots=True)
class _ArmSet:
    """The arms of a case that compares some.

    Attributes:
        arms: Two or four.
        note: What changes along with what is compared.
        made: They were made for it and are not all among the matrix's own.
        outside: Why the pitfall that is asked for is not about them.
    """

    arms: tuple[PlannedArm, ...]
    note: str
    made: bool = False
    outside: str = ""


def _arm_set(arms: tuple[PlannedArm, ...], note: str, *, made: bool = False, outside: str = "") -> _ArmSet:
    """The arms of a case with all that is to be noted of them, worked out once for all workloads."""
    notes = filter(None, (note, content_note([arm.arm for arm in arms])))
    return _ArmSet(arms, "; ".join(notes), made, outside)


class _Expansion:
    """One matrix on its way to cases; problems are collected and raised together."""

    def __init__(self, workshop: Workshop) -> None:
        self._matrix = matrix = workshop.matrix
        self._workshop = workshop
        self._problems: list[Problem] = []
        self._workloads = [
            _Asked(workload, entry.where, entry.where == Where(), matrix.source.at("workloads", index))
            for index, entry in enumerate(matrix.workloads)
            for workload in workloads_of(entry)
        ]
        self._arms = expand_arms(self._workshop)
        self._pairs: dict[str, list[Pair]] = {}
        self._fours: dict[str, list[Four]] = {}
        self._made: dict[ArmKey, tuple[PlannedArm, dict[Timed, None]]] = {}

    def cases(self) -> tuple[PlannedCase, ...]:
        if not self._arms:
            message = "every arm is excluded: nothing is left to run"
            self._problems.append(Problem("E-no-arm", self._matrix.source.at("exclude"), message))
        found = few_cases(self._asked(), self._matrix.source.file)
        found = _say_where_outputs_are_not_compared(found)
        if not found and not self._problems:
            message = "the matrix asks nothing: it has no workload and no check"
            hint = "add a [[workloads]] with pp, tg or a profile"
            self._problems.append(Problem("E-no-workload", self._matrix.source.at("workloads"), message, hint))
        self._refuse_duplicates(found)
        self._refuse_two_output_checks(found)
        self._problems.extend(unlike_prompts(found))
        if problems := [*self._workshop.faults.problems(), *self._problems]:
            raise report(self._matrix.source.file, problems)
        return tuple(found)

    def warnings(self) -> tuple[str, ...]:
        """Entries that change nothing: the other side of a slip of the finger."""
        matrix = self._matrix
        idle = [("exclude", index) for index in range(len(matrix.exclude)) if index not in self._workshop.excluding]
        idle += [("when", index) for index in range(len(matrix.when)) if index not in self._workshop.holding]
        said = {"exclude": "excludes nothing: no arm meets it", "when": "adds nothing: it holds nowhere"}
        return tuple(f"{matrix.source.at(*place)}: {said[place[0]]}" for place in idle)

    def _asked(self) -> Iterator[PlannedCase]:
        yield from self._singles()
        yield from pitfalls_once(self._contrasts())
        yield from self._outputs()
        yield from self._memory()

    def _singles(self) -> Iterator[PlannedCase]:
        floors = self._floors()
        for arm in self._arms:
            applying = [check for check in floors if matches(check.where, arm)]
            for asked in self._asked_of(arm):
                check = _floor_of(asked.workload, applying)
                yield self._single(Kind.THROUGHPUT, arm, asked.workload, check, arm.origin or asked.origin)

    def _floors(self) -> list[FloorEntry]:
        floors = []
        for index, check in enumerate(self._matrix.checks):
            if check.kind == "floor":
                self._require_arm(check, index, self._arms)
                floors.append(check)
        return floors

    def _contrasts(self) -> Iterator[PlannedCase]:
        for index, entry in enumerate(self._matrix.contrasts):
            if entry.kind == "attribution":
                yield from self._attribution(entry, index)
                continue
            if entry.pitfall:
                yield from self._pitfall(entry, index)
                continue
            origin = self._matrix.source.at("contrasts", index)
            factor = self._factor(entry, entry.where, origin)
            pairs = self._pairs[entry.name] = self._found(factor)
            kind = Kind.PITFALL if entry.kind == "pitfall" else Kind.THROUGHPUT
            sets = [
                _arm_set((pair.baseline, pair.candidate), pair.note, made=factor.name in OVERLAID) for pair in pairs
            ]
            yield from self._compared(entry, kind, _contrast_check(entry), sets, origin)

    def _pitfall(self, entry: ContrastEntry, index: int) -> Iterator[PlannedCase]:
        """A documented pitfall: what its conditions do not hold for is listed with the reason, and not run."""
        origin = self._matrix.source.at("contrasts", index)
        pitfall = pitfall_named(entry.pitfall)
        try:
            found = pitfall_pairs(pitfall, entry.where, self._arms, self._workshop, origin)
        except BadInput as bad:
            self._miss(Problem(bad.slug, bad.where, bad.message, bad.hint))
            return
        self._pairs[entry.name] = [each.pair for each in found if not each.outside]
        check = PitfallCheck(entry.name, factor_of(pitfall), pitfall.source, pitfall.instead)
        sets = [
            _arm_set((each.pair.baseline, each.pair.candidate), each.pair.note, made=each.made, outside=each.outside)
            for each in found
        ]
        yield from self._compared(entry, Kind.PITFALL, check, sets, origin)

    def _attribution(self, entry: ContrastEntry, index: int) -> Iterator[PlannedCase]:
        origin = self._matrix.source.at("contrasts", index)
        first, second = (
            self._factor(factor, Where(), self._matrix.source.at("contrasts", index, "factors", place))
            for place, factor in enumerate(entry.factors)
        )
        fours = self._fours[entry.name] = self._found_fours((first, second), entry.where, origin)
        check = AttributionCheck(entry.name, (entry.factors[0].word, entry.factors[1].word), entry.expectation)
        made = not OVERLAID.isdisjoint({first.name, second.name})
        sets = [_arm_set(four.arms, four.note, made=made) for four in fours]
        yield from self._compared(entry, Kind.ATTRIBUTION, check, sets, origin)

    def _compared(
        self, entry: ContrastEntry, kind: Kind, check: Check, sets: Sequence[_ArmSet], origin: str
    ) -> Iterator[PlannedCase]:
        """A case for each set of arms and each workload that all of them have and the contrast names."""
        timed = [(each, self._timed_by(entry, *each.arms)) for each in sets]
        if timed and not any(workloads for _, workloads in timed):
            message = "the contrast has nothing to time: no workload applies to its arms"
            self._miss(Problem("E-no-workload", origin, message, "look at [[workloads]] and 'where'"))
        for each, workloads in timed:
            for arm in each.arms if each.made and not each.outside else ():
                self._made.setdefault(arm_key(arm), (arm, {}))[1].update(dict.fromkeys(workloads))
            for workload in workloads:
                yield self._case_of_arms(kind, each, workload, check, origin)

    def _factor(self, entry: ContrastEntry | FactorEntry | OutputsEntry, where: Where, origin: str) -> Factor:
        """What an entry asks for, with its settings looked up."""
        assert entry.baseline is not None  # noqa: S101 - the schema saw to it
        assert entry.candidate is not None  # noqa: S101 - and to this
        baseline, candidate = (self._side(entry.factor, side) for side in (entry.baseline, entry.candidate))
        named = frozenset(name for flags in self._workshop.bundles.get(entry.factor, {}).values() for name in flags)
        places = self._place(entry, "baseline", origin), self._place(entry, "candidate", origin)
        return Factor(entry.factor, baseline, candidate, where, origin, places, named)

    def _place(self, entry: ContrastEntry | FactorEntry | OutputsEntry, key: str, origin: str) -> str:
        """File and key of one side's settings."""
        side = getattr(entry, key)
        named = entry.factor == "configuration" and isinstance(side, str)
        return self._matrix.source.at("configurations", side) if named else f"{origin}.{key}"

    def _side(self, factor: str, side: Side) -> Side:
        if factor == "environment" and isinstance(side, Configuration):
            return Configuration(environment=variables_of(side.flags))
        if factor == "configuration" and isinstance(side, str):
            return self._matrix.configurations[side]
        return side

    def _asked_of(self, *arms: PlannedArm) -> list[_Asked]:
        """The workloads whose condition all arms meet."""
        return [asked for asked in self._workloads if asked.of_all or all(matches(asked.where, arm) for arm in arms)]

    def _timed_on(self, *arms: PlannedArm) -> list[Timed]:
        return [asked.workload for asked in self._asked_of(*arms)]

    def _timed_by(self, entry: ContrastEntry, *arms: PlannedArm) -> list[Timed]:
        """Those workloads of all its arms that a contrast names; all that its pitfall is about if it names none."""
        common = self._timed_on(*arms)
        if entry.pitfall and not entry.workloads:
            return suffering(pitfall_named(entry.pitfall), common)
        return [workload for workload in common if not entry.workloads or workload.name in entry.workloads]

    def _outputs(self) -> Iterator[PlannedCase]:
        for index, check in enumerate(self._matrix.checks):
            if check.kind != "outputs":
                continue
            origin = self._matrix.source.at("checks", index)
            profile = output_profile(check)
            yield from self._against_references(check, index, profile) if check.reference else ()
            for factor, pair in self._pairs_of_outputs(check, origin):
                if claim := content_claim((pair.baseline.arm, pair.candidate.arm)):
                    hint = "compare builds on one file, or models that are trained"
                    self._problems.append(Problem("E-synthetic-claim", origin, claim, hint))
                    break
                both = _arm_set((pair.baseline, pair.candidate), pair.note)
                declared = OutputCheck(
                    check.name, factor, check.lossy, changes_numbers(*(arm.arm for arm in both.arms))
                )
                yield self._case_of_arms(Kind.EQUIVALENCE, both, profile, declared, origin)

    def _against_references(self, check: OutputsEntry, index: int, profile: OutputProfile) -> Iterator[PlannedCase]:
        def single(arm: PlannedArm, asked: OutputCheck) -> PlannedCase:
            return self._single(Kind.EQUIVALENCE, arm, profile, asked, self._matrix.source.at("checks", index))

        for found in against_references(check, index, self._arms, self._matrix.source, single):
            if isinstance(found, Problem):
                self._miss(found)
            else:
                yield found

    def _pairs_of_outputs(self, check: OutputsEntry, origin: str) -> Iterator[tuple[str, Pair]]:
        if check.factor:
            factor = self._factor(check, check.where, origin)
            yield from ((factor.name, pair) for pair in self._found(factor))
        seen: set[tuple[ArmKey, ArmKey]] = set()
        for entry in self._matrix.contrasts:
            for factor_name, pair in self._pairs_of_contrast(entry) if entry.name in check.contrasts else ():
                key = (arm_key(pair.baseline), arm_key(pair.candidate))
                if key not in seen:
                    seen.add(key)
                    yield factor_name, pair

    def _pairs_of_contrast(self, entry: ContrastEntry) -> Iterator[tuple[str, Pair]]:
        """The pairs whose outputs are compared for a contrast; the four arms of an attribution against the first."""
        factor = factor_of(pitfall_named(entry.pitfall)) if entry.pitfall else entry.factor
        for pair in self._pairs.get(entry.name, ()):
            yield factor, pair
        for four in self._fours.get(entry.name, ()):
            first, second = (factor.word for factor in entry.factors)
            old, *others = four.arms
            for factor, arm in zip((second, first, f"{first} and {second}"), others, strict=True):
                yield factor, Pair(old, arm, four.note)

    def _memory(self) -> Iterator[PlannedCase]:
        for index, check in enumerate(self._matrix.checks):
            if check.kind != "memory":
                continue
            measured = self._measured()
            self._require_arm(check, index, [arm for arm, _ in measured])
            origin = self._matrix.source.at("checks", index)
            for arm, timed in measured:
                for workload in _peaks(timed) if matches(check.where, arm) else ():
                    yield self._single(Kind.MEMORY, arm, workload, MemoryCheck(check.max_rss_mib), origin)

    def _measured(self) -> list[tuple[PlannedArm, list[Timed]]]:
        """The matrix's arms, then those that contrasts made, each with what is timed of it."""
        own = {arm_key(arm) for arm in self._arms} if self._made else set()
        made = [(arm, list(timed)) for key, (arm, timed) in self._made.items() if key not in own]
        return [*((arm, self._timed_on(arm)) for arm in self._arms), *made]

    def _single(
        self, kind: Kind, arm: PlannedArm, workload: Timed | OutputProfile | None, check: Check, origin: str
    ) -> PlannedCase:
        reason = self._workshop.beyond(arm, workload)
        case = Case(kind, (arm.arm,), workload, arm.node_class, check)
        return PlannedCase(case, origin, Status.UNSUPPORTED if reason else None, reason)

    def _case_of_arms(
        self, kind: Kind, compared: _ArmSet, workload: Timed | OutputProfile, check: Check, origin: str
    ) -> PlannedCase:
        arms = compared.arms
        found = [
            (part, self._workshop.beyond(arm, workload)) for part, arm in zip(_PARTS[len(arms)], arms, strict=True)
        ]
        reasons = [f"{part}: {reason}" for part, reason in found if reason] or [
            *_unlike_clocks(arms, workload),
            *filter(None, [beyond_together([arm.arm.build for arm in arms], workload)]),
        ]
        case = Case(kind, tuple(arm.arm for arm in arms), workload, arms[0].node_class, check)
        if compared.outside:
            return PlannedCase(case, origin, Status.NOT_APPLICABLE, compared.outside, compared.note)
        return PlannedCase(case, origin, Status.UNSUPPORTED if reasons else None, "; ".join(reasons), compared.note)

    def _found(self, factor: Factor) -> list[Pair]:
        try:
            return find_pairs(factor, self._arms, self._workshop)
        except BadInput as bad:
            self._miss(Problem(bad.slug, bad.where, bad.message, bad.hint))
            return []

    def _found_fours(self, factors: tuple[Factor, Factor], where: Where, origin: str) -> list[Four]:
        try:
            return find_fours(factors, where, self._arms, self._workshop, origin)
        except BadInput as bad:
            self._miss(Problem(bad.slug, bad.where, bad.message, bad.hint))
            return []

    def _miss(self, problem: Problem) -> None:
        """Note that arms are missing, or that workloads are; not where some arms are faulty, for it may follow."""
        if not self._workshop.faults:
            self._problems.append(problem)

    def _require_arm(self, check: FloorEntry | MemoryEntry, index: int, arms: Sequence[PlannedArm]) -> None:
        """A check that no arm meets would never be made, and nobody would notice."""
        if not any(matches(check.where, arm) for arm in arms):
            where = self._matrix.source.at("checks", index, "where")
            self._miss(Problem("E-no-arm", where, "no arm of the matrix meets this condition"))

    def _refuse_duplicates(self, cases: Sequence[PlannedCase]) -> None:
        first: dict[str, PlannedCase] = {}
        told: set[tuple[str, str]] = set()
        for case in cases:
            before = first.setdefault(case.id, case)
            both = (case.origin, before.origin)
            if before is not case and both not in told:
                told.add(both)
                message, hint = _told_twice(before, case)
                self._miss(Problem("E-duplicate-case", case.origin, message, hint))

    def _refuse_two_output_checks(self, cases: Sequence[PlannedCase]) -> None:
        """A job answers one profile of prompts, and a required check has to run in the job of its contrast."""
        first: dict[tuple[str, ...], str] = {}
        for case in cases:
            if case.case.kind is not Kind.EQUIVALENCE:
                continue
            key = _arms_of(case.case)
            before = first.setdefault(key, case.origin)
            if before != case.origin:
                message = f"compares the same arms as {before}: case {case.id}"
                hint = "put the prompts into one check"
                self._problems.append(Problem("E-two-output-checks", case.origin, message, hint))


def _told_twice(first: PlannedCase, second: PlannedCase) -> tuple[str, str]:
    """What two cases of one id have in common, and what to do."""
    for mine, theirs in zip(first.case.arms, second.case.arms, strict=True):
        if differing := mine.flags.differing(theirs.flags):
            name = differing[0]
            values = f"{mine.flags.get(name)!r} and {theirs.flags.get(name)!r}"
            message = f"ids can't tell {name} = {values} apart: case {first.id}"
            return message, f"give the values names: [axes] NAME = [{{ name = ..., flags = {{ {name} = ... }} }}, ...]"
    return f"asks the same as {first.origin}: case {first.id}", "remove one of the two"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A workload of the matrix, for which arms it exists, and its file and key."""

    workload: Timed
    where: Where
    of_all: bool
    origin: str


def _peaks(timed: Iterable[Timed]) -> list[ProfileWorkload | None]:
    """What an arm has a peak of: the process of its plain workloads, and that of each profile."""
    listed = list(timed)
    profiles = dict.fromkeys(load.profile for load in listed if isinstance(load, ProfileWorkload))
    plain = [None] if not profiles or any(isinstance(load, Workload) for load in listed) else []
    return [*plain, *(ProfileWorkload(profile, Metric.PEAK) for profile in profiles)]


_PARTS = {
    2: ("baseline", "candidate"),
    4: ("both old", "only the second factor new", "only the first factor new", "both new"),
}
"""What the arms of a case are called where one of them can't do what is asked."""


def _floor_of(workload: Timed, checks: Iterable[FloorEntry]) -> FloorCheck:
    """The last threshold that applies to a workload: in ms to times to the first token, in t/s to the others."""
    found = FloorCheck(None)
    for check in checks:
        fits = (check.max_ms is not None) == is_time(workload)
        if fits and (not check.workloads or workload.name in check.workloads):
            found = FloorCheck(check.tokens_per_second, check.max_ms)
    return found


def _unlike_clocks(arms: Iterable[PlannedArm], workload: Timed | OutputProfile) -> list[str]:
    """Requests to a wheel's library are timed inside the process, those to a build by path through its server."""
    tools = {arm.arm.build.tool for arm in arms}
    if isinstance(workload, ProfileWorkload) and len(tools) > 1:
        return ["a wheel answers requests in process, a build by path through its server: their times do not compare"]
    return []


def _contrast_check(entry: ContrastEntry) -> Check:
    if entry.kind == "pitfall":
        return PitfallCheck(entry.name, entry.factor, entry.source, entry.instead)
    return ContrastCheck(entry.name, entry.factor, Expectation(entry.expect))


def _say_where_outputs_are_not_compared(cases: Sequence[PlannedCase]) -> list[PlannedCase]:
    """A contrast's speed is judged also where a build gives no outputs to compare; its cases say so."""
    lost = {
        _arms_of(case.case): f"outputs are not compared: {case.reason}"
        for case in cases
        if case.case.kind is Kind.EQUIVALENCE and case.status is Status.UNSUPPORTED
    }
    return [_with_note(case, _lost_by(case.case, lost)) if lost else case for case in cases]


def _lost_by(case: Case, lost: Mapping[tuple[str, ...], str]) -> str:
    """Why a case's arms are not compared; of an attribution, each other arm with the first."""
    first, *others = _identities(case)
    notes = {lost.get((case.node_class.name, first, other), "") for other in others}
    return "" if "" in notes else "; ".join(sorted(notes))


def _with_note(case: PlannedCase, note: str) -> PlannedCase:
    if case.status is not None or not note:
        return case
    return replace(case, note="; ".join(filter(None, [case.note, note])))


def _arms_of(case: Case) -> tuple[str, ...]:
    return (case.node_class.name, *_identities(case))


def _identities(case: Case) -> list[str]:
    return [arm.identity for arm in case.arms]
