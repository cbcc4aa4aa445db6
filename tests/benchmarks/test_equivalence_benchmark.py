"""The benchmark of output equivalence: every step of it on one network, and its arithmetic."""

from __future__ import annotations

from pathlib import Path

import equivalence
import pytest
from equivalence_plan import FAULTS, Net, Role, broken_ways, harmless_ways, profile
from equivalence_report import bounds
from equivalence_rivals import greedy_identical, top_five_logprobs
from equivalence_runs import Kept
from equivalence_score import answers_of, harmless_pairs, planted_pairs

from harness.models.corruptions import Kind


def test_no_network_sets_tolerances_and_is_judged_by_them() -> None:
    """Nor does a seed, whatever the shape; and one scored shape is of no calibration network."""
    calibration, scored = (
        {(net.shape, net.seed) for net in nets} for nets in (equivalence.CALIBRATION, equivalence.SCORED)
    )
    assert not {seed for _, seed in calibration} & {seed for _, seed in scored}
    assert {shape for shape, _ in scored} - {shape for shape, _ in calibration}
    assert all(net.role is Role.SCORED for net in equivalence.SCORED)


def test_every_fault_is_planted_on_both_forks() -> None:
    ways = list(broken_ways(1))
    assert {way.kind for way in ways if way.kind} == set(Kind)
    assert len(ways) == 2 * (len(Kind) + len(FAULTS))
    assert len({way.name for way in (*ways, *harmless_ways())}) == len(ways) + len(list(harmless_ways()))


def test_prompts_follow_from_the_seed_and_the_first_ones_stay() -> None:
    """A larger budget asks more of the same."""
    few, many = (profile(Net("tiny", 5, Role.SCORED), count).prompts for count in (2, 8))
    assert many[:2] == few
    assert profile(Net("tiny", 6, Role.SCORED), 2).prompts != few


def test_bounds_are_those_of_the_binomial_distribution() -> None:
    """Of no alarm in 1,000: the rule of three, for a one-sided bound 3/n, here two-sided."""
    assert bounds(0, 1000) == (0.0, pytest.approx(0.003682, abs=1e-6))
    assert bounds(10, 10) == (pytest.approx(0.6915, abs=1e-4), 1.0)


def test_a_quick_run_finds_its_faults_and_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both wheels, real children, the product's judge: no false alarm, both faults on both forks, also across them."""
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    equivalence.main(["--work", str(tmp_path), "--quick"])
    first = capsys.readouterr()
    assert "| all | 250 |" in first.out
    assert first.err.count("processes") == 1
    ((kept, ways),) = equivalence.quick(tmp_path)
    answers = answers_of(kept, iter(ways))
    assert [len(each.outputs) for each in answers] == [2] * len(ways)
    assert not [judged.why for judged in harmless_pairs(kept, budgets=(250,)) if judged.found]
    assert [judged.why for judged in planted_pairs(kept, budgets=(250,)) if not judged.found] == []
    base, broken = (next(each for each in answers if each.way.name == name) for name in ("ik-base", "ik-fewer-experts"))
    assert not top_five_logprobs(list(zip(base.outputs, broken.outputs, strict=True)))
    assert greedy_identical(list(zip(base.outputs, base.outputs, strict=True)))
    equivalence.main(["--work", str(tmp_path), "--quick"])
    assert capsys.readouterr().err == ""


def test_what_was_planted_is_kept(tmp_path: Path) -> None:
    """The folder tells, without the models, what each answer is of."""
    kept = Kept(tmp_path, Net("short", 1, Role.SCORED), "F16")
    way = next(way for way in broken_ways(1) if way.kind is Kind.ROPE_BASE)
    assert kept.path(way) == tmp_path / "answers" / "short-1" / "F16" / "main-rope-base.json.gz"
    assert kept.report(way) is None
