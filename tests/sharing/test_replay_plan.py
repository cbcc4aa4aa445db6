"""What of a journal can be run again here, and what has to be given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from explaining_support import written
from judging_support import arms_runs, contrast, record

from harness.domain.arm import Arm
from harness.domain.build import Recipe
from harness.domain.case import Case
from harness.domain.errors import BadInput
from harness.domain.policy import Policy, Trade
from harness.reporting.replay import read_journal
from harness.sharing.bundle import pack
from harness.sharing.opened import Opened, opened
from harness.sharing.replaying import Given, matrix_policy, replay_plan

H200 = Path(__file__).parents[1] / "data" / "h200_repack" / "two_quads.jsonl"


def opened_case(folder: Path, change: dict[str, object] | None = None) -> tuple[Opened, Case]:
    case = contrast()
    case = replace(case, arms=tuple(replace(arm, **(change or {})) for arm in case.arms))  # type: ignore[arg-type]  # one of its fields
    found = record(arms_runs([100] * 4, [80] * 4), arms=case.arms)
    state = written(folder, [case], replace(found, job=replace(found.job, cases=(case.id,))))
    return Opened(state, folder), case


def test_the_job_is_the_very_one_that_was_recorded(tmp_path: Path) -> None:
    found, case = opened_case(tmp_path)
    plan = replay_plan(found, [case.id], Given())
    (job,) = plan.jobs
    (before,) = (last.job for last in found.state.jobs.values())
    assert job == before
    assert plan.ids() == (case.id,)
    assert replay_plan(found, [case.id], Given(minutes=2.5)).jobs[0].design.minutes == 2.5


@pytest.mark.parametrize(
    "policy",
    [
        Policy(),
        Policy(alpha=1e-5, margin=0.02, ceiling_tps=1e5, inconclusive="error"),
        Policy(auto_margin=True, trades=(Trade("pp*", 0.1, "tg*", 0.02),)),
    ],
)
def test_the_policy_is_the_recorded_one(policy: Policy) -> None:
    assert matrix_policy(policy).judging == policy


def test_a_build_that_is_not_here_is_named_with_the_option_that_takes_it() -> None:
    state = read_journal(H200)
    with pytest.raises(BadInput, match=r"E-replay-missing.*build ik .*commit 8337e4cd.*--build ik=PATH"):
        replay_plan(Opened(state, H200), list(state.planned), Given())


def test_a_model_that_is_not_here_is_named_too_and_both_at_once(tmp_path: Path) -> None:
    arm = contrast().arms[0]
    change = {
        "model": replace(arm.model, card="", quant="", path="/nowhere/m.gguf"),
        "build": replace(arm.build, wheel="", path="/nowhere/bin"),
    }
    found, case = opened_case(tmp_path, change)
    with pytest.raises(BadInput, match=rf"--build {arm.build.name}=PATH.*--model {arm.model.name}=PATH"):
        replay_plan(found, [case.id], Given())


def test_what_is_given_is_used_and_a_wrong_name_is_told(tmp_path: Path) -> None:
    found, case = opened_case(tmp_path / "j")
    name = case.arms[0].model.name
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    plan = replay_plan(found, [case.id], Given(models={name: str(tmp_path / "m.gguf")}))
    assert {arm.model.path for arm in plan.jobs[0].arms} == {str(tmp_path / "m.gguf")}
    assert plan.ids() == (case.id,)
    with pytest.raises(BadInput, match=rf"E-replay-unknown-name.*did you mean '{name}'"):
        replay_plan(found, [case.id], Given(models={f"{name}x": "/x"}))


def recipe() -> Recipe:
    return Recipe("evil", "https://example.org/x", "main", (), (), (("sh", "-c", "true"),), (), ("x",), (), 60.0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda arm: {"build": replace(arm.build, wheel="", recipe=recipe())}, "make ik by the recipe evil"),
        (lambda _: {"environment": (("LD_PRELOAD", "evil.so"),)}, "set LD_PRELOAD=evil.so"),
        (
            lambda arm: {
                "model": replace(arm.model, card="", quant="", url="https://example.org/m.gguf", sha256=("0" * 64,))
            },
            "fetch .* from https://example.org/m.gguf",
        ),
    ],
)
def test_what_a_bundle_would_run_fetch_or_set_is_asked_first(tmp_path: Path, change: object, told: str) -> None:
    """A journal of one's own is one's own; an archive is anybody's."""
    found, case = opened_case(tmp_path, change(contrast().arms[0]))  # type: ignore[operator]  # a function
    bundle = pack(found.state, [case.id], tmp_path / "b.tar.gz").path
    with opened(bundle) as foreign:
        with pytest.raises(BadInput, match=f"E-replay-untrusted.*{told}.*--trust"):
            replay_plan(foreign, list(foreign.state.planned), Given())
        assert replay_plan(foreign, list(foreign.state.planned), Given(trust=True)).jobs
    assert replay_plan(found, [case.id], Given()).jobs


def test_paths_that_a_bundle_names_are_not_used(tmp_path: Path) -> None:
    """A path of another machine means nothing here, and a forged one means harm."""
    arm: Arm = contrast().arms[0]
    found, _ = opened_case(tmp_path, {"build": replace(arm.build, wheel="", path="/bin")})
    foreign = Opened(found.state, tmp_path, folder=tmp_path)
    with pytest.raises(BadInput, match=rf"E-replay-missing.*--build {arm.build.name}=PATH"):
        replay_plan(foreign, list(found.state.planned), Given())


def test_a_job_that_runs_other_arms_than_its_case_names_hides_nothing(tmp_path: Path) -> None:
    """What is looked at is what would run."""
    case = contrast()
    forged = tuple(replace(arm, environment=(("LD_PRELOAD", "evil.so"),)) for arm in case.arms)
    found = record(arms_runs([100] * 4, [80] * 4), arms=forged)
    state = written(tmp_path, [case], replace(found, job=replace(found.job, cases=(case.id,))))
    with pytest.raises(BadInput, match=r"E-replay-untrusted.*LD_PRELOAD"):
        replay_plan(Opened(state, tmp_path, folder=tmp_path), [case.id], Given())
