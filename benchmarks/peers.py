"""The same cases through the harness and its peers: ``python benchmarks/peers.py --write docs/explanation/speed.md``.

A shell loop, pytest with a subprocess for each case, ReFrame (installed into a folder of the benchmark's own) and the
harness, by turns, so that what else the machine does hits all of them. All give the engine the same arguments; the
harness starts one process for all workloads of an arm, the others one for each case. CPU is user and system of all
processes below, those left behind included. ``--bench DIR/llama-bench --fork ik_llama.cpp`` takes a build of your own
in place of the embedded engine; ``--model FILE --large`` measures a large model, where loading it is what takes time.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from noise import put_between_markers
from peers_ways import (
    CaseCommand,
    Prepare,
    Way,
    harness,
    journal_of,
    outputs_of,
    plain_pytest,
    reframe,
    shell_loop,
    write_cases,
)

from harness.domain.arm import Arm
from harness.domain.workload import Timed
from harness.engines.engine import Exit, Order
from harness.execution.inspecting import informed_engine
from harness.execution.node import probe_node
from harness.execution.preparing import threads_for
from harness.execution.process import clean_environment
from harness.judging.wording import node_text
from harness.models.request import model_path
from harness.planning.load import load_matrix
from harness.planning.plan import Plan
from harness.planning.planner import make_plan

_MARKERS = "peers", "large"
_REPETITIONS = 4
_BLOCKS = 2
_STARTS = 1 + _BLOCKS
"""How often each case is measured anew: the least that the harness does is a burn-in process and a pair of blocks."""
_MATRIX = """
name = "peers"
[builds.engine]
fork = "{fork}"
{build}
[models.model]
{model}
[flags]
t = {threads}
{flags}
{workloads}
[policy]
warmup = 1
repetitions = {kept}
burn_in = 1
blocks = {blocks}
"""
_SMALL = ("fa = 0\nub = [32, 64, 96, 128, 192, 256]", ("pp = 64", "pp = 128", "tg = 8", "tg = 16"))
_LARGE = ("fa = 0\nub = [64, 128]\nmmap = 0", ("pp = 32", "pp = 64", "tg = 2", "tg = 4"))
"""Not mapped, so that it is copied, as to a GPU: what is mapped is loaded while it computes."""
_SUBREAPER = 36
"""Of prctl(2): processes whose parent ended become ours, so that their CPU time is told to us."""
_PATIENCE_S = 20.0


@dataclass
class Taken:
    """What a way took, by round.

    Attributes:
        wall_s: Seconds.
        cpu_s: Of all its processes.
    """

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)


def matrix_text(asked: argparse.Namespace) -> str:
    """The matrix that the harness runs, and of which the others get their cases."""
    flags, workloads = _LARGE if asked.large else _SMALL
    wheel = {"ik_llama.cpp": "ik-llama-cpp-python", "llama.cpp": "xllamacpp"}[asked.fork]
    return _MATRIX.format(
        fork=asked.fork,
        build=f'path = "{asked.bench.resolve()}"' if asked.bench else f'wheel = "{wheel}"',
        model=f'path = "{asked.model.resolve()}"' if asked.model else 'card = "tiny-moe"\nquant = "IQ4_XS"',
        threads=asked.threads,
        flags=flags,
        workloads="\n".join(f"[[workloads]]\n{each}" for each in workloads),
        kept=_REPETITIONS - 1,
        blocks=_BLOCKS,
    )


class Cases:
    """Every measurement of a plan as a process of its own: each case as often as the harness measures it.

    Args:
        plan: Single arms alone.
    """

    def __init__(self, plan: Plan) -> None:
        orders = [self._order(arm, load) for job in plan.jobs for arm in job.arms for load in job.workloads]
        self._orders = orders * _STARTS

    @staticmethod
    def _order(arm: Arm, load: Timed) -> Order:
        return Order(arm, model_path(arm.model), (load,), _REPETITIONS, None, threads_for(arm))

    def __len__(self) -> int:
        return len(self._orders)

    def commands(self) -> list[CaseCommand]:
        """What the engine is told for each."""
        told = [informed_engine(order.arm.build).command(order) for order in self._orders]
        return [CaseCommand(each.argv, each.environment, each.stdin) for each in told]

    def require_measured(self, name: str, outputs: Sequence[str]) -> None:
        """Do nothing where a way measured every case.

        Raises:
            SystemExit: It did not: then its time is that of something else.
        """
        whole = [
            informed_engine(order.arm.build).read(order, Exit(0, None, False, text, ""))
            for order, text in zip(self._orders, outputs, strict=False)
        ]
        measured = sum(bool(report.rows) and report.failure is None for report in whole)
        if measured != len(self):
            raise SystemExit(f"{name} made {measured} of {len(self)} measurements")


def run_round(ways: Sequence[tuple[Prepare, Path]], cases: Cases, taken: dict[str, Taken], first: int) -> float:
    """Run every way once, beginning with another one each time.

    Returns:
        Seconds that the harness's engine processes took.
    """
    engines_s = 0.0
    for number in range(len(ways)):
        prepare, given = ways[(first + number) % len(ways)]
        with tempfile.TemporaryDirectory(prefix="moe-peers-") as place:
            folder = Path(place)
            write_cases(folder, cases.commands())
            way = prepare(folder, given)
            wall_s, cpu_s = _cost(way, folder)
            if (folder / "journal.jsonl").exists():
                engines_s = _engines_s(way, folder, len(cases))
            else:
                cases.require_measured(way.name, outputs_of(folder))
        found = taken.setdefault(way.name, Taken())
        found.wall_s.append(wall_s)
        found.cpu_s.append(cpu_s)
        sys.stderr.write(f"{way.name}: {wall_s:.2f} s, CPU {cpu_s:.2f} s\n")
    return engines_s


def _engines_s(way: Way, folder: Path, cases: int) -> float:
    runs = [event["run"] for event in journal_of(folder) if event["event"] == "process"]
    measured = sum(len(run["samples"]) for run in runs if not run["failure"])
    if measured != cases:
        raise SystemExit(f"{way.name} made {measured} of {cases} measurements")
    return sum(float(run["wall_s"]) for run in runs)


def _cost(way: Way, folder: Path) -> tuple[float, float]:
    before, began = _children_s(), time.monotonic()
    ours = {name: value for name, value in os.environ.items() if name.startswith("MOE_")}
    environment = clean_environment({**ours, "MOE_LOCK_DIR": str(folder)})  # the others wait for nobody either
    with (folder / "told").open("w") as told:
        subprocess.run(way.argv, cwd=folder, env=environment, stdout=told, stderr=told, check=False)
    wall_s = time.monotonic() - began
    while time.monotonic() - began < wall_s + _PATIENCE_S and _waited():
        time.sleep(0.05)
    return wall_s, _children_s() - before


def _waited() -> bool:
    """Whether processes are left that were started below; those that have ended are waited for."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reframe_program(folder: Path) -> Path:
    """Install ReFrame into a folder of its own, unless it is there."""
    program = folder / "bin" / "reframe"
    if not program.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", "reframe-hpc"], check=True)
    return program


