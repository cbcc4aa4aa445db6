"""Cases written as a matrix again: the same ids, and the same keys where nothing of a file changed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain.case import Case, Check, ContrastCheck, PitfallCheck
from harness.domain.words import Kind
from harness.planning.load import load_matrix
from harness.planning.plan import Plan
from harness.planning.planner import make_plan
from harness.reporting.replay import read_journal
from harness.sharing.matrix_text import matrix_text

ROOT = Path(__file__).parents[2]
H200 = Path(__file__).parents[1] / "data" / "h200_repack" / "two_quads.jsonl"


@pytest.fixture(scope="module")
def local() -> Plan:
    """The matrix of the package."""
    return make_plan(load_matrix(ROOT / "matrices" / "local.toml"))


def again(cases: list[Case], plan: Plan, folder: Path) -> dict[str, Case]:
    text = matrix_text("cut", cases, plan.policy.design, plan.policy.judging)
    (folder / "m.toml").write_text(text)
    return {planned.id: planned.case for planned in make_plan(load_matrix(folder / "m.toml")).cases}


def asked(case: Case) -> Check:
    """What has to hold; contrasts of one name that ask it of several places get numbers."""
    check = case.check
    return (
        replace(check, name=re.sub(r"-\d$", "", check.name))
        if isinstance(check, ContrastCheck | PitfallCheck)
        else check
    )


@pytest.mark.parametrize("kind", [Kind.THROUGHPUT, Kind.PITFALL, Kind.MEMORY])
def test_cases_of_a_kind_come_out_as_they_were(local: Plan, kind: Kind, tmp_path: Path) -> None:
    wanted = {planned.id: planned.case for planned in local.cases if planned.case.kind is kind}
    found = again(list(wanted.values()), local, tmp_path)
    assert wanted.keys() <= found.keys()
    assert {case.key for case in wanted.values()} == {found[case].key for case in wanted}
    assert {name: asked(found[name]) for name in wanted} == {name: asked(case) for name, case in wanted.items()}


def test_one_pair_brings_no_other_arm_along(local: Plan, tmp_path: Path) -> None:
    pair = next(planned.case for planned in local.cases if len(planned.case.arms) == 2)
    found = again([pair], local, tmp_path)
    labels = {arm.label for case in found.values() for arm in case.arms}
    assert labels == {arm.label for arm in pair.arms}


def test_what_can_not_be_written_as_a_matrix_gives_none(local: Plan) -> None:
    """Prompts are in the journal; a named axis hides what it stands for."""
    outputs = [planned.case for planned in local.cases if planned.case.kind is Kind.EQUIVALENCE]
    assert matrix_text("cut", outputs, local.policy.design, local.policy.judging) == ""
    state = read_journal(H200)
    named = [planned.case for planned in state.planned.values()]
    assert matrix_text("cut", named, local.policy.design, state.policy) == ""
