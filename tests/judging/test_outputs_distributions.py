"""Outputs with distributions: tiers, tolerances, and planted differences that must be found or forgiven."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outputs_support import (
    F16,
    FORCED,
    NAMES,
    PREFILL,
    TOP,
    WIDE,
    answers_of,
    judged,
    logits_of,
    output_of,
    ranks_of,
    table_of,
    with_gaps,
    with_varied,
)

from harness.domain.outputs import Gaps, Output, Ranks, Source
from harness.domain.tolerance import Figures
from harness.domain.words import Equivalence, Status
from harness.domain.workload import Prompt
from harness.judging.outputs_statistics import Comparison
from harness.judging.quants import COARSE
from harness.judging.tolerances import QUANTILE_POSITIONS, for_positions
from harness.ranking import NO_TOKEN, Table, pack, pack_values, unpack

BASE = answers_of()
WIDEST = Figures(
    mean=0.015, decode_mean=0.015, median=4e-3, p90=0.035, decode_p90=0.045, p99=0.12, maximum=0.35,
    p25=2e-3, decode_median=4e-3,
)  # fmt: skip
HUGE = Figures(*[99.0] * 9)
_TABLE = table_of(8 * logits_of("p0")[:PREFILL])
RAW = pack(Table(_TABLE.ids, _TABLE.logprobs - _TABLE.logprobs[:, :1]))
"""Logits below the largest, as by a server without a normaliser: of sure rows the divergence is nothing."""
TWICE = pack(Table(np.where(np.arange(TOP) == TOP - 1, _TABLE.ids[:, :1], _TABLE.ids), _TABLE.logprobs))
BASE_FORCED = Gaps(pack_values(np.zeros(FORCED, np.float32)), ())


def but(outputs: Sequence[Output], name: str, **changes: object) -> tuple[Output, ...]:
    """The same answers with one prompt's changed."""
    return tuple(replace(each, **changes) if each.prompt == name else each for each in outputs)  # type: ignore[arg-type]


def shifted(name: str, at: int, by: float) -> Output:
    """One position at which the most probable token loses ``by`` nats of its logit."""
    logits = logits_of(name)
    logits[at, logits[at].argmax()] -= by
    return output_of(name, logits)


def with_prompt(changed: Output) -> tuple[Output, ...]:
    return tuple(changed if each.prompt == changed.prompt else each for each in BASE)


@pytest.mark.parametrize(
    ("noise", "word", "status"),
    [
        (0.0, Equivalence.BITWISE, Status.PASS),
        (1e-3, Equivalence.GREEDY, Status.PASS),
        (0.01, Equivalence.NEAR_TIE, Status.PASS),
        (0.1, Equivalence.DIFFERENT, Status.FAIL),
        (1.0, Equivalence.DIFFERENT, Status.FAIL),
    ],
)
def test_noise_climbs_the_tiers(noise: float, word: Equivalence, status: Status) -> None:
    found = judged(answers_of(noise), BASE)
    assert (found.equivalence, found.status) == (word, status)


def test_a_divergence_above_a_tie_inside_the_tolerances_is_distribution() -> None:
    """Another token where the reference was half sure, one position of 1,536."""
    name = NAMES[3]
    margins = table_of(logits_of(name)).margins[PREFILL + FORCED :]
    at = int(np.argmin(np.abs(margins - 0.4)))
    changed = shifted(name, PREFILL + FORCED + at, float(margins[at]) + 0.1)
    found = judged(with_prompt(changed), BASE)
    assert (found.equivalence, found.status) == (Equivalence.DISTRIBUTION, Status.PASS)
    assert "1 of 16 prompts diverge" in found.why


def test_equal_hashes_do_not_excuse_a_broken_decode() -> None:
    """The hash covers what one engine hashed; probabilities of decoded positions differ all the same."""
    noisy = answers_of(0.3)
    same_hash = tuple(
        replace(ours, forced=theirs.forced, greedy=ours.greedy) for ours, theirs in zip(BASE, noisy, strict=True)
    )
    assert judged(same_hash, BASE).equivalence is Equivalence.DIFFERENT
    assert "decode mean" in judged(same_hash, BASE).why


def test_one_flip_of_a_sure_token_is_enough() -> None:
    name = NAMES[5]
    margins = table_of(logits_of(name)).margins[:PREFILL]
    at = int(np.argmax(margins))
    assert margins[at] > 3
    found = judged(with_prompt(shifted(name, at, float(margins[at]) + 0.01)), BASE, limits=COARSE)
    assert found.equivalence is Equivalence.DIFFERENT
    assert "1 of 1,536 positions flip above 3 nat" in found.why
    assert f"worst prompt '{name}' at prompt token {at + 7} of 70" in found.why


