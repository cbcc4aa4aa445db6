"""Journals of real runs on an H200: ik_llama.cpp 8337e4cd with CUDA, the 30B card, experts in RAM, repacked or not.

`tests/data/h200_repack`: one contrast with two quads, and a run that was stopped in its last job, with one quad of each
other contrast. Paths are shortened. Judged again they give the verdicts that the run gave.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.domain.verdict import Verdict
from harness.domain.words import Pitfall, Status, Throughput
from harness.judging.judge import judge
from harness.reporting.replay import read_journal

DATA = Path(__file__).parents[1] / "data" / "h200_repack"


def judged_again(name: str) -> dict[str, tuple[Verdict, Verdict]]:
    """By case, the run's own verdict and a new one from its record; cases whose job was stopped have no record."""
    state = read_journal(DATA / name)
    assert not state.problems
    found = {}
    for case, planned in state.planned.items():
        record = state.jobs[planned.job].record
        if record:
            found[case] = (state.verdicts[case], judge(planned.case, record, state.policy))
    return found


@pytest.mark.parametrize(("name", "cases"), [("two_quads.jsonl", 1), ("one_quad.jsonl", 4)])
def test_the_verdicts_are_those_of_the_run(name: str, cases: int) -> None:
    pairs = judged_again(name).values()
    assert len(pairs) == cases
    for then, now in pairs:
        assert (now.status, now.throughput, now.pitfall) == (then.status, then.throughput, then.pitfall)
        assert now.estimate == then.estimate


def test_repacking_with_experts_in_ram_is_a_pitfall_after_two_quads() -> None:
    ((_, verdict),) = judged_again("two_quads.jsonl").values()
    assert (verdict.status, verdict.pitfall, verdict.throughput) == (Status.PASS, Pitfall.PRESENT, Throughput.REGRESSED)
    assert verdict.estimate is not None
    assert verdict.estimate.n == 2
    assert verdict.estimate.high < 0.12


def test_one_quad_is_no_finding_where_no_spread_is_known_and_a_stopped_job_is_an_error() -> None:
    verdicts = read_journal(DATA / "one_quad.jsonl").final_verdicts()
    assert sorted(verdict.status for verdict in verdicts) == [Status.ERROR] * 2 + [Status.INCONCLUSIVE] * 4
    ratios = [verdict.estimate.value for verdict in verdicts if verdict.estimate]
    assert all(0.05 < ratio < 0.3 for ratio in ratios)
