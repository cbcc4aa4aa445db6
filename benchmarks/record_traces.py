"""Record how the speeds of this machine scatter while nothing changes: ``python benchmarks/record_traces.py NAME``.

The harness itself runs both wheels on the tiny model, one arm a job, so many process starts one after the other. Every
repetition's time goes to ``benchmarks/data/NAME.json``; ``judge.py`` resamples it. With ``--journal`` a run that was
made before is read instead. The machine should do nothing else, or what it always does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

MATRIX = """
name = "traces"
builds.mainline = {{ fork = "llama.cpp", wheel = "xllamacpp" }}
builds.ik = {{ fork = "ik_llama.cpp", wheel = "ik-llama-cpp-python" }}
models.tiny = {{ card = "tiny-moe", quant = "IQ4_XS" }}
flags = {{ fa = 1, ub = 512, ngl = 0 }}
workloads = [{{ pp = 256 }}, {{ tg = 64 }}]
checks = [{{ kind = "floor", tokens_per_second = 1.0 }}]
policy = {{ warmup = 4, repetitions = 8, blocks = {starts} }}
"""


def record(starts: int, folder: Path) -> Path:
    """Run the processes; the journal of the run.

    Args:
        starts: Process starts of each build.
        folder: Where to put everything.
    """
    matrix = folder / "traces.toml"
    matrix.write_text(MATRIX.format(starts=starts), encoding="utf-8")
    command = [sys.executable, "-m", "harness.cli", "run", str(matrix), "--executor", "local"]
    subprocess.run([*command, "--reports", str(folder / "reports")], check=True, cwd=folder)
    return folder / "reports" / "journal.jsonl"


def series(journal: Path) -> list[dict[str, Any]]:
    """What a journal has: for each build and workload the times of each scored process, in order of time."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for line in journal.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] != "process" or event["run"]["step"]["block"] < 0:
            continue
        run = event["run"]
        build = f"{run['engine']['package']} {run['engine']['package_version']}"
        for samples in run["samples"]:
            entry = found.setdefault((build, samples["workload"]), {"ns": [], "load_before": []})
            entry["ns"].append(samples["all_ns"])
            entry["load_before"].append(round(run["conditions"]["load_before"], 2))
    return [{"build": build, "workload": workload, **entry} for (build, workload), entry in found.items()]


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", help="of the file in benchmarks/data, without .json")
    parser.add_argument("--about", default="", help="what the machine was and did, in a sentence")
    parser.add_argument("--starts", type=int, default=120, help="process starts of each build")
    parser.add_argument("--journal", type=Path, help="read this journal instead of running anything")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recorded = series(asked.journal or record(asked.starts, Path(folder)))
    lines = ",\n".join(json.dumps(entry) for entry in recorded)
    text = f'{{"about": {json.dumps(asked.about)}, "series": [\n{lines}\n]}}\n'
    DATA.mkdir(exist_ok=True)
    (DATA / f"{asked.name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _main()
