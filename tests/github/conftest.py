"""The fake GitHub; the builders of judging's tests serve here too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))

from fake_github import FakeGitHub, fake_github
from steps import ready_programs


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    """A repository without issues."""
    with fake_github() as fake:
        yield fake


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the process is that serves commands of the harness."""
    with ready_programs(tmp_path_factory.mktemp("ready")) as folder:
        yield folder


@pytest.fixture(autouse=True)
def _away_from_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests may themselves run in a workflow."""
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_REPOSITORY", "GITHUB_API_URL", "GITHUB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
