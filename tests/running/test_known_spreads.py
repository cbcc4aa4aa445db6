"""The nearest knowledge of a spread is found, and said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from spread_support import EMPTY, LARGE, NODE, OTHER_NODE, TINY, arm, record

from harness.domain.build import Fork
from harness.domain.cell import cell_of
from harness.domain.job import Design, Job
from harness.domain.node import NodeClass
from harness.domain.workload import Workload
from harness.running.known_spreads import KnownSpreads, lookup
from harness.running.spread_file import SpreadFile

ANY = NodeClass("any")
PP, TG = Workload(256, 0), Workload(0, 64)


def file_of(*cells: tuple[object, str, float]) -> SpreadFile:
    file = EMPTY
    for cell_arm, workload, quad_sd in cells:
        file = file.with_record(NODE, cell_of(cell_arm, workload), record(quad_sd))  # type: ignore[arg-type]
    return file


FULL = file_of(
    (arm(), "pp256", 0.010),
    (arm(), "pp512", 0.020),
    (arm(fork=Fork.LLAMA_CPP), "pp128", 0.030),
    (arm(LARGE), "pp256", 0.070),
    (arm(LARGE), "tg64", 0.090),
)


@pytest.mark.parametrize(
    ("arms", "workload", "sd", "df", "said"),
    [
        ((arm(),), "pp256", 0.010, 8, "calibration of 2026-11-30"),
        ((arm(), arm(rtr=1)), "pp256", 0.010, 8, "calibration of 2026-11-30"),  # rtr does not place anything
        ((arm(),), "pp1024", 0.030, 4, "of pp128 of tiny-moe IQ4_XS on llama.cpp"),  # same model and kind: their worst
        ((arm(ngl=99),), "pp256", 0.030, 4, "of pp128"),
        ((arm(), arm(ngl=99)), "pp256", 0.030, 4, "of pp128"),  # of two arms the larger
        ((arm(),), "tg64", 0.090, 2, "the worst of its node, tg64 of large.gguf"),
        ((arm(),), "pp256.d4096", 0.090, 2, "the worst of its node"),  # depth is another kind
    ],
)
def test_the_nearest_cell_counts_and_is_named(
    arms: tuple[object, ...], workload: str, sd: float, df: float, said: str
) -> None:
    """The cell itself, the same model and kind, the node's worst - in this order."""
    found = lookup(FULL.nodes[NODE.fingerprint], arms, workload)  # type: ignore[arg-type]
    assert found is not None
    assert (found.quad_sd, found.df, found.workload) == (pytest.approx(sd), df, workload)
    assert said in found.source


def test_a_node_that_is_not_known_has_no_spread() -> None:
    """Another kernel is enough."""
    known = KnownSpreads(FULL, replace(NODE, kernel="7"))
    assert known.spread(ANY, (arm(),), "pp256") is None
    assert KnownSpreads(EMPTY, NODE).spread(ANY, (arm(),), "pp256") is None


def test_records_of_a_cell_are_pooled() -> None:
    """By their degrees of freedom."""
    cell = cell_of(arm(), "pp256")
    file = EMPTY.with_record(NODE, cell, record(0.01, 5)).with_record(NODE, cell, record(0.03, 9))
    found = KnownSpreads(file, NODE).spread(ANY, (arm(),), "pp256")
    assert found is not None
    assert found.df == 12
    assert found.quad_sd == pytest.approx(((4 * 0.01**2 + 8 * 0.03**2) / 12) ** 0.5)


def test_on_a_fleet_the_worst_node_of_the_class_counts() -> None:
    """Nodes outside the class do not."""
    cell = cell_of(arm(), "pp256")
    file = FULL.with_record(OTHER_NODE, cell, record(0.05))
    known = KnownSpreads(file, None)
    found = known.spread(ANY, (arm(),), "pp256")
    assert found is not None
    assert (found.quad_sd, found.source) == (
        pytest.approx(0.05),
        "calibration of 2026-11-30, the worst of 2 known nodes of any",
    )
    only = known.spread(NodeClass("wide", min_cores=16), (arm(),), "pp256")
    assert only is not None
    assert only.source == "calibration of 2026-11-30"
    assert known.spread(NodeClass("gpu", min_gpus=1), (arm(),), "pp256") is None


def job(*arms: object, workloads: tuple[Workload, ...] = (PP, TG)) -> Job:
    return Job(arms, workloads, None, ANY, Design(warmup=2, repetitions=3), cases=())  # type: ignore[arg-type]


def test_a_quarantined_cell_lends_its_spread_to_nobody_and_marks_the_job() -> None:
    """Until a later calibration passes; the other workloads are as they were."""
    cell = cell_of(arm(), "tg64")
    file = file_of((arm(), "pp256", 0.01), (arm(), "tg64", 0.02))
    ill = file.with_record(NODE, cell, record(0.08, quarantine="its spread has doubled"))
    marked = KnownSpreads(ill, NODE).informed(job(arm(), arm(rtr=1)))
    (quarantine,) = marked.quarantines
    assert (quarantine.workload, quarantine.node) == ("tg64", NODE.fingerprint)
    assert quarantine.reason == "cell quarantined by the calibration of 2026-11-30: its spread has doubled"
    assert [spread.source for spread in marked.spreads] == [
        "calibration of 2026-11-30",
        "calibration of 2026-11-30, the worst of its node, pp256 of tiny-moe IQ4_XS on ik_llama.cpp",
    ]
    well = KnownSpreads(ill.with_record(NODE, cell, record(0.02)), NODE).informed(job(arm(), arm(rtr=1)))
    assert well.quarantines == ()
    assert well.spread_of("tg64") is not None
    assert well.id == job(arm(), arm(rtr=1)).id


def test_a_process_takes_its_start_and_its_repetitions() -> None:
    """Of all workloads of the job; unknown where one of them is."""
    file = EMPTY.with_record(NODE, cell_of(arm(), "pp256"), record(0.01, start_s=1.0, repetition_s=0.5))
    file = file.with_record(NODE, cell_of(arm(), "tg64"), record(0.01, start_s=1.5, repetition_s=0.25))
    known = KnownSpreads(file, NODE)
    assert known.process_seconds(job(arm(), arm(rtr=1))) == pytest.approx(1.5 + 5 * 0.75)
    assert known.process_seconds(job(arm(), arm(rtr=1), workloads=(PP,))) == pytest.approx(1.0 + 5 * 0.5)
    assert known.process_seconds(job(arm(), workloads=(PP, Workload(512, 0)))) is None
    assert known.process_seconds(job(arm(TINY, Fork.LLAMA_CPP), workloads=(PP,))) == pytest.approx(1.0 + 5 * 0.5)
