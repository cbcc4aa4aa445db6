"""The sequential rule: what it decides, when, and how often it is wrong."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.spread import Spread
from harness.domain.words import Throughput
from harness.judging.looks import EQUIVALENCE_SHARES, difference_share
from harness.judging.sequential import Decision, Limits, decide

GATE = Limits(alpha=1e-5, margin=0.02, max_quads=32)
ADVICE = replace(GATE, alpha=1e-3)
KNOWN = Spread("pp512", quad_sd=0.01, df=20, source="calibration of 2026-11-30")
SPREADS = st.sampled_from([None, KNOWN, replace(KNOWN, quad_sd=0.034), replace(KNOWN, df=2)])
LIMITS = st.builds(Limits, st.sampled_from([1e-5, 1e-3, 0.01]), st.sampled_from([0.01, 0.02, 0.05]), st.integers(1, 32))
QUADS = st.lists(
    st.one_of(st.floats(-0.05, 0.05), st.floats(-3, 3), st.sampled_from([0.0, 0.01, -0.7])), min_size=0, max_size=40
)
DIFFERENT = (Throughput.REGRESSED, Throughput.IMPROVED)
MIRROR = {Throughput.REGRESSED: Throughput.IMPROVED, Throughput.IMPROVED: Throughput.REGRESSED}


def quads(rng: random.Random, sd: float, loss: float = 0.0, count: int = 32) -> list[float]:
    return [rng.gauss(math.log1p(-loss), sd) for _ in range(count)]


def starts(decision: Decision) -> int:
    """Process starts that a decision took, burn-in of both arms included."""
    assert decision.ratio is not None
    return 2 + 4 * decision.ratio.n


def decided(
    sd: float, loss: float, limits: Limits, spread: Spread | None, runs: int = 300
) -> tuple[list[Throughput], float]:
    """The words of some runs, and their mean process starts."""
    rng = random.Random(2026)  # noqa: S311 - noise, not a secret
    found = [decide(quads(rng, sd, loss), limits, spread) for _ in range(runs)]
    return [each.throughput for each in found], sum(map(starts, found)) / runs


@given(QUADS, LIMITS, SPREADS)
def test_swapping_the_arms_inverts_the_decision(log_ratios: list[float], limits: Limits, spread: Spread | None) -> None:
    there = decide(log_ratios, limits, spread)
    back = decide([-each for each in log_ratios], limits, spread)
    assert back.throughput is MIRROR.get(there.throughput, there.throughput)
    assert (back.open, back.next_look, back.why) == (there.open, there.next_look, there.why)
    if there.ratio and back.ratio:
        assert back.ratio.low == pytest.approx(1 / there.ratio.high)
        assert back.ratio.p == there.ratio.p


@given(QUADS, LIMITS, SPREADS)
def test_the_first_decision_stands(log_ratios: list[float], limits: Limits, spread: Spread | None) -> None:
    """Quad after quad: once it is decided, whatever comes after changes nothing, not even a figure."""
    final = decide(log_ratios, limits, spread)
    for count in range(len(log_ratios)):
        found = decide(log_ratios[:count], limits, spread)
        assert found.open or found == final
        assert not found.open or found.next_look > count


@given(QUADS, LIMITS, SPREADS)
def test_a_decision_is_open_only_while_quads_are_left(
    log_ratios: list[float], limits: Limits, spread: Spread | None
) -> None:
    found = decide(log_ratios, limits, spread)
    assert not (found.open and len(log_ratios) >= limits.max_quads)
    assert not (found.open and found.throughput is not Throughput.INCONCLUSIVE)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused_wherever_it_stands(bad: float) -> None:
    for log_ratios in ([bad], [0.0, 0.0, 0.0, 0.0, bad]):
        with pytest.raises(ValueError, match="not finite"):
            decide(log_ratios, GATE)


def test_without_a_quad_it_is_open() -> None:
    assert decide([], GATE) == Decision(Throughput.INCONCLUSIVE, True, "no quad is complete", None, 1)


def test_identical_samples_without_any_scatter_are_decided() -> None:
    """Taken as one per mille: equal times are not the same as no scatter."""
    assert decide([0.0] * 3, GATE).throughput is Throughput.EQUIVALENT
    assert decide([-0.1] * 4, GATE).throughput is Throughput.REGRESSED
    assert decide([0.1] * 4, GATE).throughput is Throughput.IMPROVED
    assert decide([-0.03] * 4, GATE).open


@given(st.integers(0, 1000), st.sampled_from([None, KNOWN]), st.floats(0.06, 2.5), st.sampled_from([-1, 1]))
def test_fully_separated_samples_are_different(seed: int, spread: Spread | None, gap: float, sign: int) -> None:
    """Sixteen quads none of which comes near no change, three spreads away or more."""
    rng = random.Random(seed)  # noqa: S311 - noise, not a secret
    log_ratios = [sign * gap * rng.uniform(0.75, 1.25) for _ in range(16)]
    assert decide(log_ratios, GATE, spread).throughput is (Throughput.IMPROVED if sign > 0 else Throughput.REGRESSED)


def test_a_certain_change_inside_the_margin_is_equivalent_and_told() -> None:
    found = decide([-0.0149, -0.0150, -0.0151, -0.0150, -0.0150], ADVICE, replace(KNOWN, quad_sd=0.001))
    assert found.throughput is Throughput.EQUIVALENT
    assert "though a change is certain" in found.why


def test_known_spread_and_its_source_are_told() -> None:
    assert "known spread 1 % from calibration of 2026-11-30" in decide([-0.7], GATE, KNOWN).why
    assert "no spread is known" in decide([-0.7, -0.7], GATE).why


@pytest.mark.parametrize(
    ("log_ratios", "spread", "assumed"),
    [
        ([0.02], None, 0.10),
        ([0.02, 0.03], None, 0.10),
        ([0.6, 0.6], None, 0.10),  # decided at once
        ([0.6, 0.6], replace(KNOWN, quad_sd=0.07), 0.14),
        ([0.0, 0.5], None, 0.5 / math.sqrt(2)),
        ([0.02], KNOWN, None),
        ([0.02, 0.03], replace(KNOWN, df=2), None),
        ([0.02, 0.03, 0.01], None, None),
        ([-0.01, 0.01] * 8, None, None),
    ],
)
def test_an_interval_of_a_scatter_that_nobody_knows_says_what_it_assumes(
    log_ratios: list[float], spread: Spread | None, assumed: float | None
) -> None:
    """Of one or two quads without a known spread, and where the first ones decide at once."""
    ratio = decide(log_ratios, ADVICE, spread).ratio
    assert ratio is not None
    assert ratio.assumed == (None if assumed is None else pytest.approx(assumed))
    if assumed is not None:
        width = math.log(ratio.high / ratio.low) / 2
        assert width == pytest.approx(2.5758 * assumed / math.sqrt(ratio.n), rel=1e-3)


@pytest.mark.parametrize("sd", [0.003, 0.01, 0.034, 0.068])
@pytest.mark.parametrize("factor", [0.5, 0.09, 2.0])
def test_a_factor_of_two_is_decided_after_two_quads_on_any_plausible_machine(sd: float, factor: float) -> None:
    words, mean = decided(sd, 1 - factor, GATE, None)
    assert set(words) == {Throughput.IMPROVED if factor > 1 else Throughput.REGRESSED}
    assert mean <= 10.5  # now and then two quads scatter so far by chance that a third is asked for


def test_a_loss_of_half_is_decided_by_one_quad_where_the_spread_is_known() -> None:
    words, mean = decided(0.01, 0.5, GATE, KNOWN)
    assert (set(words), mean) == ({Throughput.REGRESSED}, 6.0)


def test_a_busy_machine_does_not_fool_the_first_quads() -> None:
    """Quads that scatter by a fifth, twice as far as is assumed of any machine: hardly more false alarms than alpha."""
    rng = random.Random(3)  # noqa: S311 - noise, not a secret
    words = [decide(quads(rng, 0.2, count=3), ADVICE).throughput for _ in range(5000)]
    assert sum(word in DIFFERENT for word in words) <= 5000 * ADVICE.alpha + 3 * math.sqrt(5000 * ADVICE.alpha)


def test_one_disturbed_process_decides_nothing_at_once() -> None:
    """It takes twice as long as its like: half of a log 2, one way or the other."""
    for spread in (None, KNOWN):
        assert decide([-math.log(2) / 2, 0.0], GATE, spread).open


@pytest.mark.parametrize("spread", [KNOWN, None])
def test_targets_at_a_scatter_of_one_per_cent(spread: Spread | None) -> None:
    """Bounds are what is aimed at, less two standard errors of so few runs."""
    unchanged, cost = decided(0.01, 0.0, GATE, spread)
    assert unchanged.count(Throughput.EQUIVALENT) == len(unchanged)
    assert cost <= (20 if spread else 24)
    assert decided(0.01, 0.02, GATE, spread)[0].count(Throughput.REGRESSED) >= 0.93 * 300
    assert decided(0.01, 0.03, GATE, spread)[0].count(Throughput.REGRESSED) >= 0.98 * 300


def test_a_loss_of_five_per_cent_is_found_at_a_scatter_of_three() -> None:
    words, _ = decided(0.034, 0.05, replace(GATE, margin=0.03), replace(KNOWN, quad_sd=0.034), runs=150)
    assert words.count(Throughput.REGRESSED) >= 0.93 * 150


@pytest.mark.parametrize("truth", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("known", [True, False])
def test_false_alarms_stay_below_alpha_where_nothing_ends_a_case_early(truth: float, known: bool) -> None:
    """The margin is so small that every look is made; the known spread may be wrong by a factor of two."""
    runs, alpha = 1000, 0.02
    limits = Limits(alpha, margin=1e-6, max_quads=24)
    rng = random.Random(int(10 * truth))  # noqa: S311 - noise, not a secret
    words = [decide(quads(rng, 0.01 * truth, count=24), limits, KNOWN if known else None) for _ in range(runs)]
    alarms = sum(each.throughput in DIFFERENT for each in words)
    assert alarms <= alpha * runs + 3 * math.sqrt(alpha * runs)


@pytest.mark.parametrize("known", [True, False])
def test_a_loss_of_the_margin_is_rarely_called_equivalent(known: bool) -> None:
    runs = 500
    loss = 1 - 1 / (1 + GATE.margin)
    words, _ = decided(0.01, loss, GATE, KNOWN if known else None, runs)
    assert words.count(Throughput.EQUIVALENT) <= 0.05 * runs + 2 * math.sqrt(0.05 * runs)


def test_a_known_spread_that_is_far_too_small_is_dropped() -> None:
    """From three quads on it is as if it had never been known, and the reason says so."""
    rng = random.Random(4)  # noqa: S311 - noise, not a secret
    wild = quads(rng, 0.05, count=8)
    limits = replace(GATE, max_quads=8)
    told = decide(wild, limits, replace(KNOWN, quad_sd=0.002))
    assert told.ratio == decide(wild, limits).ratio
    assert "(dropped: they scatter further)" in told.why


def test_fresh_quads_have_to_show_it_without_those_that_raised_the_suspicion() -> None:
    """At a lenient alpha a stretch of bad luck is significant with what came before; alone it is less so."""
    log_ratios = [-12, -8, 0, 10, -4, -1, 25, -2, -10, -3, -4, -2, -2, -9, -2, -13, -22, -18, 0, -8]
    found = decide([each / 1000 for each in log_ratios], Limits(0.1, 1e-6, 24))
    assert found.open


def test_outliers_neither_blind_nor_fool_it() -> None:
    """One process in twenty takes a fifth longer, which is seven times the loss to be found."""
    rng = random.Random(9)  # noqa: S311 - noise, not a secret

    def disturbed(loss: float) -> list[float]:
        return [
            each + sum(rng.choice((-0.1, 0.1)) for _ in range(4) if rng.random() < 0.05)
            for each in quads(rng, 0.01, loss)
        ]

    unchanged = [decide(disturbed(0.0), GATE).throughput for _ in range(200)]
    slower = [decide(disturbed(0.03), GATE).throughput for _ in range(200)]
    assert not any(word in DIFFERENT for word in unchanged)
    assert slower.count(Throughput.REGRESSED) >= 150


def test_shares_of_all_looks_keep_within_the_error_rates() -> None:
    assert sum(map(difference_share, range(1, 1000))) <= 1
    assert sum(EQUIVALENCE_SHARES) == pytest.approx(1)


@given(
    st.lists(st.floats(-1.5, 1.5), min_size=1, max_size=12),
    st.sampled_from([ADVICE, GATE]),
    st.sampled_from([None, 0.005, 0.05]),
)
def test_what_is_certain_is_certain_by_the_interval_that_is_shown(
    values: list[float], limits: Limits, known: float | None
) -> None:
    """Regressed or improved beside an interval that spans no change would be believed by nobody."""
    found = decide(values, limits, Spread("pp512", known, 9, "a test") if known else None)
    if found.throughput in (Throughput.REGRESSED, Throughput.IMPROVED):
        assert found.ratio is not None
        assert not found.ratio.low <= 1 <= found.ratio.high


def test_quads_whose_arms_do_not_agree_with_themselves_decide_nothing_at_once() -> None:
    """A busy machine: the processes of one arm differ nearly as much as the arms."""
    quads, known = [-0.7, -0.69], Spread("pp512", 0.01, 9, "a test")
    assert decide(quads, GATE, None).throughput is Throughput.REGRESSED
    assert decide(quads, GATE, None, [0.02, 0.02]).throughput is Throughput.REGRESSED
    assert decide(quads, GATE, None, [0.02, 0.3]).open
    assert decide(quads[:1], GATE, known, [0.02]).throughput is Throughput.REGRESSED
    assert decide(quads[:1], GATE, known, [0.2]).open


def test_quads_that_scatter_beyond_bearing_decide_nothing_at_once() -> None:
    """A scatter estimated from two or three quads is no bound to test against."""
    assert decide([-0.378, -0.224, -0.142, -0.16], ADVICE, None).open
    assert decide([-1.2, -0.4], GATE, None).open
