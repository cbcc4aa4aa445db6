"""Simulated machines: times of repetitions in processes that are started one after the other, nothing changed.

Every source gives log times, so that a slowdown is something added. What a source knows of arms is only what an
adversary needs; ``PROFILES`` do not look at them. All of it is vectorised over sessions and drawn from a generator that
the caller seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Arms = NDArray[np.int_]

KEPT = 3
"""Repetitions of a process whose median is its datum."""

SESSION_STARTS = 40
"""Process starts of a session over which the scatter of repetitions is told."""

QUAD_STARTS = 4

_MARGINS = ((0.02, 0.02), (0.035, 0.03), (0.07, 0.05))
_ABBA = np.array([0, 1, 1, 0])


def as_floats(values: Any) -> Floats:
    """Numpy's fancy indexing and reductions, typed."""
    return np.asarray(values, dtype=np.float64)


class Source(Protocol):
    """Something that times can be drawn from."""

    @property
    def name(self) -> str:
        """What it is called in the table."""
        ...

    def log_times(self, sessions: int, arms: Arms, repetitions: int, rng: np.random.Generator) -> Floats:
        """Natural logs of times, of both arms alike: sessions x process starts x repetitions.

        Args:
            sessions: Independent sessions.
            arms: Which arm each process start is of, 0 or 1, in order of time.
            repetitions: Repetitions of a process that are kept.
            rng: Source of chance.
        """
        ...


def quad_arms(quads: int) -> Arms:
    """Arms of the process starts of so many quads: ABBA, then BAAB, and so on."""
    return np.concatenate([_ABBA if index % 2 == 0 else 1 - _ABBA for index in range(quads)])


def quads_of(log_times: Floats, effect: float = 0.0) -> Floats:
    """Log of candidate speed over baseline speed, one for each quad: sessions x quads.

    Args:
        log_times: Sessions x process starts x repetitions, in the order of ``quad_arms``.
        effect: True log ratio of speeds, added.
    """
    speeds = -_medians(log_times)
    by_quad = speeds.reshape(len(speeds), -1, QUAD_STARTS)
    signs = (2.0 * quad_arms(by_quad.shape[1]) - 1.0).reshape(-1, QUAD_STARTS)
    ratios: Floats = (by_quad * signs).sum(axis=2) / 2.0 + effect
    return ratios


def _medians(log_times: Floats) -> Floats:
    if log_times.shape[-1] != KEPT:
        return as_floats(np.median(log_times, axis=2))
    first, second, third = (log_times[:, :, index] for index in range(KEPT))
    low, high = np.minimum(first, second), np.maximum(first, second)
    return as_floats(np.maximum(low, np.minimum(high, third)))  # several times as fast: this is where the time goes


def insides_of(log_times: Floats) -> Floats:
    """How far apart the two processes of one arm are in each quad, of the arm where it is more: sessions x quads."""
    by_quad = _medians(log_times).reshape(len(log_times), -1, QUAD_STARTS)
    outer, inner = by_quad[:, :, 0] - by_quad[:, :, 3], by_quad[:, :, 1] - by_quad[:, :, 2]
    return as_floats(np.maximum(np.abs(outer), np.abs(inner)))


def draw_quads(source: Source, sessions: int, quads: int, rng: np.random.Generator, effect: float = 0.0) -> Floats:
    """Quads of fresh sessions."""
    return quads_of(source.log_times(sessions, quad_arms(quads), KEPT, rng), effect)


