"""Hooks of the harness's own tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from harness.pytest_plugin import is_wanted

_LIMIT_S = 600


def pytest_sessionstart() -> None:
    """A shell that starts this in the background lets it ignore signals, which these tests send."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """These tests hold no case of a matrix: a run of the matrix neither imports them nor needs what they need."""
    return True if is_wanted(config) else None


def pytest_configure(config: pytest.Config) -> None:
    """Markers of these tests alone."""
    config.addinivalue_line("markers", "long: minutes of real runs; run with MOE_LONG=1")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """No test hangs for ever, and what takes minutes is asked for."""
    if not os.environ.get("MOE_LONG"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes minutes of real runs: set MOE_LONG=1"))
    if config.pluginmanager.has_plugin("timeout"):
        for item in items:
            item.add_marker(pytest.mark.timeout(_LIMIT_S))


@pytest.fixture(scope="session", autouse=True)
def _own_host_lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Neither wait for a real measurement on this host nor hold one up, and know nothing of its calibrations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOE_LOCK_DIR", str(tmp_path_factory.mktemp("host-lock")))
        patch.setenv("MOE_SPREADS", str(tmp_path_factory.mktemp("spreads") / "spreads.json"))
        yield
