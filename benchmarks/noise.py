"""What the measures against noise are worth on this machine: ``python benchmarks/noise.py``.

``--write docs/explanation/noise.md`` puts the table into the page.

Each build against itself (two arms of one content), through the harness's own local executor, once with each set of
measures. Where nothing differs the true log ratio of a quad is 0, so its spread is taken about 0: with n quads it has n
degrees of freedom, and its interval follows from chi-square. Sets and builds take turns in every round, so that the
machine's own changes over an hour do not look like the worth of a measure.

Run it on a machine that does nothing else; the table says how busy the cores were with other work. A build of your own:
``--path DIR/llama-bench --fork llama.cpp --model FILE --flags ngl=99,...``, e.g. with its experts on the CPU.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median

from scipy.stats import chi2

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun
from harness.domain.model import Model
from harness.domain.node import NodeClass
from harness.domain.quiet import PageCache, Quiet
from harness.domain.stopping import RunWholeSchedule
from harness.domain.workload import Workload
from harness.engines.flags import complete
from harness.execution.dispatch import Dispatcher
from harness.execution.events import Finished, ProcessDone
from harness.execution.executors import executor_factory
from harness.execution.node import probe_node
from harness.judging.quads import quads_of
from harness.judging.samples import process_medians
from harness.judging.voids import voided_blocks
from harness.judging.wording import node_text

BEGIN, END = "<!-- noise: begin -->", "<!-- noise: end -->"
LEVEL = 0.9

BUILDS = (
    Build("mainline", Fork.LLAMA_CPP, wheel="xllamacpp"),
    Build("ik", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python"),
)
MEASURES = {
    "nothing": Quiet(pinned=False, spare_core=False, page_cache=PageCache.LEFT),
    "pinned": Quiet(pinned=True, spare_core=False, page_cache=PageCache.LEFT),
    "pinned, one core free": Quiet(pinned=True, spare_core=True, page_cache=PageCache.LEFT),
    "the same, page cache warm (default)": Quiet(),
    "the same, page cache cold": Quiet(page_cache=PageCache.COLD),
}


@dataclass
class Cell:
    """What was measured of one wheel, workload and set of measures.

    Attributes:
        log_ratios: Of its quads.
        speeds: Tokens per second, a median for each process.
        foreign: Shares of the cores' time that other work took, one for each process.
        cached: Shares of the model that were in the page cache, one for each process.
        void: Blocks that count for nothing.
        failures: Of processes, in words.
    """

    log_ratios: list[float] = field(default_factory=list)
    speeds: list[float] = field(default_factory=list)
    foreign: list[float] = field(default_factory=list)
    cached: list[float] = field(default_factory=list)
    void: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, runs: Sequence[ProcessRun], workload: str) -> None:
        """Take in the processes of one job."""
        arms = [[run for run in runs if run.step.arm == arm] for arm in (0, 1)]
        voided = voided_blocks(runs)
        scored = [run for run in runs if run.step.scored and run.step.block not in voided]
        self.log_ratios += quads_of(arms[0], arms[1], workload, voided).log_ratios
        self.speeds += [entry.tps for runs in arms for entry in process_medians(runs, workload).values()]
        self.foreign += [share for run in scored if (share := run.conditions.foreign_load) is not None]
        self.cached += [share for run in scored if (share := run.conditions.model_cached) is not None]
        self.void += len(voided)
        self.failures += [run.failure.kind for run in runs if run.failure]


def spread_about_zero(log_ratios: Sequence[float]) -> tuple[float, float, float]:
    """The standard deviation of what is 0 in truth, and its interval at ``LEVEL``.

    Args:
        log_ratios: Natural logs of the ratios of quads, at least one.
    """
    count = len(log_ratios)
    total = sum(value * value for value in log_ratios)
    low, high = (math.sqrt(total / float(chi2.ppf(share, count))) for share in ((1 + LEVEL) / 2, (1 - LEVEL) / 2))
    return math.sqrt(total / count), low, high


def measure(jobs: Sequence[tuple[str, str, Job]], workloads: Sequence[Workload]) -> dict[tuple[str, str, str], Cell]:
    """Run jobs and collect their cells by build, workload and set of measures."""
    cells: dict[tuple[str, str, str], Cell] = {}
    for number, (build, measures, job) in enumerate(jobs, 1):
        sys.stderr.write(f"{number} of {len(jobs)}: {build}, {measures}\n")
        runs = tuple(_runs(job))
        for workload in workloads:
            cells.setdefault((build, workload.name, measures), Cell()).add(runs, workload.name)
    return cells


def _runs(job: Job) -> Iterator[ProcessRun]:
    dispatcher = Dispatcher(executor_factory("local", RunWholeSchedule()))
    dispatcher.add([job])
    try:
        for event in dispatcher.events():
            if isinstance(event, ProcessDone):
                yield event.run
            failure = event.failure if isinstance(event, Finished) else None
            if failure:
                raise SystemExit(failure.message)
    finally:
        dispatcher.close()


def table(cells: dict[tuple[str, str, str], Cell]) -> list[str]:
    """The cells as lines of Markdown, sets of measures below each other."""
    order = {name: place for place, name in enumerate(MEASURES)}
    rows = [
        f"| build | workload | measures | t/s | quads | quad SD [{LEVEL:.0%}] | other work on the cores | cached |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for build, workload, measures in sorted(cells, key=lambda key: (key[0], key[1], order[key[2]])):
        cell = cells[build, workload, measures]
        speed = f"{geometric_mean(cell.speeds):.4g}" if cell.speeds else "none"
        rows.append(
            f"| {build} | {workload} | {measures} | {speed} | {_count(cell)} "
            f"| {_spread(cell.log_ratios)} | {_typical(cell.foreign)} | {_typical(cell.cached)} |"
        )
    return rows


def _count(cell: Cell) -> str:
    """Quads that count, and what does not."""
    void = f"{cell.void} blocks void" if cell.void else ""
    failed = f"failed: {', '.join(cell.failures)}" if cell.failures else ""
    lost = "; ".join(filter(None, (void, failed)))
    return f"{len(cell.log_ratios)} ({lost})" if lost else f"{len(cell.log_ratios)}"


def _spread(log_ratios: Sequence[float]) -> str:
    if not log_ratios:
        return "none"
    sd, low, high = spread_about_zero(log_ratios)
    return f"{sd:.2%} [{low:.2%}, {high:.2%}]"


def _typical(shares: Sequence[float]) -> str:
    return f"{median(shares):.1%}" if shares else "not known"


def put_between_markers(page: str, lines: Sequence[str], opening: str = BEGIN, closing: str = END) -> str:
    """The page with what lies between two markers replaced.

    Raises:
        ValueError: If the page lacks a marker.
    """
    head, begin, rest = page.partition(opening)
    _, end, tail = rest.partition(closing)
    if not (begin and end):
        raise ValueError(f"the page needs the lines {opening} and {closing}")
    return "\n".join([head + opening, "", *lines, "", closing + tail])


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, and put it into a page if one is named."""
    asked = _parser().parse_args(argv)
    workloads = tuple(load for load in (Workload(asked.prompt, 0), Workload(0, asked.generate)) if load.tokens)
    sets = asked.measures or list(MEASURES)
    jobs = [
        (build.name, name, _job(build, asked, workloads, MEASURES[name]))
        for turn in range(asked.rounds)
        for build in _builds(asked)
        for name in (sets if turn % 2 == 0 else reversed(sets))
    ]
    node = probe_node()
    shown = " ".join(Path(word).name if word.startswith("/") else word for word in argv)
    what = (
        f"{asked.rounds * asked.quads} quads a cell in {asked.rounds} rounds on {node_text(node)}, governor "
        f"{node.governor}, model {_model(asked).name}. Made by `python benchmarks/noise.py {shown}`."
    )
    lines = [what, "", *table(measure(jobs, workloads))]
    sys.stdout.write("\n".join(lines) + "\n")
    if asked.write:
        page = asked.write.read_text(encoding="utf-8")
        asked.write.write_text(put_between_markers(page, lines), encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6, help="times that every set has its turn")
    parser.add_argument("--quads", type=int, default=4, help="quads of a build and set in a round")
    parser.add_argument("--prompt", type=int, default=256, help="tokens of prompt processing; 0: none")
    parser.add_argument("--generate", type=int, default=64, help="tokens of token generation; 0: none")
    parser.add_argument("--measures", action="append", choices=list(MEASURES), help="only these sets; repeatable")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds that a process may take")
    parser.add_argument("--card", default="tiny-moe")
    parser.add_argument("--quant", default="IQ4_XS")
    parser.add_argument("--model", help="a model file in place of the card")
    parser.add_argument("--path", help="a llama-bench in place of the wheels")
    parser.add_argument("--fork", choices=list(map(str, Fork)), default=str(Fork.LLAMA_CPP), help="of --path")
    parser.add_argument("--flags", default="", help="of the arms, e.g. ngl=99,fa=1")
    parser.add_argument("--write", type=Path, help="page to put the table into")
    return parser


def _builds(asked: argparse.Namespace) -> tuple[Build, ...]:
    return (Build(asked.fork, Fork(asked.fork), path=asked.path),) if asked.path else BUILDS


def _model(asked: argparse.Namespace) -> Model:
    if asked.model:
        return Model(Path(asked.model).stem, path=asked.model)
    return Model(f"{asked.card}-{asked.quant}".lower(), card=asked.card, quant=asked.quant)


def _job(build: Build, asked: argparse.Namespace, workloads: tuple[Workload, ...], quiet: Quiet) -> Job:
    told = dict(pair.split("=", 1) for pair in asked.flags.split(",") if pair)
    flags = {name: int(value) if value.lstrip("-").isdecimal() else value for name, value in told.items()}
    arm = Arm(build, _model(asked), complete(build, flags))
    design = Design(blocks=2 * asked.quads, timeout_s=asked.timeout, calibration=True, quiet=quiet)
    return Job((arm, arm), workloads, None, NodeClass("any"), design, cases=())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
