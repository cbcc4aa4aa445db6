"""What the real packages say of small examples: ``python benchmarks/record_rivals.py`` writes ``data/rivals.json``.

Needs pytest-benchmark 5.3.1 and benchmatrix 1.2.1, best in an environment of their own: the harness does not. The
examples lie near the thresholds, where two readings of the same rule would differ. A test holds ``judge_rivals``
against the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from judge_noise import TYPICAL, Floats
from judge_rivals import alternating_pairs, one_after_the_other

FILE = Path(__file__).parent / "data" / "rivals.json"
CHECKS = ("mean:3%", "mean:5%", "median:5%", "min:5%")
EXAMPLES = 12
_INTERVALS = 8
_CLOSE = {8: 1.0512, 9: 1.0488, 10: 1.0309, 11: 1.0291}
"""Ratios of means that are told apart only by what the per cent are of: 5 or 3 of the baseline, or of the candidate."""

_TEST = """
import json, os
from itertools import accumulate, chain

seconds = json.loads(os.environ["SECONDS"])
clock = iter(accumulate(chain.from_iterable((0.0, each) for each in seconds)))

def test_one(benchmark):
    benchmark._timer = lambda: next(clock)
    benchmark.pedantic(lambda: None, rounds=len(seconds), iterations=1)
"""


def times(arms: Any, effect: float, seed: int) -> tuple[Floats, Floats]:
    """Seconds of baseline and candidate, processes x repetitions, on the typical machine."""
    seconds = np.exp(TYPICAL.log_times(1, arms, 5, np.random.default_rng(seed)))[0]
    return seconds[arms == 0], seconds[arms == 1] * np.exp(-effect)


def compare_fails(baseline: list[float], candidate: list[float], check: str) -> bool:
    """Whether pytest fails a run with these times against a saved one with those."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_one.py").write_text(_TEST, encoding="utf-8")
        first = _pytest(folder, baseline, "--benchmark-save=baseline")
        if first.returncode:
            raise RuntimeError(first.stdout)
        second = _pytest(folder, candidate, "--benchmark-compare", f"--benchmark-compare-fail={check}")
        has_failed = "Performance has regressed" in second.stdout + second.stderr
        if has_failed != (second.returncode != 0):
            raise RuntimeError(second.stdout + second.stderr)
        return has_failed


def _pytest(folder: str, seconds: list[float], *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    environment = {"SECONDS": json.dumps(seconds), "PATH": "", "HOME": folder}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _compare_example(seed: int) -> dict[str, Any]:
    baseline, candidate = times(one_after_the_other(1), -0.02 * (seed % 4), seed)
    if seed in _CLOSE:
        candidate *= _CLOSE[seed] * baseline.mean() / candidate.mean()
    before, now = baseline[0].tolist(), candidate[0].tolist()
    fails = {check: compare_fails(before, now, check) for check in CHECKS}
    return {"baseline": before, "candidate": now, "fails": fails}


def _interval_example(seed: int) -> dict[str, Any]:
    from benchmatrix.bench_compare import InferencePolicy  # noqa: PLC0415 - not an environment of the harness
    from benchmatrix.bench_statistics import (  # noqa: PLC0415
        bootstrap_median_ratio_interval,
        bootstrap_paired_median_ratio_interval,
    )

    policy = InferencePolicy()
    settings = {
        "lower_is_better": True,
        "confidence_level": policy.confidence_level,
        "resamples": policy.resamples,
        "random_seed": policy.random_seed,
    }
    is_paired = seed % 2 == 1
    arms = alternating_pairs(6) if is_paired else one_after_the_other(5)
    baseline, candidate = (each.mean(axis=1).tolist() for each in times(arms, -0.03, seed))
    if is_paired:
        strata = ["AB", "BA"] * 3
        found = bootstrap_paired_median_ratio_interval(baseline, candidate, strata=strata, **settings)
    else:
        found = bootstrap_median_ratio_interval(baseline, candidate, **settings)
    kind = "paired" if is_paired else "independent"
    return {"kind": kind, "baseline": baseline, "candidate": candidate, "low": found.low, "high": found.high}


if __name__ == "__main__":
    stored = {
        "versions": {name: version(name) for name in ("pytest-benchmark", "benchmatrix")},
        "compare_fail": [_compare_example(seed) for seed in range(EXAMPLES)],
        "intervals": [_interval_example(seed) for seed in range(_INTERVALS)],
    }
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
