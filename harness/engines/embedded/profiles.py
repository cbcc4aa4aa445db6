"""Profiles as a child handles them: the prompt's tokens, and the clock of a cold start. ``answers`` answers them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .bindings import Bindings
from .errors import EmbeddedError
from .profile_tokens import fitted
from .prompts import begin_and_body
from .request import ProfilePlan


class ColdClock:
    """Time since the engine was first touched, without what the harness does in between for itself."""

    def __init__(self) -> None:
        self._start = time.perf_counter_ns()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out what is done inside: hashing libraries, writing lines."""
        before = time.perf_counter_ns()
        yield
        self._start += time.perf_counter_ns() - before

    def until(self, moment: int) -> int:
        """Nanoseconds up to a moment of ``time.perf_counter_ns``."""
        return moment - self._start


@dataclass(frozen=True, slots=True)
class FittedProfile:
    """A profile with its prompt as tokens of this model."""

    plan: ProfilePlan
    tokens: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Context cells that a request fills."""
        return len(self.tokens) + self.plan.n_predict


def fit_profile(api: Bindings, plan: ProfilePlan) -> FittedProfile:
    """Turn a profile's text into the tokens that were asked for.

    Raises:
        EmbeddedError: ``E-tokenize``; ``E-prompt-too-long`` where the model was not trained for so long a context.
    """
    begin, body = begin_and_body(api, plan.text)
    if not body or 0 < plan.prompt_tokens <= len(begin):
        raise EmbeddedError("E-tokenize", f"profiles: {plan.name}: no token of its text is left to answer")
    profile = FittedProfile(plan, tuple(fitted(body, begin, plan.prompt_tokens)))
    trained = api.trained_cells()
    if trained and profile.cells > trained:
        raise EmbeddedError(
            "E-prompt-too-long",
            f"profiles: {plan.name} has {len(profile.tokens)} tokens, but with {plan.n_predict} to predict the model's"
            f" context is {trained}: set prompt_tokens lower",
        )
    return profile
