"""Folders of this test alone: its cache and its settings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MOE_CONFIG_DIR", str(tmp_path / "config"))
