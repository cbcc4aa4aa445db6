"""Time as a + b x depth: which of the two moved."""

from __future__ import annotations

from dataclasses import replace

import pytest
from explaining_support import contrast_at, depth_record

from harness.domain.workload import Workload
from harness.explaining.depth import DepthFit, fit_depths


def fitted(base: tuple[float, float], candidate: tuple[float, float], blocks: int = 8) -> DepthFit:
    found = depth_record(base, candidate, blocks)
    arms = {
        "a": [run for run in found.runs if run.step.arm == 0],
        "b": [run for run in found.runs if run.step.arm == 1],
    }
    fit = fit_depths(contrast_at(0).workload, found.job.workloads, arms)  # type: ignore[arg-type]  # a timed one
    assert fit is not None
    return fit


@pytest.mark.parametrize(
    ("candidate", "moved", "words"),
    [
        ((240.0, 50.0), (True, False), "a moved"),
        ((200.0, 90.0), (False, True), "b moved"),
        ((240.0, 90.0), (True, True), "both moved"),
        ((200.0, 50.0), (False, False), "neither moved"),
    ],
)
def test_the_part_that_was_planted_is_the_one_that_moved(
    candidate: tuple[float, float], moved: tuple[bool, bool], words: str
) -> None:
    fit = fitted((200.0, 50.0), candidate)
    assert fit.change is not None
    assert tuple(figure.moved for figure in fit.change) == moved
    assert fit.reading.startswith(words)
    for figure, planted in zip(fit.change, (candidate[0] - 200, candidate[1] - 50), strict=True):
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low <= planted <= figure.high


def test_two_quads_tell_no_interval() -> None:
    fit = fitted((200.0, 50.0), (240.0, 50.0), blocks=4)
    assert "fewer than 3 quads" in fit.reading
    assert fit.change is not None
    assert fit.change[0].low is None


def test_one_depth_and_other_workloads_have_no_line() -> None:
    found = depth_record((200.0, 50.0), (240.0, 50.0))
    arms = {"a": [run for run in found.runs if run.step.arm == 0]}
    assert fit_depths(Workload(0, 100), [Workload(0, 100)], arms) is None
    assert fit_depths(Workload(512, 0), found.job.workloads, arms) is None


def test_what_bends_is_said_to_be_no_line() -> None:
    """At the middle depth it takes as long as at the last one."""
    found = depth_record((200.0, 100.0), (200.0, 100.0))
    bent = [
        replace(
            run, samples=(run.samples[0], replace(run.samples[2], workload=run.samples[1].workload), run.samples[2])
        )
        for run in found.runs
    ]
    fit = fit_depths(Workload(0, 100), found.job.workloads, {"a": bent})
    assert fit is not None
    assert "no straight line" in fit.reading
