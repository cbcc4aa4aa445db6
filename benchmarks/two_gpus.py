"""Whether two GPUs of a host can measure at once: one does, the other is idle, busy by itself, or busy with the CPU.

    python benchmarks/two_gpus.py --path DIR/llama-bench --model FILE.gguf [--flags ngl=99] [--hybrid ngl=99,ncmoe=99]

An arm against itself on the first GPU, in quads (ABBA, BAAB): beside the baseline's processes the second GPU is idle,
beside the candidate's a neighbour runs there, the same build in a loop. Each job sees its own GPU alone, as a node for
each GPU would have it. First both are idle, which tells what the machine does by itself; where that is no equivalence,
nothing is decided. Then the decision, by rule: where any neighbour changes any speed by more than the margin, or may,
one slot is all that the host has; else each GPU has one of its own.

Exit code 0: decided; 3: not. ``--standin`` tries the script where there are no GPUs: a wheel measures on the CPU, and
the neighbours are loops of Python. It says nothing about GPUs, and its table says so.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noise import put_between_markers

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun, Step
from harness.domain.model import Model
from harness.domain.node import Gpu, NodeClass
from harness.domain.stopping import RunWholeSchedule
from harness.domain.words import Throughput
from harness.domain.workload import Timed, Workload
from harness.engines.flags import complete
from harness.execution.engine_process import EngineRunner
from harness.execution.events import ProcessDone
from harness.execution.hostlock import measurement_lock
from harness.execution.node import probe_gpus, probe_node
from harness.execution.preparing import prepare
from harness.execution.process import Supervisor, clean_environment
from harness.execution.schedule import Schedule
from harness.execution.telemetry.vendors import open_gpus
from harness.judging.quads import quads_of
from harness.judging.sequential import Limits, decide
from harness.judging.wording import node_text

BEGIN, END = "<!-- two gpus: begin -->", "<!-- two gpus: end -->"
IDLE, BUSY, HYBRID = "idle", "busy", "busy with the CPU"
CANDIDATE = 1
_LOCK_WAIT_S = 600.0
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_SPIN = "while True: pass"
_UNDECIDED = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """What a neighbour does to one workload.

    Attributes:
        workload: Its name.
        beside: What the other GPU does.
        quads: Log ratios, with the neighbour over without.
        ratio: Value and interval, in words.
        word: What that means.
    """

    workload: str
    beside: str
    quads: int
    ratio: str
    word: Throughput


class Neighbour:
    """Keeps the other GPU busy, from before a process begins until after it has ended.

    Args:
        command: What it runs again and again.
        environment: Its complete environment.
        settle_s: How long it takes until it computes.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], settle_s: float) -> None:
        self._loop = ["/bin/sh", "-c", 'while "$@"; do :; done', "neighbour", *command]
        self._environment, self._settle_s = environment, settle_s

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run meanwhile.

        Raises:
            SystemExit: It ended, so nothing was beside the measurement.
        """
        devnull = subprocess.DEVNULL
        process = subprocess.Popen(
            self._loop, env=dict(self._environment), stdout=devnull, stderr=devnull, start_new_session=True
        )
        try:
            time.sleep(self._settle_s)
            yield
            if process.poll() is not None:
                raise SystemExit(f"the neighbour ended by itself: {' '.join(self._loop[4:])}")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class _Beside(EngineRunner):
    """Runs the candidate's processes beside a neighbour."""

    neighbour: Neighbour | None = None

    def run(self, step: Step, workloads: tuple[Timed, ...]) -> ProcessRun:
        beside = self.neighbour.beside() if self.neighbour and step.arm == CANDIDATE else nullcontext()
        with beside:
            return super().run(step, workloads)


