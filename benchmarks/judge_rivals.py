"""Other ways to judge two builds, vectorised: what CI scripts do, two textbook tests, and two packages.

Each way says how its process starts follow each other and how many there are, and turns their repetitions into a word:
-1 slower, 0 nothing found, 1 faster. What the packages do was read in pytest-benchmark 5.3.1 and benchmatrix 1.2.1;
``record_rivals.py`` runs the real ones, and a test holds these against what they said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
from judge_noise import Arms, Floats, Source, as_floats, quad_arms, quads_of
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr, ndtri

Words = NDArray[np.int_]

REPETITIONS = 5
"""Of a process: llama-bench's own number."""

_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Rival:
    """A way to judge with a fixed number of process starts.

    Attributes:
        name: What it is called in the table.
        arms: Arms of its process starts in order of time.
        judge: Gets seconds of the baseline and of the candidate, sessions x processes x repetitions; gives the words.
    """

    name: str
    arms: Arms
    judge: Callable[[Floats, Floats], Words]

    def words(self, source: Source, sessions: int, effect: float, rng: np.random.Generator) -> Words:
        """Judge fresh sessions of a machine.

        Args:
            source: The machine.
            sessions: How many.
            effect: True log ratio of candidate speed over baseline speed.
            rng: Source of chance.
        """
        seconds = np.exp(source.log_times(sessions, self.arms, REPETITIONS, rng))
        return self.judge(seconds[:, self.arms == 0], seconds[:, self.arms == 1] * np.exp(-effect))


def one_after_the_other(processes: int) -> Arms:
    """All process starts of the baseline, then all of the candidate."""
    return np.array([0] * processes + [1] * processes, dtype=int)


def alternating_pairs(pairs: int) -> Arms:
    """AB, BA, AB and so on."""
    return np.concatenate([(0, 1) if index % 2 == 0 else (1, 0) for index in range(pairs)])


def _word(slower: NDArray[np.bool_], faster: NDArray[np.bool_]) -> Words:
    return np.subtract(faster, slower, dtype=int)


def fixed_threshold(share: float) -> Callable[[Floats, Floats], Words]:
    """The mean speed of the candidate's repetitions lies so far below, or above, that of the baseline's."""

    def judge(baseline: Floats, candidate: Floats) -> Words:
        ratio = (1 / candidate).mean(axis=(1, 2)) / (1 / baseline).mean(axis=(1, 2))
        return _word(ratio < 1 - share, ratio > 1 + share)

    return judge


def compare_fail(field: str, percent: int) -> Callable[[Floats, Floats], Words]:
    """pytest-benchmark's ``--benchmark-compare-fail=FIELD:PERCENT%``: times of one run each; it knows slower only."""

    def judge(baseline: Floats, candidate: Floats) -> Words:
        before, now = _statistic(field, baseline[:, 0]), _statistic(field, candidate[:, 0])
        slower = now / before * 100 - 100 > percent
        return _word(slower, np.zeros_like(slower))

    return judge


def _statistic(field: str, seconds: Floats) -> Floats:
    if field == "mean":
        return as_floats(seconds.mean(axis=1))
    return as_floats(seconds.min(axis=1) if field == "min" else np.median(seconds, axis=1))


def welch(baseline: Floats, candidate: Floats) -> Words:
    """Welch's t-test at .05 over all repetitions, as if each were a sample of its own."""
    now, before = _speeds(candidate), _speeds(baseline)
    return _significant(now, before, stats.ttest_ind(now, before, axis=1, equal_var=False).pvalue)


def mann_whitney(baseline: Floats, candidate: Floats) -> Words:
    """The Mann-Whitney U test at .05 over all repetitions."""
    now, before = _speeds(candidate), _speeds(baseline)
    return _significant(now, before, stats.mannwhitneyu(now, before, axis=1).pvalue)


def welch_of_processes(baseline: Floats, candidate: Floats) -> Words:
    """Welch's t-test at .05 over the medians of processes."""
    now, before = 1 / np.median(candidate, axis=2), 1 / np.median(baseline, axis=2)
    return _significant(now, before, stats.ttest_ind(now, before, axis=1, equal_var=False).pvalue)


def _speeds(seconds: Floats) -> Floats:
    return 1 / seconds.reshape(len(seconds), -1)


def _significant(candidate: Floats, baseline: Floats, p: Floats) -> Words:
    up = candidate.mean(axis=1) > baseline.mean(axis=1)
    return _word((p < _ALPHA) & ~up, (p < _ALPHA) & up)


def paired_t(quads: int) -> Rival:
    """A t-test at .05 over so many ABBA quads, once."""
    arms = quad_arms(quads)

    def judge(baseline: Floats, candidate: Floats) -> Words:
        times = np.empty((len(baseline), len(arms), REPETITIONS))
        times[:, arms == 0], times[:, arms == 1] = np.log(baseline), np.log(candidate)
        ratios = quads_of(times)
        p = stats.ttest_1samp(ratios, 0.0, axis=1).pvalue
        return _significant(ratios, np.zeros_like(ratios), p)

    return Rival(f"t-test .05 over {quads} ABBA quads", arms, judge)


# --- benchmatrix ------------------------------------------------------------------------------------------------------


def benchmatrix_independent(percent: float) -> Callable[[Floats, Floats], Words]:
    """The package's ``compare BASELINE CANDIDATE``: two groups of runs, a cell alone in its matrix."""

    def judge(baseline: Floats, candidate: Floats) -> Words:
        return _beyond(independent_interval(baseline.mean(axis=2), candidate.mean(axis=2)), percent)

    return judge