def table(taken: dict[str, Taken], engines_s: Sequence[float], measurements: int, processes: int) -> list[str]:
    """What was found, as lines of Markdown; ratios are to the loop of the same round."""
    loop = taken["shell loop"]
    rows = ["| way | wall, s | wall over the loop's | CPU, s | CPU over the loop's |", "|---|---|---|---|---|"]
    for name, found in taken.items():
        walls, cpus = (
            _ratios(ours, theirs) for ours, theirs in ((found.wall_s, loop.wall_s), (found.cpu_s, loop.cpu_s))
        )
        rows.append(f"| {name} | {median(found.wall_s):.2f} | {walls} | {median(found.cpu_s):.2f} | {cpus} |")
    told = f"Of the harness's {processes} engine processes alone: {median(engines_s):.2f} s of wall time"
    return [*rows, "", f"{told}; the others start {measurements}."]


def _ratios(ours: Sequence[float], theirs: Sequence[float]) -> str:
    found = [mine / yours for mine, yours in zip(ours, theirs, strict=True)]
    return f"{median(found):.2f} ({min(found):.2f} to {max(found):.2f})" if len(found) > 1 else f"{found[0]:.2f}"


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, and put it into a page if one is named."""
    asked = _parser().parse_args(argv)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="moe-peers-matrix-") as place:
        matrix = Path(place) / "peers.toml"
        matrix.write_text(matrix_text(asked), encoding="utf-8")
        plan = make_plan(load_matrix(matrix))
        cases = Cases(plan)
        ways = [(shell_loop, matrix), (harness("local"), matrix)]
        ways += [] if asked.without_ray else [(harness("ray"), matrix)]
        if not asked.large:
            ways[1:1] = [(plain_pytest, matrix), (reframe, reframe_program(asked.reframe))]
        taken: dict[str, Taken] = {}
        load = os.getloadavg()[0]
        engines_s = [run_round(ways, cases, taken, number) for number in range(asked.rounds)]
    processes = sum(job.process_starts for job in plan.jobs)
    shown = " ".join(Path(word).name if word.startswith("/") else word for word in argv)
    engine = "llama-bench" if asked.bench else "the wheel's embedded engine"
    model = asked.model.name if asked.model else "tiny-moe in IQ4_XS"
    rounds = "one round" if asked.rounds == 1 else f"{asked.rounds} rounds, medians"
    what = (
        f"{len(cases) // _STARTS} cases of {model}, each measured in {_STARTS} processes, through {engine} of"
        f" {asked.fork}; {rounds}. On {node_text(probe_node())}, one-minute load {load:.1f}"
        f" before. Made by `python benchmarks/peers.py {shown}`."
    )
    lines = [what, "", *table(taken, engines_s, len(cases), processes)]
    sys.stdout.write("\n".join(lines) + "\n")
    if asked.write:
        page, name = asked.write.read_text(encoding="utf-8"), _MARKERS[asked.large]
        marks = (f"<!-- {name}: begin -->", f"<!-- {name}: end -->")
        asked.write.write_text(put_between_markers(page, lines, *marks), encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bench", type=Path, help="a llama-bench in place of the embedded engine")
    parser.add_argument("--fork", choices=("ik_llama.cpp", "llama.cpp"), default="ik_llama.cpp")
    parser.add_argument("--model", type=Path, help="a model file in place of the tiny one")
    parser.add_argument("--large", action="store_true", help="8 cases of 2 arms, without pytest and ReFrame")
    parser.add_argument("--without-ray", action="store_true", help="where the machine is too busy for Ray to start")
    parser.add_argument("--threads", type=int, default=1)
    folder = Path(tempfile.gettempdir()) / "moe-peers-reframe"
    parser.add_argument("--reframe", type=Path, default=folder, help=f"virtual environment of ReFrame ({folder})")
    parser.add_argument("--write", type=Path, help="page to put the table into")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
