"""``moe-harness reference`` on both wheels: recording, running against the record, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401 - loads once a process, and pytester unloads what a run inside it loaded
import pytest
from click.testing import CliRunner, Result

from harness.cli.reference import reference
from harness.domain.errors import BadInput

CARD = {
    "format": "shape-card/1",
    "name": "small-moe",
    "shape": {
        "rule": "qwen3moe", "layers": 1, "width": 128, "heads": 2, "kv_heads": 1, "head_width": 64, "experts": 4,
        "experts_used": 2, "expert_width": 128,
    },
    "tokenizer": {"merges": 200, "specials": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]},
    "weights": {"seed": 3},
}  # fmt: skip
MATRIX = """
name = "gold"
[builds.mainline]
fork = "llama.cpp"
wheel = "xllamacpp"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
card = "small.json"
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


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a card of its own."""
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    monkeypatch.delenv("CI", raising=False)
    (pytester.path / "small.json").write_text(json.dumps(CARD))
    return pytester.path


def harness(*arguments: str) -> Result:
    return CliRunner().invoke(reference, arguments, catch_exceptions=False)


def write(
    folder: Path, *, quant: str = "F16", name: str = "gold", keys: str = "reference = true", text: str = "A"
) -> None:
    (folder / "m.toml").write_text(MATRIX.format(quant=quant, name=name, keys=keys))
    (folder / "prompts.toml").write_text(PROMPTS.format(text=text))


def updated(*arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and what it told of each key."""
    done = harness("update", "m.toml", "--format", "json", *arguments)
    return done.exit_code, {row["key"]: row for row in json.loads(done.stdout)}


def verdicts(pytester: pytest.Pytester, select: str = "*") -> list[dict[str, Any]]:
    """What a run of the matrix decides."""
    pytester.runpytest("-m", "moe", "--moe-executor=local", "--matrix=m.toml", f"--moe-select={select}")
    lines = (pytester.path / "moe-reports" / "journal.jsonl").read_text().splitlines()
    return [event["verdict"] for event in map(json.loads, lines) if event["event"] == "verdict"]


def refused(pytester: pytest.Pytester) -> dict[str, str]:
    """Slug and reason of what a run of one arm refuses to judge."""
    (found,) = verdicts(pytester, "*/ik/*")
    assert (found["status"], found["equivalence"]) == ("error", None)
    return {found["slug"]: found["reason"]}


def test_both_wheels_are_recorded_and_held_against_it(folder: Path, pytester: pytest.Pytester) -> None:
    """From nothing on record to a pass; then a damaged file, another quantization and edited prompts are refused."""
    write(folder)
    assert refused(pytester).keys() == {"E-reference-missing"}
    listed = harness("list", "m.toml")
    assert listed.exit_code == 1
    assert listed.stdout.count("E-reference-missing") == 2

    code, told = updated()
    assert code == 0
    assert {key: (row["change"], row["written"]) for key, row in told.items()} == {
        "gold/tiny/mainline@any": ("new", True),
        "gold/tiny/ik@any": ("new", True),
    }
    assert {(each["status"], each["equivalence"]) for each in verdicts(pytester)} == {("pass", "bitwise")}
    assert harness("list", "m.toml").exit_code == 0
    code, told = updated("-k", "/ik/")
    assert (code, {row["change"] for row in told.values()}) == (0, {"same"})

    file = folder / "references" / "gold" / "tiny" / "ik@any.jsonl"
    whole = file.read_text()
    assert "GGML" not in json.loads(whole.splitlines()[0])["run"]["engine"].get("model_sha256", "GGML")
    file.write_text(whole.replace('"logits_sha256": "', '"logits_sha256": "0'))
    assert "ik@any.jsonl was cut short or changed by hand" in refused(pytester)["E-reference-damaged"]
    file.write_text(whole)

    write(folder, quant="Q8_0")
    assert refused(pytester).keys() == {"E-reference-model"}
    write(folder, text="B")
    assert "; moe-harness reference update m.toml shows what would change" in refused(pytester)["E-reference-prompts"]

    shown = harness("update", "m.toml", "-k", "/ik/")
    assert shown.exit_code == 1
    assert "1 on record were not replaced: --yes records them anew" in shown.stdout
    assert file.read_text() == whole, "nothing is replaced silently"
    code, told = updated("-k", "/ik/", "--yes")
    ((change, written, why),) = ((row["change"], row["written"], row["why"]) for row in told.values())
    assert (code, change, written) == (0, "other", True)
    assert why.startswith("cannot be compared with what is on record (gold/tiny/ik@any is no reference for this run, ")
    assert "reference update" not in why
    assert file.read_text() != whole


def test_one_forks_record_is_the_others_reference(folder: Path, pytester: pytest.Pytester) -> None:
    """Judged as two forks; the record of an arm that nothing asks for any more is named."""
    write(folder)
    assert updated()[0] == 0
    keys = 'reference = "gold"\nreference_arm = { build = "mainline" }\nwhere = { build = "ik" }'
    write(folder, name="like-mainline", keys=keys)
    (found,) = verdicts(pytester)
    assert found["case"] == "equivalence/tiny/ik/like-mainline@any"
    assert found["status"] == "pass"
    assert found["equivalence"] in ("greedy", "near_tie", "distribution")
    listed = json.loads(harness("list", "m.toml", "--format", "json").stdout)
    assert {row["key"]: row["state"] for row in listed} == {
        "gold/tiny/mainline@any": "there",
        "gold/tiny/ik@any": "unused",
    }


def test_bad_input_is_refused(folder: Path) -> None:
    """Nothing to record is no success."""
    write(folder, keys='factor = "fa"\nbaseline = 0\ncandidate = 1')
    (folder / "m.toml").write_text((folder / "m.toml").read_text().replace("ngl = 0", "fa = [0, 1]"))
    for arguments, slug in (
        (("m.toml",), "E-no-reference"),
        (("nowhere.toml",), "E-matrix-missing"),
        (("m.toml", "--references", "in-the-way"), "E-reference-unwritable"),
    ):
        with pytest.raises(BadInput) as bad:
            harness("update", *arguments)
        assert bad.value.slug == slug
        write(folder)
        (folder / "in-the-way").write_text("")
