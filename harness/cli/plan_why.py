"""All that a plan knows of single cases: ``moe-harness plan --why``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.cli.plan_nodes import why_places, why_promise
from harness.cli.plan_outputs import outputs_text
from harness.domain.node import NodeClass
from harness.planning.fit import misfit
from harness.planning.plan import Plan, PlannedCase

_MIB = 1024**2
_FITS = "a node fits"
_UNKNOWN = "nothing is known of the nodes yet"


def classes_of(worked_out: Plan) -> dict[str, str]:
    """Each node class of a plan, and why a node fits it or none does."""
    classes = dict.fromkeys(planned.case.node_class for planned in worked_out.every_case)
    return {node_class.name: _fit(node_class, worked_out) for node_class in classes}


def _fit(node_class: NodeClass, worked_out: Plan) -> str:
    if worked_out.nodes is None:
        return _UNKNOWN
    fitting = [node.described for node in worked_out.nodes if not node_class.unmet(node)]
    return f"{_FITS}: {'; '.join(fitting)}" if fitting else misfit(node_class, worked_out.nodes)


def why_lines(cases: Sequence[PlannedCase], rows: Sequence[dict[str, Any]], classes: dict[str, str]) -> Iterator[str]:
    """Lines for people.

    Args:
        cases: The cases.
        rows: Their rows of the plan, in the same order.
        classes: As `classes_of`.
    """
    for planned, row in zip(cases, rows, strict=True):
        yield planned.id
        yield f"  {row['status'] or 'can run'}" + (f": {planned.reason}" if planned.reason else "")
        yield from (f"  note: {note}" for note in row["notes"])
        if row["outputs"]:
            yield f"  outputs: {outputs_text(row['outputs'])}"
        yield f"  declared in {planned.origin}"
        for arm in planned.case.arms:
            yield f"  arm {arm.label}: {arm.build.fork}, {arm.model.name}, " + " ".join(
                f"{k}={v}" for k, v in arm.flags
            )
        for name, fit in classes.items():
            yield f"  class {name}{' (this case)' if name == planned.case.node_class.name else ''}: {fit}"
        yield f"  memory: {_memory(row['bytes'])}"
        yield from why_promise(row, planned.case.node_class.name)
        yield from why_places(row)
        yield f"  budget: {_budget(row['budget'])}"


def _memory(found: dict[str, Any] | None) -> str:
    """Bytes by device."""
    if found is None:
        return "not known: the model's tensors are not here, or no arm can run"
    return "; ".join(
        f"{device} {sum(parts.values()) / _MIB:.0f} MiB ({', '.join(f'{w} {n / _MIB:.0f}' for w, n in parts.items())})"
        for device, parts in found["parts"].items()
    )


def _budget(found: dict[str, Any] | None) -> str:
    """Minutes of the job, and what it can find."""
    if found is None:
        return "none: it does not run"
    minutes = "an unknown time" if found["minutes"] is None else f"{found['minutes']:.1f} min at most"
    if found["quads"] is None:
        return f"{minutes}, in {found['job']}"
    smallest = "no loss up to 90 %" if found["smallest"] is None else f"a loss of {100 * found['smallest']:g} %"
    return f"{minutes}, in {found['job']}: {found['quads']} quads find {smallest} with 95 % ({found['source']})"
