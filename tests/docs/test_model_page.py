"""The commands of "Add a model", on a model of this machine."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from forked import run_forked

from harness.models.card import packaged_cards
from harness.models.hashing import file_sha256

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "add-a-model.md").read_text(encoding="utf-8")


def test_the_commands_run(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they stand there, with a folder of this machine and the digest of what lies in it."""
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "cache"))
    shutil.copy(tiny_model, tmp_path / "Big-Q4_K_M.gguf")
    commands = re.findall(r"^\$ moe-harness (.*)$", PAGE, flags=re.MULTILINE)
    for command in commands:
        here = command.replace("/srv/models", str(tmp_path)).replace("DIGEST", file_sha256(tiny_model))
        done = run_forked("moe-harness", *shlex.split(here), cwd=tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert len(commands) == 6


def test_every_packaged_card_is_named() -> None:
    """Who looks for a card finds it on the page."""
    assert [card for card in packaged_cards() if f"`{card}`" not in PAGE] == []
