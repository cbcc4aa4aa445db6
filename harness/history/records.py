"""What a journal says of one night: for each cell the figure, the verdict, the builds that ran and on which machine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from harness.domain.arm import Arm
from harness.domain.canonical import canonical_json, digest
from harness.domain.case import Case
from harness.domain.errors import BadInput
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.verdict import ArmSpeed, Verdict
from harness.domain.words import Status
from harness.domain.workload import OutputProfile, ProfileWorkload
from harness.history.series import BuildRef
from harness.reporting.codec import encode
from harness.reporting.joining import lost_states
from harness.reporting.state import JobTry, JournalState

UNKNOWN = "unknown"
ONE_NIGHT = timedelta(hours=12)
"""Shards of one night begin within this time of each other, also across midnight."""
_UNITS = frozenset({"ratio", "t/s", "ms", "MiB"})
_MEASURED = frozenset({Status.PASS, Status.FAIL, Status.INCONCLUSIVE})
_OF_ONE_MACHINE = frozenset({"t/s", "ms"})
_ROLES = {1: ("arm",), 2: ("baseline", "candidate"), 4: ("both old", "second new", "first new", "both new")}

Setup = Mapping[str, str]
"""All that decides a measurement beside the build's revision and the machine, name by name."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that can be followed through nights, above 0.

    Attributes:
        value: The estimate.
        low: Lower bound of its interval.
        high: Upper bound.
        n: What it rests on.
        unit: ``ratio``, ``t/s``, ``ms`` or ``MiB``.
        assumed: How far quads are taken to scatter where nobody knows: the interval holds if they do.
    """

    value: float
    low: float
    high: float
    n: int
    unit: str
    assumed: float | None = None


@dataclass(frozen=True, slots=True)
class ArmRecord:
    """What one arm did.

    Attributes:
        label: The arm's label.
        build: What ran; ``None`` where nothing did.
        speed: Its speed, where it has one.
    """

    label: str
    build: BuildRef | None
    speed: ArmSpeed | None


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """The machine of a measurement.

    Attributes:
        key: Hash of what has to be equal for speeds of another night to be comparable: driver and kernel, too.
        hardware: The same of the hardware alone, for ratios of what was measured side by side.
        described: In words.
        facts: As JSON.
    """

    key: str
    hardware: str
    described: str
    facts: str


@dataclass(frozen=True, slots=True)
class CellRecord:
    """One cell of a run.

    Attributes:
        verdict: How it ended.
        figure: The figure to follow; ``None`` where there is none.
        arms: Its arms, the baseline first.
        node: The machine; ``None`` where it was on none.
        setup: What has to be equal for two nights to be compared.
    """

    verdict: Verdict
    figure: Figure | None
    arms: tuple[ArmRecord, ...]
    node: NodeRecord | None
    setup: Setup

    @property
    def place(self) -> str:
        """Which machines its figure may be compared with: speeds with the very same, ratios with the same hardware."""
        if self.node is None or self.figure is None:
            return UNKNOWN
        return self.node.key if self.figure.unit in _OF_ONE_MACHINE else self.node.hardware


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run.

    Attributes:
        key: The same whenever its journal is read, however far it has come.
        matrix: The matrix's name.
        night: The night that it belongs to.
        began: When it began, UTC.
        finished: Whether it came to its end.
        source: Where it was read from.
        cells: Its cells.
        lost: It is no run, but what no shard of a night left a word about, as if it had begun with the first of them.
    """

    key: str
    matrix: str
    night: date
    began: datetime
    finished: bool
    source: str
    cells: tuple[CellRecord, ...]
    lost: bool = False


def run_record(state: JournalState, night: date | None = None) -> RunRecord:
    """One run of a journal.

    Args:
        state: The run.
        night: The night that it belongs to; ``None``: the day on which it began, UTC.

    Raises:
        BadInput: ``E-no-journal``: it does not say which run it is, or when that began.
    """
    began = _time(state.started)
    if state.run is None or began is None:
        message = "the journal does not say which run it is, or when that began"
        hint = "its first lines are lost: without them its night is not known"
        raise BadInput("E-no-journal", message, hint=hint, where=f"{state.path}")
    cells = tuple(_cell(state, verdict) for verdict in state.final_verdicts())
    key = digest([state.name, began.isoformat()])
    return RunRecord(f"run-{key}", state.name, night or began.date(), began, state.finished, f"{state.path}", cells)


