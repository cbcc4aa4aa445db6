"""``moe-harness calibrate``: what this machine can tell apart, measured before anything is judged on it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import click
from click.core import ParameterSource

from harness.cli.calibrate_outputs import calibrate_outputs
from harness.cli.calibration_page import as_json, markdown, print_table
from harness.cli.calibration_teller import Teller
from harness.cli.finite import FiniteRange
from harness.cli.paper import stdout_console
from harness.domain.build import Fork
from harness.domain.errors import EXIT_FINDING, EXIT_OK, EXIT_UNDECIDED
from harness.planning.schema import Policy
from harness.running.calibrating import Calibrator, Settings
from harness.running.calibration import Calibration, Target
from harness.running.calibration_targets import target_of_words, targets_of_plan
from harness.running.interrupts import Interrupts
from harness.running.options import claim_reports, plan_matrix
from harness.running.spread_file import spreads_path

_PIPE_WIDTH = 200


@click.command()
@click.option("-m", "--model", default="", help="Calibrate one model, a GGUF file or a card such as tiny-moe:IQ4_XS.")
@click.option("--build", default="", help="With this build: mainline, ik, a wheel's name, or a path.")
@click.option("--fork", type=click.Choice(list(Fork)), help="Of a build whose --help tells none.")
@click.option("--select", "patterns", multiple=True, metavar="PATTERN", help="Only cells of cases whose id matches.")
@click.option("--minutes", type=FiniteRange(min=0.1), default=10.0, show_default=True, help="Time to measure.")
@click.option("--outputs", is_flag=True, help="Calibrate the output checks of MATRIX, and nothing that is timed.")
@click.option("--fresh", is_flag=True, help="Forget what earlier calibrations found for these cells.")
@click.option("--store", type=click.Path(path_type=Path), help="File of known spreads [MOE_SPREADS, or in your state].")
@click.option("--reports", type=click.Path(path_type=Path), default="moe-calibration", show_default=True)
@click.option("--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
@click.argument("arguments", metavar="[MATRIX] [-- FLAGS]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def calibrate(  # noqa: PLR0917 - click passes by name
    context: click.Context,
    model: str,
    build: str,
    fork: str | None,
    patterns: tuple[str, ...],
    minutes: float,
    outputs: bool,
    fresh: bool,
    store: Path | None,
    reports: Path,
    form: str,
    arguments: tuple[str, ...],
) -> None:
    """Measure arms against themselves on this machine, and slowdowns that are planted and must be found.

    MATRIX is a file or a packaged name; its cells are calibrated. Or one cell group: -m MODEL --build BUILD, with flags
    and workloads as llama-bench takes them behind --. What is found is kept, and every run on this machine uses it.

    With --outputs: how far outputs of sound processes are apart, and whether faults planted in copies of the model are
    found by it.

    Exit codes: 0 fine, 1 a cell was put in quarantine or a planted fault was missed, 2 bad input, 3 something could not
    be calibrated or nothing be planted, 130 Ctrl-C.
    """
    if outputs:
        if model or build or fork:
            raise click.UsageError("--outputs goes by the output checks of a matrix; -m, --build and --fork have none.")
        if context.get_parameter_source("minutes") is not ParameterSource.DEFAULT:
            raise click.UsageError("--minutes is time to measure speed; --outputs times nothing: leave one out.")
        context.exit(calibrate_outputs(_one_matrix(arguments), patterns, store, reports, form))
    targets, policy = _asked(model, build, fork, patterns, arguments)
    kept = store or spreads_path()
    settings = Settings(minutes, policy.design, policy.judging, reports, kept, fresh)
    found = _measure(targets, settings)
    if form == "json":
        click.echo(json.dumps(as_json(found, kept), indent=2))
    elif form == "markdown":
        click.echo(markdown(found))
    else:
        print_table(stdout_console(_PIPE_WIDTH), found, kept)
    context.exit(_exit_code(found))


def _asked(
    model: str, build: str, fork: str | None, patterns: tuple[str, ...], arguments: tuple[str, ...]
) -> tuple[tuple[Target, ...], Policy]:
    if model or build:
        if not build:
            raise click.UsageError("-m needs --build: mainline, ik, a wheel's name, or a path.")
        if patterns:
            raise click.UsageError("--select chooses cells of a matrix; with --build there is none.")
        return (target_of_words(build, model, arguments, Fork(fork) if fork else None),), Policy()
    worked_out = plan_matrix(_one_matrix(arguments), patterns)
    return targets_of_plan(worked_out), worked_out.policy


def _one_matrix(arguments: tuple[str, ...]) -> str | None:
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        raise click.UsageError(f"{arguments[-1]}: expected one matrix; flags belong to --build.")
    return arguments[0] if arguments else None


def _measure(targets: tuple[Target, ...], settings: Settings) -> Calibration:
    interrupts = Interrupts()
    with ExitStack() as stack:
        stack.callback(claim_reports(settings.reports).release)
        interrupts.end_on_term()
        stack.callback(interrupts.restore)
        teller = stack.enter_context(Teller())
        return stack.enter_context(Calibrator(targets, settings, teller.take)).run()


def _exit_code(found: Calibration) -> int:
    words = {cell.word for cell in found.cells}
    if "quarantined" in words:
        return EXIT_FINDING
    return EXIT_OK if words == {"fine"} else EXIT_UNDECIDED
