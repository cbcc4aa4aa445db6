"""Remake the tables of ``docs/explanation/h200.md`` from the journals of the run: its report, memory and estimate.

The page is text with places for tables, each between two comments; what stands between them is made here. With
``--check`` nothing is written, and the exit code is 1 where the page differs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.models.memory import bytes_needed
from harness.reporting.page import markdown_page
from harness.reporting.projections import notes
from harness.reporting.replay import read_journal
from harness.reporting.state import JournalState

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs" / "explanation" / "h200.md"
JOURNALS = _ROOT / "tests" / "data" / "h200_matrix"
_MIB = 1024**2
_PLACE = re.compile(r"(<!-- (report|memory):? ?([a-z0-9_]*) -->\n).*?(<!-- end -->)", re.DOTALL)


def page(text: str) -> str:
    """The page with its tables made anew."""
    return _PLACE.sub(lambda place: f"{place[1]}{_table(place[2], place[3])}{place[4]}", text)


def _table(kind: str, journal: str) -> str:
    if kind == "memory":
        return "\n".join(_memory_table()) + "\n"
    state = read_journal(JOURNALS / f"{journal}.jsonl")
    body = markdown_page(state.name, state.final_verdicts(), notes(state))
    return body.replace("\n# ", "\n### ").replace("# ", "### ", 1)


def _memory_table() -> Iterator[str]:
    """Of each arm: the GPU's buffers as estimated and as printed, what the process held beside them, and RAM."""
    yield "| model | arm | GPU: estimated | printed | error | held beside | RAM: estimated | peak RSS | error |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    for path in sorted(JOURNALS.glob("*.jsonl")):
        yield from _rows(read_journal(path))


def _rows(state: JournalState) -> Iterator[str]:
    for last in state.jobs.values():
        if last.job is None or last.node is None:
            raise ValueError(f"{state.path}: a job without its line or its node")
        for index in range(len(last.job.arms)):
            yield _row(last.job, index, last.node, [run for run in last.runs if run.step.arm == index])


def _row(job: Job, index: int, node: NodeFacts, runs: list[ProcessRun]) -> str:
    arm = job.arms[index]
    needed = bytes_needed(arm, job.workloads, tuple(gpu.vram_bytes for gpu in node.gpus))
    printed = next(run.load for run in runs if run.load)
    if needed is None:
        raise ValueError(f"{arm.label}: its model is unknown")
    buffers = sum(buffer.mib for buffer in printed.buffers if buffer.device.startswith("CUDA0"))
    held = max(_on_the_gpu(run) for run in runs) / _MIB
    rss = max(run.max_rss_bytes for run in runs) / _MIB
    gpu, ram = needed.gpus[0].total / _MIB, needed.peak_rss / _MIB
    shown = (gpu, buffers, held - buffers, ram, rss)
    estimated, told, beside, in_ram, peak = (f"{each:.0f}" for each in shown)
    return (
        f"| {arm.model.quant} | `{arm.label}` | {estimated} | {told} | {gpu / buffers - 1:+.1%} | {beside} "
        f"| {in_ram} | {peak} | {ram / rss - 1:+.1%} |"
    )


def _on_the_gpu(run: ProcessRun) -> int:
    state = run.conditions.gpus[0]
    return (state.memory_peak_bytes or 0) - (state.memory_before_bytes or 0)


def main() -> int:
    """Write the page, or hold it against its journals."""
    before = PAGE.read_text()
    after = page(before)
    if "--check" in sys.argv[1:]:
        return int(before != after)
    PAGE.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
