"""The pages about GitHub do what they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from github_support import journal
from steps import GITHUB, ROOT, action
from test_workflows import lint

from harness.cli.github import github

PAGE = (ROOT / "docs" / "how-to" / "ci-in-your-repository.md").read_text(encoding="utf-8")
RUNNERS = (ROOT / "docs" / "how-to" / "self-hosted-runners.md").read_text(encoding="utf-8")
TEN_LINES = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)[0]


def test_another_repository_gates_in_ten_lines() -> None:
    """With inputs that the action has, and the place where it lies."""
    assert len(TEN_LINES.splitlines()) == 10
    *_, ours = yaml.safe_load(TEN_LINES)["jobs"]["gate"]["steps"]
    path = re.fullmatch(r"OWNER/moe-harness/(\.github/actions/gate)@[0-9a-f]{40}", ours["uses"])
    assert path
    assert (ROOT / path[1] / "action.yml").exists()
    assert set(ours["with"]) <= set(action()["inputs"])
    assert [name for name in action()["inputs"] if f"| `{name}` |" not in PAGE] == []


@pytest.mark.parametrize("linter", ["actionlint", "zizmor"])
def test_the_ten_lines_are_without_findings(tmp_path: Path, linter: str) -> None:
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "gate.yml").write_text(TEN_LINES)
    (tmp_path / ".github" / "actionlint.yaml").write_text((GITHUB / "actionlint.yaml").read_text())
    code, told = lint(tmp_path, linter, persona="regular")
    assert code == 0, told


def test_the_pages_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal(tmp_path / "moe-reports", 80)
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ moe-harness github (.*)$", PAGE, flags=re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        done = CliRunner().invoke(github, shlex.split(command))
        assert done.exit_code == 0, f"{command}\n{done.output}"


def test_variables_and_labels_are_those_of_the_workflows() -> None:
    night = (GITHUB / "workflows" / "nightly.yml").read_text(encoding="utf-8")
    variables = set(re.findall(r"vars\.(MOE_\w+)", night))
    assert variables == set(re.findall(r"^\| `(MOE_\w+)` \|", PAGE, flags=re.MULTILINE))
    labels = yaml.safe_load((GITHUB / "actionlint.yaml").read_text())["self-hosted-runner"]["labels"]
    assert [label for label in labels if f"`{label}`" not in RUNNERS] == []
