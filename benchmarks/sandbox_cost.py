"""What the sandbox costs: the same process starts inside and outside, in turns; CPU time, and the speeds themselves.

Run ``python benchmarks/sandbox_cost.py MODEL [PAIRS]`` on a machine that does nothing else. It compares a wheel with
itself: ``true`` inside and outside (what a start costs), and a child that times pp32 and tg8 of the model.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.model import Model
from harness.domain.workload import Workload
from harness.engines.engine import Engine, Exit, Order
from harness.engines.flags import complete
from harness.engines.registry import engine_for
from harness.execution.process import ProcessResult, ProcessSpec, Supervisor, clean_environment
from harness.execution.sandbox import sandbox_for

_T_95 = 2.0
"""Near enough for a dozen pairs and more."""


def main(model: Path, pairs: int) -> None:
    """Print the table."""
    build = Build("ik", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python", trusted=False)
    arm = Arm(build, Model("m", path=str(model)), complete(build, {"t": 1}))
    engine = engine_for(build)
    order = Order(arm, model, (Workload(32, 0), Workload(0, 8)), 4, None, 1)
    command = engine.command(order)
    environment = clean_environment(command.environment)
    with Supervisor() as supervisor:

        def run(argv: tuple[str, ...], stdin: str | None, *, inside: bool) -> ProcessResult:
            box = sandbox_for(build, argv, environment, files=list(engine.locate()), model=[model]) if inside else None
            return supervisor.run(ProcessSpec(argv, environment, 120.0, stdin=stdin, sandbox=box))

        starts = _in_turns(lambda inside: run(("/bin/true",), None, inside=inside), pairs)
        children = _in_turns(lambda inside: run(command.argv, command.stdin, inside=inside), pairs)
    sys.stdout.write(f"{pairs} pairs\n")
    _tell("start of `true`, CPU ms", [tuple(1e3 * _cpu(each) for each in pair) for pair in starts])
    _tell("start of `true`, wall ms", [tuple(each.wall_ns / 1e6 for each in pair) for pair in starts])
    _tell("child of the wheel, CPU ms", [tuple(1e3 * _cpu(each) for each in pair) for pair in children])
    _tell("child of the wheel, peak MB", [tuple(each.max_rss_bytes / 1e6 for each in pair) for pair in children])
    for index, load in enumerate(order.workloads):
        best = [tuple(_best_ms(engine, order, each, index) for each in pair) for pair in children]
        _tell(f"{load.name}, best repetition, ms", best)


def _best_ms(engine: Engine, order: Order, result: ProcessResult, index: int) -> float:
    """The shortest repetition of one workload, the first left out."""
    ended = Exit(result.exit_code, result.signal, result.timed_out, result.stdout, result.stderr)
    return min(engine.read(order, ended).rows[index].samples_ns[1:]) / 1e6


def _in_turns(run: Callable[[bool], ProcessResult], pairs: int) -> list[tuple[ProcessResult, ProcessResult]]:
    """Outside and inside, in an order that alternates."""
    found = []
    for number in range(pairs):
        first = bool(number % 2)
        done = {inside: run(inside) for inside in (first, not first)}
        found.append((done[False], done[True]))
    return found


def _cpu(result: ProcessResult) -> float:
    return result.user_s + result.system_s


def _tell(what: str, pairs: Sequence[Sequence[float]]) -> None:
    """Medians, and the mean ratio inside to outside with its interval."""
    logs = [math.log(inside / max(outside, 1e-9)) for outside, inside in pairs]
    half = _T_95 * statistics.stdev(logs) / math.sqrt(len(logs))
    mean = statistics.mean(logs)
    outside, inside = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio, low, high = (math.exp(each) for each in (mean, mean - half, mean + half))
    told = f"outside {outside:9.3f}  inside {inside:9.3f}  ratio {ratio:6.3f} [{low:.3f}, {high:.3f}]"
    sys.stdout.write(f"{what:32} {told}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(next(iter(sys.argv[2:]), "20")))
