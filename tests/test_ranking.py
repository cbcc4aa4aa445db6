"""Distributions cut to their most probable tokens: packing loses nothing, divergences are what they should be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.outputs import Ranks
from harness.ranking import (
    NO_TOKEN,
    Table,
    divergences,
    flipped_margins,
    gaps,
    pack,
    pack_values,
    unpack,
    unpack_values,
)


def table_of(logits: np.ndarray, top: int) -> Table:
    values = (
        logits - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True)) - logits.max(1)[:, None]
    )
    ids = np.argsort(-values, axis=1, kind="stable")[:, :top]
    return Table(ids.astype(np.int32), np.take_along_axis(values, ids, 1).astype(np.float32))


def full_divergence(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    p, q = (np.exp(x) / np.exp(x).sum(1, keepdims=True) for x in (ours, theirs))
    return (p * np.log(p / q)).sum(1)


def logits_of(seed: int, positions: int = 40, vocabulary: int = 300) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 3.5, (positions, vocabulary))


@given(seed=st.integers(0, 10_000), top=st.integers(1, 20))
def test_packing_loses_nothing(seed: int, top: int) -> None:
    table = table_of(logits_of(seed, positions=7), top)
    back = unpack(pack(table))
    assert np.array_equal(back.ids, table.ids)
    assert np.array_equal(back.logprobs, table.logprobs)


@given(seed=st.integers(0, 10_000), top=st.integers(2, 20), noise=st.floats(0.0, 3.0))
def test_coarse_divergences_are_never_above_the_true_ones(seed: int, top: int, noise: float) -> None:
    ours = logits_of(seed)
    theirs = ours + np.random.default_rng(seed + 1).normal(0.0, noise, ours.shape)
    found = divergences(table_of(ours, top), table_of(theirs, top))
    assert (found >= 0).all()
    assert (found <= full_divergence(ours, theirs) * 1.001 + 1e-5).all()


def test_equal_distributions_are_apart_by_nothing() -> None:
    table = table_of(logits_of(1), 20)
    assert divergences(table, table).max() < 1e-6
    assert gaps(table, table).flips == ()


@pytest.mark.parametrize("noise", [0.01, 0.1, 1.0])
def test_most_of_the_true_divergence_is_seen(noise: float) -> None:
    ours = logits_of(3, positions=400)
    theirs = ours + np.random.default_rng(4).normal(0.0, noise, ours.shape)
    found = divergences(table_of(ours, 20), table_of(theirs, 20)).mean()
    assert found > 0.6 * full_divergence(ours, theirs).mean()


def test_unlike_networks_are_far_apart_although_they_keep_no_token_in_common() -> None:
    reference, other = table_of(logits_of(5), 20), table_of(logits_of(6), 20)
    assert np.median(divergences(reference, other)) > 1.0
    disjoint = Table(reference.ids, reference.logprobs), Table(reference.ids + 1000, reference.logprobs)
    assert divergences(*disjoint).min() > 0.5


def test_a_row_that_is_not_finite_is_infinitely_far() -> None:
    sound = table_of(logits_of(7, positions=2), 5)
    ids, logprobs = sound.ids.copy(), sound.logprobs.copy()
    ids[1], logprobs[1] = NO_TOKEN, np.nan
    found = divergences(sound, Table(ids, logprobs))
    assert found[0] < 1e-6
    assert np.isinf(found[1])


def test_flips_carry_the_margin_of_the_reference() -> None:
    reference = Table(np.array([[3, 5]], np.int32), np.log(np.array([[0.6, 0.3]], np.float32)))
    other = Table(np.array([[5, 3]], np.int32), np.log(np.array([[0.5, 0.4]], np.float32)))
    assert flipped_margins(reference, other) == pytest.approx([np.log(2.0)], rel=1e-5)


@pytest.mark.parametrize(
    "ranks",
    [Ranks(2, 3, pack(table_of(logits_of(1, positions=3), 3)).packed), Ranks(1, 1, "~"), Ranks(1, 1, "nonsense")],
)
def test_damaged_tables_are_refused(ranks: Ranks) -> None:
    with pytest.raises(ValueError, match="damaged values"):
        unpack(ranks)


def test_values_come_back() -> None:
    values = np.array([0.0, 1e-7, np.inf], np.float32)
    assert np.array_equal(unpack_values(pack_values(values)), values)


def test_unequal_numbers_of_positions_are_refused() -> None:
    with pytest.raises(ValueError, match="2 positions against 3"):
        divergences(table_of(logits_of(1, positions=2), 3), table_of(logits_of(1, positions=3), 3))
