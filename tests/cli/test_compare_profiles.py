"""``compare`` on journals of prompt profiles: times to the first token read in ms, in tables and as data."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))

from judging_support import BASELINE, CANDIDATE, NODE, arms_runs, contrast

from harness.cli.main import cli
from harness.domain.job import Design, Job
from harness.domain.measurement import Samples
from harness.domain.node import NodeClass
from harness.domain.workload import Metric, ProfileWorkload, PromptProfile, is_time, names_a_time
from harness.reporting.journal import JournalWriter, PlannedCase, RunInfo

LOAD = ProfileWorkload(PromptProfile("chat", "Hello", 16), Metric.TTFT)
JOB = Job((BASELINE, CANDIDATE), (LOAD,), None, NodeClass("any"), Design(), ())


def _journal(folder: Path, ours: list[float], theirs: list[float]) -> Path:
    """A journal of times in ms."""
    with JournalWriter(folder) as writer:
        writer.run_started(RunInfo("small", "local", cases=1))
        writer.planned(PlannedCase(replace(contrast(), workload=LOAD), JOB.id))
        writer.job_submitted(JOB, 1)
        writer.job_started(JOB.id, 1, NODE, "box")
        for run, ms in zip(arms_runs(ours, theirs), [*ours, *theirs], strict=True):
            writer.process(JOB.id, 1, replace(run, samples=(Samples(LOAD.name, 1, (round(ms * 1e6),), 0),)))
        writer.job_finished(JOB.id, 1, None)
    return folder


def test_times_are_in_ms_and_a_longer_one_is_a_regression(tmp_path: Path) -> None:
    before = _journal(tmp_path / "before", [3700, 3710, 3690, 3705], [3777, 3770, 3780, 3775])
    after = _journal(tmp_path / "after", [3700, 3712, 3689, 3706], [7459, 7450, 7470, 7455])
    table = CliRunner().invoke(cli, ["compare", str(before), str(after)])
    assert "3775 ms" in table.stdout
    assert "7458 ms" in table.stdout
    (row,) = json.loads(CliRunner().invoke(cli, ["compare", str(before), str(after), "--format", "json"]).stdout)
    assert (round(row["baseline"]), round(row["candidate"])) == (3775, 7458)
    assert row["verdict"] == "regressed"
    assert row["ratio"] < 0.6


def test_a_name_tells_what_the_workload_tells() -> None:
    for metric in Metric:
        load = ProfileWorkload(LOAD.profile, metric)
        assert names_a_time(load.name) == is_time(load)
    assert not names_a_time("tg128.d4096")
