"""Hooks of the harness's own tests."""

from __future__ import annotations

import pytest

from harness.pytest_plugin import is_wanted

_LIMIT_S = 300


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """These tests hold no case of a matrix: a run of the matrix neither imports them nor needs what they need."""
    return True if is_wanted(config) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """No test hangs for ever."""
    if config.pluginmanager.has_plugin("timeout"):
        for item in items:
            item.add_marker(pytest.mark.timeout(_LIMIT_S))
