"""The night's workflow and the composite action: their steps run, on a real engine where one is measured."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from fake_github import TOKEN, FakeGitHub
from github_support import journal
from steps import Done, Runner, action, checkout, make_runner, step, workflow

from harness.reporting.replay import read_journal

NIGHT = workflow("nightly.yml")["jobs"]
SHARD, JOIN, ISSUES = (NIGHT[name]["steps"] for name in ("shard", "join", "issues"))
ACTION = action()["runs"]["steps"]
MATRIX = """
name = "small"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
path = "{model}"
[node_classes.cpu]
[node_classes.gpu]
min_gpus = 64
[[workloads]]
pp = 32
[[checks]]
kind = "floor"
tokens_per_second = {floor}
[policy]
warmup = 1
repetitions = 2
blocks = 4
burn_in = 1
"""
ASKED = {"MATRIX": "small.toml", "POLICY": "", "CHANGED": "", "SELECT": "*@cpu", "EXECUTOR": "local"}


@pytest.fixture
def runner(tmp_path: Path, address: Path, tiny_model: Path) -> Runner:
    made = make_runner(tmp_path / "machine", address)
    checkout(made.workspace)
    (made.workspace / "tests").mkdir(exist_ok=True)
    (made.workspace / "tests" / "test_of_the_project.py").write_text("import what_is_not_installed_here\n")
    (made.workspace / "small.toml").write_text(MATRIX.format(model=tiny_model, floor=1.0))
    made.env |= {"MOE_LOCK_DIR": os.environ["MOE_LOCK_DIR"], "MOE_SPREADS": os.environ["MOE_SPREADS"]}
    return made


def test_a_shard_has_the_cases_of_its_own_class_alone(runner: Runner) -> None:
    """Here a part without work: its journal says so, with the whole plan, and the night knows what is missing."""
    done = runner.run(step(SHARD, "Measure the cases of this node class"), CLASS="cpu:2/2", MATRIX="small.toml")
    assert done.code == 0, done.log
    state = read_journal(runner.temp / "moe-reports")
    assert (state.finished, len(state.planned)) == (True, 0)

    shutil.copytree(state.path.parent, runner.workspace / "night" / "journal-moe-cpu-1")
    joined = runner.run(step(JOIN, "Join the journals"))
    assert joined.code == 0, joined.log
    assert "2 cases: 2 error" in joined.summary
    assert "no shard of node class &#39;gpu&#39; left a journal" in joined.summary.replace("'", "&#39;")
    assert "there is part 2/2 alone" in joined.summary


def test_a_shard_on_a_machine_of_another_class_measures_nothing_and_fails(runner: Runner) -> None:
    """What it was to take must not look measured."""
    done = runner.run(step(SHARD, "Measure the cases of this node class"), CLASS="gpu", MATRIX="small.toml")
    assert done.code != 0
    assert "E-shard-not-here" in done.log


def test_journals_of_two_matrices_are_no_night(runner: Runner) -> None:
    """They are told of all the same."""
    for name in ("one", "other"):
        journal(runner.workspace / "night" / f"journal-{name}", 100, matrix=name)
    joined = runner.run(step(JOIN, "Join the journals"))
    assert joined.code == 1
    assert "E-merge-other-matrix" in joined.log
    assert "`other`" in joined.summary


def test_a_shard_that_measures_nothing_fails(runner: Runner) -> None:
    done = runner.run(step(SHARD, "Measure the cases of this node class"), CLASS="cpu", MATRIX="none.toml")
    assert done.code != 0


def _gate(runner: Runner, **env: str) -> Done:
    installed = runner.run(step(ACTION, "Install the harness"), PYTHON="python3")
    assert installed.code == 0, installed.log
    measured = runner.run(step(ACTION, "Measure"), **(ASKED | env))
    assert measured.code == 0, measured.log
    return runner.run(step(ACTION, "Decide"), POLICY=env.get("POLICY", ""))


@pytest.mark.skipif(os.getpriority(os.PRIO_PROCESS, 0) != 0, reason="speeds are not judged at a niceness")
def test_the_action_lets_a_good_run_pass(runner: Runner) -> None:
    """A real engine, one case."""
    done = _gate(runner)
    assert done.code == 0, done.log
    assert done.outputs == {"decision": "go"}
    assert "go" in done.summary
    assert runner.calls[0][:3] == ["pip", "install", "--quiet"]


def test_the_action_measures_nothing_where_nothing_matters(runner: Runner) -> None:
    (runner.workspace / "policy.toml").write_text('[[paths]]\npaths = ["src/**"]\ncells = ["*"]\n')
    (runner.workspace / "changed.txt").write_text("README.md\n")
    done = _gate(runner, POLICY="policy.toml", CHANGED="changed.txt")
    assert (done.code, done.outputs) == (0, {"decision": "not_needed"}), done.log


def test_the_action_does_not_pass_without_a_journal(runner: Runner) -> None:
    runner.run(step(ACTION, "Install the harness"), PYTHON="python3")
    assert runner.run(step(ACTION, "Measure"), **(ASKED | {"MATRIX": "none.toml"})).code != 0
    done = runner.run(step(ACTION, "Decide"), POLICY="")
    assert done.code not in {0, 1}
    assert done.outputs == {"decision": ""}


def _two_shards(runner: Runner) -> None:
    for name, rate in (("cpu", 100), ("gpu", 70)):
        journal(runner.workspace / "night" / f"journal-moe-{name}", rate, node_class=name)


def test_the_shards_become_one_night(runner: Runner, hub: FakeGitHub) -> None:
    """JUnit, summary, annotations, history and issues of both journals."""
    _two_shards(runner)
    joined = runner.run(step(JOIN, "Join the journals"))
    assert joined.code == 0, joined.log
    merged = (runner.workspace / "night" / "junit.xml").read_text()
    assert merged.count("<testcase") == 2
    assert (runner.workspace / "night" / "journal-moe-gpu" / "report.html").exists()
    assert "2 cases: 1 pass, 1 fail" in joined.summary
    assert joined.log.count("::error title=fail regressed") == 1

    (runner.workspace / "history").mkdir()
    written = runner.run(step(JOIN, "Write the history"))
    assert written.code == 0, written.log
    assert written.log.startswith("::stop-commands::")
    with sqlite3.connect(runner.workspace / "history" / "history.db") as database:
        assert database.execute("select count(*) from moe_measurements").fetchone()[0] == 2

    downloads = [step["with"] for step in ISSUES if "download-artifact" in step.get("uses", "")]
    assert downloads[0] == {"name": "night", "path": "night"}
    for _ in range(2):
        told = runner.run(step(ISSUES, "Issues"), GITHUB_TOKEN=TOKEN, GITHUB_API_URL=hub.api)
        assert told.code == 0, told.log
        assert TOKEN not in told.log
        for shard in (runner.workspace / "night").glob("journal-*"):
            shutil.rmtree(shard)  # the merged night is what is read
    assert [issue["state"] for issue in hub.issues] == ["open"]
    assert "@gpu" in hub.by_number(1)["title"]


def test_a_night_without_a_journal_is_an_error(runner: Runner) -> None:
    done = runner.run(step(JOIN, "Join the journals"))
    assert done.code == 1
    assert "::error::no runner left a journal" in done.log
    assert runner.run(step(ISSUES, "Issues"), GITHUB_TOKEN=TOKEN).code != 0


def test_the_history_is_of_the_newest_night_that_left_one(runner: Runner) -> None:
    runner.answers({"run list": {"out": "12\n11\n10\n"}, "download 11": {"make": "history.db"}})
    known = {"GH_TOKEN": TOKEN, "BRANCH": "main"}
    done = runner.run(step(JOIN, "The history until yesterday"), **known)
    assert done.code == 0, done.log
    assert "::warning::" not in done.log
    assert [call[3] for call in runner.calls if call[2] == "download"] == ["12", "11"]


def test_a_history_that_begins_anew_is_said(runner: Runner) -> None:
    runner.answers({"run list": {"out": ""}})
    done = runner.run(step(JOIN, "The history until yesterday"), GH_TOKEN=TOKEN, BRANCH="main")
    assert done.code == 0
    assert "::warning::no history is left" in done.log


def test_no_line_of_a_command_that_is_kept_quiet_commands_the_runner(runner: Runner) -> None:
    """What begins with two colons stands between the word that stops commands and the word that lets them on."""
    noisy = "echo ::error::planted; echo ::set-output name=x::y >&2; printf no-line-break; exit 3"
    done = runner.run({"run": f".github/actions/gate/quiet.sh sh -c '{noisy}'"})
    first, *between, last = done.log.splitlines()
    assert done.code == 3
    assert first.startswith("::stop-commands::")
    assert last == f"::{first.removeprefix('::stop-commands::')}::"
    assert between == ["::error::planted", "::set-output name=x::y", "no-line-break"]
    again = runner.run({"run": ".github/actions/gate/quiet.sh true"})
    assert again.log.splitlines()[0] != first
