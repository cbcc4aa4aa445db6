"""An attribution from matrix to report, on both real wheels: which of two changes was it?"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from harness.domain.job import block_order
from harness.domain.words import Kind, Status
from harness.reporting.replay import read_journal

ATTRIBUTION = """
name = "mini"
[builds.mainline]
fork = "llama.cpp"
wheel = "xllamacpp"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
path = "{model}"
[configurations.new]
fa = 1
ub = 32
[[workloads]]
pp = 32
[[workloads]]
tg = 4
[[contrasts]]
name = "which"
kind = "attribution"
factors = [
  {{ name = "fork", factor = "build", baseline = "mainline", candidate = "ik" }},
  {{ name = "settings", factor = "configuration", baseline = {{ fa = 0, ub = 64 }}, candidate = "new" }},
]
[[checks]]
kind = "outputs"
name = "answers"
contrasts = ["which"]
prompts = ["Once upon a time there was a small test"]
n_predict = 2
positions = 8
[policy]
warmup = 1
repetitions = 2
blocks = 4
timeout_s = 60.0
"""
RUN = ("-m", "moe", "--moe-executor=local", "-p", "no:cacheprovider", "--moe-select=which", "--moe-select=equivalence")
FOUR = "mainline+fa=0+ub=64..mainline+fa=1+ub=32..ik+fa=0+ub=64..ik+fa=1+ub=32"


@pytest.fixture
def project(pytester: pytest.Pytester, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("CI", raising=False)
    folder = pytester.mkdir("matrices")
    (folder / "local.toml").write_text(ATTRIBUTION.format(model=tiny_model))
    return pytester


def test_four_arms_in_one_job_become_one_sentence_a_workload(project: pytest.Pytester) -> None:
    """Balanced blocks, outputs compared inside the job, three effects and three steps in every report."""
    result = project.runpytest(*RUN)
    state = read_journal(project.path / "moe-reports")
    assert list(state.planned)[:2] == [f"attribution/tiny/{FOUR}/{workload}@any" for workload in ("pp32", "tg4")]
    (job,) = state.jobs.values()
    assert job.job is not None
    scored = [run.step.arm for run in job.runs if run.step.scored]
    assert scored == [arm for block in range(len(scored) // 4) for arm in block_order(4, block, job.job.id)]
    assert sum(bool(run.outputs) for run in job.runs) == 4

    verdicts = [state.verdicts[case] for case in list(state.planned)[:2]]
    assert {verdict.status for verdict in verdicts} <= {Status.PASS, Status.INCONCLUSIVE}
    for verdict in verdicts:
        names = [effect.name for effect in verdict.effects]
        assert names == ["fork", "settings", "interaction", "fork alone", "settings alone", "both"]
        assert all(effect.ratio for effect in verdict.effects)
        assert ": fork " in verdict.reason
        assert ", settings " in verdict.reason
        assert len(verdict.arms) == 4
    checks = [state.verdicts[case] for case in list(state.planned)[2:]]
    assert [check.status for check in checks] == [Status.PASS] * 3

    result.stdout.fnmatch_lines(["*(which)*", "*interaction*"])
    assert verdicts[0].reason in " ".join(result.stdout.str().split())
    document = ET.parse(project.path / "moe-reports" / "junit.xml")  # noqa: S314 - our own file
    case = next(case for case in document.iter("testcase") if case.get("name", "").startswith("attribution/"))
    properties = {entry.get("name"): entry.get("value", "") for entry in case.iter("property")}
    assert properties["contrast"] == "which"
    assert properties["effect[fork]"].split()[0] in {"improved", "regressed", "equivalent", "inconclusive"}
    assert "[" in properties["effect[both]"]


def test_an_attribution_is_a_marker_and_a_name(project: pytest.Pytester) -> None:
    """``-m attribution`` and ``--moe-select NAME`` find the same cases."""
    by_kind = project.runpytest("-m", str(Kind.ATTRIBUTION), "--collect-only", "-q")
    by_name = project.runpytest("-m", "moe", "--moe-select=which", "--collect-only", "-q")
    listed = [[line for line in found.outlines if line.startswith("moe::")] for found in (by_kind, by_name)]
    assert listed[0] == listed[1]
    assert len(listed[0]) == 2


SHORT = """
name = "short"
extends = "patched-build"
[policy]
warmup = 0
repetitions = 1
blocks = 4
"""


def test_the_shipped_matrix_runs_here(project: pytest.Pytester) -> None:
    """Builds and model of `patched-build` are stand-ins that everybody has: one of its cases, cut short."""
    (project.path / "matrices" / "local.toml").write_text(SHORT)
    project.runpytest("-m", "moe", "--moe-executor=local", "--moe-select=attribution/*/tg32@any")
    state = read_journal(project.path / "moe-reports")
    (verdict,) = state.verdicts.values()
    assert verdict.status in {Status.PASS, Status.INCONCLUSIVE}
    assert [effect.name for effect in verdict.effects][:2] == ["patch", "settings"]
    assert verdict.synthetic
