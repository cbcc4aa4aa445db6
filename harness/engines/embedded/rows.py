"""The row of a workload, in the words of llama-bench's JSON output of the same fork."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from .flags import MAINLINE
from .request import Request, Workload

_NS_PER_S = 1e9


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation, in two passes; the deviation of one value is 0.

    llama-bench computes it in one pass of integers, which is wrong by a factor of up to hundreds.
    """
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def asked_or_found(asked: int, found: int, cap: int) -> int:
    """What a row echoes for a batch size.

    Both libraries cut batch sizes to the context, which here is as small as the workloads allow; llama-bench echoes
    what was asked. So the asked value stands where the found one is that cut, and what was found in any other case.
    """
    return asked if found == min(asked, cap) else found


def host_cpu(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's model name; empty where the system does not tell."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def utc_now() -> datetime:
    """The time that a row gives as ``test_time``."""
    return datetime.now(UTC)


def make_row(
    request: Request, load: Workload, samples_ns: Sequence[int], common: Mapping[str, object], started: datetime
) -> dict[str, object]:
    """One row.

    Args:
        request: What was asked.
        load: The workload measured.
        samples_ns: Nanoseconds of every repetition.
        common: Fields that all rows of the process share.
        started: When the first repetition began.
    """
    tokens = load.n_prompt + load.n_gen
    samples_ts = [_NS_PER_S * tokens / sample for sample in samples_ns]
    avg_ns, stddev_ns = mean_and_deviation(samples_ns)
    avg_ts, stddev_ts = mean_and_deviation(samples_ts)
    test: dict[str, object] = {"n_prompt": load.n_prompt, "n_gen": load.n_gen}
    label: dict[str, object] = {}
    if request.fork == MAINLINE:
        test["n_depth"] = load.n_depth
    else:
        label = {"test": _label(load)}
    return {
        **common,
        **test,
        "test_time": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "avg_ns": round(avg_ns),
        "stddev_ns": round(stddev_ns),
        "avg_ts": avg_ts,
        "stddev_ts": stddev_ts,
        **label,
        "samples_ns": list(samples_ns),
        "samples_ts": samples_ts,
    }


def _label(load: Workload) -> str:
    """Word of ik for a test; it has none for a depth before a prompt, so mainline's is used."""
    if load.n_depth and not load.n_prompt:
        return f"tg{load.n_gen}@pp{load.n_depth}"
    parts = [f"{kind}{count}" for kind, count in (("pp", load.n_prompt), ("tg", load.n_gen)) if count]
    return "+".join(parts) + (f" @ d{load.n_depth}" if load.n_depth else "")
