"""Arms that contrasts of configurations and of environments make: settings put over an arm of the matrix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from harness.domain.arm import Arm
from harness.planning.arms import PlannedArm, Workshop
from harness.planning.configuration import Configuration

ArmKey: TypeAlias = tuple[str, Arm]


def arm_key(arm: PlannedArm) -> ArmKey:
    """Equal for arms that are the same on the same class, however they came to be."""
    return arm.node_class.name, arm.arm


def put_over(
    arm: PlannedArm, settings: Configuration, shown: Iterable[str], workshop: Workshop, place: str
) -> PlannedArm:
    """The arm with settings put over its own.

    Args:
        arm: An arm of the matrix, or one made of it.
        settings: What is set.
        shown: Flags and variables that the label shows beside those that it shows anyway.
        workshop: Completes the flags.
        place: File and key of the settings, for errors.
    """
    base = arm.arm
    corner = workshop.corner(base.build, base.model, arm.node_class)
    labelled = replace(corner, shown=tuple(sorted({*base.shown, *shown})))
    made = workshop.keep(
        workshop.arm(labelled, {**arm.declared, **settings.flags}, arm.named, arm.origin),
        lambda flag: f"{place}.{flag}" if flag in settings.flags else "",
    )
    environment = tuple(sorted({**dict(base.environment), **settings.environment}.items()))
    return replace(made, arm=replace(made.arm, environment=environment))
