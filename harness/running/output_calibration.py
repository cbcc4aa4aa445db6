"""What a calibration of outputs measures and finds: tolerances by contrast, and planted faults."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from harness.domain.arm import Arm
from harness.domain.model import Model
from harness.domain.node import NodeFacts
from harness.domain.words import Equivalence
from harness.domain.workload import OutputProfile
from harness.running.tolerance_file import Found


@dataclass(frozen=True, slots=True)
class OutputTarget:
    """One model, and what the output checks of a matrix ask of it.

    Attributes:
        model: The model.
        profile: What is asked.
        arms: Every arm of such a check, once.
        contrasts: Pairs of them that differ in their builds and in nothing that costs by declaration.
    """

    model: Model
    profile: OutputProfile
    arms: tuple[Arm, ...]
    contrasts: tuple[tuple[Arm, Arm], ...]


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """A fault that was planted in a copy of the model, and what the judge made of it.

    Attributes:
        kind: Its kind.
        what: What was changed.
        arm: Label of the arm that ran the copy.
        contrast: Beside which reference: the class of the contrast; empty where it could not be planted.
        equivalence: The judge's word; ``None`` where there was no verdict.
        reason: The verdict's reason, or why there is none.
        required: It has to be found; otherwise it is shown only.
    """

    kind: str
    what: str
    arm: str
    contrast: str
    equivalence: Equivalence | None
    reason: str
    required: bool = True

    @property
    def found(self) -> bool:
        """Whether the judge found it."""
        return self.equivalence in (Equivalence.DIFFERENT, Equivalence.BROKEN)

    @property
    def missed(self) -> bool:
        """Whether it got another word."""
        return self.equivalence is not None and not self.found


@dataclass(frozen=True, slots=True)
class ModelResult:
    """What was found for one model.

    Attributes:
        target: The model and what was asked.
        found: Tolerances by contrast.
        faults: Planted faults.
        troubles: What could not be done, and why.
    """

    target: OutputTarget
    found: tuple[Found, ...] = ()
    faults: tuple[PlantedFault, ...] = ()
    troubles: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """``fine``, ``not calibrated``, ``blind`` (a fault was missed) or ``unproven`` (one could not be tried)."""
        if not self.found:
            return "not calibrated"
        if any(fault.missed and fault.required for fault in self.faults):
            return "blind"
        return "unproven" if self.troubles or any(fault.equivalence is None for fault in self.faults) else "fine"


@dataclass(frozen=True, slots=True)
class OutputCalibration:
    """A whole calibration of outputs.

    Attributes:
        node: The node.
        when: When it began, UTC.
        seconds: How long it took.
        models: What was found.
    """

    node: NodeFacts
    when: datetime
    seconds: float
    models: tuple[ModelResult, ...]
