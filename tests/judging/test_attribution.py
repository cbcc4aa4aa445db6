"""Attributions: planted effects are found where they were planted, and nowhere else."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging_support import ANY, BUILD, GOOD_TOKENS, MODEL, PP, PROFILE, answers, arms_runs, record, run

from harness.domain.arm import Arm
from harness.domain.case import AttributionCheck, Case, Expectation
from harness.domain.failure import Failure, FailureKind
from harness.domain.flags import Flags
from harness.domain.job import Design
from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy
from harness.domain.spread import Spread
from harness.domain.verdict import Effect, Verdict
from harness.domain.words import Kind, Status, Throughput
from harness.domain.workload import OutputProfile
from harness.judging.attribution import Attribution, judge_attribution, judge_blocks
from harness.judging.attribution_words import attribution_text
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.judging.sequential import Limits

OLD, PATCHED = BUILD, replace(BUILD, name="patched")
FOUR = tuple(Arm(build, MODEL, Flags.of({"ub": ub}), shown=("ub",)) for build in (OLD, PATCHED) for ub in (512, 64))
FACTORS = ("build", "settings")
BLOCKS = 16
LIMITS = Limits(alpha=0.01, margin=0.03, max_quads=BLOCKS)
NULL = (0.0, 0.0, 0.0, 0.0)

Logs = Sequence[float]


def case(expect: Expectation = Expectation.REPORT) -> Case:
    return Case(Kind.ATTRIBUTION, FOUR, PP, ANY, AttributionCheck("which", FACTORS, expect))


def runs(effects: Logs, *, sd: float = 0.01, seed: int = 1, blocks: int = BLOCKS) -> tuple[ProcessRun, ...]:
    """Four arms around 500 t/s, each with its log effect, a drift they share and noise of their own."""
    rng = random.Random(seed)  # noqa: S311 - noise, not a secret
    drift = [rng.gauss(0, 0.05) for _ in range(blocks)]
    return arms_runs(*([500 * math.exp(effect + shared + rng.gauss(0, sd)) for shared in drift] for effect in effects))


def attributed(effects: Logs, *, sd: float = 0.01, seed: int = 1, spread: Spread | None = None) -> Attribution:
    by_arm = [[each for each in runs(effects, sd=sd, seed=seed) if each.step.arm == arm] for arm in range(4)]
    return judge_attribution(by_arm, PP.name, FACTORS, LIMITS, spread=spread)


def words(found: Attribution) -> tuple[str, str, str]:
    return tuple(str(effect.throughput) for effect in found.effects[:3])  # type: ignore[return-value]


def judged(processes: Sequence[ProcessRun], expect: Expectation = Expectation.REPORT) -> Verdict:
    return judge(case(expect), record_of(processes), Policy(margin=0.03))


def record_of(processes: Sequence[ProcessRun], outputs: OutputProfile | None = None) -> JobRecord:
    made = record(processes, arms=FOUR, outputs=outputs)
    return replace(made, job=replace(made.job, design=Design(blocks=BLOCKS)))


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        pytest.param(NULL, ("equivalent", "equivalent", "equivalent"), id="nothing"),
        pytest.param((0, 0, -0.1, -0.1), ("regressed", "equivalent", "equivalent"), id="build"),
        pytest.param((0, 0.1, 0, 0.1), ("equivalent", "improved", "equivalent"), id="settings"),
        pytest.param((0, -0.05, 0.1, 0.05), ("improved", "regressed", "equivalent"), id="both"),
        pytest.param((0, 0.1, 0.1, 0), ("equivalent", "equivalent", "regressed"), id="interaction alone"),
        pytest.param((0, 0, 0, 0.2), ("improved", "improved", "improved"), id="only together"),
    ],
)
def test_planted_effects_are_found_where_they_are(effects: Logs, expected: tuple[str, str, str]) -> None:
    """Each kind of change has its own three words, and the figures are those that were planted."""
    found = attributed(effects)
    assert words(found) == expected
    old, second, first, both = effects
    planted = (
        (first - old + both - second) / 2,
        (second - old + both - first) / 2,
        both - second - first + old,
        first - old,
        second - old,
        both - old,
    )
    for effect, log in zip(found.effects, planted, strict=True):
        assert effect.ratio is not None
        assert effect.ratio.low < math.exp(log) < effect.ratio.high
        assert effect.ratio.n == BLOCKS


def test_the_margin_of_an_interaction_is_that_of_its_whole_size() -> None:
    """The rule sees half of it, with half the margin: 4 % is beyond a margin of 3 %."""
    assert words(attributed((0, 0, 0, -0.04), sd=0.003))[2] == "regressed"
    assert words(attributed((0, 0, 0, -0.02), sd=0.003))[2] == "equivalent"


def test_the_sentence_says_of_the_whole_what_is_due_to_which() -> None:
    """Whole change, two factors with their words, interaction, basis, speeds."""
    verdict = judged(runs((0, -0.12, -0.001, -0.121)))
    assert verdict.status is Status.PASS
    whole, build, settings_, interaction = (_ratio(verdict.effects[index]) for index in (5, 0, 1, 2))
    assert verdict.reason.startswith(
        f"of {_percent(whole)} %: build {_percent(build)} % [{_percent(_low(verdict.effects[0]))}, "
    )
    assert f"settings {_percent(settings_)} % [" in verdict.reason
    assert "] (equivalent), settings" in verdict.reason
    assert "] (regressed), no interaction [" in verdict.reason
    assert f"99 % intervals, n = {BLOCKS} blocks of four arms, alpha / 3 for each effect" in verdict.reason
    assert build * settings_ == pytest.approx(whole)
    assert interaction == pytest.approx(1, abs=0.05)
    assert (verdict.throughput, verdict.estimate) == (Throughput.EQUIVALENT, verdict.effects[0].ratio)
    assert [arm.label for arm in verdict.arms] == [arm.label for arm in FOUR]
    assert verdict.contrast == "which"


def test_with_an_interaction_each_factor_is_told_by_itself_too() -> None:
    """The main effects are averages then, and a reader must not take them for more."""
    reason = judged(runs((0, 0.1, 0.1, 0))).reason
    assert "(regressed): one depends on the other, build alone +1" in reason
    assert ", settings alone +1" in reason


def test_a_word_that_its_figure_does_not_show_says_so() -> None:
    """Three blocks, each 1.6-fold and more: decided at once, though their own interval is too wide to show it."""
    blocks = [(4.0, 4.0, 4.0 + change, 4.0 + change) for change in (0.50, 0.65, 0.79)]
    found = judge_blocks(blocks, FACTORS, replace(LIMITS, alpha=0.001))
    ratio = found.first.ratio
    assert ratio is not None
    assert ratio.low < 1 < ratio.high
    assert found.first.throughput is Throughput.IMPROVED
    assert "(improved as first decided, not by the interval of all blocks)" in attribution_text(found)


@pytest.mark.parametrize(
    ("effects", "expect", "status"),
    [
        ((0, 0, -0.1, -0.1), Expectation.REPORT, Status.PASS),
        ((0, 0, -0.1, -0.1), Expectation.NO_REGRESSION, Status.FAIL),
        ((0, -0.1, 0, -0.1), Expectation.NO_REGRESSION, Status.PASS),
        ((0, -0.1, 0, -0.1), Expectation.IMPROVED, Status.FAIL),
        ((0, 0, 0.1, 0.1), Expectation.IMPROVED, Status.PASS),
    ],
)
def test_what_is_expected_is_expected_of_the_first_factor(effects: Logs, expect: Expectation, status: Status) -> None:
    """Settings may cost what they like; the patch is what gates."""
    assert judged(runs(effects), expect).status is status


def test_undecided_is_inconclusive() -> None:
    """A report wants both factors decided; noise that hides them is said, not averaged away."""
    verdict = judged(runs(NULL, sd=0.2))
    assert verdict.status is Status.INCONCLUSIVE
    assert verdict.reason.startswith("inconclusive: of ")
    assert "interaction none shown [" in verdict.reason


def test_undecided_effects_are_told_what_more_would_take() -> None:
    assert "not even 256 blocks are likely to decide it" in judged(runs(NULL, sd=0.2)).reason
    assert " more blocks (" in judged(runs(NULL, sd=0.04)).reason
    few = judged(runs(NULL, blocks=1)).reason
    assert few.startswith("inconclusive: 1 block with all four arms, at least 3 are needed")
    assert "fewer than 3 blocks do not show how many it takes" in few


def test_few_blocks_have_no_figures() -> None:
    """Two blocks have an interval of orders of magnitude: nothing is claimed of them."""
    verdict = judged(runs((0, 1.5, 1.5, 3.0), blocks=2))
    assert verdict.status is Status.INCONCLUSIVE
    assert verdict.reason.startswith("inconclusive: 2 blocks with all four arms, at least 3 are needed")
    assert {effect.ratio for effect in verdict.effects} == {None}
    assert {effect.throughput for effect in verdict.effects[:3]} == {Throughput.INCONCLUSIVE}


def test_a_job_that_ended_early_is_judged_by_what_it_has() -> None:
    """By its budget, say: the last block is looked at as the last one, and more could still decide the rest."""
    kept = [each for each in runs((0, 0, -0.05, -0.05), sd=0.02, seed=4) if each.step.block < 6]
    by_arm = [[each for each in kept if each.step.arm == arm] for arm in range(4)]
    found = judge_attribution(by_arm, PP.name, FACTORS, LIMITS)
    assert (found.blocks, found.open) == (6, True)
    of_six = judge_attribution(by_arm, PP.name, FACTORS, replace(LIMITS, max_quads=6))
    assert words(found) == words(of_six)
    assert not of_six.open


def test_blocks_that_lack_an_arm_are_dropped_and_counted() -> None:
    """Three arms of a block say nothing about the square."""
    kept = [each for each in runs((0, 0, -0.1, -0.1)) if (each.step.arm, each.step.block) != (1, 3)]
    verdict = judged(kept)
    assert verdict.throughput is Throughput.REGRESSED
    assert f"n = {BLOCKS - 1} blocks of four arms, 1 dropped for want of an arm" in verdict.reason


@pytest.mark.parametrize(
    ("arm", "status", "slug"),
    [
        (0, Status.ERROR, "E-no-baseline"),
        (1, Status.ERROR, "E-no-baseline"),
        (2, Status.FAIL, "E-crash"),
        (3, Status.FAIL, "E-crash"),
    ],
)
def test_a_crash_is_the_new_first_factors_fault_or_leaves_no_baseline(arm: int, status: Status, slug: str) -> None:
    """What crashes with the old build under the new settings is not the patch's fault."""
    crash = Failure(FailureKind.CRASH, "signal 11", "E-crash")
    kept = [each for each in runs(NULL) if each.step.arm != arm]
    verdict = judged([*kept, run(arm, 0, None, failure=crash)])
    assert (verdict.status, verdict.slug) == (status, slug)
    assert FOUR[arm].label in verdict.reason


