"""The page on comparing files shows what the commands print."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.compare import compare

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "compare-files.md").read_text(encoding="utf-8")
TABLES, RECORDINGS = ROOT / "tests" / "data" / "discussion399", ROOT / "tests" / "data" / "recordings"
BLOCKS = re.findall(r"^```console\n\$ moe-harness compare ([^\n]*)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the page by its names for them."""
    shutil.copytree(TABLES, tmp_path, dirs_exist_ok=True)
    for folder, producer in (("main", "llama_cpp-b11434"), ("ik", "ik_llama_cpp-8337e4cd")):
        (tmp_path / folder).mkdir()
        for index in range(1, 7):
            shutil.copy(RECORDINGS / f"{producer}.full_{index}.json", tmp_path / folder / f"round_{index}.json")
    for name, recording in (("plain", "q4k_hybrid"), ("rtr", "q4k_hyb_rtr")):
        shutil.copy(RECORDINGS / f"ik_llama_cpp-8337e4cd.{recording}.json", tmp_path / f"{name}.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOE_SPREADS", str(tmp_path / "none.json"))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("arguments", "shown"), BLOCKS)
def test_the_page_shows_what_is_printed(arguments: str, shown: str) -> None:
    """Every line shown is printed, in this order."""
    result = CliRunner().invoke(compare, shlex.split(arguments))
    assert result.exit_code in {1, 3}
    printed = iter([line.rstrip() for line in result.stdout.splitlines()])
    assert [line for line in shown.splitlines() if line.rstrip() not in printed] == []


@pytest.mark.usefixtures("files")
def test_the_page_explains_words_that_are_printed() -> None:
    assert len(BLOCKS) == 5
    printed = CliRunner().invoke(compare, shlex.split(BLOCKS[0][0])).stdout
    explained = re.findall(r"^- `([a-z][^`]*)`:", PAGE, flags=re.MULTILINE)
    assert len(explained) == 3
    assert [words for words in explained if words not in printed] == []
