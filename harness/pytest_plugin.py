"""The pytest plugin: options, markers, and whether the matrix is asked for at all.

Every pytest run of an environment that has the package loads it, so it imports next to nothing. The hooks that do the
work are in ``matrix_plugin`` and are registered only for a run that asks for the matrix.
"""

from __future__ import annotations

import re

import pytest
from _pytest.mark.expression import Expression

from harness import garbage
from harness.domain.words import Kind

_MARKERS = {"moe": "a case of the matrix", **{str(kind): f"a {kind} case of the matrix" for kind in Kind}}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the matrix."""
    group = parser.getgroup("moe", "moe-harness: the matrix of builds, models and flags (run with -m moe)")
    group.addoption("--matrix", metavar="NAME|FILE", help="matrix to run (default: ./matrices/local.toml or packaged)")
    group.addoption("--moe-executor", default="ray", metavar="ray|local", help="where jobs run (default: ray)")
    group.addoption("--ray-address", default="", metavar="ADDRESS", help="join this Ray cluster instead of a local one")
    group.addoption(
        "--moe-select",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only cases whose id matches (glob or part) or whose contrast is called so; '!' takes away; repeatable",
    )
    group.addoption("--moe-shard", default="", metavar="CLASS[:K/N],...|auto", help="only cases of these node classes")
    group.addoption("--moe-references", metavar="DIR", help="recorded outputs (default: references, beside the matrix)")
    group.addoption("--moe-resume", metavar="JOURNAL", help="go on with the broken run of this journal (or its folder)")
    group.addoption("--moe-gate", metavar="FILE", help="a merge gate's policy: only what its budget in minutes decides")
    group.addoption("--moe-changed", metavar="FILE", help="changed paths as git lists them: only what they ask for")
    group.addoption(
        "--moe-sandbox",
        default="auto",
        choices=("off", "auto", "require"),
        help="which engines run in a sandbox: none, those of untrusted builds (default), all",
    )
    group.addoption("--moe-reports", default="moe-reports", metavar="DIR", help="journal, JUnit and summary go here")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With ``-n N``, keep the cases of one job on one worker."""
    if is_wanted(config) and getattr(config.option, "numprocesses", None) and config.option.dist in {"no", "load"}:
        config.option.dist = "loadgroup"


def pytest_configure(config: pytest.Config) -> None:
    """Register markers, and the hooks of the matrix if it is asked for."""
    for name, text in _MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {text}")
    if is_wanted(config) and not config.option.help:
        _require_keyword(config.option.keyword)
        with garbage.not_looked_for():
            config.pluginmanager.import_plugin("harness.matrix_plugin")  # which plans
    elif config.option.moe_select and not config.option.help:
        unused = pytest.PytestConfigWarning("--moe-select chooses nothing: the matrix runs with -m moe or --matrix")
        config.issue_config_time_warning(unused, stacklevel=2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """``-n auto``: one waiter is enough for the one slot of this machine."""
    return 1 if is_wanted(config) else None


@pytest.fixture
def moe_case() -> str:
    """Id of the case; given by the matrix."""
    pytest.skip("no matrix: run with -m moe or --matrix")


def is_wanted(config: pytest.Config) -> bool:
    """The matrix is asked for by ``--matrix`` or by a marker expression that could choose one of its cases."""
    if config.option.matrix:
        return True
    text = config.option.markexpr
    if not text:
        return False
    try:
        expression = Expression.compile(text)
    except SyntaxError:
        return False  # pytest says it better
    return any(expression.evaluate(_MarkersOf(kind)) for kind in Kind)


def _require_keyword(expression: str) -> None:
    """Refuse a ``-k`` that pytest will not understand, with words of the matrix: ids of cases are full of ``=``.

    Raises:
        pytest.UsageError: It has one.
    """
    if "=" in expression:
        word = next((word for word in re.split(r"[\s()'\"]+", expression) if "=" in word.strip("=")), "fa=1")
        message = f"-k {expression!r} cannot look for a '=': choose cases by a part of their ids"
        raise pytest.UsageError(f"{message}, e.g. --moe-select={word} (repeatable; '!' takes away, '*' stands for any)")


class _MarkersOf:
    """Answers a marker expression as a case of a kind would."""

    def __init__(self, kind: Kind) -> None:
        self._names = {"moe", str(kind)}

    def __call__(self, name: str, /, **kwargs: str | int | bool | None) -> bool:
        return name in self._names and not kwargs
