"""A cell in quarantine decides nothing, where its calibration was, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judging_support import BASELINE, NODE, arms_runs, contrast, floor, pitfall, record

from harness.domain.case import Case
from harness.domain.policy import Policy
from harness.domain.spread import Quarantine
from harness.domain.words import Pitfall, Status, Throughput
from harness.judging.judge import judge
from harness.judging.record import JobRecord

REASON = "cell quarantined by the calibration of 2026-11-30: its spread has doubled"


def ill(workload: str = "pp512", node: str = NODE.fingerprint) -> JobRecord:
    """A clear loss, on a node whose cell is in quarantine."""
    half = record(arms_runs([100.0, 100.2, 99.8, 100.1] * 4, [50.0, 50.1, 49.9, 50.0] * 4))
    return replace(half, job=replace(half.job, quarantines=(Quarantine(workload, node, REASON),)))


@pytest.mark.parametrize("case", [contrast(), pitfall()])
def test_a_contrast_of_the_cell_is_inconclusive_with_the_reason(case: Case) -> None:
    """However clear its figures are."""
    found = judge(case, ill(), Policy())
    assert (found.status, found.throughput, found.slug) == (
        Status.INCONCLUSIVE,
        Throughput.INCONCLUSIVE,
        "E-quarantined",
    )
    assert found.reason.startswith(f"inconclusive: {REASON}")
    assert (found.pitfall is Pitfall.INCONCLUSIVE) == (case.kind == "pitfall")


def test_elsewhere_and_otherwise_it_is_judged() -> None:
    """Another node, another workload, a floor."""
    assert judge(contrast(), ill(node="node-other"), Policy()).throughput is Throughput.REGRESSED
    assert judge(contrast(), ill(workload="tg128"), Policy()).throughput is Throughput.REGRESSED
    single = replace(ill(), job=replace(ill().job, arms=(BASELINE,)))
    assert judge(floor(1.0), single, Policy()).status is Status.PASS


def test_a_policy_can_make_it_an_error() -> None:
    """As every inconclusive verdict; the slug stays."""
    found = judge(contrast(), ill(), Policy(inconclusive="error"))
    assert (found.status, found.slug) == (Status.ERROR, "E-quarantined")