def test_tokens_after_the_first_divergence_do_not_count() -> None:
    """Contexts differ after it; the 15 positions behind it may be anything."""
    name = NAMES[0]
    logits = logits_of(name)
    first = PREFILL + FORCED
    order = np.argsort(-logits[first])
    logits[first, order[1]] = logits[first, order[0]] + 1e-3
    near = logits.copy()
    near[first, order[1]] -= 2e-3
    logits[first + 1 :] = logits_of("p99")[: len(logits) - first - 1]
    baseline = with_prompt(output_of(name, near))
    found = judged(with_prompt(output_of(name, logits)), baseline)
    assert found.equivalence is Equivalence.NEAR_TIE
    assert "1,521 positions" in found.why


@pytest.mark.parametrize(
    ("margin", "noise", "word", "status"),
    [
        (0.002, 0.0, None, Status.INCONCLUSIVE),
        (0.4, 0.0, Equivalence.BROKEN, Status.FAIL),
        (0.002, 0.3, Equivalence.BROKEN, Status.FAIL),
    ],
)
def test_a_text_that_collapses_is_undecided_only_after_a_tie_and_inside_the_tolerances(
    margin: float, noise: float, word: Equivalence | None, status: Status
) -> None:
    """It runs free after a tie, and may turn in a circle by chance: then the figures have to show that something is."""
    name, first = NAMES[0], PREFILL + FORCED
    logits = logits_of(name).copy()
    order = np.argsort(-logits[first])
    near = logits.copy()
    near[first, order[1]] = near[first, order[0]] - margin
    logits[first, order[1]] = logits[first, order[0]] + 1e-3
    logits[first + 1 :, order[1]] = 50.0
    collapsed = output_of(name, logits)
    others = answers_of(noise)
    candidate = tuple(collapsed if each.prompt == name else each for each in others)
    found = judged(candidate, with_prompt(output_of(name, near)))
    assert (found.equivalence, found.status) == (word, status)
    assert f"prompt '{name}' is degenerate: 1 distinct of 16 tokens" in found.why


# ---- NaN, infinity, damage -------------------------------------------------------------------------------------------


def nan_row(ranks: Ranks | None, at: int, value: float) -> Ranks:
    assert ranks is not None
    table = table_of(logits_of("p0")[: ranks.positions])
    ids, logprobs = table.ids.copy(), table.logprobs.copy()
    ids[at], logprobs[at] = NO_TOKEN, value
    return pack(Table(ids, logprobs))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["prefill", "forced", "greedy"])
def test_a_planted_nan_is_broken_in_the_candidate_and_no_reference_in_the_baseline(kind: str, value: float) -> None:
    bad = but(BASE, "p0", **{kind: nan_row(getattr(BASE[0], kind), 3, value)})
    found = judged(bad, BASE)
    assert (found.status, found.equivalence) == (Status.FAIL, Equivalence.BROKEN)
    assert "prompt 'p0' has NaN or inf at 1 of " in found.why
    found = judged(BASE, bad)
    assert (found.status, found.slug) == (Status.ERROR, "E-no-baseline")


