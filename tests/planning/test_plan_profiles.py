"""Profiles of a matrix: texts found, quantities named, jobs of their own, thresholds in the right unit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from planning_support import load, matrix, refusal

from harness.domain.case import FloorCheck
from harness.domain.errors import BadInput
from harness.domain.words import Kind, Status
from harness.domain.workload import ProfileWorkload
from harness.planning.plan import Plan
from harness.planning.planner import make_plan, narrowed
from harness.planning.profiles import packaged_profiles, workloads_of
from harness.planning.schema import Matrix, WorkloadEntry

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "matrix.md").read_text(encoding="utf-8")
FORKS = {"name": "fork", "factor": "build", "baseline": "mainline", "candidate": "ik"}
CHAT = {"profile": "chat"}


def _names(plan: Plan) -> list[list[str]]:
    return [[load.name for load in job.workloads] for job in plan.jobs]


def test_a_profile_makes_a_workload_of_each_quantity() -> None:
    plan = make_plan(matrix(workloads=[CHAT], contrasts=[FORKS]))
    assert _names(plan) == [["chat.cold", "chat.ttft", "chat.prefill", "chat.decode"]]
    assert [case.id.rsplit("/", 1)[1] for case in plan.cases if len(case.case.arms) > 1] == [
        f"chat.{metric}@any" for metric in ("cold", "ttft", "prefill", "decode")
    ]


def test_some_quantities_under_another_name() -> None:
    entry = {"profile": "rag", "name": "rag-1k", "metrics": ["decode", "ttft"], "n_predict": 7, "prompt_tokens": 1024}
    loads = workloads_of(WorkloadEntry.model_validate(entry))
    assert [load.name for load in loads] == ["rag-1k.ttft", "rag-1k.decode"]
    assert isinstance(loads[0], ProfileWorkload)
    assert (loads[0].profile.n_predict, loads[0].profile.prompt_tokens) == (7, 1024)


@pytest.mark.parametrize("name", packaged_profiles())
def test_every_packaged_profile_has_a_text_and_stands_in_the_reference(name: str) -> None:
    (load, *_) = workloads_of(WorkloadEntry(profile=name))
    assert isinstance(load, ProfileWorkload)
    told = packaged_profiles()[name]
    assert len(load.profile.text) > 100
    assert (load.profile.n_predict, load.profile.prompt_tokens) == (told["n_predict"], told["prompt_tokens"])
    row = f"| `{name}` | {told['about']} | {told['prompt_tokens']} | {told['n_predict']} |"
    assert row in PAGE


def test_the_kinds_of_requests_that_users_report_are_packaged() -> None:
    assert set(packaged_profiles()) == {"chat", "long-context", "rag", "code-edit"}


def test_a_text_of_ones_own_is_found_beside_the_matrix(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "mine.txt").write_text("  What is this?\n", encoding="utf-8")
    plan = make_plan(load(tmp_path, '[[workloads]]\nprofile = "prompts/mine.txt"\nmetrics = ["ttft"]\n'))
    loads = [load for job in plan.jobs for load in job.workloads if isinstance(load, ProfileWorkload)]
    assert {load.name for load in loads} == {"mine.ttft"}
    assert loads[0].profile.text == "What is this?"
    assert (loads[0].profile.n_predict, loads[0].profile.prompt_tokens) == (128, 0)


@pytest.mark.parametrize(
    ("entry", "slug", "words"),
    [
        ('profile = "chta"', "E-unknown-profile", "did you mean 'chat'"),
        ('profile = "summarise"', "E-unknown-profile", "a profile of your own is the path of a text file"),
        ('profile = "gone.txt"', "E-unknown-profile", "No such file"),
        ('profile = "empty.txt"', "E-profile-unreadable", "is empty"),
        ('profile = "null.txt"', "E-profile-unreadable", "null character"),
        ('profile = "latin.txt"', "E-profile-unreadable", "not text in UTF-8: byte 1"),
        ('profile = "huge.txt"', "E-profile-unreadable", "a count of tokens repeats a short text"),
        ('profile = "chat"\npp = 4', "E-matrix-invalid", "'pp' does not go with 'profile'"),
        ('pp = 4\nmetrics = ["ttft"]', "E-matrix-invalid", "'metrics' goes with 'profile'"),
        ('profile = "chat"\nn_predict = 1', "E-matrix-invalid", "greater than or equal to 2"),
        ('profile = "chat"\nmetrics = ["tftt"]', "E-matrix-invalid", "did you mean 'ttft'"),
        ('profile = "chat"\nmetrics = ["peak"]', "E-matrix-invalid", "'cold', 'ttft'"),
        ("depth = 4", "E-matrix-invalid", "or a 'profile'"),
        ('profile = "chat"\n[[workloads]]\nprofile = "chat"\nprompt_tokens = 9', "E-duplicate-name", "chat.ttft"),
    ],
)
def test_faults_are_named(tmp_path: Path, entry: str, slug: str, words: str) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "null.txt").write_text("a\0b")
    (tmp_path / "latin.txt").write_bytes(b"a\xe4b")
    (tmp_path / "huge.txt").write_bytes(b"word " * 60_000)
    found = refusal(tmp_path, f"[[workloads]]\n{entry}\n")
    assert found.slug == slug
    assert words in str(found)
    assert "m.toml" in found.where


def test_profiles_and_plain_workloads_have_jobs_of_their_own() -> None:
    """Also two profiles: only one request is the first of a process."""
    rag = {"profile": "rag", "metrics": ["cold"]}
    plan = make_plan(matrix(workloads=[{"pp": 64}, CHAT, {"tg": 8}, rag], contrasts=[FORKS]))
    assert _names(plan) == [["pp64", "tg8"], ["chat.cold", "chat.ttft", "chat.prefill", "chat.decode"], ["rag.cold"]]
    assert len({job.id for job in plan.jobs}) == 3
    answered = [case for job in plan.jobs for case in job.cases]
    assert sorted(answered) == sorted(plan.ids()), "each case is answered once"


def test_requests_that_nothing_compares_do_not_ride_with_other_workloads() -> None:
    plan = make_plan(matrix(workloads=[{"pp": 64}, CHAT], contrasts=[{**FORKS, "workloads": ["pp64"]}]))
    chat = ["chat.cold", "chat.ttft", "chat.prefill", "chat.decode"]
    assert _names(plan) == [["pp64"], chat, chat]


def test_outputs_are_compared_in_every_job_and_answered_by_one() -> None:
    """Speed of wrong output is not judged, whatever is timed; the check's own case is one case."""
    check = {"kind": "outputs", "name": "same", "contrasts": ["fork"], "prompts": ["x"]}
    both = make_plan(matrix(workloads=[{"pp": 64}, CHAT], contrasts=[FORKS], checks=[check]))
    assert all(job.outputs for job in both.jobs)
    assert sum("equivalence/" in case for job in both.jobs for case in job.cases) == 1
    alone = make_plan(matrix(workloads=[CHAT], contrasts=[FORKS], checks=[check]))
    assert len(alone.jobs) == 1, "no process starts for the outputs alone"


