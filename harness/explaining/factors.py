"""The factors of a case by which a night can be sorted: builds, model, flags, workload, placement, node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from harness.domain.case import (
    AttributionCheck,
    Case,
    ContrastCheck,
    OutputCheck,
    PitfallCheck,
)
from harness.domain.node import NodeFacts
from harness.domain.workload import OutputProfile, ProfileWorkload, Workload
from harness.planning.placement import placement_of
from harness.reporting.junit import hardware_class

Value: TypeAlias = str | float

_PAIR = 2


def factors_of(case: Case, node: NodeFacts | None, hardware: str) -> dict[str, Value]:
    """Factor by name. Numbers are numbers, so that ranges can be told; of a pair a flag is the candidate's.

    Args:
        case: The case.
        node: Where it ran; ``None``: nowhere.
        hardware: The same in the words of verdicts.
    """
    return dict(_factors(case, node, hardware))


def _factors(case: Case, node: NodeFacts | None, hardware: str) -> Iterator[tuple[str, Value]]:
    candidate = case.arms[-1]
    yield "kind", str(case.kind)
    yield "fork", _joined(str(arm.build.fork) for arm in case.arms)
    yield "build", _joined(arm.build.name for arm in case.arms)
    yield "model", _joined(arm.model.name for arm in case.arms)
    if quant := _joined(arm.model.quant for arm in case.arms):
        yield "quant", quant
    yield "placement", _joined(placement_of(arm.build, case.node_class, arm.flags.as_dict()) for arm in case.arms)
    yield "class", case.node_class.name
    if node is not None:
        yield "hardware", hardware_class(hardware)
    check = case.check
    if isinstance(check, ContrastCheck | PitfallCheck | AttributionCheck):
        yield "contrast", check.name
    if isinstance(check, ContrastCheck | PitfallCheck | OutputCheck) and check.factor:
        yield "factor", check.factor
    for name, value in (*candidate.flags, *candidate.environment):
        yield name, float(value) if isinstance(value, int | float) else value
    yield from _workload(case)


def _workload(case: Case) -> Iterator[tuple[str, Value]]:
    match case.workload:
        case Workload() as load:
            yield "work", "+".join([*(["pp"] if load.n_prompt else []), *(["tg"] if load.n_gen else [])])
            yield "depth", float(load.n_depth)
            if load.n_prompt:
                yield "prompt tokens", float(load.n_prompt)
            if load.n_gen:
                yield "generated tokens", float(load.n_gen)
        case ProfileWorkload() as load:
            yield "work", str(load.metric)
            yield "profile", load.profile.name
        case OutputProfile():
            yield "work", "outputs"
        case None:
            yield "work", "peak memory"


def _joined(words: Iterator[str]) -> str:
    """The one word of all arms, or both in their order."""
    return " v ".join(dict.fromkeys(words))