def test_one_nan_among_tokens_that_the_reference_did_not_keep_is_found() -> None:
    """All the reference's tokens have their match, so no figure would show it."""
    table = table_of(logits_of("p0")[:PREFILL])
    more = table_of(logits_of("p0")[:PREFILL], top=21)
    logprobs = more.logprobs.copy()
    logprobs[5, 20] = np.nan
    assert np.isfinite(Comparison([(BASE[0], replace(BASE[0], prefill=pack(table)))]).figures.maximum)
    found = judged(but(BASE, "p0", prefill=pack(Table(more.ids, logprobs))), BASE)
    assert found.equivalence is Equivalence.BROKEN


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_under_a_harmless_change_widens_no_tolerance(value: float) -> None:
    prefill, forced = (
        Gaps(pack_values(np.array([1e-6] * (positions - 1) + [last], np.float32)), (value,))
        for positions, last in ((PREFILL, 1e-6), (FORCED, value))
    )
    bad = tuple(with_gaps(each, prefill, forced) if each.prompt == "p2" else each for each in answers_of(1.0))
    found = judged(bad, BASE)
    assert (found.equivalence, "NaN or inf at 1 positions, evaluated otherwise (batch)" in found.why) == (
        Equivalence.BROKEN,
        True,
    )
    assert judged(answers_of(1.0), tuple(with_gaps(each, prefill, forced) for each in BASE)).status is Status.ERROR


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prefill": Ranks(64, 20, "nonsense")}, "damaged values"),
        ({"prefill": Ranks(64, 0, "")}, "damaged values"),
        ({"prefill": Ranks(-1, 20, "")}, "damaged values"),
        ({"prefill": Ranks(10**30, 20, ranks_of(logits_of("p0")[:4]).packed)}, "positions for 70 tokens"),
        ({"prefill": Ranks(64, 10**30, ranks_of(logits_of("p0")[:4]).packed)}, "damaged|too large"),
        ({"prefill": ranks_of(logits_of("p0")[:63])}, "63"),
        ({"forced": ranks_of(logits_of("p0")[:15])}, "15 positions for 16 tokens"),
        ({"greedy": ranks_of(logits_of("p0")[:17])}, "17 positions for 16 tokens"),
        ({"forced": None}, "has forced positions in one arm alone"),
        ({"prefill": RAW}, "add up to"),
        ({"prefill": TWICE}, "ranked twice"),
    ],
)
def test_damage_is_an_error_that_names_it_and_never_equality(changes: dict[str, object], said: str) -> None:
    bad = but(BASE, "p0", **changes)
    for arm, (theirs, ours) in {"candidate": (bad, BASE), "baseline": (BASE, bad)}.items():
        found = judged(theirs, ours)
        assert f"the {arm}'s" in found.why or "one arm alone" in found.why or " against " in found.why
        assert (found.status, found.slug, found.equivalence) == (Status.ERROR, "E-outputs-unreadable", None)
        assert any(word in found.why for word in said.split("|"))
        assert "prompt 'p0'" in found.why


def test_damaged_differences_of_an_arm_from_itself_are_an_error() -> None:
    for kld in ("nonsense", pack_values(np.zeros(3, np.float32)), pack_values(np.zeros(1 << 20, np.float32))):
        bad = tuple(with_gaps(each, Gaps(kld, ()), Gaps(kld, ())) if each.prompt == "p0" else each for each in BASE)
        assert judged(bad, BASE).slug == "E-outputs-unreadable"


def test_forced_answers_that_are_cut_into_other_tokens_are_broken() -> None:
    found = judged(but(BASE, "p1", forced_tokens=tuple(range(1, FORCED + 1))), BASE)
    assert found.equivalence is Equivalence.BROKEN
    assert "the answer to prompt 'p1' is tokenized differently" in found.why


@pytest.mark.parametrize("lost", ["prefill", "forced", "greedy"])
def test_positions_that_one_embedded_arm_lost_are_no_equality(lost: str) -> None:
    cut = tuple(replace(each, **{lost: None}) for each in answers_of(1e-4))
    for found in (judged(cut, BASE), judged(BASE, cut)):
        assert (found.status, found.slug) == (Status.ERROR, "E-outputs-unreadable")
        assert "has lost its" in found.why
    served = tuple(replace(each, source=Source.SERVER) for each in cut)
    assert judged(served, BASE).status is Status.PASS, "a source that gives none has lost none"


def test_two_answers_to_one_prompt_are_no_equality() -> None:
    wrong = replace(BASE[0], tokens=BASE[0].tokens[::-1])
    for found in (judged((wrong, *BASE), BASE), judged(BASE, (wrong, *BASE))):
        assert (found.status, found.slug) == (Status.ERROR, "E-outputs-unreadable")
        assert "two answers to prompt 'p0'" in found.why


def test_nothing_asked_is_no_equality() -> None:
    assert judged((), profile=replace(WIDE, prompts=())).status is Status.ERROR


# ---- tolerances ------------------------------------------------------------------------------------------------------


def test_the_arms_own_noise_widens_the_tolerances() -> None:
    assert judged(answers_of(0.05), BASE).equivalence is Equivalence.DIFFERENT
    assert judged(answers_of(0.05), with_varied(BASE, 0.05)).status is Status.PASS
    assert judged(with_varied(answers_of(0.05), 0.05), BASE).status is Status.FAIL, "16 bits: no more than the floor"


def test_a_candidate_that_differs_from_itself_is_not_excused_by_it() -> None:
    """Wrong under another batch: its own differences are as large as those from the baseline."""
    found = judged(with_varied(answers_of(1.0), 1.0), BASE, allowed=replace(F16, widest=WIDEST))
    assert found.equivalence is Equivalence.DIFFERENT
    assert "the candidate differs from itself by more than is believed to be harmless" in found.why
    modest = judged(with_varied(answers_of(0.05), 0.05), BASE, allowed=replace(F16, widest=WIDEST))
    assert modest.status is Status.PASS


