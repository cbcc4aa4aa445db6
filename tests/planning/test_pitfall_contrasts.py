"""Contrasts that name a pitfall: where their arms come from, and where they are not about what a matrix runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import load, node, refusal

from harness.domain.case import PitfallCheck
from harness.domain.words import Kind, Status
from harness.pitfalls.catalogue import packaged_pitfalls, pitfall_folder
from harness.planning.expand import expand
from harness.planning.load import find_matrix, load_matrix
from harness.planning.plan import PlannedCase
from harness.planning.planner import make_plan

GPU = """
[builds.gpu]
fork = "ik_llama.cpp"
path = "gpu/llama-bench"
source = { number = 4840, commit = "8337e4cd" }
"""


def pitfalls(tmp_path: Path, text: str) -> list[PlannedCase]:
    return [case for case in expand(load(tmp_path, text)) if case.case.kind is Kind.PITFALL]


def asking(name: str, rest: str = "") -> str:
    return f'[[contrasts]]\npitfall = "{name}"\n{rest}\n'


def test_both_sides_are_made_with_the_settings_that_make_it_hold(tmp_path: Path) -> None:
    """No axis is needed, and the check has source and advice of the entry."""
    (case,) = pitfalls(tmp_path, GPU + asking("rtr-hybrid-iq", 'where = { build = "gpu" }'))
    baseline, candidate = (arm.flags.as_dict() for arm in case.case.arms)
    assert (baseline["rtr"], candidate["rtr"]) == (0, 1)
    assert {name: baseline[name] for name in ("ngl", "ot", "ub")} == {"ngl": 99, "ot": "exps=CPU", "ub": 2048}
    assert case.status is None
    assert case.case.workload_name == "pp64"
    assert isinstance(case.case.check, PitfallCheck)
    assert case.case.check.name == "rtr-hybrid-iq"
    assert "286.78 -> 169.11" in case.case.check.source
    assert case.case.check.instead == packaged_pitfalls()["rtr-hybrid-iq"].instead
    assert "as a consequence of rtr: mmap 1 -> 0" in case.note


def test_what_the_matrix_says_is_not_set_over(tmp_path: Path) -> None:
    """The file's own ub stays; the rest of the settings is put in."""
    text = GPU + "[flags]\nub = 1024\n" + asking("rtr-hybrid-iq", 'where = { build = "gpu" }')
    (case,) = pitfalls(tmp_path, text)
    assert [arm.flags.get("ub") for arm in case.case.arms] == [1024, 1024]


def test_arms_of_the_matrix_are_compared_where_it_has_both_sides(tmp_path: Path) -> None:
    """As in any contrast: no arm is made, and labels stay short."""
    ids = [case.id for case in pitfalls(tmp_path, "[flags]\nfa = [0, 1]\nngl = 0\n" + asking("cpu-flash-attention"))]
    assert ids == [f"pitfall/tiny/{build}+fa=0..{build}+fa=1/pp64@any" for build in ("mainline", "ik")]


@pytest.mark.parametrize(
    ("name", "extra", "reason"),
    [
        ("rtr-hybrid", 'where = { build = "mainline" }', "it is about ik_llama.cpp, this is llama.cpp"),
        ("rtr-hybrid", 'where = { build = "ik" }', "it is about placement hybrid, this is cpu"),
        ("rtr-hybrid", 'where = { build = "gpu" }', "it is about weights of k, these are IQ4_XS"),
        ("r4-small-ubatch", 'where = { build = "gpu" }', "IQ5_KS_R4, these are IQ4_XS"),
    ],
)
def test_outside_its_conditions_it_is_not_applicable(tmp_path: Path, name: str, extra: str, reason: str) -> None:
    """Listed with the reason, and not run."""
    cases = pitfalls(tmp_path, GPU + asking(name, extra))
    assert {case.status for case in cases} == {Status.NOT_APPLICABLE}
    assert all(case.reason.startswith(f"{name}: ") and reason in case.reason for case in cases)


@pytest.mark.parametrize(("number", "status"), [(3500, Status.NOT_APPLICABLE), (3512, None), (4840, None)])
def test_builds_before_it_are_outside(tmp_path: Path, number: int, status: Status | None) -> None:
    """Both bounds of the range are tried."""
    text = GPU.replace("4840", str(number)) + asking("rtr-hybrid-iq", 'where = { build = "gpu" }')
    (case,) = pitfalls(tmp_path, text)
    assert case.status is status
    assert status is None or f"this is build {number}" in case.reason


def test_what_is_not_known_is_noted_and_asked(tmp_path: Path) -> None:
    """A build without a number, a model that is not here."""
    text = GPU.replace('source = { number = 4840, commit = "8337e4cd" }', "")
    text += '[models.far]\npath = "far.gguf"\n' + asking("rtr-hybrid", 'where = { build = "gpu", model = "far" }')
    (case,) = pitfalls(tmp_path, text)
    assert case.status is None
    assert "the number of this build is not known" in case.note
    assert "depends on the model's quantization, which is not known" in case.note