def quad_sd(source: Source, rng: np.random.Generator, sessions: int = 4000) -> float:
    """Standard deviation of a quad's log ratio where both arms are alike."""
    return float(np.sqrt(np.mean(draw_quads(source, sessions, SESSION_STARTS // QUAD_STARTS, rng) ** 2)))


def repetition_sd(source: Source, rng: np.random.Generator, sessions: int = 4000) -> float:
    """Standard deviation of the repetitions of one session, mean over sessions."""
    times = source.log_times(sessions, np.zeros(SESSION_STARTS, dtype=int), KEPT, rng)
    return float(times.reshape(sessions, -1).std(axis=1, ddof=1).mean())


def margin_for(sd: float) -> float:
    """The margin of a machine whose quads scatter so far: what it can show in a night, by class."""
    return next((margin for limit, margin in _MARGINS if sd <= limit), 0.10)


def chain(shape: tuple[int, ...], correlation: float, rng: np.random.Generator) -> Floats:
    """A stationary first-order chain of unit variance along the last axis: Ornstein-Uhlenbeck at whole steps."""
    values = rng.standard_normal(shape[::-1])  # steps first, so that each is one piece of memory
    values[1:] *= math.sqrt(1 - correlation**2)
    for index in range(1, shape[-1]):
        values[index] += correlation * values[index - 1]
    return values.T


def _rare_delays(shape: tuple[int, ...], share: float, mean: float, rng: np.random.Generator) -> Floats:
    """Outliers are slow: nothing makes a machine faster than it is."""
    delays = np.zeros(shape)
    is_hit = rng.random(shape) < share
    delays[is_hit] = rng.exponential(mean, int(is_hit.sum()))
    return delays


@dataclass(frozen=True, slots=True)
class Profile:
    """Drift over process starts, an effect of each process, a chain inside it, and outliers of both.

    Attributes:
        name: What it is called.
        drift: Standard deviation of the drift, log scale, as all below.
        process: Standard deviation of a process's effect.
        repetition: Standard deviation of the chain inside a process.
        outlier: Mean delay of an outlier.
        drift_memory: Correlation of the drift from one process start to the next.
        repetition_memory: Correlation from one repetition to the next.
        outlier_share: Share of processes, and of repetitions, that are outliers.
    """

    name: str
    drift: float
    process: float
    repetition: float
    outlier: float
    drift_memory: float = 0.9
    repetition_memory: float = 0.5
    outlier_share: float = 0.02

    def log_times(self, sessions: int, arms: Arms, repetitions: int, rng: np.random.Generator) -> Floats:
        """See ``Source``."""
        starts = (sessions, len(arms))
        slow = self.drift * chain(starts, self.drift_memory, rng)
        slow += self.process * rng.standard_normal(starts)
        slow += _rare_delays(starts, self.outlier_share, self.outlier, rng)
        inside = (*starts, repetitions)
        times = self.repetition * chain(inside, self.repetition_memory, rng)
        times += _rare_delays(inside, self.outlier_share, self.outlier, rng)
        times += slow[:, :, None]
        return times

    def scaled(self, factor: float, name: str) -> Profile:
        """The same shape of noise, so many times as wide."""
        return replace(
            self,
            name=name,
            drift=self.drift * factor,
            process=self.process * factor,
            repetition=self.repetition * factor,
            outlier=self.outlier * factor,
        )


def _profile(name: str, unit: float, drift: float) -> Profile:
    """The shape that all profiles share: half of a quad's variance is outliers."""
    return Profile(name, drift=drift * unit, process=0.52 * unit, repetition=0.32 * unit, outlier=2.9 * unit)


QUIET = _profile("quiet", 0.0112, 0.33)
MODERATE = _profile("moderate", 0.0212, 0.37)
TYPICAL = _profile("typical", 0.0401, 0.43)
NOISY = _profile("noisy", 0.0795, 0.66)
PROFILES = (QUIET, MODERATE, TYPICAL, NOISY)
"""Set so that the scatter of repetitions and of quads is that of ``STATED``; a test measures it."""

STATED = {"quiet": (0.011, 0.0095), "moderate": (0.021, 0.018), "typical": (0.040, 0.034), "noisy": (0.085, 0.068)}
"""Scatter of the repetitions of a session, and of quads, as in the earlier simulation."""


def with_quad_sd(profile: Profile, sd: float) -> Profile:
    """A profile as wide as makes its quads scatter so far."""
    return profile.scaled(sd / quad_sd(profile, np.random.default_rng(1), 10_000), f"quad SD {sd:.1%}")


@dataclass(frozen=True, slots=True)
class Adversary:
    """A machine that breaks an assumption of the noise model, built over a profile.

    Attributes:
        name: What it does.
        base: The noise below it.
        change: Gets the log times, the arms and the chance; gives the changed log times.
    """

    name: str
    base: Source
    change: Callable[[Floats, Arms, np.random.Generator], Floats]

    def log_times(self, sessions: int, arms: Arms, repetitions: int, rng: np.random.Generator) -> Floats:
        """See ``Source``."""
        return self.change(self.base.log_times(sessions, arms, repetitions, rng), arms, rng)


@dataclass(frozen=True, slots=True)
class Trace:
    """A recording, resampled by blocks of neighbouring process starts.

    Attributes:
        name: What was recorded.
        processes: Kept repetitions of each process, log times, in order of time.
        block: Process starts of a block.
        inside: Repetitions of one long process, log times, from which the scatter inside a process is drawn instead, by
            blocks of neighbours; ``None``: a process brings its own.
    """

    name: str
    processes: Floats
    block: int
    inside: Floats | None = None

    def log_times(self, sessions: int, arms: Arms, repetitions: int, rng: np.random.Generator) -> Floats:
        """See ``Source``. At most as many repetitions as were recorded, unless there is a long process."""
        starts = len(arms)
        blocks = -(-starts // self.block)
        first = rng.integers(0, len(self.processes), (sessions, blocks, 1))
        index = (first + np.arange(self.block)).reshape(sessions, -1)[:, :starts] % len(self.processes)
        if self.inside is None:
            return as_floats(self.processes[index, :repetitions])
        level = np.median(self.processes, axis=1)[index]
        begin = rng.integers(0, len(self.inside) - repetitions + 1, (sessions, starts, 1))
        around = self.inside - np.median(self.inside)
        return as_floats(level[:, :, None] + around[begin + np.arange(repetitions)])


def bimodal(base: Source, gap: float, share: float = 0.5) -> Adversary:
    """Each process lands in one of two modes, as memory or huge pages happen to fall."""

    def change(times: Floats, arms: Arms, rng: np.random.Generator) -> Floats:
        del arms
        return times + gap * (rng.random(times.shape[:2]) < share)[:, :, None]

    return Adversary(f"bimodal, {gap:.1%} apart", base, change)


def step(base: Source, height: float) -> Adversary:
    """The clock drops once, somewhere in the first 40 starts, and stays there."""

    def change(times: Floats, arms: Arms, rng: np.random.Generator) -> Floats:
        del arms
        when = rng.integers(1, SESSION_STARTS, (len(times), 1))
        return times + height * (np.arange(times.shape[1]) >= when)[:, :, None]

    return Adversary(f"one step of {height:.0%}", base, change)


def telegraph(base: Source, height: float, leave: float) -> Adversary:
    """The clock jumps between two levels and stays on each for a while."""

    def change(times: Floats, arms: Arms, rng: np.random.Generator) -> Floats:
        del arms
        jumps = (rng.random(times.shape[:2]) < leave).cumsum(axis=1)
        level = (jumps + rng.integers(0, 2, (len(times), 1))) % 2
        return times + height * level[:, :, None]

    return Adversary(f"two clock levels {height:.0%} apart, {1 / leave:.0f} starts each", base, change)


def warming(base: Source, height: float, starts: float = 10.0) -> Adversary:
    """The session begins slow and warms up, the more slowly the warmer it is."""

    def change(times: Floats, arms: Arms, rng: np.random.Generator) -> Floats:
        del arms, rng
        return times + height * np.exp(-np.arange(times.shape[1]) / starts)[None, :, None]

    return Adversary(f"warm-up of {height:.0%} over the session", base, change)


def ramp(base: Source, height: float) -> Adversary:
    """The machine gets slower and slower, by as much over 40 starts."""

    def change(times: Floats, arms: Arms, rng: np.random.Generator) -> Floats:
        del arms, rng
        return times + height * (np.arange(times.shape[1]) / SESSION_STARTS)[None, :, None]

    return Adversary(f"ramp of {height:.0%} in {SESSION_STARTS} starts", base, change)


def outliers(base: Source, share: float, mean: float) -> Adversary:
    """Many processes are slow, some very."""

    def change(times: Floats, arms: Arms, rng: np.random.Generator) -> Floats:
        del arms
        return times + _rare_delays(times.shape[:2], share, mean, rng)[:, :, None]

    return Adversary(f"{share:.0%} of processes slow by {mean:.0%} in the mean", base, change)


def heavy(base: Source, scale: float, df: float) -> Adversary:
    """Tails so heavy that a mean hardly settles."""

    def change(times: Floats, arms: Arms, rng: np.random.Generator) -> Floats:
        del arms
        # beyond a factor of e^2 a process is no measurement any more
        return times + np.clip(scale * rng.standard_t(df, times.shape[:2]), -2, 2)[:, :, None]

    return Adversary(f"Student t with {df:g} df, {scale:.1%}", base, change)


def quantised(base: Source, ticks: int) -> Adversary:
    """A time is a whole number of few ticks."""

    def change(times: Floats, arms: Arms, rng: np.random.Generator) -> Floats:
        del arms, rng
        return as_floats(np.log(np.maximum(1.0, np.rint(ticks * np.exp(times))) / ticks))

    return Adversary(f"times of {ticks} ticks", base, change)


def unequal(base: Source, factor: float) -> Adversary:
    """The candidate is as fast, and scatters further."""

    def change(times: Floats, arms: Arms, rng: np.random.Generator) -> Floats:
        del rng
        centre = np.median(times)  # the typical speed of both is the same
        return np.where((arms == 1)[None, :, None], centre + factor * (times - centre), times)

    return Adversary(f"candidate scatters {factor:g} times as far", base, change)


def neighbour(base: Source, factor: float, starts: int = 16) -> Adversary:
    """Somebody else starts to work: the noise widens after some starts, where the spread looked small."""

    def change(times: Floats, arms: Arms, rng: np.random.Generator) -> Floats:
        del arms, rng
        centre = np.median(times)
        late = (np.arange(times.shape[1]) >= starts)[None, :, None]
        return np.where(late, centre + factor * (times - centre), times)

    return Adversary(f"noise {factor:g} times as wide after {starts} starts", base, change)


def adversaries(base: Profile = QUIET) -> Sequence[Source]:
    """Machines on which nothing changed and that do not keep to the noise model."""
    unit = base.process
    short = replace(base, name="drift of 3 starts' memory", drift=3 * unit, drift_memory=0.7)
    fast = replace(base, name="drift of 1 start's memory", drift=3 * unit, drift_memory=0.3)
    return (
        bimodal(base, 4 * unit),
        bimodal(base, 8 * unit, share=0.1),
        step(base, 0.10),
        telegraph(base, 0.05, 0.1),
        telegraph(base, 0.05, 0.3),
        warming(base, 0.20),
        ramp(base, 0.20),
        short,
        fast,
        outliers(base, 0.1, 0.1),
        heavy(base, unit, 2.0),
        heavy(base, unit, 1.0),
        quantised(base, 30),
        quantised(base.scaled(0.3, "very quiet"), 100),
        unequal(base, 3.0),
        neighbour(base, 4.0),
        neighbour(base, 0.25),
    )
