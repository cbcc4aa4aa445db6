"""Prompt profiles from matrix to report: both wheels answer, and a build by path through the wheel's real server."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from harness.domain.words import Status
from harness.reporting.replay import read_journal

LOCAL = ("-m", "moe", "--moe-executor=local", "-p", "no:cacheprovider")
LAUNCHER = Path(__file__).parent.parent / "standin" / "wheel_server.py"
POLICY = """
[policy]
warmup = 1
repetitions = 2
blocks = 2
timeout_s = 60.0
"""
FORKS = """
name = "forks"
[builds.mainline]
fork = "llama.cpp"
wheel = "xllamacpp"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
path = "{model}"
[flags]
ngl = 0
[[workloads]]
profile = "chat"
n_predict = 4
[[contrasts]]
name = "fork"
factor = "build"
baseline = "mainline"
candidate = "ik"
expect = "report"
[[checks]]
kind = "floor"
max_ms = 60000.0
"""
SERVED = """
name = "served"
[builds.mine]
fork = "llama.cpp"
path = "build"
[models.tiny]
path = "{model}"
[flags]
ngl = 0
[[workloads]]
profile = "rag"
n_predict = 4
prompt_tokens = 64
metrics = ["cold", "ttft"]
[[checks]]
kind = "memory"
max_rss_mib = 4096.0
"""


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("xllamacpp")
    monkeypatch.delenv("CI", raising=False)
    return pytester.mkdir("matrices")


def test_both_wheels_are_compared_by_a_chat(pytester: pytest.Pytester, folder: Path, tiny_model: Path) -> None:
    """Four quantities of two builds: each has its case, its figures and its place in every report."""
    (folder / "local.toml").write_text(FORKS.format(model=tiny_model) + POLICY)
    result = pytester.runpytest(*LOCAL)
    outcomes = result.parseoutcomes()
    assert sum(outcomes.get(word, 0) for word in ("passed", "skipped")) == 12
    reports = pytester.path / "moe-reports"
    state = read_journal(reports)
    (job,) = state.jobs.values()
    assert all(run.failure is None for run in job.runs)
    assert {load.workload for run in job.runs for load in run.samples} == {
        f"chat.{metric}" for metric in ("cold", "ttft", "prefill", "decode")
    }
    prompts = {run.engine["prompt[chat]"] for run in job.runs}
    assert len(prompts) == 1, "both forks cut the prompt alike"
    text = "\n".join(result.outlines)
    assert re.search(r"chat\.ttft@any.* ms", text), text
    junit = (reports / "junit.xml").read_text(encoding="utf-8")
    assert 'name="ms[mainline]"' in junit
    assert "at most 60000 ms" in junit


def test_a_build_by_path_answers_through_the_real_server(
    pytester: pytest.Pytester, folder: Path, tiny_model: Path
) -> None:
    """From ``--help`` to memory: the wheel's own server behind its own argument parser."""
    program = folder / "build" / "llama-server"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{LAUNCHER.read_text(encoding='utf-8')}", encoding="utf-8")
    program.chmod(0o755)
    (folder / "local.toml").write_text(SERVED.format(model=tiny_model) + POLICY)
    pytester.runpytest(*LOCAL)
    state = read_journal(pytester.path / "moe-reports")
    (job,) = state.jobs.values()
    assert [run.failure for run in job.runs] == [None] * 3
    assert {load.workload for run in job.runs for load in run.samples} == {"rag.cold", "rag.ttft"}
    assert all(run.engine["prompt[rag]"].startswith("64 tokens") for run in job.runs)
    found = {case: verdict.status for case, verdict in state.verdicts.items()}
    assert set(found.values()) <= {Status.PASS, Status.INCONCLUSIVE, Status.NOT_JUDGED}
    assert any("rag.peak" in case for case in found)
