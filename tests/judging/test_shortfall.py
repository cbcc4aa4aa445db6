"""What an inconclusive contrast still needs: enough where it is granted, more where noise is more."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging_support import ANY, BASELINE, CANDIDATE, PP, arms_runs, contrast, record

from harness.domain.job import Design, Job
from harness.domain.policy import Policy
from harness.domain.words import Throughput
from harness.judging.judge import judge
from harness.judging.sequential import Limits, decide
from harness.judging.shortfall import quads_likely_to_decide, quads_to_decide, shortfall_text, without_policy

LIMITS = Limits(alpha=1e-3, margin=0.03, max_quads=12)


def planned(blocks: int, minutes: float | None) -> Job:
    return Job((BASELINE, CANDIDATE), (PP,), None, ANY, Design(blocks=blocks, minutes=minutes), cases=())


JOB = planned(blocks=24, minutes=None)


def test_granted_quads_decide_it() -> None:
    """In other draws than those it was found with: most of a hundred."""
    total = quads_to_decide(-0.05, 0.034, LIMITS, 12)
    assert total is not None
    source = random.Random(5)  # noqa: S311 - no secret
    decided = sum(
        decide([source.gauss(-0.05, 0.034) for _ in range(2 * total)], Limits(1e-3, 0.03, 2 * total)).throughput
        is Throughput.REGRESSED
        for _ in range(100)
    )
    assert decided >= 75


@given(st.sampled_from([0.0, -0.05, -0.1]), st.sampled_from([0.01, 0.02, 0.034]))
@settings(max_examples=9, deadline=None)
def test_twice_the_noise_never_needs_less(mean: float, quad_sd: float) -> None:
    """What cannot be decided counts as more than any number."""
    less, more = (quads_to_decide(mean, sd, LIMITS, 6) or 10**9 for sd in (quad_sd, 2 * quad_sd))
    assert less <= more


@pytest.mark.parametrize(
    ("log_ratios", "said"),
    [
        ([0.03, -0.03, 0.02, -0.06, 0.0, -0.05], "more quads ("),
        ([0.6, -0.6, 0.6, -0.6, 0.5, -0.5], "not even 256 quads"),
    ],
)
def test_it_is_told_in_quads_and_minutes_and_what_that_takes_for_granted(log_ratios: list[float], said: str) -> None:
    told = shortfall_text([log_ratios], LIMITS, JOB, 30.0)
    assert said in told
    assert "if the estimate stands" in told


@pytest.mark.parametrize("had", [0, 1, 2])
def test_of_few_quads_only_the_way_to_more_is_told(had: int) -> None:
    """Three quads with two burn-ins are fourteen processes: seven minutes."""
    told = shortfall_text([[0.01, -0.02][:had]], LIMITS, planned(blocks=4, minutes=2.0), 30.0)
    assert told == ("fewer than 3 quads do not show how many it takes, 3 need [policy] blocks = 6 and minutes = 7")
    assert "[policy]" not in shortfall_text([[0.01]], LIMITS, planned(blocks=6, minutes=7.0), 30.0)


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (planned(blocks=192, minutes=2.0), "3 need --minutes 7"),
        (planned(blocks=4, minutes=2.0), "3 need --minutes 7"),
        (planned(blocks=4, minutes=9.0), "3 need more of them than a run makes"),
        (planned(blocks=192, minutes=9.0), "do not show how many it takes"),
    ],
)
def test_a_command_has_no_policy(job: Job, told: str) -> None:
    """Its minutes are an option."""
    said = without_policy(shortfall_text([[0.01]], LIMITS, job, 30.0))
    assert said.endswith(told)
    assert "[policy]" not in said


def test_a_budget_that_has_room_is_not_rounded_up() -> None:
    """Fourteen processes of a second have room in half a minute."""
    assert "minutes" not in shortfall_text([[0.01]], LIMITS, planned(blocks=4, minutes=0.5), 1.0)


def test_what_has_no_room_is_named_with_what_would_have() -> None:
    """Quads that neither schedule nor budget has room for are no advice by themselves."""
    series = [0.03, -0.03, 0.02, -0.06, 0.0, -0.05]
    total = quads_likely_to_decide(series, LIMITS)
    assert total is not None
    told = shortfall_text([series], LIMITS, planned(blocks=24, minutes=2.0), 30.0)
    assert f"a new run needs [policy] blocks = {2 * total} and minutes = {math.ceil((2 + 4 * total) / 2)}" in told
    assert "blocks" not in shortfall_text([series], LIMITS, planned(blocks=2 * total, minutes=2.0), 30.0)
    assert "a new run" not in shortfall_text([series], LIMITS, planned(blocks=2 * total, minutes=None), 30.0)


def test_blocks_of_four_arms_come_in_fours_and_the_slowest_effect_counts() -> None:
    four = replace(planned(blocks=4, minutes=None), arms=(*JOB.arms, *JOB.arms))
    assert "fewer than 3 blocks do not show" in shortfall_text([[0.1], [0.1]], LIMITS, four, 30.0)
    quick, slow = [0.15, 0.13, 0.17, 0.12], [0.03, -0.03, 0.02, -0.06]
    total = quads_likely_to_decide(slow, LIMITS)
    assert total is not None
    told = shortfall_text([quick, slow], LIMITS, four, 30.0)
    assert told.startswith(f"about {total - 4} more blocks (")
    assert told.endswith(f"blocks = {4 * math.ceil(total / 4)}")
    assert shortfall_text([], LIMITS, four, 30.0) == ""


def test_an_inconclusive_verdict_says_what_it_needs() -> None:
    """A decided one does not."""
    noisy = arms_runs([100.0, 104.0, 97.0, 101.0] * 3, [101.0, 97.0, 99.0, 107.0, 92.0, 103.0] * 2)
    told = judge(contrast(), record(noisy), Policy(margin=0.05))
    assert told.throughput is Throughput.INCONCLUSIVE
    assert "would likely decide it" in told.reason
    clear = judge(contrast(), record(arms_runs([100.0] * 12, [50.0] * 12)), Policy())
    assert "decide it" not in clear.reason
