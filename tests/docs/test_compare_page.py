"""The page on comparing files shows what the commands print."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.compare import compare

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "compare-files.md").read_text(encoding="utf-8")
MAKING = re.findall(r"^```console\n(\$ cp .*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
BLOCKS = re.findall(r"^```console\n\$ moe-harness compare ([^\n]*)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the page, made as the page makes them."""
    (making,) = MAKING
    lines = [line.removeprefix("$ ") for line in making.splitlines()]
    script = "\n".join(["set -e", *lines]).replace("/tmp/compare", shlex.quote(str(tmp_path / "compare")))
    subprocess.run(["sh", "-c", script], cwd=ROOT, check=True)  # noqa: S607 - what a reader types
    monkeypatch.chdir(tmp_path / "compare")
    monkeypatch.setenv("MOE_SPREADS", str(tmp_path / "none.json"))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("arguments", "shown"), BLOCKS)
def test_the_page_shows_what_is_printed(arguments: str, shown: str) -> None:
    """Every line shown is printed, in this order."""
    result = CliRunner().invoke(compare, shlex.split(arguments))
    assert result.exit_code in {1, 3}
    printed = iter([line.rstrip() for line in result.stdout.splitlines()])
    assert [line for line in shown.splitlines() if line != "..." and line.rstrip() not in printed] == []


@pytest.mark.usefixtures("files")
def test_the_page_explains_words_that_are_printed() -> None:
    assert len(BLOCKS) == 5
    printed = CliRunner().invoke(compare, shlex.split(BLOCKS[0][0])).stdout
    explained = re.findall(r"^- `([a-z][^`]*)`:", PAGE, flags=re.MULTILINE)
    assert len(explained) == 3
    assert [words for words in explained if words not in printed] == []
