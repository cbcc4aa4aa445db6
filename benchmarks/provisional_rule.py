"""What the provisional rule for contrasts finds, simulated: ``python benchmarks/provisional_rule.py``.

Independent normal noise of the process medians (log scale), no drift, no outliers: a kind world. Each cell is the share
of runs called regressed, then the share called equivalent; the rest is inconclusive, hardly any improved.
"""

from __future__ import annotations

import math
import random
import sys

from harness.domain.measurement import Conditions, ProcessRun, Samples, Step
from harness.domain.words import Throughput
from harness.judging.throughput import Rule, judge_contrast

_RUNS = 1000
_PAIRS = (4, 8)
_SPREADS = (0.003, 0.01, 0.02, 0.034)
_LOSSES = (0.0, 0.02, 0.05, 0.10, 0.20)
_BASE_NS = 100_000_000


def _process(arm: int, block: int, log_slowdown: float) -> ProcessRun:
    samples = Samples("pp512", 512, (round(_BASE_NS * math.exp(log_slowdown)),), 0)
    return ProcessRun(Step(arm, block), "", (samples,), (), 1.0, None, 0, Conditions(0, (), 1, 0.0), {})


def shares(pairs: int, spread: float, loss: float, rng: random.Random) -> tuple[float, float]:
    """Shares of runs called regressed and equivalent.

    Args:
        pairs: Pairs in a run.
        spread: Standard deviation of a process median, relative.
        loss: True loss of speed, relative.
        rng: Source of noise.
    """
    words = []
    for _ in range(_RUNS):
        baseline = [_process(0, block, rng.gauss(0, spread)) for block in range(pairs)]
        candidate = [_process(1, block, rng.gauss(0, spread) - math.log1p(-loss)) for block in range(pairs)]
        words.append(judge_contrast(baseline, candidate, "pp512", Rule()).throughput)
    return words.count(Throughput.REGRESSED) / _RUNS, words.count(Throughput.EQUIVALENT) / _RUNS


if __name__ == "__main__":
    noise = random.Random(1)  # noqa: S311 - noise, not a secret
    sys.stdout.write("| pairs | SD between processes |" + "".join(f" {loss:.0%} slower |" for loss in _LOSSES) + "\n")
    sys.stdout.write("|---|---|" + "---|" * len(_LOSSES) + "\n")
    for count in _PAIRS:
        for sd in _SPREADS:
            cells = [shares(count, sd, loss, noise) for loss in _LOSSES]
            row = "".join(f" {100 * slower:.1f} / {100 * equal:.1f} |" for slower, equal in cells)
            sys.stdout.write(f"| {count} | {100 * sd:.1f} % |{row}\n")
