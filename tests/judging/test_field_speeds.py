"""Changes of speed that people reported, judged: their figures, with a scatter as of hybrid runs put on them.

The builds and GPUs of these reports are not at hand, so what is tested is the judge: whether a change of that size is
found, prompt processing and token generation apart. The names are those of the field reports
(docs/reference/field-reports.md); where a report has no figure of one speed, it is taken as unchanged.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest
from judging_support import PP, TG, contrast, noisy, record, run

from harness.domain.policy import Policy
from harness.domain.verdict import Verdict
from harness.domain.words import Status, Throughput
from harness.judging.judge import judge
from harness.judging.record import JobRecord

SCATTER = 0.03
"""Of processes, as a standard deviation of logarithms; measured on hybrid runs."""
BLOCKS = 16
UNCHANGED = (100.0, 100.0)


@dataclass(frozen=True)
class Reported:
    """Tokens per second before and after."""

    pp: tuple[float, float] = UNCHANGED
    tg: tuple[float, float] = UNCHANGED


REPORTS = {
    "fa-cpu-slow": Reported(pp=(14.29, 11.80), tg=(2.75, 2.75)),
    "ik-1389": Reported(tg=(88.11, 77.87)),
    "ik-2199": Reported(pp=(192.4, 215.3), tg=(26.23, 16.80)),
    "ik-450": Reported(tg=(12.5, 9.5)),
    "ik-765": Reported(pp=(100, 75)),
    "kv-fallback": Reported(pp=(2462, 114), tg=(121, 18)),
    "kv-fallback, pp512": Reported(pp=(1511, 197)),
    "kv-hip-cpu": Reported(pp=(2000, 200)),
    "kv-vulkan-iq4": Reported(pp=(560, 181)),
    "lc-20835": Reported(tg=(219.49, 219.49 / 2)),
    "lc-20890": Reported(pp=(100, 85), tg=(100, 85)),
    "lc-24066": Reported(pp=(433, 111), tg=(30, 10)),
    "lc-24514": Reported(tg=(100, 75)),
    "lc-26679": Reported(pp=(1025.7, 63.6), tg=(66.05, 8.41)),
    "lc-27137": Reported(tg=(7.88, 2.93)),
    "lc-27171": Reported(tg=(100.47, 87.75)),
    "lf-974": Reported(pp=(107.54, 27.93), tg=(16.45, 4.61)),
    "ol-17123": Reported(tg=(155, 120)),
    "r4-cuda": Reported(pp=(76.24, 26.75), tg=(10.08, 4.81)),
    "r4-cuda, issue 474": Reported(pp=(62.97, 10.86)),
    "r4-cuda, ub 2048": Reported(pp=(617, 1555)),
    "rtr-pp-drop": Reported(pp=(286.78, 169.11), tg=(15.53, 17.24)),
    "rtr-pp-drop, ub 1024": Reported(pp=(120, 188)),
    "rtr-pp-drop, IQ3_XXS": Reported(pp=(250, 26)),
    "lc-17033, llama-bench": Reported(pp=(223, 223), tg=(28, 28)),
}


def measured(name: str, *, swapped: bool = False) -> JobRecord:
    """A job of both workloads in which the candidate is as the report says."""
    reported, rng = REPORTS[name], random.Random(name)  # noqa: S311 - a seed makes it repeatable
    pp, tg = (speeds[::-1] if swapped else speeds for speeds in (reported.pp, reported.tg))
    runs = []
    for block in range(BLOCKS):
        for arm in (0, 1):
            one = run(arm, block, noisy(rng, pp[arm], SCATTER, 1) * 3)
            other = run(arm, block, noisy(rng, tg[arm], SCATTER, 1) * 3, workload=TG)
            runs.append(replace(one, samples=(*one.samples, *other.samples)))
    made = record(runs)
    return replace(made, job=replace(made.job, workloads=(PP, TG), design=replace(made.job.design, blocks=BLOCKS)))


def judged(job: JobRecord) -> dict[str, Verdict]:
    return {load.name[:2]: judge(contrast(workload=load), job, Policy(margin=0.02)) for load in (PP, TG)}


def word(speeds: tuple[float, float]) -> Throughput | None:
    """What has to be found; ``None``: nothing changed, and nothing may be claimed."""
    if speeds[0] == speeds[1]:
        return None
    return Throughput.REGRESSED if speeds[1] < speeds[0] else Throughput.IMPROVED


@pytest.mark.parametrize("name", REPORTS)
def test_a_reported_change_is_found_in_the_speed_that_changed(name: str) -> None:
    """And only there: neither speed is averaged with the other, and a gain hides no loss."""
    found = judged(measured(name))
    for load, speeds in (("pp", REPORTS[name].pp), ("tg", REPORTS[name].tg)):
        expected = word(speeds)
        if expected is None:
            assert found[load].throughput in (Throughput.EQUIVALENT, Throughput.INCONCLUSIVE)
            assert found[load].status is not Status.FAIL
        else:
            assert found[load].throughput is expected
            assert (found[load].status is Status.FAIL) == (expected is Throughput.REGRESSED)
            estimate = found[load].estimate
            assert estimate
            assert estimate.low <= speeds[1] / speeds[0] <= estimate.high


@pytest.mark.parametrize("name", REPORTS)
def test_with_the_arms_swapped_each_is_the_opposite(name: str) -> None:
    """A gain is found like a loss."""
    found = judged(measured(name, swapped=True))
    for load, speeds in (("pp", REPORTS[name].pp), ("tg", REPORTS[name].tg)):
        expected = word(speeds[::-1])
        if expected is not None:
            assert found[load].throughput is expected


def test_a_gain_beside_a_loss_is_told_with_it() -> None:
    """Reports ik-2199 and rtr-pp-drop: one speed number would show neither."""
    assert "mixed: pp512 improved, tg128 regressed" in judged(measured("ik-2199"))["tg"].reason
    assert "mixed: pp512 regressed, tg128 improved" in judged(measured("rtr-pp-drop"))["pp"].reason
