"""What each process of a job measured, in the order in which they ran, and why some of it does not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.domain.failure import Failure
from harness.domain.job import Job
from harness.domain.measurement import NS, ProcessRun, Samples, is_plausible_ns
from harness.domain.workload import Timed, is_time
from harness.judging.memory import MIB
from harness.judging.quads import BLOCKS

_DIGITS = 5
_MS = 1_000_000


def processes_data(job: Job, runs: Sequence[ProcessRun], void: Mapping[int, str]) -> list[dict[str, Any]]:
    """The processes of a job: which arm, where in the schedule, and what they were not scored for.

    Args:
        job: The job.
        runs: Its processes in order of time.
        void: Why, by block, as of `voided_blocks`.
    """
    return [
        {
            "arm": run.step.arm,
            "block": run.step.block,
            "unit": run.step.block // job.blocks_at_once if run.step.scored else -1,
            "why": why_uncounted(run, void),
            "failed": run.failure is not None,
            "answers": run.step.outputs,
            "peak": round(run.max_rss_bytes / MIB, 1),
            "wall": round(run.wall_s, 2),
            "load": None if run.load_s is None else round(run.load_s, 2),
        }
        for run in runs
    ]


def why_uncounted(run: ProcessRun, void: Mapping[int, str]) -> str:
    """Why nothing of a process is judged; empty where it is.

    Args:
        run: The process.
        void: Why, by block, as of `voided_blocks`.
    """
    if run.failure:
        return failure_text(run.failure)
    if run.step.apart:
        return "answers the prompts, another program than the one that times"
    if not run.step.scored:
        return "burn-in, answers the prompts" if run.step.outputs else "burn-in"
    return f"void: {void[run.step.block]}" if run.step.block in void else ""


def failure_text(failure: Failure) -> str:
    """A failure with its slug in front, once."""
    return failure.message if failure.message.startswith(failure.slug) else f"{failure.slug}: {failure.message}"


def trace_data(job: Job, runs: Sequence[ProcessRun], workload: Timed, void: Mapping[int, str]) -> dict[str, Any]:
    """One workload's repetitions, process by process.

    Args:
        job: The job.
        runs: Its processes in order of time.
        workload: The workload.
        void: Why, by block, as of `voided_blocks`.

    Returns:
        ``unit`` (``t/s`` or ``ms``), and for each process ``kept`` and ``warmup``, figures in that unit, and ``half``:
        whether its quad or block lacks a process, so that it has no partner to be compared with.
    """
    samples = [run.samples_of(workload.name) for run in runs]
    sound = [
        (run.step.arm, run.step.block)
        for run, found in zip(runs, samples, strict=True)
        if found and run.step.scored and not run.failure and run.step.block not in void
    ]
    whole = _whole_blocks(job, sound)
    return {
        "unit": "ms" if is_time(workload) else "t/s",
        "processes": [
            {
                "warmup": _figures(found, found.all_ns[: found.discarded], workload) if found else [],
                "kept": _figures(found, found.kept_ns, workload) if found else [],
                "half": (run.step.arm, run.step.block) in sound and run.step.block not in whole,
            }
            for run, found in zip(runs, samples, strict=True)
        ],
    }


def _whole_blocks(job: Job, sound: Sequence[tuple[int, int]]) -> set[int]:
    """The blocks that count: of two arms whole quads, of more arms whole blocks."""
    found = Counter(block for _, block in set(sound))
    blocks = {block for block, arms in found.items() if arms == len(job.arms)}
    if job.blocks_at_once == 1:
        return blocks
    quads = {block // BLOCKS for block in blocks if {block, block ^ 1} <= blocks}
    return {block for block in blocks if block // BLOCKS in quads}


def _figures(samples: Samples, times: Sequence[int], workload: Timed) -> list[float]:
    """Times as what is shown of them; one that is no time is left out, the reason of its case says so."""
    sound = [ns for ns in times if is_plausible_ns(ns)]
    if is_time(workload):
        return [_rounded(ns / _MS) for ns in sound]
    return [_rounded(samples.tokens * NS / ns) for ns in sound]


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
