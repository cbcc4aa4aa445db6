"""What ten thousand cases cost to plan and to collect, beside a pytest that collects one empty test.

Both are fresh processes of this interpreter, by turns, so that what else the machine does hits both. Neither loads
other plugins, and both find their modules compiled, as after the first run of any installation. CPU time counts what
the process and its children used; memory is the largest resident set. The smallest of each is shown: everything that
disturbs only adds. Both are quiet (``-q``): the header's forecast of what a budget can decide needs scipy.

    python benchmarks/planning.py [--runs 5] [--format json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

CASES = 10_000
MATRIX = """
name = "many"
[builds.mainline]
fork = "llama.cpp"
wheel = "xllamacpp"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
card = "tiny-moe"
quant = "IQ4_XS"
[flags]
ub = [32, 64, 128, 256, 512]
b = [512, 1024, 2048, 4096, 8192]
t = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
fa = [0, 1]
[[workloads]]
pp = 64
[[workloads]]
pp = 256
[[workloads]]
pp = 512
[[workloads]]
tg = 16
[[workloads]]
tg = 64
[[contrasts]]
name = "fork"
factor = "build"
baseline = "mainline"
candidate = "ik"
[[contrasts]]
name = "flash-attention"
factor = "fa"
baseline = 0
candidate = 1
"""
"""Two builds with 500 arms each; five workloads of 1000 single arms and of 1000 pairs."""
_PYTEST = ("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
_MIB = 1024**2
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took.

    Attributes:
        cpu_s: Seconds of CPU, its children's too.
        peak_mib: Largest resident set, MiB.
    """

    cpu_s: float
    peak_mib: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="process starts of each (default: 5)")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), asked.runs)
    sys.stdout.write((json.dumps(figures(found)) if asked.format == "json" else page(found)) + "\n")


def measured(folder: Path, runs: int) -> dict[str, Cost]:
    """The least cost of each command, by its name.

    Args:
        folder: An empty one.
        runs: Process starts of each.
    """
    commands = prepared(folder)
    for command in commands.values():
        _cost(command, folder)
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            costs[name].append(_cost(command, folder))
    return {name: least(each) for name, each in costs.items()}


def prepared(folder: Path) -> dict[str, tuple[str, ...]]:
    """Write the matrix and the empty test, and say what is compared."""
    matrix, empty = folder / "many.toml", folder / "test_empty.py"
    matrix.write_text(MATRIX)
    empty.write_text("def test_nothing() -> None:\n    pass\n")
    return {
        "empty pytest": (*_PYTEST, str(empty)),
        "10,000 cases": (*_PYTEST, "-p", "harness.pytest_plugin", "-m", "moe", "--matrix", str(matrix)),
    }


def least(costs: Iterable[Cost]) -> Cost:
    """The least time and the least memory of several runs."""
    listed = list(costs)
    return Cost(min(cost.cpu_s for cost in listed), min(cost.peak_mib for cost in listed))


def _cost(command: Sequence[str], folder: Path) -> Cost:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with (folder / "output.txt").open("w+") as output:
        started = subprocess.Popen(
            (sys.executable, *command), cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode:
            output.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with {started.returncode}:\n{output.read()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _KIB / _MIB)


def figures(found: dict[str, Cost]) -> dict[str, object]:
    """All of it as data."""
    empty, full = found.values()
    return {
        "cases": CASES,
        **{name: asdict(cost) for name, cost in found.items()},
        "ratio_cpu": full.cpu_s / empty.cpu_s,
        "above_cpu_s": full.cpu_s - empty.cpu_s,
        "above_mib": full.peak_mib - empty.peak_mib,
    }


def page(found: dict[str, Cost]) -> str:
    """All of it for people."""
    empty, full = found.values()
    lines = [f"{name:14} {cost.cpu_s:6.2f} s of CPU {cost.peak_mib:7.1f} MiB" for name, cost in found.items()]
    lines.append(
        f"{'above empty':14} {full.cpu_s - empty.cpu_s:6.2f} s of CPU {full.peak_mib - empty.peak_mib:7.1f} MiB,"
        f" {full.cpu_s / empty.cpu_s:.1f} times the CPU"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