def test_an_unsupported_arm_makes_the_case_unsupported() -> None:
    """Found out at run time: the build refuses the flag."""
    refusal = Failure(FailureKind.UNSUPPORTED, "no such flag", "E-unsupported")
    kept = [each for each in runs(NULL) if each.step.arm != 1]
    assert judged([*kept, run(1, 0, None, failure=refusal)]).status is Status.UNSUPPORTED


def test_any_two_arms_of_the_same_content_are_no_contrast() -> None:
    """Not only neighbours of the first."""
    processes = [replace(each, content_key="same") if each.step.arm in (1, 3) else each for each in runs(NULL)]
    verdict = judged(processes)
    assert verdict.slug == "E-no-contrast"
    assert f"{FOUR[1].label} and {FOUR[3].label} are the same content same" in verdict.reason


def test_the_speed_of_wrong_output_is_not_judged() -> None:
    """Each other arm is compared with the first; the reason says which one differs."""
    broken = answers(tokens=(GOOD_TOKENS[0] + 1, *GOOD_TOKENS[1:]))
    burn_in = [run(arm, -1, 500.0, outputs=broken if arm == 1 else answers()) for arm in range(4)]
    verdict = judge(case(), record_of([*burn_in, *runs(NULL)], PROFILE), Policy())
    assert verdict.status is Status.NOT_JUDGED
    assert f"{FOUR[1].label}: 1 of 2 prompts diverge" in verdict.reason
    fine = [run(arm, -1, 500.0, outputs=answers()) for arm in range(4)]
    assert judge(case(), record_of([*fine, *runs(NULL)], PROFILE), Policy()).effects


