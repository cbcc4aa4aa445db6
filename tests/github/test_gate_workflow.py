"""The gate's workflow, its steps run one after another: a slower head is blocked, a pull request measures nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from steps import ROOT, Done, Runner, checkout, make_runner, step, workflow

from harness.execution.sandbox import sandbox_here

NONE = "none"
GATE = workflow("gate.yml")["jobs"]
SCOPE, BUILD, PERF, DECIDE, PUBLISH = (GATE[name]["steps"] for name in ("scope", "build", "perf", "gate", "publish"))
STANDIN = ROOT / "tests" / "standin" / "llama_bench.py"
VISIBLE = "/usr/bin/python3"
"""What runs the stand-in inside a sandbox, where other Pythons of this machine are not seen."""
RECIPE = """
name = "engine"
fork = "ik_llama.cpp"
repository = "../../sources"
build = [["mkdir", "bin"], ["cp", "{source}/llama-bench", "{source}/standin.json", "bin"]]
"""


def git(folder: Path, *arguments: str) -> str:
    settings = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments],  # noqa: S607 - the one that the steps use
        cwd=folder,
        env={**os.environ, **settings, **who},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@dataclass(frozen=True)
class Project:
    """A repository whose gate this is.

    Attributes:
        folder: Its clone.
        base: A commit.
        docs: One that changes documentation alone.
        slower: One that makes the engine slower and loosens its own gate.
    """

    folder: Path
    base: str
    docs: str
    slower: str


@pytest.fixture
def runner(tmp_path: Path, address: Path) -> Runner:
    return make_runner(tmp_path / "machine", address)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Project:
    folder = checkout(tmp_path_factory.mktemp("project"))
    gate = folder / ".github" / "gate"
    (gate / "recipe.toml").write_text(RECIPE)
    matrix = (gate / "matrix.toml").read_text()
    assert matrix.count("trusted = false") == 1, "the head's engine is not trusted"
    boxed = sandbox_here().tool is not None and Path(VISIBLE).exists()
    matrix = matrix if boxed else matrix.replace("trusted = false", "trusted = true")
    speeds, rest = matrix.split("[[checks]]")
    quick = "warmup = 0\nrepetitions = 2\nblocks = 8\nburn_in = 1"
    model = speeds.replace('card = "tiny-moe"\nquant = "IQ4_XS"', f'path = "{tiny_model}"')
    (gate / "matrix.toml").write_text(model + rest[rest.index("[policy]") :].replace("minutes = 10.0", quick))
    sources = folder / "sources"
    sources.mkdir()
    python = VISIBLE if boxed else sys.executable
    (sources / "llama-bench").write_text(STANDIN.read_text().replace("/usr/bin/env python3", f"{python} -IS"))
    (sources / "llama-bench").chmod(0o755)
    policy = gate / "policy.toml"
    policy.write_text(policy.read_text().replace('".github/gate/**"', '".github/gate/**", "sources/**"'))
    (sources / "standin.json").write_text('{"do": "rows", "pp_tps": 100.0, "tg_tps": 50.0}')
    git(folder, "init", "--quiet", "--initial-branch=main")

    def commit(name: str) -> str:
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", name)
        return git(folder, "rev-parse", "HEAD")

    base = commit("base")
    git(folder, "checkout", "--quiet", "-b", "docs")
    (folder / "NEWS.md").write_text("::error::a name is told, not done\n")
    (folder / "::add-mask::x").write_text("")
    docs = commit("docs")
    git(folder, "checkout", "--quiet", "-b", "slower", base)
    (sources / "standin.json").write_text('{"do": "rows", "pp_tps": 70.0, "tg_tps": 50.0}')
    with (sources / "llama-bench").open("a") as program:
        program.write("# slower\n")
    policy.write_text(policy.read_text().replace('unnamed = "block"', 'unnamed = "shadow"'))
    return Project(folder, base, docs, commit("slower"))


def clone(project: Project, into: Path, commit: str) -> None:
    git(project.folder, "worktree", "prune")
    subprocess.run(["git", "clone", "--quiet", str(project.folder), str(into)], check=True)  # noqa: S607
    git(into, "checkout", "--quiet", "--detach", commit)


def scope(runner: Runner, project: Project, head: str) -> tuple[Done, Done]:
    clone(project, runner.workspace, project.slower)
    commits = runner.run(step(SCOPE, "Which commits"), HEAD=head, TARGET=project.base)
    return commits, runner.run(step(SCOPE, "Whether it matters"), BASE=project.base)


@pytest.mark.parametrize(("which", "needed"), [("slower", "true"), ("docs", "false"), ("base", "false")])
def test_what_does_not_matter_for_speed_is_not_measured(
    runner: Runner, project: Project, which: str, needed: str
) -> None:
    """By the rules of the merge base."""
    head = getattr(project, which)
    commits, matters = scope(runner, project, head)
    assert commits.outputs == {"base": project.base, "head": head}
    assert matters.code == 0, matters.log
    assert matters.outputs == {"needed": needed}


@pytest.mark.parametrize("sha", ["main", "abc1234", "$(touch x)", "'; touch x; '", "A" * 40])
def test_only_a_commit_in_full_can_be_approved(runner: Runner, project: Project, sha: str) -> None:
    clone(project, runner.workspace, project.base)
    done = runner.run(step(SCOPE, "Which commits"), HEAD=sha, TARGET=project.base)
    assert done.code == 1
    assert "in full" in done.log
    assert done.outputs == {}
    assert not (runner.workspace / "x").exists()


def test_a_slower_head_is_built_measured_and_blocked(
    runner: Runner, tmp_path: Path, address: Path, project: Project
) -> None:
    """From recipe to decision, with a stand-in as engine; the head's own looser policy does not count."""
    packed = runner.workspace / "packed"
    digests = {}
    for side, commit in (("base", project.base), ("head", project.slower)):
        builder = make_runner(tmp_path / side, address)
        builder.env["MOE_CACHE_DIR"] = str(tmp_path / "cache")
        clone(project, builder.workspace / "harness", project.base)
        clone(project, builder.workspace / "source", commit)
        made = builder.run(step(BUILD, "Make the build"))
        assert made.code == 0, made.log
        packing = builder.run(step(BUILD, "Pack it"), SIDE=side)
        assert packing.code == 0, packing.log
        digests |= packing.outputs
        packed.mkdir(exist_ok=True)
        shutil.copy(builder.workspace / f"{side}.tar", packed)
    assert set(digests) == {"base", "head"}
    clone(project, runner.workspace / "harness", project.base)
    unpack = step(PERF, "Unpack what was built")
    wrong = runner.run(unpack, BASE=digests["base"], HEAD=digests["base"])
    assert wrong.code != 0
    assert not (runner.workspace / "builds").exists(), "nothing is unpacked that is not what was built"
    right = runner.run(unpack, BASE=digests["base"], HEAD=digests["head"])
    assert right.code == 0, right.log
    assert right.outputs == {}, "they are not the same"
    (runner.workspace / "changed.txt").write_text("sources/standin.json\n")
    (runner.workspace / "harness" / "test_of_the_project.py").write_text("import what_is_not_installed_here\n")
    runner.env |= {"MOE_LOCK_DIR": os.environ["MOE_LOCK_DIR"], "MOE_SPREADS": os.environ["MOE_SPREADS"]}
    measured = runner.run(step(PERF, "Measure"))
    assert measured.code == 0, measured.log
    assert "::stop-commands::" in measured.log
    if os.getpriority(os.PRIO_PROCESS, 0) != 0:
        pytest.skip("speeds are not judged where the tests run nicely")
    _decide(tmp_path, address, project, runner.temp / "moe-reports")


