"""What a calibration of outputs measures: for each model the arms of a matrix's output checks."""

from __future__ import annotations

from harness.domain.arm import Arm
from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.domain.tolerance import ContrastClass
from harness.domain.workload import OutputProfile
from harness.judging.outputs_allowed import contrast_class
from harness.judging.tolerances import kv_budget
from harness.planning.plan import Plan
from harness.running.output_calibration import OutputTarget


def output_targets(plan: Plan) -> tuple[OutputTarget, ...]:
    """The targets of a matrix, one for each model and set of prompts.

    Args:
        plan: The matrix, worked out for this node.

    Raises:
        BadInput: ``E-nothing-to-calibrate`` where no case that can run compares outputs.
    """
    arms: dict[tuple[Model, OutputProfile], dict[Arm, None]] = {}
    contrasts: dict[tuple[Model, OutputProfile], dict[tuple[Arm, Arm], None]] = {}
    for planned in plan.cases:
        case = planned.case
        if planned.status is not None or not isinstance(case.workload, OutputProfile):
            continue
        reference, *others = case.arms
        key = (reference.model, case.workload)
        arms.setdefault(key, {}).update(dict.fromkeys(arm for arm in case.arms if arm.model == reference.model))
        pairs = ((reference, other) for other in others if _tells_of_builds(reference, other))
        contrasts.setdefault(key, {}).update(dict.fromkeys(pairs))
    if not arms:
        reason = "no selected case that can run on this machine compares outputs"
        hint = 'see `moe-harness plan`; output checks are [[checks]] of kind = "outputs"'
        raise BadInput("E-nothing-to-calibrate", reason, hint=hint, where=plan.matrix_name)
    return tuple(
        OutputTarget(model, profile, tuple(listed), tuple(contrasts[model, profile]))
        for (model, profile), listed in arms.items()
    )


def _tells_of_builds(reference: Arm, other: Arm) -> bool:
    """Whether a pair shows what two builds do alike: one model, the same cache, no flag alone between them."""
    return (
        reference.model == other.model
        and kv_budget(reference, other) is None
        and contrast_class(reference, other, None) is not ContrastClass.FLAGS
    )
