"""``moe-harness run``: a thin wrapper of pytest, for who does not want to know about pytest."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from harness.domain.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, EXIT_UNDECIDED
from harness.reporting.journal import JOURNAL_NAME
from harness.reporting.outcomes import exit_code
from harness.reporting.replay import read_journal
from harness.running.options import DEFAULT_REPORTS

_OWN_EXITS = {
    pytest.ExitCode.INTERRUPTED: EXIT_INTERRUPTED,
    pytest.ExitCode.INTERNAL_ERROR: EXIT_UNDECIDED,
    pytest.ExitCode.USAGE_ERROR: EXIT_BAD_INPUT,
    pytest.ExitCode.NO_TESTS_COLLECTED: EXIT_BAD_INPUT,
}
_NOT_REWRITTEN = "ignore:Module already imported so cannot be rewritten; harness:pytest.PytestAssertRewriteWarning"
"""We are imported before pytest is: it need not tell the user, nor fail where warnings are errors."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--executor", type=click.Choice(["ray", "local"]), default="ray", show_default=True, help="Where jobs run."
)
@click.option("--ray-address", default="", metavar="ADDRESS", help="Join this Ray cluster instead of a local one.")
@click.option("--select", "patterns", multiple=True, metavar="PATTERN", help="Only cases whose id matches; repeatable.")
@click.option("--shard", default="", metavar="CLASS[:K/N],...|auto", help="Only the cases of these node classes.")
@click.option("--reports", type=click.Path(path_type=Path), default=DEFAULT_REPORTS, show_default=True)
@click.option(
    "--references", type=click.Path(path_type=Path), help="Folder of recorded outputs [references, beside the matrix]."
)
@click.option(
    "--resume", "--moe-resume", type=click.Path(path_type=Path), help="Go on with the broken run of this journal."
)
@click.option("--gate", type=click.Path(path_type=Path), help="A merge gate's policy: only what its minutes decide.")
@click.option("--changed", type=click.Path(path_type=Path), help="Changed paths: only what they ask for by the policy.")
@click.option(
    "--sandbox",
    type=click.Choice(["off", "auto", "require"]),
    default="auto",
    show_default=True,
    help="Which engines run in a sandbox: none, those of untrusted builds, all.",
)
@click.argument("arguments", metavar="[MATRIX] [PYTEST_ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(  # noqa: PLR0917 - click passes by name
    context: click.Context,
    executor: str,
    ray_address: str,
    patterns: tuple[str, ...],
    shard: str,
    reports: Path,
    references: Path | None,
    resume: Path | None,
    gate: Path | None,
    changed: Path | None,
    sandbox: str,
    arguments: tuple[str, ...],
) -> None:
    """Run MATRIX (a file or a packaged name; matrices/local.toml without it). What follows is passed on to pytest.

    For example: moe-harness run local --select=pp256 -x

    Exit codes: 0 fine, 1 a check failed, 2 bad input, 3 undecided or infrastructure, 130 Ctrl-C.
    """
    matrix, rest = _split(arguments)
    # With a "=", for pytest takes a path that stands alone for one of its own and looks for its settings there.
    ours = ["-m", "moe", f"--moe-executor={executor}", f"--moe-reports={reports.absolute()}"]
    ours += [f"--moe-sandbox={sandbox}"]
    ours += [f"--matrix={matrix}"] if matrix else []
    ours += [f"--ray-address={ray_address}"] if ray_address else []
    ours += [f"--moe-select={pattern}" for pattern in patterns]
    ours += [f"--moe-shard={shard}"] if shard else []
    ours += [f"--moe-references={references.absolute()}"] if references else []
    ours += [f"--moe-resume={resume.absolute()}"] if resume else []
    ours += [f"--moe-gate={gate.absolute()}"] if gate else []
    ours += [f"--moe-changed={changed.absolute()}"] if changed else []
    before = _mark(reports)
    code = pytest.main(["-W", _NOT_REWRITTEN, *ours, *rest])
    context.exit(_exit_code(code, reports, ran=_mark(reports) != before))


def _split(arguments: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The matrix, if the first argument is one, and what pytest gets."""
    if arguments and not arguments[0].startswith("-"):
        return arguments[0], arguments[1:]
    return "", arguments


def _mark(reports: Path) -> tuple[int, int]:
    """Tells one journal from another, and from none."""
    try:
        found = (reports / JOURNAL_NAME).stat()
    except OSError:
        return (0, 0)
    return (found.st_ino, found.st_mtime_ns)


def _exit_code(code: int | pytest.ExitCode, reports: Path, *, ran: bool) -> int:
    """Ours for pytest's. Where nothing was run (``--collect-only``), an earlier run's journal says nothing about it."""
    if code in _OWN_EXITS:
        return _OWN_EXITS[pytest.ExitCode(code)]
    if not ran:
        return int(code)
    state = read_journal(reports)
    nothing_here = state.shard is not None and not state.planned
    if nothing_here or (state.choice is not None and not state.choice.needed):
        return int(code)
    found = exit_code(state.final_verdicts(), complete=state.complete_plan)
    # A project can have tests of its own under the marker: the journal knows nothing of them.
    return found or int(code)
