"""Recorded runs with known answers, judged as this harness would have measured them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.domain.measurement import Conditions, ProcessRun, Samples, Step
from harness.domain.spread import Spread
from harness.domain.words import Throughput
from harness.judging.sequential import Limits
from harness.judging.throughput import judge_contrast

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
ROUNDS = range(1, 7)
MAINLINE, IK = "llama_cpp-b11434", "ik_llama_cpp-8337e4cd"


def process(build: str, arm: int, block: int) -> ProcessRun:
    rows = json.loads((RECORDINGS / f"{build}.full_{block + 1}.json").read_text())
    conditions = Conditions(0, (), 16, 0.0)
    return ProcessRun(Step(arm, block), build, tuple(map(samples, rows)), (), 0.0, None, 0, conditions, {})


def samples(row: dict[str, Any]) -> Samples:
    """Of five repetitions the first is warm-up."""
    name = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
    return Samples(name, row["n_prompt"] + row["n_gen"], tuple(row["samples_ns"]), discarded=1)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("workload", "ratio"), [("pp512", 0.68), ("tg64", 0.79)])
def test_alternating_rounds_of_mainline_and_ik_are_regressed_on_pp_and_tg(
    workload: str, ratio: float, known: bool
) -> None:
    """Six rounds on an H200 in fresh processes, both builds in turn."""
    baseline, candidate = (
        [process(build, arm, block - 1) for block in ROUNDS] for arm, build in enumerate((MAINLINE, IK))
    )
    spread = Spread(workload, 0.01, 20, "the spread between processes seen there") if known else None
    found = judge_contrast(baseline, candidate, workload, Limits(1e-3, 0.02, 3), spread=spread)
    assert found.throughput is Throughput.REGRESSED
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(ratio, abs=0.01)
    back = judge_contrast(candidate, baseline, workload, Limits(1e-3, 0.02, 3), spread=spread)
    assert back.throughput is Throughput.IMPROVED
