"""One result row, checked: its workload, its samples, what it repeats of the order. Shared by all engines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.domain.failure import Failure, FailureKind
from harness.domain.measurement import NS, is_plausible_ns
from harness.domain.workload import Workload
from harness.engines.echo import echo_differences, fork_of_row
from harness.engines.engine import Order, Row

_PROMPT_CEILING_TPS = 1e7
"""Tokens per second that no prompt processing reaches: 100 ns a token."""
_GENERATION_CEILING_TPS = 2e5
"""Tokens per second that no one-by-one generation reaches: 5 us for a whole forward pass. A failed decode, which
ik_llama.cpp's llama-bench ignores, returns faster."""
_LONGEST_NS = 1_000_000_000_000_000
"""No repetition takes eleven days."""
_RATE_TOLERANCE = 1e-4
"""Relative; printed rates have six digits."""
_DEEP_LABEL = re.compile(r"tg(?P<gen>\d+)@pp(?P<depth>\d+)")
_EMBEDDED_LABEL = re.compile(r"\S+ @ d(?P<depth>\d+)")
_SELF_DESCRIPTION = ("build_commit", "build_number", "cpu_info", "gpu_info", "backends", "model_type")
_BACKEND_SWITCHES = ("cuda", "vulkan", "metal", "sycl")


def workload_of(row: Mapping[str, Any]) -> Workload | None:
    """The workload of a row; ``None`` where its numbers are none.

    ik_llama.cpp says a depth only in the label ``tg128@pp4096``, and prints the depth as ``n_prompt``; the embedded
    engine labels what ik_llama.cpp has no word for as llama.cpp does, ``pp512 @ d4096``.
    """
    label = str(row.get("test", ""))
    if deep := _DEEP_LABEL.fullmatch(label):
        return Workload(0, int(deep["gen"]), int(deep["depth"]))
    shown = _EMBEDDED_LABEL.fullmatch(label)
    depth = int(shown["depth"]) if shown else 0
    counts = [row.get("n_prompt"), row.get("n_gen"), row.get("n_depth", depth)]
    whole = [count for count in counts if isinstance(count, int) and not isinstance(count, bool) and count >= 0]
    return Workload(*whole) if len(whole) == len(counts) else None


def checked_row(order: Order, workload: Workload, row: Mapping[str, Any]) -> Row | Failure:
    """The row's samples, if everything that can be checked of it is right.

    Only ``samples_ns`` decides: the means and deviations that ``llama-bench`` prints are known to be wrong at times.

    Args:
        order: What was asked for.
        workload: Which of the order's workloads the row is of.
        row: The row as printed.

    Returns:
        The row, or why it counts for nothing: unparsable, implausible, echo mismatch.
    """
    samples = row.get("samples_ns")
    if not isinstance(samples, list) or len(samples) != order.repetitions:
        count = len(samples) if isinstance(samples, list) else "no"
        return _unparsable("E-incomplete-row", f"{workload.name}: {count} samples, asked {order.repetitions}")
    return (
        wrong_samples(workload, samples, row)
        or _mismatch(order, workload, row)
        or Row(workload.name, workload.tokens, tuple(int(value) for value in samples))
    )


def wrong_samples(workload: Workload, samples: list[Any], row: Mapping[str, Any]) -> Failure | None:
    """Why the samples of a row are no measurement, if they are none: whoever printed them.

    Args:
        workload: The row's workload, of at least one token.
        samples: Its times, in ns.
        row: The row as printed.
    """
    return _implausible(workload, samples) or _inconsistent(workload, samples, row)


def self_description(row: Mapping[str, Any]) -> dict[str, str]:
    """What the engine says of itself in a row: commit, CPU, GPU, backends."""
    said = {name: str(row[name]) for name in _SELF_DESCRIPTION if row.get(name) not in (None, "")}
    switched_on = [name for name in _BACKEND_SWITCHES if row.get(name) is True]
    if "cuda" in row and "backends" not in said:
        said["backends"] = ",".join(switched_on) or "cpu"
    return said


def _implausible(workload: Workload, samples: list[Any]) -> Failure | None:
    for index, value in enumerate(samples):
        problem = _sample_problem(workload, value)
        if problem:
            place = f"{workload.name}, repetition {index + 1} of {len(samples)}"
            return Failure(FailureKind.IMPLAUSIBLE, f"{place}: {problem}", "E-implausible")
    return None


def _sample_problem(workload: Workload, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{value!r} is no time in ns"
    # The upper bound comes first: Python's integers have none, and math.isfinite wants a float.
    if value > _LONGEST_NS or not is_plausible_ns(value):
        return f"{str(value)[:20]} ns is no duration"
    speed, ceiling = workload.tokens * NS / value, _ceiling_tps(workload)
    return f"{value} ns is {speed:.3g} t/s, above the ceiling of {ceiling:.3g} t/s" if speed > ceiling else ""


def _ceiling_tps(workload: Workload) -> float:
    """The speed of the fastest mixture of the two kinds that could be believed."""
    least_s = workload.n_prompt / _PROMPT_CEILING_TPS + workload.n_gen / _GENERATION_CEILING_TPS
    return workload.tokens / least_s


def _inconsistent(workload: Workload, samples: list[Any], row: Mapping[str, Any]) -> Failure | None:
    """Times and rates are printed of the same numbers: where they disagree the text was damaged on its way."""
    rates = row.get("samples_ts")
    if rates is None:
        return None
    if isinstance(rates, list) and len(rates) == len(samples):
        pairs = zip(samples, rates, strict=True)
        if all(_agree(workload.tokens * NS / ns, rate) for ns, rate in pairs):
            return None
    return _unparsable("E-inconsistent-row", f"{workload.name}: samples_ns and samples_ts disagree")


def _agree(computed: float, printed: Any) -> bool:
    """Compared by multiplying, which cannot overflow however large an integer was printed."""
    if not isinstance(printed, int | float):
        return False
    return computed * (1 - _RATE_TOLERANCE) <= printed <= computed * (1 + _RATE_TOLERANCE)


def _mismatch(order: Order, workload: Workload, row: Mapping[str, Any]) -> Failure | None:
    fork = fork_of_row(row)
    if fork is not None and fork is not order.arm.build.fork:
        message = f"{workload.name}: the row is one of {fork}, the build is declared as {order.arm.build.fork}"
        return Failure(FailureKind.ECHO_MISMATCH, message, "E-wrong-fork")
    differences = echo_differences(order, row)
    if not differences:
        return None
    return Failure(FailureKind.ECHO_MISMATCH, f"{workload.name}: {'; '.join(differences)}", "E-echo-mismatch")


def _unparsable(slug: str, message: str) -> Failure:
    return Failure(FailureKind.UNPARSABLE, message, slug)
