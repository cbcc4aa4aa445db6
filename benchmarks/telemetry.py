"""What watching costs the watched: ``python benchmarks/telemetry.py``.

``--write docs/explanation/noise.md`` puts the table into the page.

One arm twice, through the harness's own schedule (quads: ABBA, then BAAB) and judged by its own rule; the candidate's
processes are watched by the thread that looks at the machine, the baseline's are not. Beside it the CPU time of that
thread in percent of the time that the engines ran. The share may be measured anywhere; whether speeds are equivalent
only tells something on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from noise import put_between_markers

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun, Step
from harness.domain.model import Model
from harness.domain.node import NodeClass
from harness.domain.stopping import RunWholeSchedule
from harness.domain.workload import Timed, Workload
from harness.engines.flags import complete
from harness.execution import engine_process
from harness.execution.engine_process import EngineRunner
from harness.execution.events import ProcessDone
from harness.execution.hostlock import measurement_lock
from harness.execution.node import probe_node
from harness.execution.preparing import prepare
from harness.execution.process import Supervisor
from harness.execution.schedule import Schedule
from harness.execution.telemetry import watch
from harness.execution.telemetry.vendors import open_gpus
from harness.judging.quads import quads_of
from harness.judging.sequential import Limits, decide
from harness.judging.wording import node_text

BEGIN, END = "<!-- telemetry: begin -->", "<!-- telemetry: end -->"
WATCHED = 1
"""The arm whose processes are watched: the candidate."""
_LOCK_WAIT_S = 600.0


@dataclass
class Watching:
    """What the watching thread took.

    Attributes:
        cpu_s: Seconds of CPU of each thread.
        looks: How often each looked.
        engine_s: Seconds that each watched engine ran.
    """

    cpu_s: list[float] = field(default_factory=list)
    looks: int = 0
    engine_s: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        """CPU time of the thread over the engines' time."""
        return sum(self.cpu_s) / sum(self.engine_s)


class _Unwatched(watch.Watch):
    """What is read before and after a process, without looks while it runs."""

    def started(self, pid: int) -> None:
        """Leave it alone."""


class _HalfWatched(EngineRunner):
    """Watches the processes of one arm."""

    def run(self, step: Step, workloads: tuple[Timed, ...]) -> ProcessRun:
        if step.arm == WATCHED:
            return super().run(step, workloads)
        with mock.patch.object(engine_process, "Watch", _Unwatched):
            return super().run(step, workloads)


def measure(job: Job) -> tuple[list[ProcessRun], Watching]:
    """Run a job of two equal arms, one watched.

    Args:
        job: A calibration.
    """
    found = Watching()

    class Timed(watch._Sampler):  # noqa: SLF001 - it is the thread that is measured
        def run(self) -> None:
            super().run()
            found.cpu_s.append(time.thread_time())

        def _look(self) -> None:
            super()._look()
            found.looks += 1

    node = probe_node()
    runs = []
    with (
        measurement_lock(_LOCK_WAIT_S, job.id),
        mock.patch.object(watch, "_Sampler", Timed),
        Supervisor() as supervisor,
        closing(open_gpus(node.gpus)) as gpus,
    ):
        runner = _HalfWatched(job, prepare(job), supervisor, gpus, lambda: False)
        for event in Schedule(job, 1, runner, node, lambda: False).run(RunWholeSchedule()):
            if isinstance(event, ProcessDone):
                runs.append(event.run)
                sys.stderr.write(f"{len(runs)} of {job.process_starts}\n")
    found.engine_s = [run.wall_s for run in runs if run.step.arm == WATCHED]
    return runs, found


def table(runs: Sequence[ProcessRun], found: Watching, workloads: Sequence[Workload], limits: Limits) -> list[str]:
    """What was found, as lines of Markdown."""
    failed = [run.failure.message for run in runs if run.failure]
    if failed:
        raise SystemExit(failed[0])
    rows = ["| workload | watched over not watched | quads | verdict |", "|---|---|---|---|"]
    for workload in workloads:
        arms = [[run for run in runs if run.step.arm == arm] for arm in (0, WATCHED)]
        quads = quads_of(arms[0], arms[1], workload.name)
        said = decide(quads.log_ratios, limits, None, quads.insides)
        ratio = said.ratio
        shown = f"{ratio.value:.4f} [{ratio.low:.4f}, {ratio.high:.4f}]" if ratio else "none"
        rows.append(f"| {workload.name} | {shown} | {len(quads.quads)} | {said.throughput} |")
    took = f"{found.looks} looks in {sum(found.engine_s):.1f} s of {len(found.engine_s)} watched engines"
    each = 1000 * sum(found.cpu_s) / max(1, found.looks)
    return [
        *rows,
        "",
        f"The watching thread: {took} took {each:.1f} ms of CPU each, **{found.share:.2%}** of one core.",
    ]


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, and put it into a page if one is named."""
    asked = _parser().parse_args(argv)
    workloads = (Workload(asked.prompt, 0), Workload(0, asked.generate))
    build = Build("ik", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python")
    tiny = Model("tiny-moe-iq4_xs", card="tiny-moe", quant="IQ4_XS")
    arm = Arm(build, Model(Path(asked.model).stem, path=asked.model) if asked.model else tiny, complete(build, {}))
    design = Design(blocks=2 * asked.quads, repetitions=asked.repetitions, calibration=True, timeout_s=600.0)
    job = Job((arm, arm), workloads, None, NodeClass("any"), design, cases=())
    before = os.getloadavg()[0]
    runs, found = measure(job)
    load = f"one-minute load {before:.1f} before and {os.getloadavg()[0]:.1f} after it"
    shown = " ".join(["benchmarks/telemetry.py", *(Path(word).name if word.startswith("/") else word for word in argv)])
    what = f"On {node_text(probe_node())}, {load}. Made by `python {shown}`."
    limits = Limits(asked.alpha, asked.margin, asked.quads)
    lines = [what, "", *table(runs, found, workloads, limits)]
    sys.stdout.write("\n".join(lines) + "\n")
    if asked.write:
        page = asked.write.read_text(encoding="utf-8")
        asked.write.write_text(put_between_markers(page, lines, BEGIN, END), encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quads", type=int, default=16)
    parser.add_argument("--repetitions", type=int, default=20, help="of each workload in a process")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of prompt processing")
    parser.add_argument("--generate", type=int, default=64, help="tokens of token generation")
    parser.add_argument("--margin", type=float, default=0.01, help="relative change that is still equivalent")
    parser.add_argument("--alpha", type=float, default=0.001)
    parser.add_argument("--model", help="a model file in place of the tiny one")
    parser.add_argument("--write", type=Path, help="page to put the table into")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
