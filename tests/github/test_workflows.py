"""Workflows and action are without findings of the linters, and keep the rules that no linter knows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from steps import GITHUB, action, checkout, workflow

sys.path.insert(0, str(Path(__file__).parents[1]))

from requiring import missing

NAMES = sorted(path.name for path in (GITHUB / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v[0-9.]+$")
SAFE_EVENTS = {"push", "pull_request", "merge_group", "workflow_dispatch", "schedule"}


def _program(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return found or missing(name, f"there is no {name} here: pip install -e '.[dev]'")


def lint(checkout_folder: Path, name: str, *, persona: str = "pedantic", scripts: bool = True) -> tuple[int, str]:
    if name == "actionlint":
        shell = _program("shellcheck") if scripts else ""
        line = [_program(name), "-shellcheck", shell, "-pyflakes", "", "-no-color"]
        (checkout_folder / ".git").mkdir(exist_ok=True)  # where it looks for the project
    else:
        line = [
            _program(name),
            "--offline",
            f"--persona={persona}",
            "--no-progress",
            "--strict-collection",
            "--color=never",
            ".github",
        ]
    done = subprocess.run(
        line, cwd=checkout_folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("linter", ["actionlint", "zizmor"])
def test_the_linters_find_nothing(tmp_path: Path, linter: str) -> None:
    code, told = lint(checkout(tmp_path), linter)
    assert code == 0, told


PLANTED = {
    "job-needs": ("actionlint", "workflows/gate.yml", "needs: [scope, build]", "needs: [scope, biuld]"),
    "runner-label": ("actionlint", "workflows/nightly.yml", "[self-hosted, moe-driver]", "moe-drover"),
    "shellcheck": ("actionlint", "workflows/gate.yml", 'echo "needed=$needed"', "echo needed=$neded >"),
    "expression": ("actionlint", "workflows/gate.yml", "steps.commits.outputs.base", "steps.comits.outputs.base"),
    "dangerous-triggers": ("zizmor", "workflows/gate.yml", "  pull_request:\n", "  pull_request_target:\n"),
    "excessive-permissions": ("zizmor", "workflows/ci.yml", "permissions:\n  contents: read", "permissions: write-all"),
    "artipacked": ("zizmor", "workflows/ci.yml", "        with:\n          persist-credentials: false\n", ""),
    "template-injection": ("zizmor", "actions/gate/action.yml", '"$PYTHON" -m venv', "${{ inputs.python }} -m venv"),
    "unpinned-uses": ("zizmor", "workflows/ci.yml", "3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "v7"),
    "no audit was performed": ("zizmor", "workflows/ci.yml", "jobs:", "jobs: ["),
}


@pytest.mark.parametrize("finding", PLANTED)
def test_the_linters_see_planted_faults(tmp_path: Path, finding: str) -> None:
    """Otherwise that they find nothing means nothing."""
    linter, file, old, new = PLANTED[finding]
    path = checkout(tmp_path) / ".github" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    code, told = lint(tmp_path, linter, scripts=finding == "shellcheck")
    assert code != 0
    assert finding in told


def _all_steps(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in document["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_put_into_a_script_and_no_token_stays(name: str) -> None:
    steps = _all_steps(workflow(name))
    assert not [step for step in steps if "${{" in step.get("run", "")]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    text = (GITHUB / "workflows" / name).read_text()
    assert [line for line in text.splitlines() if re.match(r"\s*(- )?uses: ", line) and not PINNED.search(line)] == []
    assert "secrets." not in text


@pytest.mark.parametrize("name", NAMES)
def test_a_pull_request_reaches_no_runner_of_ours(name: str) -> None:
    """Nor any event that runs with the rights of the repository on what a stranger wrote."""
    document: dict[Any, Any] = workflow(name)
    events = document[True]  # YAML reads the key "on" as a truth value
    assert set(events) <= SAFE_EVENTS
    for job in document["jobs"].values():
        own = "self-hosted" in str(job["runs-on"])
        if own and "pull_request" in events:
            assert "pull_request" not in job["if"]
            assert job["if"] == "github.event_name == 'merge_group' || github.event_name == 'workflow_dispatch'"
            assert job["environment"] == "perf"
        if own:
            assert job["permissions"] == {"contents": "read"}
            assert "GITHUB_TOKEN" not in str(job) + str(document.get("env"))
            assert "github.token" not in str(job)
        assert job["timeout-minutes"] > 0


def test_who_may_write_runs_nothing_of_a_change() -> None:
    """A job with a right to write has no checkout of the change, and nothing was measured or built in it."""
    gate = workflow("gate.yml")["jobs"]
    writing = {
        name: job for name, job in gate.items() if any(right == "write" for right in job["permissions"].values())
    }
    assert list(writing) == ["publish"]
    assert all("uses" not in step for step in writing["publish"]["steps"])
    night = workflow("nightly.yml")["jobs"]
    assert [name for name, job in night.items() if "write" in job["permissions"].values()] == ["issues"]


def test_the_check_always_reports_and_old_pushes_are_ended() -> None:
    document: dict[Any, Any] = workflow("gate.yml")
    assert {"pull_request", "merge_group"} <= set(document[True])
    assert not any(document[True][event] for event in ("pull_request", "merge_group")), "no filter of paths or branches"
    assert document["jobs"]["gate"]["if"] == "always()"
    assert document["concurrency"]["cancel-in-progress"] is True
    assert workflow("nightly.yml")["concurrency"]["cancel-in-progress"] is False


def test_the_action_says_what_each_input_is() -> None:
    document = action()
    assert all(each["description"] for each in document["inputs"].values())
    assert all(step.get("shell") == "bash" for step in document["runs"]["steps"] if "run" in step)