def benchmatrix_paired(percent: float) -> Callable[[Floats, Floats], Words]:
    """The package's ``compare --paired``: pairs AB and BA in turn, a cell alone in its matrix."""

    def judge(baseline: Floats, candidate: Floats) -> Words:
        return _beyond(paired_interval(baseline.mean(axis=2), candidate.mean(axis=2)), percent)

    return judge


def _beyond(interval: tuple[Floats, Floats], percent: float) -> Words:
    low, high = interval
    return _word(high < -percent, low > percent)


def independent_interval(baseline: Floats, candidate: Floats) -> tuple[Floats, Floats]:
    """Its 95 % interval of the change in per cent, positive for better, of means of runs: sessions x runs.

    It resamples 50,000 times; here every resample is counted once with its probability.
    """
    medians = [np.sort(values, axis=1) for values in (baseline, candidate)]  # of resamples, which are odd in number
    shares = _shares_of_middle(baseline.shape[1])
    effects = _change(medians[0][:, :, None], medians[1][:, None, :]).reshape(len(baseline), -1)
    weights = np.outer(shares, shares).ravel()
    middle = [np.median(values, axis=1) for values in (baseline, candidate)]
    without = [_without_one(values) for values in (baseline, candidate)]
    jackknife = (_change(without[0], middle[1][:, None]), _change(middle[0][:, None], without[1]))
    return _bca(effects, weights, _change(middle[0], middle[1]), jackknife)


def paired_interval(baseline: Floats, candidate: Floats) -> tuple[Floats, Floats]:
    """The same for pairs, resampled inside the two orders AB and BA: sessions x pairs, orders in turn."""
    half = baseline.shape[1] // 2
    picks, shares = _resamples(half)
    first, second = np.indices((len(picks), len(picks))).reshape(2, -1)
    index = np.concatenate([2 * picks[first], 2 * picks[second] + 1], axis=1)
    effects = _change(np.median(baseline[:, index], axis=2), np.median(candidate[:, index], axis=2))
    change = _change(_without_one(baseline), _without_one(candidate))
    whole = _change(np.median(baseline, axis=1), np.median(candidate, axis=1))
    return _bca(effects, shares[first] * shares[second], whole, (change[:, 0::2], change[:, 1::2]))


def _change(baseline: Floats, candidate: Floats) -> Floats:
    return -(candidate / baseline - 1) * 100


def _resamples(count: int) -> tuple[NDArray[np.int_], Floats]:
    """All samples of ``count`` out of ``count`` with replacement, as indices, and the probability of each."""
    picks = list(combinations_with_replacement(range(count), count))
    ways = [factorial(count) / prod(factorial(pick.count(item)) for item in set(pick)) for pick in picks]
    return np.array(picks), np.array(ways) / count**count


def _shares_of_middle(count: int) -> Floats:
    """How often each of so many values, in order of size, is the middle of a resample."""
    picks, shares = _resamples(count)
    return as_floats(np.bincount(picks[:, count // 2], weights=shares, minlength=count))


def _without_one(values: Floats) -> Floats:
    return np.stack([np.median(np.delete(values, index, axis=1), axis=1) for index in range(values.shape[1])], axis=1)


def _bca(effects: Floats, weights: Floats, estimate: Floats, jackknife: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Bias-corrected and accelerated interval of a distribution that is known in full."""
    below = ((effects < estimate[:, None]) * weights).sum(axis=1)
    level = ((effects == estimate[:, None]) * weights).sum(axis=1)
    bias = ndtri(np.clip(below + level / 2, 1e-5, 1 - 1e-5))
    cubes, squares = np.zeros(len(effects)), np.zeros(len(effects))
    for group in jackknife:
        count = group.shape[1]
        pseudo = (count - 1) * (group.mean(axis=1, keepdims=True) - group)
        cubes += (pseudo**3).sum(axis=1) / count**3
        squares += (pseudo**2).sum(axis=1) / count**2
    pull = np.divide(cubes, 6 * squares**1.5, out=np.zeros_like(cubes), where=squares > 0)
    bounds = []
    for tail in (_ALPHA / 2, 1 - _ALPHA / 2):
        reach = bias + ndtri(tail)
        corrected = ndtr(bias + reach / (1 - pull * reach))
        bounds.append(_quantile(effects, weights, np.where(squares > 0, corrected, tail)))
    return np.minimum(*bounds), np.maximum(*bounds)


def _quantile(values: Floats, weights: Floats, share: Floats) -> Floats:
    order = np.argsort(values, axis=1)
    reached = np.cumsum(weights[order], axis=1) > share[:, None]
    reached[:, -1] = True
    at = np.take_along_axis(order, reached.argmax(axis=1)[:, None], axis=1)
    found: Floats = np.take_along_axis(values, at, axis=1)[:, 0]
    return found


def rivals() -> tuple[Rival, ...]:
    """Every way but ours, cheapest first."""
    single, five, six = one_after_the_other(1), one_after_the_other(5), alternating_pairs(6)
    return (
        *(Rival(f"mean of five, {share:.0%}", single, fixed_threshold(share)) for share in (0.03, 0.05, 0.10)),
        Rival("Welch .05, five repetitions", single, welch),
        Rival("Mann-Whitney .05, five repetitions", single, mann_whitney),
        *(Rival(f"pytest-benchmark {field}:5%", single, compare_fail(field, 5)) for field in ("mean", "median", "min")),
        Rival("Welch .05, five processes", five, welch_of_processes),
        Rival("benchmatrix, 5 + 5 runs, 5 %", five, benchmatrix_independent(5.0)),
        Rival("benchmatrix, 6 pairs, 5 %", six, benchmatrix_paired(5.0)),
        Rival("benchmatrix, 6 pairs, 2 %", six, benchmatrix_paired(2.0)),
        paired_t(5),
        paired_t(20),
    )
