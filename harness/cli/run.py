"""``moe-harness run``: a thin wrapper of pytest, for who does not want to know about pytest."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from harness.domain.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, EXIT_UNDECIDED
from harness.reporting.outcomes import exit_code
from harness.reporting.replay import read_journal
from harness.running.options import DEFAULT_REPORTS

_OWN_EXITS = {
    pytest.ExitCode.INTERRUPTED: EXIT_INTERRUPTED,
    pytest.ExitCode.INTERNAL_ERROR: EXIT_UNDECIDED,
    pytest.ExitCode.USAGE_ERROR: EXIT_BAD_INPUT,
    pytest.ExitCode.NO_TESTS_COLLECTED: EXIT_BAD_INPUT,
}


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("matrix", required=False)
@click.option(
    "--executor", type=click.Choice(["ray", "local"]), default="ray", show_default=True, help="Where jobs run."
)
@click.option("--ray-address", default="", metavar="ADDRESS", help="Join this Ray cluster instead of a local one.")
@click.option("--select", "patterns", multiple=True, metavar="PATTERN", help="Only cases whose id matches; repeatable.")
@click.option("--reports", type=click.Path(path_type=Path), default=DEFAULT_REPORTS, show_default=True)
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(  # noqa: PLR0917 - click passes by name
    context: click.Context,
    matrix: str | None,
    executor: str,
    ray_address: str,
    patterns: tuple[str, ...],
    reports: Path,
    pytest_args: tuple[str, ...],
) -> None:
    """Run MATRIX (a file or a packaged name; matrices/local.toml without it). What follows is passed on to pytest.

    Exit codes: 0 fine, 1 a check failed, 2 bad input, 3 undecided or infrastructure, 130 Ctrl-C.
    """
    arguments = ["-m", "moe", "--moe-executor", executor, "--moe-reports", str(reports.absolute())]
    arguments += ["--matrix", matrix] if matrix else []
    arguments += ["--ray-address", ray_address] if ray_address else []
    for pattern in patterns:
        arguments += ["--moe-select", pattern]
    code = pytest.main([*arguments, *pytest_args])
    context.exit(_exit_code(code, reports))


def _exit_code(code: int | pytest.ExitCode, reports: Path) -> int:
    if code in _OWN_EXITS:
        return _OWN_EXITS[pytest.ExitCode(code)]
    state = read_journal(reports)
    return exit_code(state.final_verdicts(), complete=state.complete_plan)