def measure(job: Job, neighbour: Neighbour | None) -> list[ProcessRun]:
    """Run a job of two equal arms.

    Args:
        job: A calibration.
        neighbour: What runs beside the candidate's processes; ``None``: nothing.
    """
    node, runs = probe_node(), []
    with (
        measurement_lock(_LOCK_WAIT_S, job.id),
        Supervisor() as supervisor,
        closing(open_gpus(node.gpus)) as gpus,
    ):
        runner = _Beside(job, prepare(job), supervisor, gpus, lambda: False)
        runner.neighbour = neighbour
        for event in Schedule(job, 1, runner, node, lambda: False).run(RunWholeSchedule()):
            if isinstance(event, ProcessDone):
                if event.run.failure:
                    raise SystemExit(event.run.failure.message)
                runs.append(event.run)
                sys.stderr.write(f"{len(runs)} of {job.process_starts}\n")
    return runs


def cells(beside: str, runs: Sequence[ProcessRun], workloads: Sequence[Timed], limits: Limits) -> Iterator[Cell]:
    """What a neighbour did to each workload. Blocks are not voided: other work is what is asked about."""
    for workload in workloads:
        arms = [[run for run in runs if run.step.arm == arm] for arm in (0, CANDIDATE)]
        quads = quads_of(arms[0], arms[1], workload.name)
        said = decide(quads.log_ratios, limits, None, quads.insides)
        ratio = said.ratio
        shown = f"{ratio.value:.4f} [{ratio.low:.4f}, {ratio.high:.4f}]" if ratio else "none"
        yield Cell(workload.name, beside, len(quads.quads), shown, said.throughput)


def decision(found: Sequence[Cell], margin: float) -> tuple[str, int]:
    """What follows, and the exit code.

    Args:
        found: All cells.
        margin: Relative change that does not matter.
    """
    alone = [cell for cell in found if cell.beside == IDLE]
    beside = [cell for cell in found if cell.beside != IDLE]
    if any(cell.word is not Throughput.EQUIVALENT for cell in alone):
        return f"Nothing: with both idle this machine is not equal to itself within {margin:.1%}.", _UNDECIDED
    touched = [cell for cell in beside if cell.word is not Throughput.EQUIVALENT]
    if not touched:
        return f"A slot for each GPU: no neighbour changes a speed by {margin:.1%} or more.", 0
    named = "; ".join(f"{cell.workload}, {cell.beside}: {cell.ratio}, {cell.word}" for cell in touched)
    return f"The slot is the host's: not within {margin:.1%} ({named}).", 0


def table(found: Sequence[Cell]) -> list[str]:
    """As lines of Markdown."""
    rows = [f"| {cell.workload} | {cell.beside} | {cell.ratio} | {cell.quads} | {cell.word} |" for cell in found]
    return ["| workload | the other GPU | beside it over alone | quads | verdict |", "|---|---|---|---|---|", *rows]


def main(argv: Sequence[str]) -> int:
    """Measure, print table and decision, and put them into a page if one is named."""
    asked = _parser().parse_args(argv)
    pair = _pair(asked)
    os.environ[_VISIBLE] = pair[0].uuid if pair else ""  # what the engines inherit, and the probe sees
    workloads = (Workload(asked.prompt, 0), Workload(0, asked.generate))
    arm = _arm(asked)
    design = Design(blocks=2 * asked.quads, repetitions=asked.repetitions, calibration=True, timeout_s=asked.timeout)
    job = Job((arm, arm), workloads, None, NodeClass("any"), design, cases=())
    limits = Limits(asked.alpha, asked.margin, asked.quads)
    found: list[Cell] = []
    for beside, neighbour in _neighbours(asked, pair):
        sys.stderr.write(f"the other GPU: {beside}\n")
        found += cells(beside, measure(job, neighbour), workloads, limits)
    said, code = decision(found, asked.margin)
    lines = [*_headlines(asked, argv, pair), "", *table(found), "", f"**{said}**"]
    sys.stdout.write("\n".join(lines) + "\n")
    if asked.write:
        page = asked.write.read_text(encoding="utf-8")
        asked.write.write_text(put_between_markers(page, lines, BEGIN, END), encoding="utf-8")
    return code