def _decide(tmp_path: Path, address: Path, project: Project, reports: Path) -> None:
    judge = make_runner(tmp_path / "judge", address)
    clone(project, judge.workspace, project.base)
    shutil.copytree(reports, judge.workspace / "moe-reports")
    decided = judge.run(
        step(DECIDE, "Decide"), GH_TOKEN=NONE, SCOPE="success", NEEDED="true", SAME="", HEAD="", EVENT="merge_group"
    )
    assert decided.code == 1, decided.log
    assert decided.outputs == {"decision": "blocked"}
    assert "::error title=fail regressed%3A throughput/" in decided.log
    assert "pp256" in decided.summary


def test_a_measurement_without_a_journal_is_no_pass(runner: Runner, project: Project) -> None:
    clone(project, runner.workspace, project.base)
    done = runner.run(
        step(DECIDE, "Decide"), GH_TOKEN=NONE, SCOPE="success", NEEDED="true", SAME="", HEAD="", EVENT="merge_group"
    )
    assert done.code not in {0, 1}
    assert done.outputs["decision"] not in {"go", "not_needed"}


@pytest.mark.parametrize(
    ("given", "answer", "code", "decision"),
    [
        ({"NEEDED": "false"}, "", 0, "not_needed"),
        ({"EVENT": "merge_group", "SAME": "true"}, "", 0, "not_needed"),
        ({"SCOPE": "failure", "NEEDED": ""}, "", 1, "undecided"),
        ({"SCOPE": "cancelled", "NEEDED": ""}, "", 1, "undecided"),
        ({}, "success", 0, "go"),
        ({}, "none", 1, "undecided"),
        ({}, "failure", 1, "blocked"),
        ({}, "pending", 1, "blocked"),
    ],
)
def test_the_check_of_a_pull_request_measures_nothing(
    runner: Runner, given: dict[str, str], answer: str, code: int, decision: str
) -> None:
    """It says that nothing is needed, or what a maintainer's run said of this very commit."""
    runner.answers({f"commits/{'a' * 40}/status": {"out": answer + "\n"}} if answer else {})
    known = {
        "GH_TOKEN": NONE,
        "SCOPE": "success",
        "NEEDED": "true",
        "SAME": "",
        "HEAD": "a" * 40,
        "EVENT": "pull_request",
    }
    done = runner.run(step(DECIDE, "Decide"), **(known | given))
    assert (done.code, done.outputs["decision"]) == (code, decision)
    assert "gate: " in done.summary
    assert all(call[0] == "gh" for call in runner.calls), "no code of the change is installed"


def test_a_github_that_does_not_answer_is_no_pass(runner: Runner) -> None:
    known = {
        "GH_TOKEN": NONE,
        "SCOPE": "success",
        "NEEDED": "true",
        "SAME": "",
        "HEAD": "a" * 40,
        "EVENT": "pull_request",
    }
    assert runner.run(step(DECIDE, "Decide"), **known).code != 0


@pytest.mark.parametrize(
    ("decision", "state"),
    [("go", "success"), ("not_needed", "success"), ("blocked", "failure"), ("undecided", "error"), ("", "error")],
)
def test_the_answer_is_left_on_the_commit(runner: Runner, decision: str, state: str) -> None:
    head = "b" * 40
    runner.answers({"statuses/": {}, "runs?event": {"out": "99\n"}, "rerun": {"code": 1}})
    done = runner.run(PUBLISH[0], GH_TOKEN=NONE, HEAD=head, DECISION=decision)
    assert done.code == 0, done.log
    said, _, again = runner.calls
    assert f"repos/someone/project/statuses/{head}" in said
    assert f"state={state}" in said
    assert "repos/someone/project/actions/runs/99/rerun-failed-jobs" in again
    assert "::notice::" in done.log
    assert json.dumps(said).count("moe-gate") == 1
