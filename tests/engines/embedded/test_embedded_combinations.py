"""Combinations of flags in which builds of either fork were wrong once, on both wheels: finite, and the same network.

They are those of the field reports (docs/reference/field-reports.md). The builds that were wrong are not at hand; what
is tested is that the harness can ask, and that today's wheels are right on this machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.domain.outputs import Ranks
from harness.engines.embedded.flags import FORKS, IK, MAINLINE
from harness.ranking import divergences, unpack

pytest.importorskip("xllamacpp")
pytest.importorskip("ik_llama_cpp")

PLAN = {
    "prompts": [
        {"name": "long", "text": "one more thing in the hat. ", "answer": "the other one went on. " * 3, "tokens": 115}
    ],
    "n_predict": 8,
    "positions": 100,
    "forced": 16,
    "top": 16,
}
PLAIN = {"fa": 0, "ctk": "f16", "ctv": "f16", "ub": 512}
LOSSY = {"fa": 1, "ctk": "q4_0", "ctv": "q4_0"}
LOSS = 3e-2
"""Mean divergence that a 4-bit cache may cost, as the judge allows it."""
ATTENTION = [
    {"fa": 1},
    {"fa": 1, "ub": 16},
    {"fa": 0, "ctk": "q8_0"},
    {"fa": 1, "ctk": "q8_0", "ctv": "q8_0"},
    {"fa": 1, "ctk": "q8_0", "ctv": "f16"},
    LOSSY,
]
EXPERTS = [{"fmoe": 0}, {"fmoe": 0, "ub": 16}, {"mla": 0}]
CASES = {
    f"{fork} {' '.join(f'{name}={value}' for name, value in flags.items())}": (fork, flags)
    for fork, listed in ((MAINLINE, ATTENTION), (IK, [*ATTENTION, *EXPERTS]))
    for flags in listed
}


def answered(child: Any, fork: str, model: Path, outputs: dict[str, Any], **flags: object) -> dict[str, Any]:
    result = child(fork, model, loads={}, outputs=outputs, flags={**PLAIN, **flags})
    assert result.code == 0, result.stderr
    (line,) = result.of("output")
    found: dict[str, Any] = line
    return found


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Mean divergence over all positions of the prompt and of the answer that was forced."""
    parts = (
        divergences(*(unpack(Ranks(**line["ranks"][part])) for line in (one, other))) for part in ("prefill", "forced")
    )
    return float(np.concatenate(list(parts)).mean())


def wrong_by_little(child: Any, fork: str, model: Path, plain: dict[str, Any]) -> float:
    """How far a planted fault moves the answers: half of the prompt stands one position too far."""
    return apart(plain, answered(child, fork, model, {**PLAN, "fault": {"kind": "position_gap"}}))


@pytest.fixture(scope="module")
def plain(child: Any, tiny_f16: Path) -> dict[str, tuple[dict[str, Any], float]]:
    """What each wheel answers with nothing switched on, and how far off a fault is."""
    lines = {fork: answered(child, fork, tiny_f16, PLAN) for fork in FORKS}
    return {fork: (line, wrong_by_little(child, fork, tiny_f16, line)) for fork, line in lines.items()}


@pytest.mark.parametrize("case", CASES)
def test_a_combination_that_was_wrong_once_is_the_same_network(
    child: Any, tiny_f16: Path, plain: dict[str, tuple[dict[str, Any], float]], case: str
) -> None:
    """Nearer to the plain one than half of what a small fault does; a cache of 4 bits costs no more than it may."""
    fork, flags = CASES[case]
    before, fault = plain[fork]
    line = answered(child, fork, tiny_f16, PLAN, **flags)
    assert line["finite"]
    assert apart(before, line) < (LOSS if flags is LOSSY else fault / 2)


def test_repacked_experts_are_the_same_network(child: Any, tiny_model: Path) -> None:
    """Of a quantization that is repacked, in large batches and in small ones."""
    before = answered(child, IK, tiny_model, PLAN)
    fault = wrong_by_little(child, IK, tiny_model, before)
    for ub in (512, 16):
        line = answered(child, IK, tiny_model, PLAN, rtr=1, ub=ub)
        assert line["finite"]
        assert apart(before, line) < fault / 2
