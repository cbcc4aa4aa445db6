"""Recordings of machines on which nothing changed, as sources of the benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from judge_noise import Floats, Trace, as_floats

_HERE = Path(__file__).parent
_H200 = _HERE.parent / "tests" / "data" / "recordings"
_OWN = _HERE / "data"

_ROUND_WARM_UP = 2
"""Of the five repetitions of a round; both forks are still getting faster there."""

_LONG_WARM_UP = 10
_ROUND_BLOCK = 2
_OWN_BLOCK = 8
_OWN_WARM_UP = 4
_QUIET_UNTIL, _BUSY_FROM = 48, 60
"""Process starts of the recording before which the machine was left alone, and from which other work filled it."""


def h200_traces() -> tuple[Trace, ...]:
    """Six rounds of fresh processes on an H200, the scatter inside a process from one of 60 repetitions."""
    return tuple(
        Trace(f"H200, {fork} {shown}", _rounds(build, workload), _ROUND_BLOCK, _long(build, workload))
        for build, fork in (("llama_cpp-b11434", "llama.cpp"), ("ik_llama_cpp-8337e4cd", "ik_llama.cpp"))
        for workload, shown in (("n_prompt", "pp512"), ("n_gen", "tg64"))
    )


def _rounds(build: str, workload: str) -> Floats:
    rounds = [_rows(_H200 / f"{build}.full_{number}.json") for number in range(1, 7)]
    return np.array([_log_times(rows, workload)[_ROUND_WARM_UP:] for rows in rounds])


def _long(build: str, workload: str) -> Floats:
    file = next(_H200.glob(f"{build}.q4k_full.json*"))
    return _log_times(_rows(file), workload)[_LONG_WARM_UP:]


def _rows(file: Path) -> list[dict[str, Any]]:
    text = file.read_text(encoding="utf-8")
    return list(json.loads(text)) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]


def _log_times(rows: list[dict[str, Any]], workload: str) -> Floats:
    row = next(row for row in rows if row[workload])
    return as_floats(np.log(row["samples_ns"]))


def own_traces() -> tuple[Trace, ...]:
    """Process starts of the wheels on two cores: left alone, and while other work filled both."""
    recorded = json.loads((_OWN / "contended.json").read_text(encoding="utf-8"))
    first = [entry for entry in recorded["series"] if entry["build"] == recorded["series"][0]["build"]]
    quiet = [_recorded("2 cores left alone", entry, slice(_QUIET_UNTIL)) for entry in first]
    return (*quiet, *(_recorded("2 busy cores", entry, slice(_BUSY_FROM, None)) for entry in recorded["series"]))


def _recorded(machine: str, entry: dict[str, Any], starts: slice) -> Trace:
    fork = {"xllamacpp": "llama.cpp", "ik-llama-cpp-python": "ik_llama.cpp"}[entry["build"].split()[0]]
    times = as_floats(np.log(entry["ns"]))
    return Trace(f"{machine}, {fork} {entry['workload']}", times[starts, _OWN_WARM_UP:], _OWN_BLOCK)
