"""The rows of ``moe-harness plan``: what is known of each case, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from harness.builds.recognising import missing_text
from harness.cli.plan_nodes import place_data, promise_data
from harness.cli.plan_outputs import outputs_of
from harness.domain.build import Build
from harness.domain.case import Case
from harness.domain.errors import BadInput
from harness.domain.node import NodeFacts
from harness.domain.words import Status
from harness.domain.workload import OutputProfile, ProfileWorkload
from harness.execution.builds import missing_by_program, missing_here, present_build
from harness.models.memory import Memory
from harness.planning.needs import Needs
from harness.planning.places import places_of
from harness.planning.plan import Plan, PlannedCase
from harness.planning.presence import build_missing, model_missing
from harness.planning.rooms import promised
from harness.running.forecasts import CaseForecast, PlanForecast


def rows(worked_out: Plan, ahead: PlanForecast, nodes: Sequence[NodeFacts] = ()) -> list[dict[str, Any]]:
    """The plan as data: one row per case. ``status`` is ``null`` where a case can run; then ``reason`` is its notes.

    Args:
        worked_out: The plan.
        ahead: What its budget can decide.
        nodes: Described nodes that each case is held against; without them it is about this machine.
    """
    needs = Needs(worked_out.every_case)
    # What this machine lacks says nothing of a plan for others.
    missing = (lambda _: []) if nodes else _missing_here()
    places = places_of(needs, nodes)
    return [
        {
            **_row(planned, needs, missing),
            "budget": _budget(ahead.cases.get(planned.id)),
            **(place_data(places(planned)) if nodes else {}),
        }
        for planned in worked_out.cases
    ]


def why_rows(worked_out: Plan, ahead: PlanForecast, nodes: Sequence[NodeFacts] = ()) -> list[dict[str, Any]]:
    """The rows, with what each case needs on the least node that its class allows; arguments as of `rows`."""
    needs = Needs(worked_out.every_case)
    return [
        {**row, "least": None if planned.status is Status.UNSUPPORTED else promise_data(promised(planned.case, needs))}
        for planned, row in zip(worked_out.cases, rows(worked_out, ahead, nodes), strict=True)
    ]


def _budget(forecast: CaseForecast | None) -> dict[str, Any] | None:
    """What is known of a case's chances; ``None`` where it can't run."""
    if forecast is None:
        return None
    spread = forecast.spread
    return {
        "job": forecast.job,
        "minutes": forecast.minutes,
        "quads": forecast.quads,
        "smallest": forecast.smallest,
        "margin": forecast.margin,
        "quad_sd": spread.quad_sd if spread else None,
        "source": spread.source if spread else None,
        "quarantine": forecast.quarantine,
    }


def _missing_here() -> Callable[[Case], list[str]]:
    """What a case needs and this machine lacks; each build and model is looked for once."""
    of_build, of_model = cache(partial(_build_missing, cache(missing_by_program))), cache(model_missing)

    def of_case(case: Case) -> list[str]:
        asked = _asks_programs(case)
        texts = ((of_build(arm.build, asked), of_model(arm.model)) for arm in case.arms)
        return [text for pair in texts for text in pair if text]

    return of_case


def _asks_programs(case: Case) -> tuple[str, ...]:
    """Programs of builds by path that a case may start."""
    if isinstance(case.workload, OutputProfile):
        return ("llama-server", "llama-perplexity")
    return ("llama-server",) if isinstance(case.workload, ProfileWorkload) else ("llama-bench",)


def _build_missing(
    missing: Callable[[Build], Mapping[str, tuple[str, ...]]], build: Build, programs: tuple[str, ...]
) -> str:
    """As `build_missing`, for builds whose files are still to be chosen, fetched or made too, and their libraries."""
    reason = "" if build.is_here else missing_here(build)
    if reason:
        return f"build {build.name}: {reason}"
    here = present_build(build) or build
    if lacking := build_missing(here):
        return lacking
    try:
        lacking = missing_text({name: each for name, each in missing(here).items() if name in programs})
    except BadInput as bad:
        return f"build {build.name}: {bad.message}"
    return f"build {build.name}: {lacking}" if lacking else ""


def _row(planned: PlannedCase, needs: Needs, missing: Callable[[Case], list[str]]) -> dict[str, Any]:
    case = planned.case
    notes = [*filter(None, [planned.note]), *dict.fromkeys(f"not on this machine: {each}" for each in missing(case))]
    return {
        "id": planned.id,
        "kind": case.kind.value,
        "workload": case.workload_name,
        "arms": [arm.label for arm in case.arms],
        "node_class": case.node_class.name,
        "status": planned.status.value if planned.status else None,
        "reason": planned.reason or "; ".join(notes),
        "notes": notes,
        "outputs": outputs_of(case),
        "bytes": None if planned.status is Status.UNSUPPORTED else _bytes(needs.most(case)),
    }


def _bytes(memory: Memory | None) -> dict[str, Any] | None:
    """Bytes by device, and what they are for; ``None`` where the model's tensors are not known here."""
    if memory is None:
        return None
    devices = {"ram": memory.ram, **{f"gpu{number}": device for number, device in enumerate(memory.gpus)}}
    return {
        "ram": memory.ram.total,
        "gpus": [device.total for device in memory.gpus],
        "parts": {name: device.parts for name, device in devices.items()},
    }