def lost_records(states: Iterable[JournalState], night: date | None = None) -> Iterator[RunRecord]:
    """What the shards of each night lost between them: cells of the whole plan that none of their journals has.

    Args:
        states: Runs, of one night or of several.
        night: As of `run_record`.
    """
    begun = [(began, state) for state in states if (began := _time(state.started))]
    begun.sort(key=lambda each: each[0])
    while begun:
        first = begun[0][0]
        together = [state for began, state in begun if began - first <= ONE_NIGHT]
        begun = begun[len(together) :]
        for lost in lost_states(together):
            record = run_record(lost, night)
            key = digest(["lost", lost.name, record.began.isoformat()])
            yield replace(record, key=f"lost-{key}", source="; ".join(lost.joined or ()), lost=True)


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else None


def _cell(state: JournalState, verdict: Verdict) -> CellRecord:
    planned = state.planned[verdict.case]
    last = state.jobs.get(planned.job)
    arms = tuple(_arm(arm, index, last, verdict) for index, arm in enumerate(planned.case.arms))
    node = node_record(last.node) if last and last.node else None
    return CellRecord(verdict, _figure(verdict), arms, node, setup_of(planned.case))


def _figure(verdict: Verdict) -> Figure | None:
    """The verdict's estimate, in a unit that nights are compared in; of one arm its speed where there is no estimate.

    A floor that too few processes decided has none, and the speed of that night was measured all the same.
    """
    found = verdict.estimate
    if found is None:
        return _speed_alone(verdict)
    if found.unit not in _UNITS or not _is_figure(found.value):
        return None
    low, high = (bound if math.isfinite(bound) else found.value for bound in (found.low, found.high))
    return Figure(found.value, low, high, found.n, found.unit, found.assumed)


def _speed_alone(verdict: Verdict) -> Figure | None:
    if len(verdict.arms) != 1 or verdict.status not in _MEASURED:
        return None
    (arm,) = verdict.arms
    value, unit = (arm.tps, "t/s") if arm.ms is None else (arm.ms, "ms")
    return Figure(value, value, value, arm.processes, unit) if _is_figure(value) else None


def _is_figure(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _arm(arm: Arm, index: int, last: JobTry | None, verdict: Verdict) -> ArmRecord:
    speed = verdict.arms[index] if index < len(verdict.arms) else None
    return ArmRecord(arm.label, _build(arm, last), speed)


def _build(arm: Arm, last: JobTry | None) -> BuildRef | None:
    """What really ran, as its last process told; what nothing told is as the matrix says it."""
    if last is None or last.job is None:
        return None
    identities = [each.identity for each in last.job.arms]
    runs = [
        run
        for run in last.runs
        if run.content_key and run.step.arm < len(identities) and identities[run.step.arm] == arm.identity
    ]
    return _told(arm, runs[-1]) if runs else None


def _told(arm: Arm, run: ProcessRun) -> BuildRef:
    engine = {name: value for name, value in run.engine.items() if value and value != UNKNOWN}
    source = arm.build.source
    number = engine.get("build_number", "")
    version = " ".join(engine[name] for name in ("package", "package_version") if name in engine)
    return BuildRef(
        name=arm.build.name,
        commit=engine.get("build_commit", source.commit if source else ""),
        number=int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0,  # noqa: PLR2004
        content=run.content_key,
        version=version,
    )


def node_record(node: NodeFacts) -> NodeRecord:
    """A machine that was probed."""
    gpus = [gpu.name for gpu in node.gpus]
    hardware = digest([node.cpu_model, node.cores, gpus])
    return NodeRecord(node.fingerprint, f"hardware-{hardware}", node.described, canonical_json(encode(node)))


def setup_of(case: Case) -> dict[str, str]:
    """All that decides what a case measures, beside which revision of its builds ran and on which machine."""
    roles = _ROLES.get(len(case.arms), tuple(f"arm {number}" for number in range(1, len(case.arms) + 1)))
    setup = dict(_workload(case))
    for role, arm in zip(roles, case.arms, strict=True):
        setup.update({f"{role}: {name}": value for name, value in _arm_setup(arm)})
    return setup


def _arm_setup(arm: Arm) -> Iterator[tuple[str, str]]:
    yield "fork", str(arm.build.fork)
    yield "measured by", str(arm.build.tool)
    yield from ((f"model {name}", canonical_json(value)) for name, value in arm.model.declared.items())
    yield from ((name, str(value)) for name, value in arm.flags)
    yield from ((f"${name}", value) for name, value in arm.environment)


def _workload(case: Case) -> Iterator[tuple[str, str]]:
    match case.workload:
        case ProfileWorkload():
            yield "prompt", case.workload.profile.identity
        case OutputProfile():
            yield "prompts", case.workload.identity


def differences(old: Setup, new: Setup) -> tuple[str, ...]:
    """In what two setups differ, in words; what only one of them says is no difference: a newer harness says more."""
    common = sorted(old.keys() & new.keys())
    return tuple(f"{name} {old[name]} -> {new[name]}" for name in common if old[name] != new[name])
