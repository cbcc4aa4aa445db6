"""Cases: one question about one, two or four arms, with its check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from harness.domain.arm import Arm
from harness.domain.canonical import digest, id_part
from harness.domain.node import NodeClass
from harness.domain.words import Kind
from harness.domain.workload import OutputProfile, ProfileWorkload, Timed, Workload

ARM_SEPARATOR = ".."
_MS = 1000.0


class Expectation(StrEnum):
    """What a contrast's check wants to see."""

    NO_REGRESSION = "no_regression"
    IMPROVED = "improved"
    REPORT = "report"
    """Any decided verdict passes: the contrast informs, it does not gate."""


@dataclass(frozen=True, slots=True)
class FloorCheck:
    """An absolute threshold on one arm's speed. Without one the speed is measured and shown.

    Attributes:
        tokens_per_second: The least speed; ``None``: no threshold, or one in ms.
        max_ms: Of a time to the first token, the longest; ``None``: no threshold, or one in tokens per second.
    """

    tokens_per_second: float | None
    max_ms: float | None = None

    @property
    def least_tps(self) -> float | None:
        """The threshold as a speed: a time to the first token is judged as one token over it."""
        return _MS / self.max_ms if self.max_ms else self.tokens_per_second


@dataclass(frozen=True, slots=True)
class ContrastCheck:
    """Two arms that differ in one declared factor: baseline first, candidate second.

    Attributes:
        name: The contrast's name in the matrix.
        factor: ``build``, ``model``, ``environment`` or a flag's name.
        expect: What the check wants.
    """

    name: str
    factor: str
    expect: Expectation


@dataclass(frozen=True, slots=True)
class PitfallCheck:
    """A contrast known to be bad under a condition: the candidate is expected to be slower.

    Attributes:
        name: The pitfall's name.
        factor: As in a contrast.
        source: Where it was reported.
        instead: What to use in its place.
    """

    name: str
    factor: str
    source: str
    instead: str


@dataclass(frozen=True, slots=True)
class AttributionCheck:
    """Two factors at once: how much of a change in speed is due to either, and do they depend on each other.

    The arms stand in this order: both factors old, second new, first new, both new.

    Attributes:
        name: The contrast's name in the matrix.
        factors: The two factors, each as in a contrast.
        expect: What the check wants of the first factor's main effect.
    """

    name: str
    factors: tuple[str, str]
    expect: Expectation


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """The outputs of two arms must be equivalent, or those of one arm to recorded ones.

    Attributes:
        name: The check's name in the matrix.
        factor: In what they differ, as in a contrast.
        lossy: What the factor may cost by declaration: mean divergence, nats; ``None``: nothing is declared.
        changes_numbers: The factor should change the numbers: outputs that are equal to the bit are *inert*.
        reference: Of a single arm: the key of the recorded outputs that it is compared with.
    """

    name: str
    factor: str
    lossy: float | None = None
    changes_numbers: bool = False
    reference: str = ""


@dataclass(frozen=True, slots=True)
class MemoryCheck:
    """Peak resident memory of an engine process must stay under a limit."""

    max_rss_mib: float


Check: TypeAlias = FloorCheck | ContrastCheck | PitfallCheck | AttributionCheck | OutputCheck | MemoryCheck

PEAK = "peak"
"""The workload word of memory cases: the peak over everything the process did."""


@dataclass(frozen=True, slots=True)
class Case:
    """Arms + workload + node class + check. The unit that gets a verdict.

    Attributes:
        kind: What is asked.
        arms: One arm; baseline and candidate; or the four arms of an attribution.
        workload: A timed workload, prompts whose outputs are compared, or ``None`` for the peak over everything.
        node_class: Where it is asked.
        check: What has to hold.
    """

    kind: Kind
    arms: tuple[Arm, ...]
    workload: Timed | OutputProfile | None
    node_class: NodeClass
    check: Check

    @property
    def workload_name(self) -> str:
        """The workload's word in ids and tables."""
        return self.workload.name if self.workload else PEAK

    @property
    def contrast(self) -> str:
        """The name of the contrast that it belongs to; empty for output checks and single arms."""
        check = self.check
        return check.name if isinstance(check, ContrastCheck | PitfallCheck | AttributionCheck) else ""

    @property
    def id(self) -> str:
        """Readable stable id ``kind/model/arm[..arm]/workload@class``; no hosts, dates or paths."""
        models = ARM_SEPARATOR.join(dict.fromkeys(id_part(arm.model.name) for arm in self.arms))
        arms = ARM_SEPARATOR.join(arm.label for arm in self.arms)
        return f"{self.kind}/{models}/{arms}/{id_part(self.workload_name)}@{id_part(self.node_class.name)}"

    @property
    def key(self) -> str:
        """Hash of everything declared that decides the measurement: equal keys may be compared through time."""
        load = _declared(self.workload) or [self.workload_name]
        return digest([self.kind, [arm.identity for arm in self.arms], load, self.node_class.name])


def _declared(workload: Timed | OutputProfile | None) -> list[str | int]:
    """What decides a workload; nothing of a peak over everything."""
    match workload:
        case Workload():
            return [workload.n_prompt, workload.n_gen, workload.n_depth]
        case ProfileWorkload():
            return [workload.name, workload.profile.identity]
        case OutputProfile():
            return [workload.name, workload.identity]
        case _:
            return []
