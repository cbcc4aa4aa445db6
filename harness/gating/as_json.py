"""A decision as data. Keys are only ever added: ``docs/reference/gate-policy.md`` tells them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness.domain.verdict import Estimate
from harness.gating.cells import Problem
from harness.gating.deciding import Decision, headline
from harness.gating.effects import Judged
from harness.gating.waiving import Waiver
from harness.gating.words import Effect
from harness.reporting.clean import one_line


def as_json(decision: Decision) -> dict[str, Any]:
    """The whole decision."""
    counts = Counter(each.effect for each in decision.cells)
    return {
        "decision": decision.outcome.value,
        "exit_code": decision.exit_code,
        "headline": headline(decision),
        "policy": {"name": decision.policy, "file": decision.file},
        "journals": [
            {
                "path": f"{state.path}",
                "matrix": state.name,
                "started": state.started,
                "finished": state.finished,
                "cases": len(state.planned),
            }
            for state in decision.states
        ],
        "counts": {effect.value: counts[effect] for effect in Effect},
        "cells": [cell_json(each) for each in decision.cells],
        "waivers": [_waiver(waiver) for waiver in decision.waivers],
        "left_to_night": [
            {"case": each.case, "why": each.why.value, "reason": one_line(each.reason)} for each in decision.left
        ],
        "problems": [_problem(problem) for problem in decision.problems],
        "budget": _budget(decision),
    }


def cell_json(each: Judged) -> dict[str, Any]:
    """One cell."""
    case, verdict = each.cell.case, each.cell.verdict
    ratio = verdict.estimate if verdict.estimate is not None and verdict.estimate.unit == "ratio" else None
    return {
        "case": verdict.case,
        "kind": case.kind.value,
        "workload": case.workload_name,
        "node_class": case.node_class.name,
        "contrast": one_line(case.contrast),
        "arms": [arm.label for arm in case.arms],
        "stage": each.staged.stage.value,
        "why_stage": each.staged.why,
        "required": each.required,
        "status": verdict.status.value,
        "throughput": verdict.throughput and verdict.throughput.value,
        "equivalence": verdict.equivalence and verdict.equivalence.value,
        "pitfall": verdict.pitfall and verdict.pitfall.value,
        "finding": each.finding and each.finding.value,
        "effect": each.effect.value,
        "reason": one_line(each.reason),
        **_ratio(ratio),
        "traded": each.traded,
        "waiver": one_line(each.waiver),
        "alert": each.alert,
        "label": each.label,
        "synthetic": verdict.synthetic,
        "journal": f"{each.cell.journal}",
    }


def _ratio(ratio: Estimate | None) -> dict[str, float | None]:
    if ratio is None:
        return {"ratio": None, "low": None, "high": None}
    return {"ratio": ratio.value, "low": ratio.low, "high": ratio.high}


def _waiver(waiver: Waiver) -> dict[str, Any]:
    entry = waiver.entry
    return {
        "cells": entry.cells,
        "owner": entry.owner,
        "reason": entry.reason,
        "expires": entry.expires.isoformat(),
        "findings": entry.findings and [finding.value for finding in entry.findings],
        "at_most": entry.at_most,
        "state": waiver.state.value,
        "applied_to": list(waiver.cases),
        "not_applied_to": [{"case": each.case, "why": each.why} for each in waiver.missed],
        "names_no_cell": [pattern for pattern, _ in waiver.unknown],
    }


def _problem(problem: Problem) -> dict[str, str]:
    return {
        "slug": problem.slug,
        "where": one_line(problem.where),
        "message": one_line(problem.message),
        "hint": one_line(problem.hint),
        "effect": problem.weight.value,
    }


def _budget(decision: Decision) -> dict[str, Any] | None:
    choice = decision.choice
    if choice is None:
        return None
    return {
        "minutes": choice.budget_minutes,
        "planned_minutes": choice.planned_minutes,
        "changed": choice.changed,
        "asking": list(choice.asking),
        "unlisted": list(choice.unlisted),
    }
