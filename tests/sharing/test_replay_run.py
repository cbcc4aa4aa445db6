"""A bundle run again for real, by the commands of the pages that tell how."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from forked import run_forked
from judging_support import NODE, run

from harness.cli.main import cli
from harness.domain.words import Throughput
from harness.domain.workload import Workload
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.planning.load import load_matrix
from harness.planning.planner import make_plan
from harness.reporting.journal import JournalWriter, PlannedCase, RunInfo
from harness.reporting.replay import read_journal
from harness.sharing.beside import side_by_side
from harness.sharing.opened import opened

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
PP = Workload(8, 0)
MATRIX = """
name = "pages"
[builds.mainline]
fork = "llama.cpp"
wheel = "xllamacpp"
[models.tiny]
card = "tiny-moe"
quant = "IQ4_XS"
[flags]
ngl = 0
fa = [0, 1]
[[workloads]]
pp = 8
[[contrasts]]
name = "cpu-flash-attention"
factor = "fa"
baseline = 0
candidate = 1
[policy]
warmup = 1
repetitions = 1
blocks = 2
"""


def original(folder: Path) -> None:
    """A journal of the real arms with measurements that nobody made: what ran elsewhere."""
    (folder / "m.toml").write_text(MATRIX)
    plan = make_plan(load_matrix(folder / "m.toml"), ["cpu-flash-attention"])
    (job,) = plan.jobs
    (planned,) = plan.cases
    runs = [run(arm, block, (100, 60)[arm], workload=PP) for block in range(8) for arm in (0, 1)]
    record = JobRecord(replace(job, design=replace(job.design, blocks=8)), tuple(runs), node=NODE)
    policy = plan.policy.judging
    with JournalWriter(folder / "moe-reports") as journal:
        journal.run_started(RunInfo("pages", "local", 1, {}, policy))
        journal.planned(PlannedCase(planned.case, job.id))
        journal.job_submitted(job)
        journal.job_started(job.id, 1, NODE, "elsewhere")
        for each in runs:
            journal.process(job.id, 1, each)
        journal.job_finished(job.id, 1, None)
        journal.verdict(judge(planned.case, record, policy))
        journal.run_finished()


def commands(page: str) -> list[str]:
    return re.findall(r"^\$ moe-harness (.*)$", (PAGES / page).read_text(encoding="utf-8"), flags=re.MULTILINE)


def told(line: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, shlex.split(line))
    return result.exit_code, result.output


def measured(line: str) -> tuple[int, str]:
    """In a process of its own: it starts engines."""
    done = run_forked("moe-harness", *shlex.split(line))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(os.getpriority(os.PRIO_PROCESS, 0) != 0, reason="no speed is judged at a niceness other than 0")
def test_the_pages_commands_run_and_the_bundle_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command in its order; that of the first page that runs something is that of the second."""
    original(tmp_path)
    listed = [line for line in commands("red-case.md") if not line.startswith("replay")]
    listed += commands("reproduce-elsewhere.md")
    monkeypatch.chdir(tmp_path)
    for line in listed:
        code, output = measured(line) if line.startswith("replay") else told(line)
        assert code in {0, 1, 3}, f"{line}\n{output}"
        assert "Traceback" not in output
    assert [line.split()[0] for line in listed] == ["explain", "explain", "bundle", "replay", "compare"]
    mine = read_journal(tmp_path / "mine")
    assert (mine.name, mine.finished, mine.complete_plan) == ("pages-replay", True, True)
    (last,) = mine.jobs.values()
    assert last.job is not None
    assert last.job.design.repetitions == 1
    assert {run.step.arm for run in last.runs if run.step.scored and run.samples} == {0, 1}
    assert (tmp_path / "mine" / "junit.xml").is_file()
    with opened(tmp_path / "finding.tar.gz") as theirs:
        (row,) = side_by_side(theirs.state, mine).rows
    assert row.work == "pp"
    assert row.original is not None
    assert row.original.throughput is Throughput.REGRESSED
    assert "other bytes" in row.content
