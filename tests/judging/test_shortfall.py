"""What an inconclusive contrast still needs: enough where it is granted, more where noise is more."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging_support import arms_runs, contrast, record

from harness.domain.policy import Policy
from harness.domain.words import Throughput
from harness.judging.judge import judge
from harness.judging.sequential import Limits, decide
from harness.judging.shortfall import quads_to_decide, shortfall_text

LIMITS = Limits(alpha=1e-3, margin=0.03, max_quads=12)


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
        ([0.01, -0.02], ""),
        ([0.03, -0.03, 0.02, -0.06, 0.0, -0.05], "more quads ("),
        ([0.6, -0.6, 0.6, -0.6, 0.5, -0.5], "not even 256 quads"),
    ],
)
def test_it_is_told_in_quads_and_minutes(log_ratios: list[float], said: str) -> None:
    """Nothing where nothing can be said."""
    told = shortfall_text(log_ratios, LIMITS, 30.0)
    assert said in told
    assert bool(told) == bool(said)


def test_an_inconclusive_verdict_says_what_it_needs() -> None:
    """A decided one does not."""
    noisy = arms_runs([100.0, 104.0, 97.0, 101.0] * 3, [101.0, 97.0, 99.0, 107.0, 92.0, 103.0] * 2)
    told = judge(contrast(), record(noisy), Policy(margin=0.05))
    assert told.throughput is Throughput.INCONCLUSIVE
    assert "would likely decide it" in told.reason
    clear = judge(contrast(), record(arms_runs([100.0] * 12, [50.0] * 12)), Policy())
    assert "decide it" not in clear.reason
