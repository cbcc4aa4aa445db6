"""``moe-harness reference`` on both wheels: recording, running against the record, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MATRIX = """
name = "gold"
[builds.mainline]
fork = "llama.cpp"
wheel = "xllamacpp"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
card = "tiny-moe"
quant = "{quant}"
[flags]
ngl = 0
[[checks]]
kind = "outputs"
name = "{name}"
{keys}
prompts = "prompts.toml"
n_predict = 4
positions = 16
forced = 4
[policy]
timeout_s = 120.0
"""
PROMPTS = """
[[prompts]]
name = "sum"
text = "17 + 25 ="
answer = " 42, and 42 - 25 = 17."
[[prompts]]
name = "long"
text = "{text}"
tokens = 40
answer = " And so on, until the evening."
"""
PATIENCE_S = 300


def harness(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def write(
    folder: Path, *, quant: str = "IQ4_XS", name: str = "gold", keys: str = "reference = true", text: str = "A"
) -> None:
    (folder / "m.toml").write_text(MATRIX.format(quant=quant, name=name, keys=keys))
    (folder / "prompts.toml").write_text(PROMPTS.format(text=text))


def updated(folder: Path, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and what it told of each key."""
    done = harness(folder, "reference", "update", "m.toml", "--format", "json", *arguments)
    return done.returncode, {row["key"]: row for row in json.loads(done.stdout)}


def verdicts(folder: Path) -> list[dict[str, Any]]:
    """What a run of the matrix decides."""
    harness(folder, "run", "m.toml", "--executor", "local", "-p", "no:cacheprovider")
    lines = (folder / "moe-reports" / "journal.jsonl").read_text().splitlines()
    return [event["verdict"] for event in map(json.loads, lines) if event["event"] == "verdict"]


def slugs(folder: Path) -> set[str]:
    found = verdicts(folder)
    assert {verdict["status"] for verdict in found} == {"error"}
    assert {verdict["equivalence"] for verdict in found} == {None}
    return {verdict["slug"] for verdict in found}


@pytest.mark.long
def test_both_wheels_are_recorded_and_held_against_it(tmp_path: Path) -> None:
    """From nothing on record to a pass; then a damaged file, another quantization and edited prompts are refused."""
    write(tmp_path)
    assert slugs(tmp_path) == {"E-reference-missing"}
    listed = harness(tmp_path, "reference", "list", "m.toml")
    assert listed.returncode == 1
    assert listed.stdout.count("E-reference-missing") == 2

    code, told = updated(tmp_path)
    assert code == 0
    assert {key: (row["change"], row["written"]) for key, row in told.items()} == {
        "gold/tiny/mainline@any": ("new", True),
        "gold/tiny/ik@any": ("new", True),
    }
    assert {(each["status"], each["equivalence"]) for each in verdicts(tmp_path)} == {("pass", "bitwise")}
    assert harness(tmp_path, "reference", "list", "m.toml").returncode == 0
    code, told = updated(tmp_path)
    assert (code, {row["change"] for row in told.values()}) == (0, {"same"})

    file = tmp_path / "references" / "gold" / "tiny" / "ik@any.jsonl"
    whole = file.read_text()
    assert "GGML" not in json.loads(whole.splitlines()[0])["run"]["engine"].get("model_sha256", "GGML")
    file.write_text(whole.replace('"logits_sha256": "', '"logits_sha256": "0'))
    found = {verdict["slug"]: verdict["reason"] for verdict in verdicts(tmp_path)}
    assert found.keys() == {"", "E-reference-damaged"}
    assert "ik@any.jsonl was cut short or changed by hand" in found["E-reference-damaged"]
    file.write_text(whole)

    write(tmp_path, quant="Q4_K_M")
    assert slugs(tmp_path) == {"E-reference-model"}
    write(tmp_path, text="B")
    found = verdicts(tmp_path)
    assert {verdict["slug"] for verdict in found} == {"E-reference-prompts"}
    assert all("; moe-harness reference update m.toml shows what would change" in each["reason"] for each in found)

    code, told = updated(tmp_path, "-k", "/ik/")
    assert (code, [(row["change"], row["written"]) for row in told.values()]) == (1, [("other", False)])
    (why,) = (row["why"] for row in told.values())
    assert why.startswith("cannot be compared with what is on record (gold/tiny/ik@any is no reference for this run, ")
    assert "reference update" not in why
    shown = harness(tmp_path, "reference", "update", "m.toml", "-k", "/ik/").stdout
    assert "1 on record were not replaced: --yes records them anew" in shown
    assert file.read_text() == whole, "nothing is replaced silently"
    code, told = updated(tmp_path, "-k", "/ik/", "--yes")
    assert (code, [row["written"] for row in told.values()]) == (0, [True])
    assert file.read_text() != whole


@pytest.mark.long
def test_one_forks_record_is_the_others_reference(tmp_path: Path) -> None:
    """Judged as two forks; the record of an arm that nothing asks for any more is named."""
    write(tmp_path)
    assert updated(tmp_path)[0] == 0
    keys = 'reference = "gold"\nreference_arm = { build = "mainline" }\nwhere = { build = "ik" }'
    write(tmp_path, name="like-mainline", keys=keys)
    (found,) = verdicts(tmp_path)
    assert found["case"] == "equivalence/tiny/ik/like-mainline@any"
    assert found["status"] == "pass"
    assert found["equivalence"] in ("greedy", "near_tie", "distribution")
    listed = json.loads(harness(tmp_path, "reference", "list", "m.toml", "--format", "json").stdout)
    assert {row["key"]: row["state"] for row in listed} == {
        "gold/tiny/mainline@any": "there",
        "gold/tiny/ik@any": "unused",
    }


def test_bad_input_ends_with_two(tmp_path: Path) -> None:
    """Nothing to record is no success."""
    write(tmp_path, keys='factor = "fa"\nbaseline = 0\ncandidate = 1')
    (tmp_path / "m.toml").write_text((tmp_path / "m.toml").read_text().replace("ngl = 0", "fa = [0, 1]"))
    nothing = harness(tmp_path, "reference", "update", "m.toml")
    assert nothing.returncode == 2
    assert "E-no-reference" in nothing.stderr
    assert harness(tmp_path, "reference", "update", "nowhere.toml").returncode == 2
    write(tmp_path)
    (tmp_path / "in-the-way").write_text("")
    denied = harness(tmp_path, "reference", "update", "m.toml", "-k", "/ik/", "--references", "in-the-way")
    assert denied.returncode == 2
    assert "E-reference-unwritable" in denied.stderr
