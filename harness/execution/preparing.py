"""Find everything an arm needs on this node, and the content key of what will really run."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.builds.commit_check import CommitChecked
from harness.domain.arm import Arm
from harness.domain.build import Build, Tool
from harness.domain.canonical import digest
from harness.domain.errors import BadInput
from harness.domain.halting import ShouldStop, never
from harness.domain.job import Job
from harness.domain.sandboxing import Sandboxing
from harness.engines.engine import Engine, Order
from harness.execution.answering import NoAnswers, answering_programs
from harness.execution.builds import check_build, local_build
from harness.execution.cores import default_threads
from harness.execution.inspecting import answering_engine, informed_engine
from harness.execution.sandbox import require_sandbox
from harness.models.amounts import progress_text
from harness.models.hashing import file_sha256, model_sha256
from harness.models.request import model_path


@dataclass(frozen=True, slots=True)
class Prepared:
    """An arm with everything found that it needs on this node.

    Attributes:
        engine: Its engine.
        order: What a process of it is asked when all workloads are wanted and no outputs.
        content_key: Hash of the bytes and flags that really run.
        opaque: Why the hashed bytes do not tell what runs; empty if they do.
        apart: What answers its prompts, where that is another program and there is one.
        silent: Why there is none.
    """

    engine: Engine
    order: Order
    content_key: str
    opaque: str
    apart: Prepared | None = None
    silent: str = ""


def prepare(
    job: Job, should_stop: ShouldStop = never, report: Callable[[str], None] = lambda _: None
) -> tuple[Prepared, ...]:
    """Prepare the arms of a job.

    Args:
        job: The job.
        should_stop: Ends the making and fetching of models and builds.
        report: Told what is going on.

    Raises:
        BadInput: If a build or model is missing or unusable, or two arms of a job that is no calibration are the same
            in bytes and flags; ``E-no-sandbox`` where it needs one.
        Infrastructure: If a model could not be made here.
        Stopped: It was told to stop.
    """
    if job.sandboxed:
        require_sandbox(job.id)
    builds = tuple(_local(job, arm, should_stop, report) for arm in job.arms)
    arms = tuple(_prepare_arm(job, index, build, should_stop, report) for index, build in enumerate(builds))
    if not job.design.calibration:
        _check_contrast(arms)
    return _with_answering(job, builds, arms, should_stop)


def threads_for(arm: Arm, *, spare_core: bool = True) -> int:
    """Compute threads of an arm: its flag ``t``, or one less than the reserved physical cores of a NUMA node.

    One core stays free: with spin barriers a thread that shares its core stops all others
    (two threads on two busy cores gave 2.5 t/s where one thread gave 611).

    Args:
        arm: The arm.
        spare_core: Whether one is left free.
    """
    declared = arm.flags.get("t")
    return int(declared) if declared else default_threads(spare_core=spare_core)


def _planted(job: Job, index: int) -> float:
    """The slowdown that a calibration plants in the candidate. A bench of its own can't be slowed from inside."""
    if not job.design.slowdown or index == 0:
        return 0.0
    arm = job.arms[index]
    if arm.build.tool is not Tool.EMBEDDED:
        message = f"a slowdown can't be planted in {arm.build.tool}"
        raise BadInput("E-no-plant", message, hint="plant fewer threads instead", where=f"builds.{arm.build.name}")
    return job.design.slowdown


def _local(job: Job, arm: Arm, should_stop: ShouldStop, report: Callable[[str], None]) -> Build:
    build = local_build(arm.build, report=report, should_stop=should_stop)
    if job.sandboxing is Sandboxing.OFF:
        build = replace(build, trusted=True)
    check_build(build, dict(arm.environment))
    return build


def _prepare_arm(
    job: Job, index: int, build: Build, should_stop: ShouldStop, report: Callable[[str], None]
) -> Prepared:
    arm, slowdown = job.arms[index], _planted(job, index)
    inspect = answering_engine if job.profile else informed_engine
    engine = inspect(build, dict(arm.environment))
    engine.locate()
    order = Order(
        arm=arm,
        model=model_path(
            arm.model, progress=lambda done: report(progress_text(arm.model.name, done)), should_stop=should_stop
        ),
        workloads=job.workloads,
        repetitions=job.design.warmup + job.design.repetitions,
        outputs=None,
        threads=threads_for(arm, spare_core=job.design.quiet.spare_core),
        slowdown=slowdown,
        timeout_s=job.design.timeout_s,
    )
    report(f"hashing {arm.model.name} and build {arm.build.name}")
    return _prepared(_commit_checked(engine, build), order, should_stop)


def _with_answering(
    job: Job, builds: Sequence[Build], arms: Sequence[Prepared], should_stop: ShouldStop
) -> tuple[Prepared, ...]:
    """The arms with what answers their prompts apart: another program, with a content key of its own."""
    try:
        engines = answering_programs(job, builds)
    except (NoAnswers, BadInput) as reason:
        # Their speed can be measured all the same.
        return tuple(replace(arm, silent=str(reason)) for arm in arms)
    return tuple(
        arm
        if engine is None
        else replace(
            arm, apart=_prepared(_commit_checked(engine, build), replace(arm.order, workloads=()), should_stop)
        )
        for arm, build, engine in zip(arms, builds, engines, strict=True)
    )


def _commit_checked(engine: Engine, build: Build) -> Engine:
    said = build.source.commit if build.source is not None else ""
    return CommitChecked(engine, said) if said else engine


def _prepared(engine: Engine, order: Order, should_stop: ShouldStop) -> Prepared:
    """An engine with the hash of what it runs."""
    arm, slowdown = order.arm, order.slowdown
    bytes_run = sorted(file_sha256(path) for path in engine.locate())
    opaque = engine.opaque()
    if opaque:
        # What runs is not known, so it is never equal to what ran another time.
        bytes_run.append(uuid.uuid4().hex)
    if slowdown:
        bytes_run.append(f"slowed by {slowdown}")
    key = digest(
        [model_sha256(order.model, should_stop=should_stop), bytes_run, arm.flags.items, order.threads, arm.environment]
    )
    return Prepared(engine, order, key, opaque)


def _check_contrast(arms: Sequence[Prepared]) -> None:
    if len({arm.content_key for arm in arms}) < len(arms):
        raise BadInput(
            "E-no-contrast",
            f"arms {' and '.join(arm.order.arm.label for arm in arms)} run the same bytes with the same flags",
            hint="point the builds at different binaries; an arm against itself is a calibration",
        )