def _pair(asked: argparse.Namespace) -> Sequence[Gpu]:
    """The GPU that measures and the other one."""
    if asked.standin:
        return ()
    gpus = probe_gpus()
    if len(gpus) < 2:  # noqa: PLR2004 - a pair
        raise SystemExit(f"this needs two GPUs, nvidia-smi tells of {len(gpus)}; --standin tries the script without")
    return gpus[:2]


def _arm(asked: argparse.Namespace) -> Arm:
    if asked.path and asked.model:
        build = Build(asked.fork, Fork(asked.fork), path=asked.path)
    elif asked.standin:
        build = Build("ik", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python")
    else:
        raise SystemExit("--path and --model: name a llama-bench with code for the GPUs, and a model for it")
    tiny = Model("tiny-moe-iq4_xs", card="tiny-moe", quant="IQ4_XS")
    model = Model(Path(asked.model).stem, path=asked.model) if asked.model else tiny
    return Arm(build, model, complete(build, {} if asked.standin else _flags(asked.flags)))


def _flags(text: str) -> dict[str, Any]:
    told = dict(pair.split("=", 1) for pair in text.split(",") if pair)
    return {name: int(value) if value.lstrip("-").isdecimal() else value for name, value in told.items()}


def _neighbours(asked: argparse.Namespace, pair: Sequence[Gpu]) -> Iterator[tuple[str, Neighbour | None]]:
    yield IDLE, None
    if not pair:
        yield BUSY, Neighbour(("sleep", "1"), clean_environment(), 0.1)
        yield HYBRID, Neighbour((sys.executable, "-c", _SPIN), clean_environment(), 0.1)
        return
    environment = {**clean_environment(), _VISIBLE: pair[1].uuid, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    for beside, flags in ((BUSY, asked.flags), (HYBRID, asked.hybrid)):
        line = [asked.path, "-m", asked.model, "-p", str(asked.prompt), "-n", str(asked.generate), "-r", "100"]
        line += [word for name, value in _flags(flags).items() for word in (f"-{name}", str(value))]
        yield beside, Neighbour(line, environment, asked.settle)


def _headlines(asked: argparse.Namespace, argv: Sequence[str], pair: Sequence[Gpu]) -> Iterator[str]:
    if asked.standin:
        yield "**Stand-ins, no GPUs: this tells nothing but that the script runs.**"
        yield ""
    shown = " ".join(Path(word).name if word.startswith("/") else word for word in argv)
    names = " beside ".join(gpu.name for gpu in pair)
    where = f"{node_text(probe_node())}{f', {names}' if names else ''}"
    yield f"On {where}, load {os.getloadavg()[0]:.1f} at the end. Made by `python benchmarks/two_gpus.py {shown}`."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--path", help="a llama-bench")
    parser.add_argument("--fork", choices=list(map(str, Fork)), default=str(Fork.LLAMA_CPP), help="of --path")
    parser.add_argument("--model", help="a model file that either GPU has room for")
    parser.add_argument(
        "--flags", default="ngl=99", help="of what measures, and of the neighbour that is busy by itself"
    )
    parser.add_argument("--hybrid", default="ngl=99,ncmoe=99", help="of the neighbour that is busy with the CPU")
    parser.add_argument("--quads", type=int, default=8, help="of each neighbour")
    parser.add_argument("--repetitions", type=int, default=7, help="of each workload in a process")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of prompt processing")
    parser.add_argument("--generate", type=int, default=64, help="tokens of token generation")
    parser.add_argument("--settle", type=float, default=30.0, help="seconds until the neighbour has loaded its model")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that a process may take")
    parser.add_argument("--margin", type=float, default=0.02, help="relative change that does not matter")
    parser.add_argument("--alpha", type=float, default=0.01)
    parser.add_argument("--standin", action="store_true", help="without GPUs, to try the script")
    parser.add_argument("--write", type=Path, help="page to put the table into")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