def test_a_baseline_that_is_broken_under_a_harmless_change_lets_nothing_pass() -> None:
    """Its own noise is twice as large as any that sound arms showed: then it is no reference, and excuses nobody."""
    found = judged(answers_of(3.0), with_varied(BASE, 3.0))
    assert (found.status, found.equivalence) == (Status.INCONCLUSIVE, Equivalence.DIFFERENT)
    assert "the baseline differs from itself by more than is believed to be harmless" in found.why
    assert "the baseline is no reference" in found.why
    assert not found.speed_may_be_judged
    assert judged(answers_of(1e-3), with_varied(BASE, 3.0)).status is Status.PASS, "needs none of that noise"
    flips = with_gaps(BASE[0], Gaps(pack_values(np.zeros(PREFILL, np.float32)), (40.0,)), BASE_FORCED)
    assert judged(answers_of(3.0), (flips, *BASE[1:]), allowed=replace(F16, floor=HUGE)).status is Status.INCONCLUSIVE


def test_few_positions_are_not_held_to_means_of_many() -> None:
    """One position as far off as the floor's maximum is harmless, also where it is one of sixty."""
    floor = F16.floor
    assert for_positions(floor, 5000, 512) == floor
    few = for_positions(floor, 60, 20)
    assert few.mean > floor.mean + floor.maximum / 70
    assert for_positions(floor, 0, 0).mean == floor.mean
    assert all(for_positions(floor, n, n).mean >= for_positions(floor, n + 1, n).mean for n in range(1, 1200))


def test_a_percentile_of_few_positions_is_shown_and_not_judged() -> None:
    few = replace(WIDE, prompts=WIDE.prompts[:2])
    found = judged(answers_of(0.01, names=NAMES[:2]), answers_of(names=NAMES[:2]), profile=few)
    assert QUANTILE_POSITIONS > 192
    assert "not judged" in found.detail


@pytest.mark.parametrize(
    ("noise", "word"), [(0.1, Equivalence.LOSSY_DECLARED), (0.3, Equivalence.DIFFERENT), (2.0, Equivalence.DIFFERENT)]
)
def test_a_declared_loss_has_a_budget(noise: float, word: Equivalence) -> None:
    found = judged(answers_of(noise), BASE, allowed=replace(F16, lossy=5e-3, factor="ctk"))
    assert found.equivalence is word
    assert ("declared lossy (ctk: mean of at most 0.005)" in found.why) == (word is Equivalence.LOSSY_DECLARED)


def test_equal_to_the_bit_is_inert_where_numbers_should_change() -> None:
    found = judged(answers_of(), BASE, allowed=replace(F16, factor="ser", changes_numbers=True))
    assert (found.inert, found.status, found.equivalence) == (True, Status.PASS, Equivalence.BITWISE)
    assert "ser should change numbers" in found.why
    assert not judged(answers_of(1e-3), BASE, allowed=replace(F16, factor="ser", changes_numbers=True)).inert


def test_without_a_calibration_a_divergence_is_advice_and_a_hard_flip_is_not() -> None:
    advice = replace(F16, advisory="real-model on GPU (nvidia)")
    found = judged(answers_of(0.1), BASE, allowed=advice)
    assert (found.status, found.equivalence) == (Status.INCONCLUSIVE, Equivalence.DIFFERENT)
    assert "advisory: nothing is calibrated for real-model on GPU (nvidia)" in found.why
    assert found.speed_may_be_judged
    hard = judged(answers_of(2.0), BASE, allowed=advice)
    assert (hard.status, hard.speed_may_be_judged) == (Status.FAIL, False)
    assert judged(but(BASE, "p0", finite=False), BASE, allowed=advice).status is Status.FAIL


def test_a_single_kept_token_tells_no_margin() -> None:
    """Its lead is infinite as far as one knows: that makes no flip hard."""
    logits = logits_of("p0")[:PREFILL]
    at = int(table_of(logits).margins.argmin())
    best, second = np.argsort(-logits[at])[:2]
    turned = logits.copy()
    turned[at, [best, second]] = logits[at, [second, best]]
    one, other = (but(BASE, "p0", prefill=ranks_of(each, 1), logits_sha256="") for each in (logits, turned))
    found = judged(other, one)
    assert found.status is Status.PASS
    assert "same top token    99.93 %" in found.detail


