"""What a calibration measures: one arm for each group of cells, since arms of equal cells scatter alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.domain.arm import Arm
from harness.domain.build import Fork
from harness.domain.cell import Cell, cell_of
from harness.domain.errors import BadInput
from harness.domain.workload import OutputProfile, ProfileWorkload, PromptProfile, Timed
from harness.engines.abilities import beyond
from harness.planning.bench_line import read_bench_line
from harness.planning.model_word import TINY_CARD, model_named
from harness.planning.plan import Plan
from harness.running.ab_arms import make_arm, read_arm
from harness.running.calibration import Target

_SIZES, _TINY_SIZES = (512, 128), (256, 64)
"""Tokens of pp and tg where none are said; few for the card whose speed is of thousands."""


def targets_of_plan(plan: Plan) -> tuple[Target, ...]:
    """The targets of a matrix: every cell of a case that can run here is in exactly one.

    Args:
        plan: The matrix, worked out for this node.

    Raises:
        BadInput: ``E-nothing-to-calibrate`` where no case that can run times anything.
    """
    asked: dict[tuple[Arm, PromptProfile | None], dict[Timed, None]] = {}
    for planned in plan.cases:
        load = planned.case.workload
        if planned.status is None and load is not None and not isinstance(load, OutputProfile):
            for arm in planned.case.arms:
                asked.setdefault((arm, _profile(load)), {})[load] = None
    targets = tuple(_without_repeats((arm, loads) for (arm, _), loads in asked.items()))
    if not targets:
        reason = "no selected case that can run on this machine times anything"
        raise BadInput("E-nothing-to-calibrate", reason, hint="see `moe-harness plan`", where=plan.matrix_name)
    return targets


def target_of_words(build: str, model: str, line: Sequence[str], fork: Fork | None) -> Target:
    """The target that a command line names.

    Args:
        build: A wheel's name or short name, or the path of a ``llama-bench``, with flags of its own or not.
        model: A file, or a card with or without quantization.
        line: Arguments of ``llama-bench``: flags and workloads.
        fork: Of builds whose ``--help`` tells none.

    Raises:
        BadInput: Whatever is wrong with it.
    """
    told = read_bench_line(line)
    named = model_named(model or told.model)
    arm = make_arm(read_arm("--build", build), named, told.flags, fork)
    loads = told.workloads(*(_TINY_SIZES if named.card == TINY_CARD else _SIZES))
    for load in loads:
        reason = beyond(arm.build, load, None)
        if reason:
            raise BadInput("E-unsupported", reason, where=f"--build {build}")
    return Target(arm, loads)


def _profile(load: Timed) -> PromptProfile | None:
    """Processes that answer a request measure nothing else."""
    return load.profile if isinstance(load, ProfileWorkload) else None


def _without_repeats(asked: Iterable[tuple[Arm, dict[Timed, None]]]) -> Iterable[Target]:
    seen: set[Cell] = set()
    for arm, loads in asked:
        fresh = tuple(load for load in loads if cell_of(arm, load.name) not in seen)
        seen |= {cell_of(arm, load.name) for load in fresh}
        if fresh:
            yield Target(arm, fresh)
