"""Jobs for the execution tests: on real wheels, and on the marked stand-in for faults."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import psutil

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.job import Design, Job
from harness.domain.model import Model
from harness.domain.node import NodeClass
from harness.domain.workload import Workload
from harness.engines.flags import complete

STANDIN = Path(__file__).parent.parent / "standin" / "llama_bench.py"
WORKLOADS = (Workload(32, 0), Workload(0, 4))
ANY = NodeClass("any")
QUICK = Design(warmup=1, repetitions=2, burn_in=1, blocks=1, timeout_s=60)


def wheel_arm(model: Path, **flags: int) -> Arm:
    """An arm on the real wheel of ik_llama.cpp."""
    build = Build("ik", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python")
    return Arm(build, Model("tiny", path=str(model)), complete(build, flags), shown=tuple(flags))


def standin_arm(folder: Path, model: Path, do: str, **told: object) -> Arm:
    """An arm on a stand-in that lies in a folder of its own and does as told."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "llama-bench"
    shutil.copy(STANDIN, program)
    (folder / "standin.json").write_text(json.dumps({"do": do, **told}))
    build = Build(f"standin-{folder.name}", Fork.IK_LLAMA_CPP, path=str(program))
    return Arm(build, Model("tiny", path=str(model)), complete(build, {}))


def job_of(*arms: Arm, design: Design = QUICK, workloads: tuple[Workload, ...] = WORKLOADS) -> Job:
    """A job of some arms."""
    return Job(arms, workloads, None, ANY, design, cases=())


def processes_below(folder: Path) -> list[psutil.Process]:
    """Live processes that were started from a program in a folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        command = process.info["cmdline"] or []
        if any(str(folder) in part for part in command) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found
