"""A run knows what calibrations found: in its header, in its journal, in its verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.domain.cell import cell_of
from harness.execution.node import probe_node
from harness.reporting.replay import read_journal
from harness.running.options import plan_matrix
from harness.running.spread_file import Record, change_spreads, spreads_path

RUN = ("-m", "moe", "--moe-executor=local", "--moe-select=*..*", "-p", "no:xdist", "-rs")


@pytest.fixture
def calibrated(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets a calibration have found a spread for both workloads of the mini matrix."""
    monkeypatch.setenv("MOE_SPREADS", str(project.path / "spreads.json"))

    def keep(**quarantines: str) -> None:
        arm = plan_matrix(str(project.path / "matrices" / "local.toml")).jobs[0].arms[0]
        for workload in ("pp32", "tg4"):
            record = Record.model_validate(
                {"when": "2026-11-30T12:00:00Z", "quads": 12, "quad_sd": 0.01, "process_s": 0.3, "start_s": 0.2}
                | {"load_s": None, "repetition_s": 0.01, "quarantine": quarantines.get(workload, "")}
            )
            cell = cell_of(arm, workload)
            change_spreads(
                spreads_path(), lambda file, cell=cell, record=record: file.with_record(probe_node(), cell, record)
            )

    return keep


def test_the_journal_keeps_what_was_known_and_the_header_tells_it(
    project: pytest.Pytester, calibrated: Callable[..., None]
) -> None:
    """So that judging again from the journal needs no file of spreads."""
    calibrated()
    result = project.runpytest_subprocess(*RUN)
    result.stdout.re_match_lines([r"matrix mini: 2 contrasts in .* at most: losses of .* are found with 95 %$"])
    (job,) = (tried.job for tried in read_journal(project.path / "moe-reports").jobs.values())
    assert job is not None
    assert [(each.workload, each.quad_sd, each.df, each.source) for each in job.spreads] == [
        ("pp32", pytest.approx(0.01), 11.0, "calibration of 2026-11-30"),
        ("tg4", pytest.approx(0.01), 11.0, "calibration of 2026-11-30"),
    ]
    assert job.quarantines == ()


def test_a_quarantined_cell_is_inconclusive_and_says_why(
    project: pytest.Pytester, calibrated: Callable[..., None]
) -> None:
    """The other workload of the same job is judged."""
    calibrated(tg4="a planted loss was not found")
    result = project.runpytest_subprocess(*RUN)
    result.stdout.re_match_lines([r"matrix mini: .*\(1 quarantined\)$"])
    verdicts = {verdict.case: verdict for verdict in read_journal(project.path / "moe-reports").final_verdicts()}
    (ill,) = (verdict for case, verdict in verdicts.items() if re.search(r"^throughput/.*\.\..*/tg4@", case))
    assert ill.reason.startswith(
        "inconclusive: cell quarantined by the calibration of 2026-11-30: a planted loss was not found"
    )
    assert ill.slug == "E-quarantined"
    (well,) = (verdict for case, verdict in verdicts.items() if re.search(r"^throughput/.*\.\..*/pp32@", case))
    assert "quarantined" not in well.reason
    summary = (project.path / "moe-reports" / "summary.txt").read_text()
    assert "quarantined by the calibration of 2026-11-30" in summary


def test_a_broken_file_of_spreads_ends_the_run_before_it_starts(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message, exit 4 as for all usage errors of pytest."""
    broken = project.path / "spreads.json"
    broken.write_text('{"schema": 99}')
    monkeypatch.setenv("MOE_SPREADS", str(broken))
    result = project.runpytest_subprocess(*RUN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: E-spreads-schema: *this version reads schema 1, the file says 99*"])
    assert not Path("moe-reports").exists()
