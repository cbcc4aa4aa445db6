"""A small matrix on the real wheel, in a project of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from mini_matrix import MINI


@pytest.fixture
def project(pytester: pytest.Pytester, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with ``matrices/local.toml``, as another repository would have it."""
    monkeypatch.delenv("CI", raising=False)
    folder = pytester.mkdir("matrices")
    (folder / "local.toml").write_text(MINI.format(model=tiny_model))
    return pytester
