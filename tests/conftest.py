"""Hooks of the harness's own tests."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from harness.pytest_plugin import is_wanted

_LIMIT_S = 300

_LONGEST = (
    "faults/test_fault_campaign.py",
    "docs/test_docs.py",
    "plugin/test_faults.py",
    "cli/test_ab.py",
    "plugin/test_ray_and_xdist.py",
    "cli/test_calibrate.py",
    "plugin/test_resume.py",
)
"""Files that take longest, as they are begun: one begun last is all that the other workers wait for."""


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
    """Nothing for a run of the matrix, which loads this file too, and is there without what the tests need."""
    if is_wanted(config):
        return
    import hypothesis  # noqa: PLC0415

    hypothesis.settings.register_profile("unhurried", deadline=None)
    hypothesis.settings.load_profile("unhurried")  # an example that waits for a core is no failure
    # The tests start hundreds of interpreters. Where none may keep what it compiled, each compiles the whole package.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    config.option.loadscopereorder = False  # workers of xdist share files out in the order that they are collected in


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """No test hangs for ever, and a worker of xdist begins with the longest files."""
    if config.pluginmanager.has_plugin("timeout"):
        for item in items:
            item.add_marker(pytest.mark.timeout(_LIMIT_S))
    if hasattr(config, "workerinput"):
        _longest_files_first(items)


def _longest_files_first(items: list[pytest.Item]) -> None:
    """Those that are known to take long, then those of many tests."""
    known = {name: place for place, name in enumerate(_LONGEST)}
    tests = Counter(item.path for item in items)

    def place(item: pytest.Item) -> tuple[int, int]:
        return known.get("/".join(item.path.parts[-2:]), len(known)), -tests[item.path]

    items.sort(key=place)


@pytest.fixture(scope="session", autouse=True)
def _own_host_lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Neither wait for a real measurement on this host nor hold one up, and know nothing of its calibrations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOE_LOCK_DIR", str(tmp_path_factory.mktemp("host-lock")))
        patch.setenv("MOE_SPREADS", str(tmp_path_factory.mktemp("spreads") / "spreads.json"))
        yield
