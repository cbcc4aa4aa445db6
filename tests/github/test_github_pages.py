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
from harness.gating.policy_file import read_policy
from harness.running.options import plan_matrix

PAGE = (ROOT / "docs" / "how-to" / "ci-in-your-repository.md").read_text(encoding="utf-8")
RUNNERS = (ROOT / "docs" / "how-to" / "self-hosted-runners.md").read_text(encoding="utf-8")
FEW_LINES = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)[0]


def test_another_repository_gates_in_a_few_lines() -> None:
    """With inputs that the action has, and the place where it lies."""
    assert len(FEW_LINES.splitlines()) == 16
    *_, ours = yaml.safe_load(FEW_LINES)["jobs"]["gate"]["steps"]
    path = re.fullmatch(r"OWNER/moe-harness/(\.github/actions/gate)@[0-9a-f]{40}", ours["uses"])
    assert path
    assert (ROOT / path[1] / "action.yml").exists()
    assert set(ours["with"]) <= set(action()["inputs"])
    assert [name for name in action()["inputs"] if f"| `{name}` |" not in PAGE] == []


def test_the_pages_matrix_recipes_and_policy_are_of_the_two_checkouts(tmp_path: Path) -> None:
    """As they lie on the runner: both builds are made of its folders, by what stands in the base's."""
    matrix, recipe, policy = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    perf = tmp_path / "base" / "perf"
    perf.mkdir(parents=True)
    (tmp_path / "head").mkdir()
    other = recipe.replace('name = "base"', 'name = "head"').replace('repository = ".."', 'repository = "../../head"')
    files = {"matrix.toml": matrix, "base.toml": recipe, "head.toml": other, "gate.toml": policy}
    for name, text in files.items():
        (perf / name).write_text(text)
    *_, ours = yaml.safe_load(FEW_LINES)["jobs"]["gate"]["steps"]
    assert {ours["with"]["matrix"], ours["with"]["policy"]} == {"base/perf/matrix.toml", "base/perf/gate.toml"}
    assert read_policy(perf / "gate.toml").budget_minutes == 20
    plan = plan_matrix(str(perf / "matrix.toml"), (), elsewhere=False)
    builds = {arm.build for case in plan.cases for arm in case.case.arms}
    made_of = {(build.name, Path(build.recipe.repository).resolve()) for build in builds if build.recipe}
    assert made_of == {("base", tmp_path / "base"), ("head", tmp_path / "head")}


@pytest.mark.parametrize("linter", ["actionlint", "zizmor"])
def test_the_few_lines_are_without_findings(tmp_path: Path, linter: str) -> None:
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "gate.yml").write_text(FEW_LINES)
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