EFFECTS = st.lists(st.floats(-0.3, 0.3), min_size=4, max_size=4)


@settings(max_examples=25, deadline=None)
@given(effects=EFFECTS, seed=st.integers(0, 1000), scale=st.floats(0.01, 100))
def test_symmetries(effects: list[float], seed: int, scale: float) -> None:
    """Swapping a factor's sides inverts it and the interaction and leaves the other; a scale changes nothing."""
    by_arm = [[each for each in runs(effects, seed=seed) if each.step.arm == arm] for arm in range(4)]
    found = judge_attribution(by_arm, PP.name, FACTORS, LIMITS)
    swapped = judge_attribution([by_arm[arm] for arm in (2, 3, 0, 1)], PP.name, FACTORS, LIMITS)
    assert words(swapped) == (_opposite(words(found)[0]), words(found)[1], _opposite(words(found)[2]))
    assert _ratio(swapped.first) * _ratio(found.first) == pytest.approx(1)
    assert _ratio(swapped.second) == pytest.approx(_ratio(found.second))
    exchanged = judge_attribution([by_arm[arm] for arm in (0, 2, 1, 3)], PP.name, FACTORS, LIMITS)
    assert words(exchanged) == (words(found)[1], words(found)[0], words(found)[2])
    assert _ratio(found.first) * _ratio(found.second) == pytest.approx(_ratio(found.whole))
    scaled = [[_scaled(each, scale) for each in arm] for arm in by_arm]
    assert words(judge_attribution(scaled, PP.name, FACTORS, LIMITS, ceiling_tps=1e9)) == words(found)


