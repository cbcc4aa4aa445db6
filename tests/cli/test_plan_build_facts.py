"""``moe-harness plan`` with conditions on commits and numbers of builds, however the builds are declared."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from harness.cli.main import entry

STANDIN = Path(__file__).parents[1] / "standin" / "llama_bench.py"
MATRIX = """
name = "m"
{builds}
[models.tiny]
card = "tiny-moe"
quant = "IQ4_XS"
[[workloads]]
pp = 32
[[when]]
{asked}
flags = {{ rtr = [0, 1] }}
"""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MOE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def build_in(folder: Path, version: str = "version: 6000 (abc1234)") -> Path:
    """The stand-in, beside a server that tells a version: programs of known numbers can't be compiled here."""
    folder.mkdir(parents=True)
    (folder / "llama-bench").write_text(STANDIN.read_text() + f"# {folder.name}\n")
    (folder / "llama-server").write_text(f"#!/bin/sh\necho $@ >> '{folder}/calls'\necho '{version}'\n")
    for name in ("llama-bench", "llama-server"):
        (folder / name).chmod(0o755)
    return folder


def archive_of(folder: Path) -> Path:
    archive = folder.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname="build")
    return archive


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """What a command prints, and what it complains about."""
    with pytest.raises(SystemExit):
        entry(words)
    told = capsys.readouterr()
    return told.out, told.err


def plan(capsys: pytest.CaptureFixture[str], builds: str, asked: str = 'build_number = ">=6000"') -> list[str]:
    """Labels of the arms that a matrix has."""
    Path("m.toml").write_text(MATRIX.format(builds=builds, asked=asked))
    return [row["arms"][0] for row in json.loads(command(capsys, "plan", "m.toml", "--format", "json")[0])]


REPACKED = ["b+rtr=0", "b+rtr=1"]
CATALOGUED = '[builds.b]\ncatalogue = "kept"\n'


@pytest.mark.parametrize("asked", ['build_number = ">=6000"', 'commit = "abc12345"'])
def test_programs_of_a_build_by_path_tell_their_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: str
) -> None:
    """They are run with ``--version`` and nothing else, and only where somebody asks."""
    folder = build_in(tmp_path / "bin")
    by_path = '[builds.b]\nfork = "ik_llama.cpp"\npath = "bin"\n'
    assert plan(capsys, by_path, "build = 'b'") == REPACKED
    assert not (folder / "calls").exists()
    assert plan(capsys, by_path, asked) == REPACKED
    assert (folder / "calls").read_text().split("\n") == ["--version", ""]
    assert plan(capsys, by_path, 'build_number = ">6000"') == ["b"]


def test_a_build_of_the_catalogue_tells_its_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its programs as long as they are here."""
    build_in(tmp_path / "bin")
    command(capsys, "builds", "add", "kept", "--path", "bin")
    assert plan(capsys, CATALOGUED) == REPACKED
    assert plan(capsys, CATALOGUED, 'build_number = "<6000"') == ["b"]


def test_what_the_catalogue_found_out_is_known_without_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive that has left the cache since."""
    archive = archive_of(build_in(tmp_path / "bin"))
    command(capsys, "builds", "add", "kept", "--archive", str(archive), "--fork", "ik_llama.cpp")
    (tmp_path / "cache").rename(tmp_path / "other")
    assert plan(capsys, CATALOGUED) == REPACKED
    assert plan(capsys, CATALOGUED, 'commit = "fff1234"') == ["b"]


def test_it_can_be_said_beside_the_catalogue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nobody knows it the build is named, and what to write."""
    build_in(tmp_path / "bin", version="no word of it")
    command(capsys, "builds", "add", "kept", "--path", "bin")
    Path("m.toml").write_text(MATRIX.format(builds=CATALOGUED, asked='build_number = ">=6000"'))
    told = command(capsys, "plan", "m.toml")[1]
    assert "E-unknown-build-number: m.toml: when[0].build_number: the number of build 'b' is not known" in told
    assert "[builds.b.source] number = ..." in told
    assert plan(capsys, CATALOGUED + "[builds.b.source]\nnumber = 6000\n") == REPACKED


def test_what_is_said_beside_the_catalogue_leaves_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A commit that the catalogue holds is not forgotten for a number."""
    build_in(tmp_path / "bin")
    command(capsys, "builds", "add", "kept", "--path", "bin", "--commit", "abc1234")
    said = CATALOGUED + "[builds.b.source]\nnumber = 7000\n"
    assert plan(capsys, said, 'commit = "abc1234"\nbuild_number = ">=7000"') == REPACKED
