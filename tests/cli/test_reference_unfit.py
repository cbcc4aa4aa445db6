"""``moe-harness reference list`` on records that are signed and whole, and can't be a reference all the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.reference import reference
from harness.domain.case import OutputCheck
from harness.domain.golden import Asked, Record
from harness.domain.measurement import Conditions, ProcessRun, Step
from harness.domain.node import NodeFacts
from harness.domain.outputs import Output, Ranks
from harness.domain.workload import OutputProfile
from harness.planning.goldens import recordings
from harness.running.golden_file import Goldens
from harness.running.options import plan_matrix

MATRIX = """
name = "gold"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
card = "tiny-moe"
[[checks]]
kind = "outputs"
name = "gold"
reference = true
prompts = ["a"]
n_predict = 1
"""
NODE = NodeFacts("Test CPU", 2, ("avx2",), 1 << 33, (), "6.1", 0, "unknown", None, 1, 0)
DAMAGED = Ranks(positions=1, top=2, packed="no table")


def sound(profile: OutputProfile) -> tuple[Output, ...]:
    return tuple(Output(each.name, (1, 2), (3,), (0.5,), "text", "aa", finite=True) for each in profile.prompts)


@pytest.mark.parametrize(
    ("fault", "state"),
    [("", "there"), ("none", "E-no-baseline"), ("doubled", "E-no-baseline"), ("table", "E-no-baseline")],
)
def test_what_cannot_be_a_reference_is_not_there(fault: str, state: str, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(MATRIX)
    (planned,) = recordings(plan_matrix(str(tmp_path / "m.toml")).every_case)
    check, profile = planned.case.check, planned.case.workload
    assert isinstance(check, OutputCheck)
    assert isinstance(profile, OutputProfile)
    good = sound(profile)
    outputs = {"": good, "none": (), "doubled": (*good, *good), "table": (replace(good[0], greedy=DAMAGED),)}[fault]
    run = ProcessRun(Step(0, -1, outputs=True), "k", (), outputs, 1.0, 0.1, 9, Conditions(0, (), 1, 0.0), {})
    record = Record(planned.case.arms[0], Asked.of(profile), run, NODE, "2026-01-02T03:04:05+00:00", "1.0")
    Goldens(tmp_path / "references").write(check.reference, record)
    done = CliRunner().invoke(reference, ["list", str(tmp_path / "m.toml"), "--format", "json"])
    (row,) = json.loads(done.stdout)
    assert (row["state"], bool(row["why"]), done.exit_code) == (state, bool(fault), 1 if fault else 0)
