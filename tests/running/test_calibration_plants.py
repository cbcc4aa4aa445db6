"""Which slowdown is planted where, and how large it has to be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from spread_support import NODE, TINY, arm

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.job import Design, Job
from harness.domain.node import Gpu, NodeClass, NodeFacts
from harness.domain.spread import Spread
from harness.domain.workload import Workload
from harness.judging.sequential import Limits
from harness.running.calibration import Target
from harness.running.calibration_plants import PlannedPlant, plants_for

PP, TG = Workload(256, 0), Workload(0, 64)
LIMITS = Limits(alpha=1e-3, margin=0.02, max_quads=12)
WITH_GPU = replace(NODE, gpus=(Gpu("NVIDIA H200", 141 * 1024**3, "550.1", "GPU-1"),))


def bench(**flags: int) -> Arm:
    build = Build("bench", Fork.LLAMA_CPP, path="/somewhere/llama-bench")
    return Arm(build, TINY, arm(**flags).flags)


def planned(of: Arm, node: NodeFacts = NODE) -> list[str]:
    return [plant.what(0.05) for plant in plants_for(Target(of, (PP, TG)), (PP, TG), node)]


@pytest.mark.parametrize(
    ("of", "node", "what"),
    [
        (arm(t=1), NODE, ["5% of the speed slept away"]),
        (arm(t=8), NODE, ["5% of the speed slept away", "4 of 8 threads"]),
        (arm(t=3), NODE, ["5% of the speed slept away", "1 of 3 threads"]),
        (arm(t=8, ngl=99), WITH_GPU, ["5% of the speed slept away"]),
        (arm(t=8, ngl=0), WITH_GPU, ["5% of the speed slept away", "4 of 8 threads"]),
        (bench(t=8), NODE, ["4 of 8 threads"]),
        (bench(t=1), NODE, []),
    ],
)
def test_what_can_be_planted_depends_on_engine_threads_and_gpu(of: Arm, node: NodeFacts, what: list[str]) -> None:
    """A bench of its own can't be slowed from inside; threads do not count where a GPU works."""
    assert planned(of, node) == what


def test_fewer_threads_must_show_in_prompt_processing_only() -> None:
    """Memory can be the limit of generation. What sleeps must show in both."""
    asleep, fewer = PlannedPlant((PP, TG)), PlannedPlant((PP, TG), (4, 8))
    assert [asleep.required(load) for load in (PP, TG)] == [True, True]
    assert [fewer.required(load) for load in (PP, TG)] == [True, False]


def test_the_slowdown_is_in_the_candidate_alone() -> None:
    """In its design, or in its threads."""
    alike = Job((arm(t=8), arm(t=8)), (PP, TG), None, NodeClass("any"), Design(calibration=True), cases=())
    slept = PlannedPlant((PP,)).slowed(PlannedPlant((PP,)).job(alike), 0.05)
    assert (slept.design.slowdown, slept.arms, slept.workloads) == (0.05, alike.arms, (PP,))
    assert slept.id != alike.id
    fewer = PlannedPlant((PP, TG), (4, 8)).slowed(alike, 0.2)
    assert [each.flags.get("t") for each in fewer.arms] == [8, 4]
    assert fewer.design.slowdown == 0


def test_a_loss_is_as_small_as_the_scatter_and_the_time_allow() -> None:
    """Larger for a wider scatter and for fewer quads; none where nothing is sure to be found."""
    plant = PlannedPlant((PP, TG))

    def loss(quad_sd: float, quads: int) -> float | None:
        known = [(Spread("pp256", quad_sd, 9.0, ""), LIMITS), (Spread("tg64", 0.004, 9.0, ""), LIMITS)]
        return plant.loss_for(known, lambda _: quads)

    assert (loss(0.004, 12) or 1) <= (loss(0.02, 12) or 1) <= (loss(0.1, 12) or 1)
    assert (loss(0.02, 12) or 1) <= (loss(0.02, 4) or 1)
    assert loss(0.004, 12) is not None
    assert loss(0.02, 0) is None


def test_quads_are_counted_at_the_slowed_pace() -> None:
    """A loss that leaves no time for its own quads is not taken."""
    known = [(Spread("pp256", 0.1, 9.0, ""), LIMITS)]
    generous = PlannedPlant((PP,)).loss_for(known, lambda _: 12)
    assert generous is not None
    assert PlannedPlant((PP,)).loss_for(known, lambda loss: 12 if loss < generous else 0) is None