def test_sources_without_prompt_positions_say_so() -> None:
    served = tuple(replace(each, prefill=None, source=Source.SERVER) for each in answers_of(0.001))
    found = judged(served, BASE)
    assert found.equivalence is Equivalence.GREEDY
    assert "prompt positions (a server gives none)" in found.scope
    assert "512 positions" in found.why


def test_a_sure_token_that_changes_counts_also_where_its_distribution_is_missing() -> None:
    bare = tuple(replace(each, greedy=None) for each in BASE)
    tokens = (999, *BASE[0].tokens[1:])
    margins = (5.0, *(BASE[0].margins or ())[1:])
    for allowed in (F16, replace(F16, lossy=0.5), replace(F16, advisory="anything")):
        found = judged(but(bare, "p0", tokens=tokens), but(bare, "p0", margins=margins), allowed=allowed)
        assert (found.equivalence, found.status) == (Equivalence.DIFFERENT, Status.FAIL)
        assert f"prompt 'p0' token 0: id {BASE[0].tokens[0]} became 999, reference margin 5 nat" in found.why


def test_answers_that_a_server_tells_at_some_forced_tokens_are_compared_there() -> None:
    """Positions 0, 1 and 4 in one arm, 1, 4 and 9 in the other: two are in both, and they are the right ones."""
    logits = logits_of("p0")[PREFILL : PREFILL + FORCED]
    served = [
        replace(
            BASE[0],
            source=Source.SERVER,
            prefill=None,
            forced=ranks_of(logits[list(at)]),
            forced_at=at,
            logits_sha256="",
        )
        for at in ((0, 1, 4), (1, 4, 9))
    ]
    one = replace(WIDE, prompts=WIDE.prompts[:1])
    found = judged(served[1:], served[:1], profile=one)
    assert found.equivalence is Equivalence.GREEDY
    assert "18 positions" in found.why
    assert "max 0" in found.why
    misplaced = replace(served[1], forced_at=(0, 1, 4))
    assert judged([misplaced], served[:1], profile=one).equivalence is Equivalence.DIFFERENT


def test_a_source_that_generates_nothing_is_never_called_greedy() -> None:
    logits = [
        replace(each, source=Source.PERPLEXITY, tokens=(), margins=None, greedy=None, forced=None) for each in BASE
    ]
    found = judged(logits, [replace(each, logits_sha256="") for each in logits])
    assert found.equivalence is Equivalence.DISTRIBUTION
    assert "generation" in found.scope
    bare = [replace(each, prefill=None) for each in logits]
    assert judged(bare, bare).slug == "E-outputs-unreadable"


def test_four_thousand_positions_cost_well_under_a_second_and_few_megabytes() -> None:
    """Two arms of 4,032 positions; processor time, for the machine may be busy."""
    prompts = tuple(Prompt(f"p{number}", "?") for number in range(42))
    many = replace(WIDE, prompts=prompts)
    names = tuple(prompt.name for prompt in prompts)
    ours, theirs = answers_of(names=names), answers_of(0.5, names=names)
    tracemalloc.start()
    before = time.process_time()
    found = judged(theirs, ours, profile=many)
    spent, (_, peak) = time.process_time() - before, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.equivalence is Equivalence.DIFFERENT
    assert spent < 1.0
    assert peak < 16 * 1024**2


@given(
    kind=st.sampled_from(["prefill", "forced", "greedy"]),
    positions=st.none() | st.integers(-2, 80) | st.just(10**20),
    top=st.none() | st.integers(-2, 25) | st.just(10**20),
    at=st.integers(0, 10_000),
    put=st.text(max_size=4),
    arm=st.integers(0, 1),
)
def test_no_damage_of_a_table_passes_or_raises(
    *, kind: str, positions: int | None, top: int | None, at: int, put: str, arm: int
) -> None:
    """Whatever is done to one table of either arm is an error or a finding, unless the same tokens stand in it."""
    ranks: Ranks = getattr(BASE[0], kind)
    at %= len(ranks.packed)
    packed = ranks.packed[:at] + put + ranks.packed[at + len(put) :]
    damaged = Ranks(ranks.positions if positions is None else positions, ranks.top if top is None else top, packed)
    arms = [BASE[:1], BASE[:1]]
    arms[arm] = (replace(BASE[0], **{kind: damaged}),)
    found = judged(arms[1], arms[0], profile=replace(WIDE, prompts=WIDE.prompts[:1]))
    if found.status is Status.PASS:
        assert np.array_equal(unpack(damaged).ids, unpack(ranks).ids)
    else:
        assert found.status in (Status.ERROR, Status.FAIL)