def test_a_build_in_which_it_was_gone_is_asked_again(tmp_path: Path) -> None:
    """With a note of what was found."""
    cases = pitfalls(tmp_path, "[flags]\nngl = 0\n" + asking("cpu-flash-attention"))
    notes = {case.case.arms[0].build.name: case.note for case in cases}
    assert {case.status for case in cases} == {None}
    assert "gone in build 11434" in notes["mainline"]


def test_two_pitfalls_of_one_question_are_one_case(tmp_path: Path) -> None:
    """The one that is about the model has it, whichever is named first."""
    both = [asking(name, 'where = { build = "gpu" }') for name in ("rtr-hybrid", "rtr-hybrid-iq")]
    for order in (both, both[::-1]):
        (case,) = pitfalls(tmp_path, GPU + "".join(order))
        assert (case.case.contrast, case.status) == ("rtr-hybrid-iq", None)


def test_a_threshold_that_neither_side_reaches_is_said(tmp_path: Path) -> None:
    """The tiny card uses 4 of 32 experts: from 256 tokens on; here both sides are below."""
    text = GPU + asking("offload-threshold", 'where = { build = "gpu" }')
    (case,) = pitfalls(tmp_path, text)
    assert "it is about ub below 256, this is 256" in case.reason


@pytest.mark.parametrize(
    ("text", "slug", "said"),
    [
        (asking("rtr-hybird"), "E-unknown-pitfall", "did you mean 'rtr-hybrid'"),
        (asking("ser-inert"), "E-pitfall-not-asked", "it changes nothing"),
        (asking("rtr-hybrid", 'factor = "fa"'), "E-matrix-invalid", "'factor' does not go with 'pitfall'"),
        (asking("rtr-hybrid", 'source = "x"'), "E-matrix-invalid", "'source' does not go with 'pitfall'"),
        (asking("rtr-hybrid", 'kind = "throughput"'), "E-matrix-invalid", "goes with kind"),
        (asking("none.toml"), "E-pitfall-missing", "none.toml"),
        ('[[contrasts]]\nfactor = "fa"\nbaseline = 0\ncandidate = 1\n', "E-matrix-invalid", "the key is missing"),
        (asking("rtr-hybrid") * 2, "E-duplicate-name", "'rtr-hybrid' is declared twice"),
    ],
)
def test_faults(tmp_path: Path, text: str, slug: str, said: str) -> None:
    """File and key, and what to do."""
    error = refusal(tmp_path, text)
    assert error.slug == slug
    assert said in str(error)
    assert "contrasts[" in error.where


def test_no_arm_for_it(tmp_path: Path) -> None:
    """As of other contrasts."""
    with pytest.raises(Exception, match="E-no-contrast"):
        expand(load(tmp_path, asking("rtr-hybrid", "where = { flags = { fa = 0 } }")))


def test_the_matrix_of_all_has_all(tmp_path: Path) -> None:
    """Every pitfall that can be asked for stands in it, in the order of the folder."""
    matrix = load_matrix(find_matrix("pitfalls"))
    can = sorted(name for name, pitfall in packaged_pitfalls().items() if not pitfall.unasked)
    assert sorted(entry.name for entry in matrix.contrasts) == can


@pytest.mark.parametrize("name", [name for name, pitfall in packaged_pitfalls().items() if not pitfall.unasked])
def test_a_pitfalls_file_is_a_matrix(name: str) -> None:
    """On the stand-ins it asks what they can answer, and says of the rest why not."""
    for word in (f"pitfalls/{name}", str(pitfall_folder() / f"{name}.toml")):
        plan = make_plan(load_matrix(find_matrix(word)), ["pitfall/*"], [node()])
        assert plan.cases
        assert {case.case.contrast for case in plan.cases} == {name}
        runs = {case.status for case in plan.cases} != {Status.NOT_APPLICABLE}
        assert runs == (name in ("cpu-flash-attention", "fmoe-off", "kv-quantized-on-cpu"))


def test_a_file_that_extends_a_pitfall_puts_its_own_builds_in(tmp_path: Path) -> None:
    """What the head of stand-ins.toml shows."""
    head = find_matrix("stand-ins").read_text().split("name = ")
    text = "name = " + "name = ".join(head[1:-1])
    lines = [line.removeprefix("#").strip() for line in text.splitlines()]
    mine = tmp_path / "mine.toml"
    mine.write_text("\n".join(lines))
    matrix = load_matrix(mine)
    assert matrix.builds["ik"].path == "/srv/ik_llama.cpp/build/bin/llama-bench"
    cases = [case for case in expand(matrix) if case.case.kind is Kind.PITFALL]
    assert [case.status for case in cases if case.case.arms[0].build.name == "ik"] == [None, None]
