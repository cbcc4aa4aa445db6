"""The commands ``gate`` and ``alerts`` on journals of real runs.

`tests/data/gate`: `slow` is ik_llama.cpp's wheel with a physical batch of 1 token against 512, which regresses; in
`broken` one of two models has a row of NaN in an attention output, with llama.cpp's wheel. Paths are shortened.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import alerts as alerts_module
from harness.cli import gate as gate_module
from harness.cli.main import cli, entry

DATA = Path(__file__).parents[1] / "data" / "gate"
HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "gate.md"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "gate-policy.md"
REGRESSED = "throughput/sound/ik+ub=512..ik+ub=1/pp256@any"
POLICY = """
name = "merge"
labels = "labels.toml"
[[cells]]
cells = ["*"]
stage = "block"
[[cells]]
cells = ["small-batches"]
stage = "auto"
"""


@pytest.fixture(autouse=True)
def _today(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (gate_module, alerts_module):
        monkeypatch.setattr(module, "today", lambda: date(2026, 12, 1))


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with both journals as runs leave them, and a policy."""
    for name in ("slow", "broken"):
        (tmp_path / name).mkdir()
        shutil.copy(DATA / f"{name}.jsonl", tmp_path / name / "journal.jsonl")
    (tmp_path / "gate.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, given: str | None = None) -> tuple[int, str]:
    done = CliRunner().invoke(cli, arguments, input=given, catch_exceptions=False, standalone_mode=False)
    return done.exit_code if done.return_value is None else int(done.return_value), done.output


def as_json(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("gate", "--format", "json", *arguments)[1])
    return found


def test_the_screen_says_worst_first_why_it_blocks_and_what_to_do(night: Path) -> None:
    """A maintainer's questions, on one screen."""
    code, told = run("gate", "slow", "broken")
    assert code == 1
    assert len(told.splitlines()) <= 40
    first, *_ = told.splitlines()
    assert first == "blocked: 12 cells of 2 journals, 3 blocking, 2 to be warned of"
    blocks = re.findall(r"^(BLOCK|warn) (\w+): (\S+)( and 1 more)?$", told, flags=re.MULTILINE)
    assert [(effect, finding, bool(more)) for effect, finding, _, more in blocks] == [
        ("BLOCK", "different", True),
        ("BLOCK", "regressed", False),
        ("warn", "floor", False),
        ("warn", "inconclusive", False),
    ]
    assert "pp256 67.2 % slower (60.6 to 72.6 % slower)" in told
    assert f"why:   moe-harness explain {REGRESSED} slow/journal.jsonl" in told
    assert f"again: moe-harness replay {REGRESSED} slow/journal.jsonl" in told
    assert "stage block (without a policy every cell blocks); alert " in told


def test_where_nothing_changed_it_is_one_line(night: Path) -> None:
    (night / "quiet.toml").write_text('[[cells]]\ncells = ["memory/*", "equivalence/*"]\nstage = "block"\n')
    told = "go: 6 cells of 1 journal, 3 with findings in shadow\n"
    assert run("gate", "--policy", "quiet.toml", "slow") == (0, told)
    lines = (night / "slow" / "journal.jsonl").read_text().splitlines()
    kept = [line for line in lines if '"case": "throughput' not in line]
    (night / "slow" / "journal.jsonl").write_text("\n".join(kept).replace('"cases": 6', '"cases": 3') + "\n")
    assert run("gate", "slow") == (0, "go: 3 cells of 1 journal, nothing found\n")


def test_json_has_the_documented_keys(night: Path) -> None:
    """And documents no others: what is built on it can rely on the page."""
    (night / "waived.toml").write_text(
        POLICY + '[[waivers]]\ncells = ["*"]\nowner = "a"\nreason = "b"\nexpires = 2026-12-01\n'
    )
    found = as_json("--policy", "waived.toml", "slow", "broken")
    page = PAGE.read_text(encoding="utf-8").split("## JSON")[1]
    top, cell = page.split("A cell:")

    def documented(part: str) -> set[str]:
        rows = re.findall(r"^\| (`[^|]+) \|", part, flags=re.MULTILINE)
        return {name for row in rows for name in re.findall(r"`(\w+)`", row)}

    assert set(found) == documented(top)
    assert set(found["cells"][0]) == documented(cell)
    assert set(found["waivers"][0]) == set(
        re.findall(r"`(\w+)`", top.split("| `waivers` |")[1].split("(`applied`")[0])
    ) | {"applied_to", "not_applied_to", "names_no_cell"}
    assert [found["decision"], found["exit_code"], found["counts"]["waived"]] == ["go", 0, 4]


def test_waivers_are_listed_every_time(night: Path) -> None:
    lines = "".join(
        f'[[waivers]]\ncells = ["{cells}"]\nowner = "{owner}"\nreason = "b"\nexpires = {day}\n'
        for cells, owner, day in (
            ("*", "now", "2026-12-01"),
            ("*", "old", "2026-11-30"),
            ("pitfall/*", "none", "2027-01-01"),
        )
    )
    (night / "waived.toml").write_text(POLICY + lines)
    _, told = run("gate", "--policy", "waived.toml", "broken")
    assert "waiver of * by now: b (until 2026-12-01): " in told
    assert "EXPIRED waiver of * by old: b (until 2026-11-30): not applied, 2 cells had it" in told
    assert "waiver of pitfall/* by none: b (until 2027-01-01): unused; 'pitfall/*' names no cell of " in told


def test_labels_promote_a_row_and_the_gate_says_why(night: Path) -> None:
    """From shadow to block by labels that the command wrote, and back by false ones."""
    policy = ("--policy", "gate.toml")
    before = as_json(*policy, "slow")
    (regressed,) = (each for each in before["cells"] if each["finding"] == "regressed")
    assert (before["decision"], regressed["effect"], regressed["label"]) == ("go", "shadow", None)
    assert "cells[1] small-batches, auto: no labelled alert" in regressed["why_stage"]
    code, told = run(
        "alerts",
        "label",
        "slow",
        *policy,
        "--alert",
        regressed["alert"],
        "--as",
        "true",
        "--by",
        "alice",
        "--why",
        "seen",
    )
    assert (code, told.splitlines()[0]) == (0, f"{regressed['alert']} is labelled true: regressed {REGRESSED}")
    file = night / "labels.toml"
    block = file.read_text().split("\n\n", 1)[1]
    file.write_text("\n".join(block.replace(regressed["alert"], f"{number:010x}") for number in range(9)) + block)
    after = as_json(*policy, "slow")
    assert (after["decision"], after["cells"][0]["label"]) == ("blocked", True)
    assert after["cells"][0]["why_stage"].startswith("cells[1] small-batches, auto: 10 of 10 labelled alerts true")
    file.write_text(file.read_text().replace("label = true", "label = false", 6))
    assert as_json(*policy, "slow")["decision"] == "go"


def test_alerts_are_listed_in_every_stage(night: Path) -> None:
    code, told = run("alerts", "list", "--policy", "gate.toml", "slow", "--format", "json")
    assert (code, [(each["finding"], each["stage"]) for each in json.loads(told)]) == (
        0,
        [("floor", "warn"), ("regressed", "shadow")],
    )
    assert "small-batches" not in run("alerts", "list", "slow")[1]
    assert "regressed" in run("alerts", "list", "slow")[1]


@pytest.mark.parametrize(
    ("policy", "alert", "slug"),
    [("gate.toml", "0123456789", "E-gate-no-such-alert"), ("bare.toml", "0123456789", "E-gate-no-labels")],
)
def test_labels_of_nothing_are_refused(
    night: Path, capsys: pytest.CaptureFixture[str], policy: str, alert: str, slug: str
) -> None:
    (night / "bare.toml").write_text("")
    arguments = ["alerts", "label", "slow", "--policy", policy, "--alert", alert, "--as", "true", "--by", "a"]
    with pytest.raises(SystemExit) as ended:
        entry(arguments)
    assert (ended.value.code, (night / "labels.toml").exists()) == (2, False)
    assert slug in capsys.readouterr().err


def break_line(journal: Path) -> None:
    lines = journal.read_text().splitlines(keepends=True)
    lines[4] = lines[4][: len(lines[4]) // 2] + "\n"
    journal.write_text("".join(lines))


def newer(journal: Path) -> None:
    journal.write_text(journal.read_text().replace('"schema": 1', '"schema": 99', 1))


def torn(journal: Path) -> None:
    journal.write_text(journal.read_text()[:-30])


@pytest.mark.parametrize(
    ("damage", "code", "slugs"),
    [
        (break_line, 1, ["E-gate-plan-cut", "E-gate-lost-line", "E-gate-lost-line"]),
        (newer, 1, ["E-journal-schema"]),
        (torn, 1, ["E-gate-lost-line", "E-gate-unfinished"]),
        (Path.unlink, 1, ["E-no-journal"]),
    ],
)
def test_damaged_journals_are_told_and_cost_none_of_the_others(
    night: Path, damage: Callable[[Path], None], code: int, slugs: list[str]
) -> None:
    """The regression of the sound journal still blocks; alone, the damaged one never ends as go."""
    damage(night / "broken" / "journal.jsonl")
    found = as_json("slow", "broken")
    assert found["exit_code"] == code
    assert [each["slug"] for each in found["problems"]] == slugs
    assert REGRESSED in [each["case"] for each in found["cells"] if each["effect"] == "block"]


def test_a_newer_journal_alone_is_bad_input(night: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newer(night / "broken" / "journal.jsonl")
    with pytest.raises(SystemExit) as ended:
        entry(["gate", "broken", "--format", "json"])
    told = capsys.readouterr()
    assert (ended.value.code, json.loads(told.out)["error"]["slug"]) == (2, "E-journal-schema")


def test_a_file_that_is_no_journal_is_refused_without_its_lines(
    night: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `explain` and `report` do; beside a sound journal it costs the decision nothing."""
    (night / "junit.xml").write_text("<testsuites>\n<testsuite>\n</testsuite>\n</testsuites>\n")
    with pytest.raises(SystemExit) as ended:
        entry(["gate", "junit.xml"])
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert "E-no-journal" in told.err
    assert "there is no run in it: not a journal" in told.err
    both = as_json("slow", "junit.xml")
    assert (both["exit_code"], [each["slug"] for each in both["problems"]]) == (1, ["E-no-journal"])


def test_whether_anything_has_to_be_run_is_asked_without_a_journal(night: Path) -> None:
    """Also from standard input, as in a step of a workflow."""
    rows = '[[paths]]\npaths = ["src/**"]\ncells = ["*"]\n'
    (night / "merge.toml").write_text(POLICY + rows)
    asked = ("gate", "--policy", "merge.toml", "--changed", "-")
    assert run(*asked, given="docs/x.md\n") == (
        0,
        "not needed: no cell is asked for by 1 changed path, 1 of them in no [[paths]] of the policy\n",
    )
    assert run(*asked, given="src/a.c\n")[0] == 3
    (night / "list").write_text("src/a.c\n")
    assert as_json("--policy", "merge.toml", "--changed", "list")["budget"]["asking"] == ["src/a.c"]


def test_markdown_keeps_what_others_wrote_dead(night: Path) -> None:
    """Reasons, names of policies and waivers come from engines and people: no markup, mention or escape lives."""
    evil = "</td><script>x</script> @team #12 | **b** \\u001b[31m [l](http://e)"
    journal = night / "slow" / "journal.jsonl"
    journal.write_text(journal.read_text().replace("15.8 standard errors", evil))
    code, told = run("gate", "slow", "--format", "markdown")
    assert code == 1
    outside = re.sub(r"(`+).*?\1", "", told)
    assert not re.search(r"[<@#]\w|\*\*|\]\(|\x1b|script", outside.replace("## ", ""))
    assert "<script>" in told
    rows = [line for line in told.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {7}
    assert "\x1b" not in run("gate", "slow")[1]


def test_neither_journal_nor_changed_paths_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as ended:
        entry(["gate"])
    assert ended.value.code == 2


def test_the_how_tos_commands_and_policies_work(night: Path) -> None:
    """As they stand there, on a real journal."""
    text = HOW_TO.read_text(encoding="utf-8")
    policies = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    (night / "gate.toml").write_text("\n".join(policies).replace("*/tg64@any", "*/pp256@any"))
    (night / "slow").rename("moe-reports")
    (night / "changed.txt").write_text("src/a.c\n")
    commands = re.findall(r"^\$ moe-harness (.*)$", text, flags=re.MULTILINE)
    ended = [run(*shlex.split(command)) for command in commands]
    assert [code for code, _ in ended] == [1, 0, 0]
    assert run("gate", "--policy", "gate.toml", "--changed", "changed.txt")[0] == 3
    alert = re.search(r"^([0-9a-f]{10}) .* regressed", ended[2][1], flags=re.MULTILINE)
    assert alert
    (labelling,) = re.findall(r"^moe-harness (alerts label .*)$", text, flags=re.MULTILINE)
    assert run(*shlex.split(labelling.replace("ID", alert[1])))[0] == 0
