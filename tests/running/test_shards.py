"""A night of shards: real runs of the how-to's matrix, merged, and read by all that read journals."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from forked import run_forked

from harness.cli.main import cli
from harness.domain.errors import BadInput
from harness.domain.words import Status
from harness.history.history import History
from harness.planning.plan import Plan
from harness.reporting.joining import LOST
from harness.reporting.merging import merge_journals
from harness.reporting.replay import read_journal, read_night, read_runs
from harness.running.options import plan_matrix
from harness.running.sharding import shard_of

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "shards.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (.*)$", PAGE, flags=re.MULTILINE)
MATRIX = PAGE.split("```toml\n", 1)[1].split("```", 1)[0]
THIRD = "[node_classes.huge]\nmin_gpus = 64\n[[workloads]]\npp = 32"
"""A third class, whose runner never came."""


@pytest.fixture(scope="session")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the how-to after its two runs, with a class of which there is no machine."""
    folder = tmp_path_factory.mktemp("shards")
    (folder / "night.toml").write_text(MATRIX.replace("[[workloads]]\npp = 32", THIRD))
    for command in COMMANDS:
        program, *arguments = shlex.split(command)
        if program == "pytest":
            done = run_forked(program, "-p", "no:cacheprovider", *arguments, cwd=folder)
            assert done.returncode in {0, 1}, done.stdout + done.stderr
    return folder


@pytest.fixture
def shards(night: Path) -> tuple[Path, Path]:
    return night / "shard-a", night / "shard-b"


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def _statuses(path: Path) -> dict[str, Status]:
    return {verdict.case: verdict.status for verdict in read_journal(path).final_verdicts()}


def test_a_shard_measures_its_own_class_and_knows_the_whole(shards: tuple[Path, Path]) -> None:
    for path, name in zip(shards, ("small", "roomy"), strict=True):
        state = read_journal(path)
        assert state.finished
        assert state.shard is not None
        assert state.shard.text == name
        assert {planned.case.node_class.name for planned in state.planned.values()} == {name}
        assert [each.id.split("@")[1] for each in state.shard.plan.cases] == ["small", "roomy", "huge"]