def test_false_alarms_and_power_as_simulated() -> None:
    """At a process spread of 1 %: alarms of any of the three within alpha, 3 % of a factor found nearly always.

    400 runs of 16 blocks each at a nominal alpha of .01 for the three tests together.
    """
    alarms = sum(_differs(attributed(NULL, seed=seed)) for seed in range(400))
    assert alarms <= 8
    lost = Counter(words(attributed((0, 0, -0.05, -0.05), seed=seed))[0] for seed in range(100))
    assert lost["regressed"] >= 97
    together = Counter(words(attributed((0, 0, 0, -0.1), seed=seed))[2] for seed in range(100))
    assert together["regressed"] >= 97


def test_a_known_spread_serves_all_three_effects() -> None:
    """A block weighs as much as a quad: with a spread that is known, fewer blocks decide."""
    known = Spread(PP.name, quad_sd=0.01, df=40.0, source="a test")
    with_it = attributed((0, 0, -0.1, -0.1), spread=known)
    assert words(with_it) == ("regressed", "equivalent", "equivalent")


def _differs(found: Attribution) -> bool:
    return any(effect.throughput in (Throughput.REGRESSED, Throughput.IMPROVED) for effect in found.effects)


def _opposite(word: str) -> str:
    return {"regressed": "improved", "improved": "regressed"}.get(word, word)


def _ratio(effect: Effect) -> float:
    assert effect.ratio is not None
    return effect.ratio.value


def _low(effect: Effect) -> float:
    assert effect.ratio is not None
    return effect.ratio.low


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}"


def _scaled(process: ProcessRun, scale: float) -> ProcessRun:
    samples = tuple(replace(each, all_ns=tuple(round(ns * scale) for ns in each.all_ns)) for each in process.samples)
    return replace(process, samples=samples)
