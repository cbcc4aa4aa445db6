"""When a job may end: each workload once it is decided, and nothing inside a quad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from judging_support import ANY, BASELINE, CANDIDATE, NODE, PP, TG, contrast, floor, run
from outputs_support import WIDE, answers_of

from harness.domain.arm import Arm
from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun, Step
from harness.domain.model import Model
from harness.domain.outputs import Output
from harness.domain.policy import Policy
from harness.domain.spread import Spread
from harness.domain.stopping import AfterOutputs
from harness.judging.stopping import SequentialStopping, is_decided

RULE = SequentialStopping(Policy())
KNOWN = tuple(Spread(name, 0.01, 20, "a calibration") for name in ("pp512", "tg128"))
PAIR = Job((BASELINE, CANDIDATE), (PP, TG), None, ANY, Design(blocks=24), (contrast().id,), spreads=KNOWN)
ALONE = replace(PAIR, arms=(BASELINE,), cases=(floor(1.0).id,), timed_alone=True)
QUIET = (1.0, 1.002, 0.999, 1.001, 0.998, 1.0, 1.001, 0.999)


def processes(job: Job, blocks: int, pp: Sequence[float], tg: Sequence[float]) -> tuple[ProcessRun, ...]:
    """The first blocks of a job, at these speeds of its arms."""
    return tuple(process(step, pp[step.arm], tg[step.arm]) for step in job.schedule() if 0 <= step.block < blocks)


def process(step: Step, pp: float, tg: float) -> ProcessRun:
    wobble = QUIET[(2 * step.block + step.arm) % len(QUIET)]
    one, other = run(step.arm, step.block, pp * wobble), run(step.arm, step.block, tg * wobble, workload=TG)
    return replace(one, samples=(*one.samples, *other.samples))


def test_before_anything_is_measured_everything_is_wanted() -> None:
    assert RULE.undecided(PAIR, ()) == ("pp512", "tg128")
    assert RULE.undecided(ALONE, ()) == ("pp512", "tg128")


def test_a_workload_drops_out_once_it_is_decided() -> None:
    """Half the speed in one quad; four per cent more need some."""
    runs = processes(PAIR, 2, (100, 50), (100, 104))
    assert RULE.undecided(PAIR, runs) == ("tg128",)
    assert RULE.undecided(PAIR, processes(PAIR, 12, (100, 50), (100, 104))) == ()


def test_half_a_quad_decides_nothing() -> None:
    assert RULE.undecided(PAIR, processes(PAIR, 1, (100, 10), (100, 10))) == ("pp512", "tg128")


def test_the_schedule_ends_what_stays_undecided() -> None:
    job = replace(PAIR, design=Design(blocks=4), spreads=())
    runs = processes(job, 4, (100, 104), (100, 104))
    assert RULE.undecided(job, runs) == ()


def test_single_arms_that_ride_along_get_starts_enough() -> None:
    """A floor needs three starts; one quad has two of each arm."""
    job = replace(PAIR, cases=(contrast().id, floor(1.0).id), timed_alone=True)
    assert RULE.undecided(job, processes(job, 2, (100, 50), (100, 50))) == ("pp512", "tg128")
    assert RULE.undecided(job, processes(job, 4, (100, 50), (100, 50))) == ()


@pytest.mark.parametrize(("starts", "wanted"), [(2, True), (3, False)])
def test_a_single_arm_ends_when_its_speed_is_known_well_enough(starts: int, wanted: bool) -> None:
    runs = processes(ALONE, starts, (100,), (50,))
    assert bool(RULE.undecided(ALONE, runs)) is wanted


def test_a_single_arm_that_stays_noisy_is_left_at_eight_starts() -> None:
    def noisy(starts: int) -> list[ProcessRun]:
        return [run(0, block, 100 if block % 2 else 150) for block in range(starts)]

    assert not is_decided(ALONE, noisy(7), "pp512", Policy())
    assert is_decided(ALONE, noisy(8), "pp512", Policy())


def test_void_quads_decide_nothing() -> None:
    runs = processes(PAIR, 2, (100, 50), (100, 50))
    niced = [replace(each, conditions=replace(each.conditions, niceness=5)) for each in runs]
    assert RULE.undecided(PAIR, niced) == ("pp512", "tg128")


def test_what_is_no_measurement_is_not_measured_again() -> None:
    assert RULE.undecided(PAIR, [run(0, 0, 5e9)]) == ("tg128",)


def test_a_contrast_without_one_of_its_arms_is_not_measured_further() -> None:
    """The other arm is, where cases of its own ride along."""
    crash = Failure(FailureKind.CRASH, "signal 11", "E-crash")
    runs = (*processes(PAIR, 2, (100, 100), (100, 100)), run(1, 2, None, failure=crash))
    assert RULE.undecided(PAIR, runs) == ()
    assert RULE.undecided(replace(PAIR, cases=(contrast().id, floor(1.0).id), timed_alone=True), runs) == (
        "pp512",
        "tg128",
    )


def test_four_arms_end_when_all_effects_are_decided() -> None:
    arms: tuple[Arm, ...] = (BASELINE, CANDIDATE, BASELINE, CANDIDATE)
    job = replace(PAIR, arms=arms, workloads=(PP,), cases=())
    faster = processes(job, 4, (100, 50, 100, 50), (1, 1, 1, 1))
    assert RULE.undecided(job, processes(job, 1, (100, 50, 100, 50), (1, 1, 1, 1))) == ("pp512",)
    assert RULE.undecided(job, faster) == ()


ASKED = replace(PAIR, outputs=WIDE)
GOOD, WRONG = answers_of(), answers_of(2.0)


def answered(*rounds: tuple[Sequence[Output], Sequence[Output]]) -> tuple[ProcessRun, ...]:
    return tuple(run(arm, -1, 100, outputs=tuple(answers)) for pair in rounds for arm, answers in enumerate(pair))


@pytest.mark.parametrize(
    ("rounds", "following"),
    [
        ([(GOOD, GOOD)], AfterOutputs.GO_ON),
        ([(GOOD, WRONG)], AfterOutputs.REPEAT),
        ([(GOOD, WRONG), (GOOD, WRONG)], AfterOutputs.STOP),
        ([(GOOD, WRONG), (GOOD, GOOD)], AfterOutputs.STOP),
        ([(GOOD, ()), (GOOD, ())], AfterOutputs.GO_ON),
    ],
)
def test_wrong_outputs_are_asked_for_again_and_their_speed_is_not_measured(
    rounds: list[tuple[Sequence[Output], Sequence[Output]]], following: AfterOutputs
) -> None:
    """Once, and whatever the second round says: what is not sure to be right has no speed either."""
    assert RULE.after_outputs(ASKED, answered(*rounds), NODE) is following


def test_wrong_outputs_end_nothing_where_speeds_of_single_arms_ride_along() -> None:
    """A floor asks how fast an arm is, whatever the other one answers; where there is no speed nothing ends."""
    twice = answered((GOOD, WRONG), (GOOD, WRONG))
    for job in (replace(ASKED, timed_alone=True), replace(ASKED, workloads=())):
        assert RULE.after_outputs(job, twice[:2], NODE) is AfterOutputs.REPEAT
        assert RULE.after_outputs(job, twice, NODE) is AfterOutputs.GO_ON


def test_a_process_that_failed_with_its_answers_is_no_wrong_answer() -> None:
    """Its failure is what there is to judge."""
    first, second = answered((GOOD, WRONG))
    crashed = replace(second, failure=Failure(FailureKind.CRASH, "signal 11", "E-crash"))
    assert RULE.after_outputs(ASKED, (first, crashed), NODE) is AfterOutputs.GO_ON


def test_advice_is_neither_asked_for_again_nor_ends_anything() -> None:
    """Nothing is calibrated for a real model: its speed is judged beside the advice."""
    real = tuple(replace(arm, model=Model("real", path="/models/real-IQ4_XS.gguf")) for arm in ASKED.arms)
    apart = answers_of(0.2)
    assert RULE.after_outputs(replace(ASKED, arms=real), answered((GOOD, apart)), NODE) is AfterOutputs.GO_ON