def test_the_how_tos_commands_run(shards: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ends as it says; that of a class nobody measured is an error, and the gate does not let it pass."""
    monkeypatch.chdir(tmp_path)
    for shard in shards:
        (tmp_path / shard.name).symlink_to(shard)
    codes = {}
    for command in COMMANDS:
        program, *arguments = shlex.split(command)
        if program == "moe-harness":
            done = _run(*arguments)
            assert not isinstance(done.exception, Exception), command
            codes[arguments[0]] = done.exit_code
    assert codes == {"journal": 3, "report": 3, "gate": 3, "explain": 0, "history": 0, "github": 0}
    assert (tmp_path / "night" / "junit.xml").read_text().count("<testcase") == 3


def test_what_no_shard_took_is_an_error_that_names_its_class(shards: tuple[Path, Path], tmp_path: Path) -> None:
    merged = merge_journals(shards, tmp_path)
    (lost,) = [verdict for verdict in read_journal(merged).final_verdicts() if verdict.slug == LOST]
    assert lost.status is Status.ERROR
    assert "no shard of node class 'huge' left a journal" in lost.reason
    assert lost.expected == "at least 0.1 t/s"


def test_verdicts_are_the_same_merged_or_not(shards: tuple[Path, Path], tmp_path: Path) -> None:
    """``report``, ``explain``, ``gate`` and ``github summary`` of the shards, and of the merged journal."""
    merged = merge_journals(shards, tmp_path)
    known = _statuses(merged)
    assert len(known) == 3
    assert {each.case: each.status for each in read_night(shards).final_verdicts()} == known

    for paths in (shards, (merged,)):
        gate = json.loads(_run("gate", *paths, "--format=json").output)
        assert {each["case"]: Status(each["status"]) for each in gate["cells"]} == known
        out = tmp_path / "out"
        report = _run("report", *paths, "--out", out, "--format=json")
        assert {each["case"]: Status(each["status"]) for each in json.loads(report.output)["verdicts"]} == known
        assert json.loads(_run("explain", *paths, "--format=json").output)["errors"] == [[LOST, 1]]
        summary = _run("github", "summary", *paths).output
        assert summary.startswith("## `night`: 3 cases: ")
        assert "no shard of node class 'huge'" in summary


def test_a_history_has_each_shard_once(shards: tuple[Path, Path], tmp_path: Path) -> None:
    """Imported as they come in and again when they are merged, which says what is lost."""
    merged = merge_journals(shards, tmp_path)
    history = ("--history", tmp_path / "h.db", "--format=json")
    assert _run("history", "import", *history, *shards).exit_code == 0
    done = _run("history", "import", *history, merged)
    assert [(each["added"], each["changed"]) for each in json.loads(done.stdout)] == [(0, 0)] * 3
    assert "1 case lost" in done.stderr


@pytest.mark.parametrize("order", [("merged",), ("shard-a", "shard-b"), ("shard-b", "shard-a"), ("shard-a", "merged")])
def test_a_history_has_what_was_lost_as_a_night_without_a_figure(
    shards: tuple[Path, Path], tmp_path: Path, order: tuple[str, ...]
) -> None:
    """Whatever was imported first: what another shard has is lost until its journal is in, and then it is not."""
    places = {path.name: path for path in shards} | {"merged": merge_journals(shards, tmp_path)}
    address = str(tmp_path / "history.db")
    for name in [*order, order[-1]]:
        done = _run("history", "import", places[name], "--history", address)
        assert done.exit_code == 0, done.output
        assert "no shard of node class 'huge' left a journal" in done.stderr
    with History(address) as opened:
        found = {case: verdicts for case, verdicts in opened.verdicts_of(opened.cells()).items() if verdicts}
        assert sorted(case.split("@")[1] for case in found) == ["huge", "roomy", "small"]
        assert {case.split("@")[1]: [each.slug for each in of] for case, of in found.items() if of[0].slug} == {
            "huge": [LOST]
        }
        assert len(opened.night(opened.last_night())) == 3


def test_one_shard_alone_says_what_the_others_did_not(shards: tuple[Path, Path], tmp_path: Path) -> None:
    """Planted: the other shard's runner never came."""
    address = str(tmp_path / "history.db")
    _run("history", "import", shards[0], "--history", address)
    with History(address) as opened:
        slugs = {each.last.cell.split("@")[1]: each.last.slug for each in opened.night(opened.last_night())}
    assert slugs == {"small": "", "roomy": LOST, "huge": LOST}


def test_merging_knows_no_order_and_can_be_done_again(shards: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = shards
    part = merge_journals([first], tmp_path / "part")
    sets = [*permutations(shards), (part, second), (second, part, first), (first, first, second)]
    results = {merge_journals(each, tmp_path / f"{number}").read_bytes() for number, each in enumerate(sets)}
    assert len(results) == 1
    merged = merge_journals(shards, tmp_path / "all")
    assert merge_journals([merged], tmp_path / "all") == merged
    assert {merged.read_bytes()} == results


@pytest.mark.parametrize("share", [0.5, 0.8, 0.97])
def test_a_shard_that_was_killed_is_told_and_replaced_by_what_it_came_to(
    shards: tuple[Path, Path], tmp_path: Path, share: float
) -> None:
    """Cut anywhere, as a kill leaves it."""
    content = (shards[1] / "journal.jsonl").read_bytes()
    begin = content.index(b'"event": "planned"')
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(content[: begin + int((len(content) - begin) * share)])
    merged = merge_journals([torn, shards[0]], tmp_path / "night")
    night = read_journal(merged)
    assert not night.finished
    assert any("shard roomy" in told and "did not come to its end" in told for told in night.joined or ())
    assert len(_statuses(merged)) == 3
    whole = merge_journals([merged, shards[1]], tmp_path / "night")
    assert whole.read_bytes() == merge_journals(shards, tmp_path / "all").read_bytes()


def test_of_doubles_the_worst_counts_and_it_is_said(shards: tuple[Path, Path], tmp_path: Path) -> None:
    """Two runs of one class, of which one failed: planted."""
    other = tmp_path / "other.jsonl"
    text = (shards[0] / "journal.jsonl").read_text()
    verdict = next(line for line in text.splitlines() if '"event": "verdict"' in line)
    failed = verdict.replace(f'"status": "{_statuses(shards[0]).popitem()[1]}"', '"status": "fail"')
    assert failed != verdict
    other.write_text(text.replace(verdict, failed).replace('"t": "20', '"t": "21'))
    merged = merge_journals([shards[0], other], tmp_path / "night")
    night = read_journal(merged)
    assert next(iter(_statuses(merged).values())) is Status.FAIL
    assert any("1 case in several journals" in told for told in night.joined or ())
    assert len(read_runs(merged)) == 2
    gate = json.loads(_run("gate", shards[0], other, "--format=json").output)
    assert {each["case"]: Status(each["status"]) for each in gate["cells"]} == _statuses(merged)


@pytest.mark.parametrize(
    ("fault", "slug"),
    [
        (("run_started", '"matrix": "night"', '"matrix": "day"'), "E-merge-other-matrix"),
        (("run_started", '"alpha": 0.001', '"alpha": 0.5'), "E-merge-other-policy"),
        (("shard", "throughput/tiny/ik/pp32@huge", "throughput/tiny/ik/pp64@huge"), "E-merge-other-plan"),
        (("shard", '"content": "', '"content": "x'), "E-merge-other-plan"),
        (("run_started", '"schema": 1', '"schema": 2'), "E-journal-schema"),
    ],
)
def test_what_is_no_night_is_refused(
    shards: tuple[Path, Path], tmp_path: Path, fault: tuple[str, str, str], slug: str
) -> None:
    """Planted in a real journal; nothing is written."""
    event, old, new = fault
    lines = (shards[1] / "journal.jsonl").read_text().splitlines(keepends=True)
    changed = [line.replace(old, new) if f'"event": "{event}"' in line else line for line in lines]
    assert changed != lines
    other = tmp_path / "other.jsonl"
    other.write_text("".join(changed))
    with pytest.raises(BadInput, match=slug):
        merge_journals([shards[0], other], tmp_path / "night")
    assert not (tmp_path / "night").exists()
    assert _run("report", shards[0], other, "--out", tmp_path / "out").exit_code != 0


def test_other_versions_are_said(shards: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    text = (shards[1] / "journal.jsonl").read_text()
    other.write_text(re.sub(r'"xllamacpp": "[^"]*"', '"xllamacpp": "9.9"', text, count=1))
    night = read_journal(merge_journals([shards[0], other], tmp_path / "night"))
    assert any(told.startswith("versions of xllamacpp differ: ") and "9.9" in told for told in night.joined or ())


def test_a_journal_that_would_be_lost_is_not_overwritten(shards: tuple[Path, Path], tmp_path: Path) -> None:
    """Who forgets OUT names a journal first."""
    kept = tmp_path / "journal.jsonl"
    content = (shards[0] / "journal.jsonl").read_bytes()
    kept.write_bytes(content)
    with pytest.raises(BadInput, match="E-merge-out"):
        merge_journals([shards[1]], kept)
    assert kept.read_bytes() == content


# ---- parts -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Ten jobs of one class, here, and one of a class that is not."""
    flags = "[flags]\nub = [16, 32, 64, 128, 256]\nfa = [0, 1]\n"
    file = tmp_path / "many.toml"
    text = MATRIX.replace("[node_classes.roomy]\nmin_ram_gib = 0.5", "[node_classes.huge]\nmin_gpus = 64")
    file.write_text(text.replace("[[workloads]]", f"{flags}[[workloads]]\ntg = 4\n[[workloads]]", 1))
    return plan_matrix(f"{file}")


@pytest.mark.parametrize("of", [1, 2, 3, 11])
def test_parts_are_all_of_a_class_and_tear_no_job_apart(plan: Plan, of: int) -> None:
    parts = [shard_of(plan, f"small:{number}/{of}").plan for number in range(1, of + 1)]
    ids = [case for part in parts for case in part.ids()]
    assert sorted(ids) == sorted(case.id for case in plan.cases if case.id.endswith("@small"))
    jobs = [job.id for part in parts for job in part.jobs]
    assert len(jobs) == len(set(jobs)) == 10
    assert max(len(part.jobs) for part in parts) - min(len(part.jobs) for part in parts) <= 1


def test_parts_do_not_depend_on_the_machine(plan: Plan) -> None:
    """What one of two machines can't run does not move the rest."""
    here = shard_of(plan, "small:1/3").plan.ids()
    odd = {case.id for case in plan.cases[::3]}
    cases, every = (
        tuple(replace(case, status=Status.UNSUPPORTED) if case.id in odd else case for case in listed)
        for listed in (plan.cases, plan.every_case)
    )
    assert shard_of(replace(plan, cases=cases, every_case=every), "small:1/3").plan.ids() == here


def test_auto_is_the_classes_of_this_machine(plan: Plan) -> None:
    assert shard_of(plan, "auto").shard.text == "small"
    assert shard_of(plan, "auto:2/2").shard.text == "small:2/2"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("smal", "E-unknown-class.*did you mean 'small'"),
        ("huge", "E-shard-not-here.*needs 64 GPU"),
        *(
            (asked, "E-shard-syntax")
            for asked in ("small:0/2", "small:3/2", "small:1", "small,", "small:1/2/3", ":1/2")
        ),
    ],
)
def test_bad_parts_are_refused(plan: Plan, asked: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        shard_of(plan, asked)


def test_of_a_cluster_nobody_knows_what_is_here(plan: Plan) -> None:
    with pytest.raises(BadInput, match="name the classes"):
        shard_of(replace(plan, nodes=None), "auto")


def test_a_shard_without_work_leaves_a_journal_and_ends_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "night.toml").write_text(MATRIX)
    line = ("run", "--executor=local", "night.toml", "--shard=small:2/2", "-p", "no:cacheprovider")
    done = run_forked("moe-harness", *line)
    assert done.returncode == 0, done.stdout + done.stderr
    state = read_journal(tmp_path / "moe-reports")
    assert (state.finished, len(state.planned), state.complete_plan) == (True, 0, True)
