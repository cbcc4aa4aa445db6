"""Builds that put nothing, or less than asked, on a GPU: a speed of the CPU must not pass for one of the GPU."""

from __future__ import annotations

from harness.domain.arm import Arm
from harness.domain.load_facts import RAM, LoadFacts, device_word
from harness.domain.node import NodeFacts
from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.judging.evidence import Evidence
from harness.judging.loading import load_of

OFF_GPU = "E-not-on-gpu"


def off_gpu(evidence: Evidence) -> Verdict | None:
    """Whether what a case rests on was computed elsewhere than asked: its only arm, its baseline, or all its arms.

    A candidate alone that is not on the GPU is judged: its loss is the finding, and the reason says whence it comes.
    """
    told = {index: text for index in range(len(evidence.case.arms)) if (text := _told(evidence, index))}
    spoiled = [index for index in told if index not in evidence.candidates] or (
        list(told) if len(told) == len(evidence.case.arms) else []
    )
    if not spoiled:
        return None
    reason = "; ".join(f"{evidence.label(index)} {told[index]}" for index in spoiled)
    return evidence.verdict(Status.ERROR, f"not what was asked: {reason}", slug=OFF_GPU)


def off_gpu_notes(evidence: Evidence) -> list[str]:
    """What the reader of a verdict must know of arms that are not on the GPU as they were asked."""
    texts = {index: _told(evidence, index) for index in range(len(evidence.case.arms))}
    return [f"{evidence.label(index)} {text}" for index, text in texts.items() if text]


def _told(evidence: Evidence, index: int) -> str:
    """In what an arm is not on the GPU as it was asked; empty where it is, or nothing tells."""
    load, node = load_of(evidence, index), evidence.record.node
    return _text(evidence.case.arms[index], load, node) if load and node else ""


def _text(arm: Arm, load: LoadFacts, node: NodeFacts) -> str:
    asked = arm.flags.get("ngl")
    if not isinstance(asked, int) or asked <= 0 or "ngl" not in arm.shown or arm.flags.get("dev") == "none":
        return ""
    if not node.gpus or not arm.build.has_gpu_code:
        return ""
    if load.offloaded is not None and load.offloaded[0] < min(asked, load.offloaded[1]):
        return f"asked ngl={asked}, {load.offloaded[0]} of {load.offloaded[1]} layers are on a GPU"
    weights = [buffer for buffer in load.buffers if buffer.use == "weights"]
    on_gpus = any(device_word(buffer.device) != RAM for buffer in weights)
    if weights and not on_gpus and arm.flags.get("ot") in (None, "none"):
        return f"asked ngl={asked}, no weights are on a GPU"
    return ""
