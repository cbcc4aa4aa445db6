"""The matrix of thirty billion parameters, run on an H200: its journals judged again, its page made again.

`tests/data/h200_matrix`: two journals of the run-time repack, two of single runs. Paths are shortened.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from harness.domain.verdict import Verdict
from harness.domain.words import Kind, Pitfall, Status, Throughput
from harness.judging.judge import judge
from harness.reporting.replay import read_journal

DATA = Path(__file__).parents[1] / "data" / "h200_matrix"
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "h200_page.py"


def judged_again(name: str) -> list[tuple[Verdict, Verdict]]:
    """The run's own verdict and a new one from its record, for every case."""
    state = read_journal(DATA / name)
    assert not state.problems
    assert state.finished
    pairs = []
    for case, planned in state.planned.items():
        record = state.jobs[planned.job].record
        assert record is not None
        pairs.append((state.verdicts[case], judge(planned.case, record, state.policy)))
    return pairs


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("repack_ub512.jsonl", 4),
        ("repack_ub2048_q4km.jsonl", 2),
        ("ik_singles.jsonl", 21),
        ("mainline_singles.jsonl", 6),
    ],
)
def test_the_verdicts_are_those_of_the_run(name: str, cases: int) -> None:
    pairs = judged_again(name)
    assert len(pairs) == cases
    for then, now in pairs:
        assert (now.status, now.throughput, now.pitfall) == (then.status, then.throughput, then.pitfall)
        assert now.estimate == then.estimate


@pytest.mark.parametrize("name", ["repack_ub512.jsonl", "repack_ub2048_q4km.jsonl"])
def test_repacking_is_a_pitfall_for_prompts_and_nothing_is_claimed_of_generation(name: str) -> None:
    for _, verdict in judged_again(name):
        if verdict.case.startswith(Kind.PITFALL):
            assert (verdict.status, verdict.pitfall) == (Status.PASS, Pitfall.PRESENT)
            assert verdict.estimate is not None
            assert verdict.estimate.n == 2
            assert verdict.estimate.high < 0.35
        else:
            assert (verdict.status, verdict.throughput) == (Status.INCONCLUSIVE, Throughput.INCONCLUSIVE)


def test_single_runs_claim_nothing_about_speed() -> None:
    for name in ("ik_singles.jsonl", "mainline_singles.jsonl"):
        for _, verdict in judged_again(name):
            if verdict.case.startswith(Kind.THROUGHPUT):
                assert (verdict.status, verdict.throughput) == (Status.PASS, None)


def test_every_process_tells_the_state_of_gpu_and_machine() -> None:
    """Real NVML and /proc: clocks, power, temperature, memory and processes of the GPU; load, page cache, niceness."""
    runs = [
        run
        for file in sorted(DATA.glob("*.jsonl"))
        for job in read_journal(file).jobs.values()
        for run in (job.record.runs if job.record else ())
    ]
    assert len(runs) == 48
    for run in runs:
        state = run.conditions
        (gpu,) = state.gpus
        assert gpu.used
        assert gpu.samples > 1
        assert gpu.driver == "580.159.04"
        assert (gpu.performance_state, gpu.power_limit_w, gpu.foreign_processes) == (0, 700, 0)
        assert gpu.sm_mhz is not None
        assert gpu.memory_mhz is not None
        assert gpu.power_w is not None
        assert gpu.temperature_c is not None
        assert 345 <= gpu.sm_mhz <= 1980 <= gpu.memory_mhz
        assert 60 < gpu.power_w <= 720
        assert 20 < gpu.temperature_c < 90
        assert set(gpu.slowdowns) <= {"sw_power_cap"}
        assert gpu.memory_before_bytes is not None
        assert gpu.memory_peak_bytes is not None
        assert gpu.memory_before_bytes < gpu.memory_peak_bytes <= 150 << 30
        assert run.max_rss_bytes > 1 << 30
        assert (state.niceness, state.model_cached, state.swapped_bytes, state.gpu_telemetry) == (0, 1.0, 0, "")
        assert state.foreign_load is not None
        assert state.queue_wait_s is not None


def test_the_page_is_made_of_the_journals() -> None:
    made = runpy.run_path(str(BENCHMARK))
    text = made["PAGE"].read_text()
    assert made["page"](text) == text
    assert made["page"](text.replace("1454 -> 382.0", "1454 -> 1382.0")) == text