def test_each_kind_of_process_has_a_peak_of_its_own() -> None:
    check = {"kind": "memory", "max_rss_mib": 100.0}
    plan = make_plan(matrix(workloads=[{"pp": 64}, CHAT], checks=[check]))
    peaks = [case for case in plan.cases if case.case.kind is Kind.MEMORY]
    assert [case.case.workload_name for case in peaks] == ["peak", "chat.peak", "peak", "chat.peak"]
    kept = narrowed(plan, [peaks[1].id])
    assert _names(kept) == [["chat.cold", "chat.ttft", "chat.prefill", "chat.decode"]], "whatever was selected"
    only = make_plan(matrix(workloads=[CHAT], checks=[check]))
    assert {case.case.workload_name for case in only.cases if case.case.kind is Kind.MEMORY} == {"chat.peak"}


def test_floors_apply_to_their_own_kind_of_figure() -> None:
    checks = [
        {"kind": "floor", "tokens_per_second": 5.0},
        {"kind": "floor", "max_ms": 900.0},
        {"kind": "floor", "max_ms": 300.0, "workloads": ["chat.ttft"]},
    ]
    plan = make_plan(matrix(workloads=[{"pp": 64}, CHAT], checks=checks))
    found = {case.case.workload_name: case.case.check for case in plan.cases}
    assert found == {
        "pp64": FloorCheck(5.0),
        "chat.cold": FloorCheck(None, 900.0),
        "chat.ttft": FloorCheck(None, 300.0),
        "chat.prefill": FloorCheck(5.0),
        "chat.decode": FloorCheck(5.0),
    }


@pytest.mark.parametrize(
    ("threshold", "words"),
    [
        ('max_ms = 5.0\nworkloads = ["pp64"]', "'pp64' is a speed: give 'tokens_per_second'"),
        ('tokens_per_second = 5.0\nworkloads = ["chat.cold"]', "'chat.cold' is a time: give 'max_ms'"),
        ("tokens_per_second = 5.0\nmax_ms = 5.0", "needs exactly one of 'tokens_per_second' and 'max_ms', found both"),
        ("", "found neither"),
    ],
)
def test_thresholds_in_the_wrong_unit_are_refused(tmp_path: Path, threshold: str, words: str) -> None:
    found = refusal(tmp_path, f'[[workloads]]\nprofile = "chat"\n[[checks]]\nkind = "floor"\n{threshold}\n')
    assert words in str(found)


def _wheel_against_path(**changes: object) -> Matrix:
    builds = {
        "mainline": {"fork": "llama.cpp", "wheel": "xllamacpp"},
        "ik": {"fork": "ik_llama.cpp", "path": "/opt/ik"},
    }
    return matrix(builds=builds, contrasts=[FORKS], **changes)


def test_a_wheel_and_a_server_are_no_contrast_of_answers() -> None:
    plan = make_plan(_wheel_against_path(workloads=[{"pp": 64}, CHAT]))
    pairs = [case for case in plan.cases if len(case.case.arms) > 1]
    assert [case.status for case in pairs] == [None, *[Status.UNSUPPORTED] * 4]
    assert "through its server" in pairs[1].reason
    singles = [case for case in plan.cases if len(case.case.arms) == 1]
    assert {case.status for case in singles} == {None}, "each alone can be measured"


def test_a_text_that_vanishes_is_told_also_without_a_check_of_names() -> None:
    with pytest.raises(BadInput, match="E-unknown-profile"):
        make_plan(matrix(workloads=[{"profile": "/nowhere/x.txt"}]))


def test_reference_names_the_default_length_of_a_file() -> None:
    assert re.search(r"`n_predict` \| whole number, 2 or more \| the profile's; 128 for a file", PAGE)
