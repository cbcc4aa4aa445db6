"""Policies and labels are read strictly: what is wrong is named with file and key."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from gate_support import label, regressed, speed, state

from harness.domain.errors import BadInput
from harness.gating.cells import joined
from harness.gating.labels import add_labels, alert_id, read_labels
from harness.gating.policy import Policy
from harness.gating.policy_file import read_policy
from harness.gating.words import Finding

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "gate-policy.md"


def read(folder: Path, text: str) -> Policy:
    file = folder / "gate.toml"
    file.write_text(text)
    return read_policy(file)


def fault(folder: Path, text: str) -> str:
    with pytest.raises(BadInput) as caught:
        read(folder, text)
    return str(caught.value).replace(f"{folder}/", "")


def test_the_complete_policy_of_the_reference_is_one(tmp_path: Path) -> None:
    """And it has every key, so that none is undocumented."""
    found = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    policy = read(tmp_path, found[1])
    assert policy.model_fields_set == set(Policy.model_fields)
    for tables in (policy.cells, policy.trades, policy.waivers, policy.paths):
        listed = type(tables[0]).model_fields  # type: ignore[index]
        said = set().union(*(each.model_fields_set for each in tables))  # type: ignore[attr-defined]
        assert set(listed) - said <= {"floors", *type(policy.missing).model_fields}
    assert policy.missing.model_fields_set == set(type(policy.missing).model_fields)
    assert policy.waivers[0].expires == date(2030, 1, 31)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[[cells]]\ncells = ["*"]\nstge = "block"',
            "gate.toml: cells[0].stge: unknown key 'stge' (did you mean 'stage'?)",
        ),
        ('[[cells]]\ncells = ["*"]\nstage = "blok"', "gate.toml: cells[0].stage: expected one of shadow, warn, block"),
        ('[[cells]]\ncells = ["*"]\nstage = "blok"', "did you mean 'block'?"),
        ('[[cells]]\ncells = []\nstage = "block"', "gate.toml: cells[0].cells: is empty"),
        ('[[cells]]\ncells = ["!"]\nstage = "block"', "gate.toml: cells[0].cells[0]: expected a pattern"),
        ('lables = "a"', "gate.toml: lables: unknown key 'lables' (did you mean 'labels'?)"),
        ('[missing]\nabsent = "pass"', "gate.toml: missing.absent: expected 'undecided', 'warn' or 'block'"),
        ('[[waivers]]\ncells = ["*"]\nowner = "a"\nreason = "b"', "gate.toml: waivers[0].expires: the key is missing"),
        (
            '[[waivers]]\ncells = ["*"]\nowner = "a"\nreason = "b"\nexpires = "2026-12-01"',
            "found '2026-12-01': write it without quotes: expires = 2026-12-01",
        ),
        ('[limits]\noutputs = "different"', "gate.toml: limits.outputs: expected one of bitwise, greedy"),
        (
            '[[trades]]\nloss = "outputs"\nat_most = 0.1\ngain = "tg*"\nat_least = 0.1',
            "'at_most' of a loss of outputs is a word",
        ),
        ("[promotion]\nwindow = 3", "gate.toml: promotion: a 'window' of 3 labels never holds the 10"),
        ("[promotion]\nblock = { alerts = 3, precison = 0.5 }", "did you mean 'precision'?"),
        ("budget_minutes = nan", "gate.toml: budget_minutes: "),
        ("budget_minutes = 0", "gate.toml: budget_minutes: expected greater than 0, found 0"),
        ("name = ", "E-gate-policy-syntax: gate.toml: not TOML"),
    ],
)
def test_a_fault_is_named_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    assert said in fault(tmp_path, text)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    told = fault(tmp_path, 'name = 3\n[limits]\nmemory_growth = "x"')
    assert "2 problems" in told
    assert "gate.toml: name: expected a text, found 3" in told
    assert "limits.memory_growth" in told


def test_a_policy_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="E-gate-policy-missing"):
        read_policy(tmp_path / "none.toml")


def test_labels_are_added_as_blocks_that_read_back(tmp_path: Path) -> None:
    """Names from forks and people stay text: quotes, line breaks, escapes for terminals."""
    file = tmp_path / "labels.toml"
    odd = label(1, speed(), true=True).model_copy(
        update={"why": 'a "quoted"\n[[alerts]] \x1b[31mred\\', "by": "Jörg 🦙"}
    )
    add_labels(file, [odd])
    add_labels(file, [label(2, speed(), true=False)])
    first, second = read_labels(file)
    assert (first.why, first.by, first.label) == ('a "quoted" [[alerts]] red\\', "Jörg 🦙", True)
    assert (second.id, second.label) == ("0000000002", False)
    assert file.read_text(encoding="utf-8").startswith("# Alerts of the gate")


def test_a_later_label_of_an_alert_counts(tmp_path: Path) -> None:
    file = tmp_path / "labels.toml"
    add_labels(file, [label(1, speed(), true=True), label(1, speed(), true=False)])
    assert [each.label for each in read_labels(file)] == [False]


@pytest.mark.parametrize("text", ["<<<<<<< HEAD\n", '[[alerts]]\nid = "x"\n', "alerts = 3\n"])
def test_a_file_of_labels_that_is_none_is_refused_and_stays(tmp_path: Path, text: str) -> None:
    """A merge that went wrong must not empty what was reviewed."""
    file = tmp_path / "labels.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match="E-gate-labels-unreadable"):
        add_labels(file, [label(1, speed(), true=True)])
    assert file.read_text() == text


def test_an_alert_is_what_the_same_builds_do_again() -> None:
    """Its id depends on what ran, not on when or how much."""
    (cell,) = joined([state((speed(), regressed(speed(), 0.9)))]).cells
    (again,) = joined([state((speed(), regressed(speed(), 0.8)), name="b")]).cells
    assert alert_id(cell, Finding.REGRESSED) == alert_id(again, Finding.REGRESSED)
    assert alert_id(cell, Finding.REGRESSED) != alert_id(cell, Finding.CRASH)
    one, other = (replace(cell, contents={"old": "key", "new": key}) for key in ("this", "that"))
    assert alert_id(one, Finding.REGRESSED) != alert_id(other, Finding.REGRESSED)


def test_every_slug_of_the_gate_is_in_the_reference() -> None:
    sources = [*(ROOT / "harness" / "gating").glob("*.py"), ROOT / "harness" / "cli" / "alerts.py"]
    said = {slug for file in sources for slug in re.findall(r'"(E-(?:gate|changed)[a-z-]*)"', file.read_text())}
    assert len(said) > 20
    assert {slug for slug in said if f"`{slug}`" not in PAGE.read_text(encoding="utf-8")} == set()
