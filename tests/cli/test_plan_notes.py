"""``moe-harness plan``: what is odd about a case, or not on this machine, is said beside why it can't run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import entry

DIGEST = "0f3a5e0c1b6d4a7f8e9d0c1b2a3f4e5d6c7b8a9f0e1d2c3b4a5f6e7d8c9b0a1f"
MATRIX = """
name = "m"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
{model}
[node_classes.{name}]
{asked}
[[workloads]]
pp = 32
{more}
"""
CARD = 'card = "tiny-moe"\nquant = "IQ4_XS"'
UNMATCHED = "ot: 'blk.99.' matches no tensor of tiny-moe"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def plan(capsys: pytest.CaptureFixture[str], model: str, asked: str = "", more: str = "", *words: str) -> str:
    """What the command prints."""
    Path("m.toml").write_text(MATRIX.format(model=model, name="here", asked=asked, more=more))
    with pytest.raises(SystemExit) as ended:
        entry(["plan", "m.toml", *words])
    told = capsys.readouterr()
    assert ended.value.code in (0, None), told.err
    return told.out


def row(capsys: pytest.CaptureFixture[str], model: str, asked: str = "", more: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plan(capsys, model, asked, more, "--format", "json"))[0]
    return found


@pytest.mark.parametrize("asked", ["", "min_gpus = 99"])
def test_a_pattern_without_tensors_is_said_whether_a_node_fits_or_not(
    capsys: pytest.CaptureFixture[str], asked: str
) -> None:
    """In the table, in JSON and by ``--why``."""
    flags = '[flags]\not = "blk.99.=CPU"\n'
    found = row(capsys, CARD, asked, flags)
    assert found["status"] == ("not_applicable" if asked else None)
    assert found["notes"] == [UNMATCHED]
    assert f"note (1 case): {UNMATCHED}" in plan(capsys, CARD, asked, flags)
    why = plan(capsys, CARD, asked, flags, "--why", "pp32")
    assert f"  note: {UNMATCHED}\n" in why
    assert ("not_applicable: no node is of class here" in why) is bool(asked)


@pytest.mark.parametrize("asked", ["", "min_gpus = 99"])
@pytest.mark.parametrize(
    ("model", "said"),
    [
        pytest.param('path = "gone.gguf"', "there is no file", id="path"),
        pytest.param(
            f'url = "https://example.org/m.gguf"\nsha256 = "{DIGEST}"',
            "it is fetched from https://example.org/m.gguf by the first job that needs it",
            id="address",
        ),
        pytest.param(f'sha256 = "{DIGEST}"', "the cache has none with the digest", id="digest"),
    ],
)
def test_a_model_that_is_not_here_is_said(
    capsys: pytest.CaptureFixture[str], asked: str, model: str, said: str
) -> None:
    """One that will be fetched, too."""
    (note,) = row(capsys, model, asked)["notes"]
    assert note.startswith("not on this machine: model tiny: ")
    assert said in note


def test_how_much_will_be_fetched_is_said_where_it_lies_on_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All parts of it; nobody is asked over a network."""
    for part in (1, 2):
        (tmp_path / f"a b-0000{part}-of-00002.gguf").write_bytes(bytes(part << 20))
    url = (tmp_path / "a b-00001-of-00002.gguf").as_uri()
    (note,) = row(capsys, f'url = "{url}"\nsha256 = ["{DIGEST}", "{DIGEST[::-1]}"]')["notes"]
    assert f"3 MiB are fetched from {url}" in note


def test_a_build_that_is_not_here_is_said_beside_its_model(capsys: pytest.CaptureFixture[str]) -> None:
    """Each by itself, so that a table has a line for each."""
    gone = '[builds.gone]\nfork = "ik_llama.cpp"\npath = "nowhere"\n[[exclude]]\nbuild = "ik"\n'
    told = plan(capsys, 'path = "gone.gguf"', more=gone)
    assert "note (1 case): not on this machine: build gone: no llama-bench at" in told
    assert "note (1 case): not on this machine: model tiny: there is no file" in told


def test_as_many_digests_as_parts_are_asked_for_when_planning(capsys: pytest.CaptureFixture[str]) -> None:
    """Not by the first job."""
    Path("m.toml").write_text(
        MATRIX.format(
            model=f'url = "https://example.org/m-00001-of-00002.gguf"\nsha256 = "{DIGEST}"', name="a", asked="", more=""
        )
    )
    with pytest.raises(SystemExit) as ended:
        entry(["plan", "m.toml"])
    assert ended.value.code == 2
    assert "E-model-digests: m.toml: models.tiny.sha256: " in capsys.readouterr().err
