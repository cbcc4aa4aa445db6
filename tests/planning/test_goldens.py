"""Checks with a reference: their cases, keys and jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planning_support import load, matrix

from harness.domain.case import OutputCheck
from harness.domain.errors import BadInput
from harness.planning.goldens import recordings
from harness.planning.plan import Plan
from harness.planning.planner import make_plan

REFERENCE = {"kind": "outputs", "name": "gold", "reference": True, "prompts": ["a"]}
PAIR = {"kind": "outputs", "name": "pair", "factor": "fa", "baseline": 0, "candidate": 1, "prompts": ["a"]}
TEXT = '[flags]\nfa = [0, 1]\n[[checks]]\nkind = "outputs"\nname = "gold"\nprompts = ["a"]\n'


def plan(*checks: dict[str, Any], **changes: Any) -> Plan:
    return make_plan(matrix(**({"flags": {"fa": [0, 1]}, "checks": list(checks)} | changes)))


def keys(found: Plan) -> dict[str, str]:
    """The key of each case that has one."""
    checks = ((case.id, case.case.check) for case in found.cases)
    return {name: check.reference for name, check in checks if isinstance(check, OutputCheck) and check.reference}


def test_each_arm_is_held_against_its_own_record() -> None:
    """One case an arm, and the key says which."""
    assert keys(plan(REFERENCE)) == {
        f"equivalence/tiny/{arm}/gold@any": f"gold/tiny/{arm}@any"
        for arm in ("mainline+fa=0", "mainline+fa=1", "ik+fa=0", "ik+fa=1")
    }


def test_another_arms_record_can_be_the_reference() -> None:
    """Under the name of the check that records it."""
    other = REFERENCE | {
        "name": "like-mainline",
        "reference": "gold",
        "reference_arm": {"build": "mainline", "flags": {"fa": 1}},
        "where": {"build": "ik"},
    }
    found = plan(other)
    assert keys(found) == {
        f"equivalence/tiny/ik+fa={fa}/like-mainline@any": "gold/tiny/mainline+fa=1@any" for fa in (0, 1)
    }
    (recorded,) = recordings(found.cases)
    assert recorded.case.arms[0].label == "mainline+fa=1"


def test_a_job_of_its_own_has_one_process() -> None:
    """Without speeds of the arm, one start is enough."""
    found = plan(REFERENCE, workloads=[])
    assert [(len(job.arms), len(job.references), job.process_starts) for job in found.jobs] == [(1, 1, 1)] * 4


def test_an_arm_answers_once_where_a_contrast_asks_it_the_same() -> None:
    """Both arms of the pair ride in its job, whatever the check is called."""
    found = plan(PAIR, REFERENCE, workloads=[])
    assert [(len(job.arms), [each.arm for each in job.references]) for job in found.jobs] == [(2, [0, 1]), (2, [0, 1])]


def test_an_arm_answers_apart_where_a_contrast_asks_it_something_else() -> None:
    """A job answers one set of prompts."""
    found = plan(PAIR, REFERENCE | {"prompts": ["b"]}, workloads=[])
    assert sorted(len(job.arms) for job in found.jobs) == [1, 1, 1, 1, 2, 2]


def test_long_labels_make_names_that_a_folder_can_hold() -> None:
    """Two long labels that begin alike stay apart."""
    long = {"name": "x" * 90, "flags": {"ub": 256}}
    found = plan(
        REFERENCE,
        axes={"a" * 90: [long, {"name": "x" * 89 + "y", "flags": {"ub": 512}}]},
        flags={"fa": 0},
        workloads=[],
    )
    names = [key.rpartition("/")[2] for key in keys(found).values()]
    assert len(set(names)) == len(names) == 4
    assert max(map(len, names)) < 200


@pytest.mark.parametrize(
    ("keys_of_check", "slug", "said"),
    [
        (
            'reference = true\nfactor = "fa"\nbaseline = 0\ncandidate = 1',
            "E-matrix-invalid",
            "'factor' does not go with",
        ),
        ('reference = true\ncontrasts = ["c"]', "E-matrix-invalid", "'contrasts' does not go with 'reference'"),
        ('reference_arm = { build = "ik" }', "E-matrix-invalid", "'reference_arm' goes with 'reference'"),
        ('reference = "a b"', "E-matrix-invalid", "expected true, or a name of letters"),
        ("reference = 3", "E-matrix-invalid", "expected true, or a name of letters"),
        ("reference = true\nwhere = { flags = { fa = 7 } }", "E-no-arm", "checks[0].where"),
        (
            'reference = true\nreference_arm = { build = "ik", flags = { fa = 7 } }',
            "E-no-arm",
            "checks[0].reference_arm",
        ),
        ('reference = true\nreference_arm = { build = "ik" }', "E-ambiguous-reference", "2 arms meet this condition"),
        ('reference = true\nreference_arm = { biuld = "ik" }', "E-matrix-invalid", "did you mean 'build'?"),
        ('reference = true\nreference_arm = { build = "kk" }', "E-unknown-build", "unknown build 'kk'"),
    ],
)
def test_faults_are_named(keys_of_check: str, slug: str, said: str, tmp_path: Path) -> None:
    """With the key."""
    with pytest.raises(BadInput) as caught:
        make_plan(load(tmp_path, TEXT + keys_of_check + "\n"))
    assert caught.value.slug == slug
    assert said in str(caught.value)


def test_one_arm_has_one_check() -> None:
    """A job answers one set of prompts, and an arm one set in one job."""
    with pytest.raises(BadInput, match="E-two-output-checks"):
        plan(REFERENCE, REFERENCE | {"name": "other", "prompts": ["b"]})


def test_one_reference_is_of_one_set_of_prompts() -> None:
    """Else only the first is recorded, and the other never finds its own."""
    shared = REFERENCE | {"reference": "same", "where": {"build": "ik", "flags": {"fa": 0}}}
    arm = {"build": "ik", "flags": {"fa": 0}}
    other = shared | {"name": "other", "where": {"build": "mainline"}, "reference_arm": arm}
    plan(shared, other)
    with pytest.raises(BadInput, match="E-reference-shared") as caught:
        plan(shared, other | {"prompts": ["b"]})
    assert "'other' and 'gold' (matrix: checks[0])" in str(caught.value)


def test_random_weights_are_no_reference_for_fewer_experts() -> None:
    """As between two arms."""
    check = REFERENCE | {"reference_arm": {"build": "ik", "flags": {"ser": "-1,0"}}, "where": {"build": "ik"}}
    with pytest.raises(BadInput, match="E-synthetic-claim"):
        plan(check, flags={}, when=[{"fork": "ik_llama.cpp", "flags": {"ser": ["-1,0", "1,1"]}}])
