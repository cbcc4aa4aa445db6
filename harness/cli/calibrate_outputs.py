"""``moe-harness calibrate --outputs``: how far sound outputs are apart on this machine, and which faults that shows."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from harness.cli.calibration_teller import Teller
from harness.cli.output_calibration_page import show
from harness.domain.errors import EXIT_FINDING, EXIT_OK, EXIT_UNDECIDED
from harness.running.calibrating_outputs import OutputCalibrator, OutputSettings
from harness.running.interrupts import Interrupts
from harness.running.options import claim_reports, plan_matrix
from harness.running.output_calibration import OutputCalibration
from harness.running.output_calibration_targets import output_targets
from harness.running.spread_file import spreads_path
from harness.running.tolerance_file import beside


def calibrate_outputs(
    matrix: str | None, patterns: tuple[str, ...], store: Path | None, reports: Path, form: str
) -> int:
    """Calibrate a matrix's output checks and print what was found.

    Args:
        matrix: A file or a packaged name.
        patterns: Only cases whose id matches one.
        store: File of known spreads; that of known tolerances lies beside it.
        reports: Folder of the journal.
        form: ``table``, ``json`` or ``markdown``.

    Returns:
        The exit code.

    Raises:
        BadInput: Whatever is wrong with the matrix.
        Infrastructure: If jobs can't be run, or files not written.
    """
    worked_out = plan_matrix(matrix, patterns)
    kept = beside(store or spreads_path())
    settings = OutputSettings(worked_out.policy.design, reports, kept)
    interrupts = Interrupts()
    with ExitStack() as stack:
        stack.callback(claim_reports(reports).release)
        interrupts.end_on_term()
        stack.callback(interrupts.restore)
        teller = stack.enter_context(Teller())
        targets = output_targets(worked_out)
        found = stack.enter_context(OutputCalibrator(targets, settings, teller.take)).run()
    show(found, kept, form)
    return _exit_code(found)


def _exit_code(found: OutputCalibration) -> int:
    words = {model.word for model in found.models}
    if "blind" in words:
        return EXIT_FINDING
    return EXIT_OK if words == {"fine"} else EXIT_UNDECIDED
