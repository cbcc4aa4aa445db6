"""A request becomes one job with a case for each workload, and what should be known beforehand is noted."""

from __future__ import annotations

from pathlib import Path

import pytest
from ab_support import planned
from spread_support import record

from harness.domain.cell import cell_of
from harness.domain.errors import BadInput, Infrastructure
from harness.execution.node import probe_node
from harness.running.ab import AbRequest, plan_ab
from harness.running.spread_file import change_spreads, spreads_path


def test_a_request_is_one_job_with_a_case_for_each_workload() -> None:
    plan = planned("-p", "32,64", "-n", "0", "-d", "16", "-r", "2", minutes=2.5)
    assert [case.id for case in plan.plan.cases] == [
        "throughput/tiny-moe-iq4_xs/ik+rtr=0..ik+rtr=1/pp32.d16@any",
        "throughput/tiny-moe-iq4_xs/ik+rtr=0..ik+rtr=1/pp64.d16@any",
        "equivalence/tiny-moe-iq4_xs/ik+rtr=0..ik+rtr=1/same-answers@any",
    ]
    assert len(plan.plan.jobs) == 1
    design = plan.job.design
    assert (design.minutes, design.repetitions, design.blocks) == (2.5, 2, 192)
    assert plan.job.outputs is not None
    assert plan.synthetic


def test_the_first_arm_is_the_baseline() -> None:
    for old, new in (("mainline", "ik"), ("ik", "mainline")):
        assert [arm.build.name for arm in planned(old=old, new=new).job.arms] == [old, new]


def test_sizes_that_are_not_said_fit_the_model(tiny_model: Path) -> None:
    """Half a second or less on the tiny card; what llama-bench does on a file."""
    assert [load.name for load in planned().job.workloads] == ["pp256", "tg64"]
    of_file = plan_ab(AbRequest("mainline", "ik", model=str(tiny_model)))
    assert [load.name for load in of_file.job.workloads] == ["pp512", "tg128"]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("mainline", "ik", (), "no -m: the card tiny-moe in IQ4_XS"),
        ("mainline", "ik+rtr=1", (), "build and rtr differ at once: what is found can't be attributed"),
        ("ik", "ik+rtr=1", (), "changes along with it: mmap 1 -> 0"),
        ("ik", "ik+rtr=1", ("-o", "json"), "left out, the harness sets it: -o"),
    ],
)
def test_what_should_be_known_beforehand_is_noted(old: str, new: str, line: tuple[str, ...], said: str) -> None:
    assert any(said in note for note in planned(*line, old=old, new=new).notes)


def test_a_question_without_peculiarities_has_no_notes(tiny_model: Path) -> None:
    assert plan_ab(AbRequest("mainline", "ik", model=str(tiny_model))).notes == ()


def test_threads_are_flags_like_others() -> None:
    plan = plan_ab(AbRequest("mainline", "ik", threads=1))
    assert plan.common == {"t": 1}
    assert [arm.flags.get("t") for arm in plan.job.arms] == [1, 1]
    assert plan_ab(AbRequest("mainline", "ik", line=("-t", "1"), threads=1)).common == {"t": 1}


def test_outputs_are_left_out_where_that_is_asked_for() -> None:
    assert plan_ab(AbRequest("mainline", "ik", check_outputs=False)).job.outputs is None


def test_one_model_only() -> None:
    with pytest.raises(BadInput, match="E-several-values: two models"):
        plan_ab(AbRequest("mainline", "ik", model="tiny-moe", line=("-m", "other.gguf")))
    named_once = plan_ab(AbRequest("mainline", "ik", line=("-m", "tiny-moe:Q8_0")))
    assert named_once.model.quant == "Q8_0"


def set_aside(*workloads: str) -> None:
    """A calibration of this machine that found cells of the baseline unfit."""
    arm, found = planned().job.arms[0], record(0.01, quarantine="equal arms alarm")
    for name in workloads:
        change_spreads(
            spreads_path(), lambda file, name=name: file.with_record(probe_node(), cell_of(arm, name), found)
        )


@pytest.fixture
def _own_spreads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_SPREADS", str(tmp_path / "spreads.json"))


@pytest.mark.usefixtures("_own_spreads")
def test_a_cell_that_is_set_aside_is_told_before_it_is_measured() -> None:
    set_aside("tg64")
    told = [note for note in planned().notes if "will stay undecided" in note]
    assert told == ["will stay undecided: tg64: cell quarantined by the calibration of 2026-11-30: equal arms alarm"]


@pytest.mark.usefixtures("_own_spreads")
def test_nothing_is_measured_where_every_cell_is_set_aside() -> None:
    set_aside("pp256", "tg64")
    with pytest.raises(Infrastructure, match=r"E-quarantined: no workload .* pp256: .*equal arms alarm.*calibrate"):
        planned()
