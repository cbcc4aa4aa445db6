"""Errors: one line with slug, place and remedy, which survives the way home from a worker."""

from __future__ import annotations

import pickle

import pytest

from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.domain.failure import Failure, FailureKind
from harness.domain.suggest import did_you_mean


@pytest.mark.parametrize("kind", [BadInput, Infrastructure])
def test_an_error_survives_pickling(kind: type[HarnessError]) -> None:
    """Every part comes back."""
    error = kind("E-x", "what happened", hint="do this", where="file: key")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is kind
    assert again.as_json() == error.as_json()
    assert str(again) == "E-x: file: key: what happened (do this)"


@pytest.mark.parametrize(
    ("word", "choices", "said"),
    [
        ("fmeo", ["fmoe", "fa"], "did you mean 'fmoe'?"),
        ("q4_k_m", ["Q4_K_M", "IQ4_XS"], "did you mean 'Q4_K_M'?"),
        ("zzz", ["b", "a"], "known: a, b"),
        ("zzz", [], ""),
    ],
)
def test_the_nearest_choice_is_named_or_all_are(word: str, choices: list[str], said: str) -> None:
    """Case does not matter; nothing near lists what there is."""
    assert did_you_mean(word, choices) == said


def test_only_infrastructure_is_retried_and_never_blamed_on_the_candidate() -> None:
    """A failure that may be retried says nothing about the candidate."""
    for kind in FailureKind:
        failure = Failure(kind, "", "E-x")
        assert not (failure.may_be_retried and failure.blames_candidate)
