"""Laws that hold for every matrix."""

from __future__ import annotations

import re
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from planning_support import factors_differing, matrix

from harness.planning.expand import expand
from harness.planning.jobs import plan_jobs
from harness.planning.select import select

ID = re.compile(r"(throughput|equivalence|pitfall|memory)(/[a-z0-9._=+-]+){3}@[a-z0-9._=+-]+")
VALUES: dict[str, list[Any]] = {
    "fa": [0, 1],
    "ub": [64, 128, 512],
    "ngl": [0, 99],
    "ot": ["none", "exps=CPU", r"blk\.[0-9]+\.ffn=CPU"],
    "ctk": ["f16", "q8_0"],
}


@st.composite
def axes(draw: st.DrawFn) -> dict[str, list[Any]]:
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=4))
    return {name: draw(st.lists(st.sampled_from(VALUES[name]), unique=True, min_size=1)) for name in names}


@st.composite
def matrices(draw: st.DrawFn) -> dict[str, Any]:
    """Random but sound matrices: their contrasts have both sides."""
    flags = draw(axes())
    varied = sorted(name for name, values in flags.items() if len(values) > 1)
    changes: dict[str, Any] = {"flags": flags}
    if draw(st.booleans()):
        changes["when"] = [{"fork": "ik_llama.cpp", "flags": {"rtr": [0, 1], "amb": draw(st.sampled_from([0, 256]))}}]
    if draw(st.booleans()):
        changes["node_classes"] = {"cpu": {}, "GPU_big": {"min_gpus": 1}}
    changes["contrasts"] = [
        {"name": f"c-{name}", "factor": name, "baseline": flags[name][0], "candidate": flags[name][1]}
        for name in varied
    ]
    if draw(st.booleans()):
        changes["contrasts"].append({"name": "fork", "factor": "build", "baseline": "ik", "candidate": "mainline"})
    if draw(st.booleans()):
        changes["checks"] = [{"kind": "memory", "max_rss_mib": 10.0}]
    return changes


@given(matrices())
@settings(deadline=None)
def test_expansion_is_deterministic(changes: dict[str, Any]) -> None:
    """The same matrix gives the same cases and jobs, in the same order."""
    first, second = matrix(**changes), matrix(**changes)
    assert expand(first) == expand(second)
    assert plan_jobs(expand(first), first.policy) == plan_jobs(expand(second), second.policy)


@given(matrices())
@settings(deadline=None)
def test_ids_are_unique_and_of_their_alphabet(changes: dict[str, Any]) -> None:
    """Four parts, a class, and no letter outside [a-z0-9._=+-] in them; kept ids are the cases' own."""
    cases = expand(matrix(**changes))
    names = [case.id for case in cases]
    assert len(set(names)) == len(names)
    assert [name for name in names if not ID.fullmatch(name)] == []
    assert names == [case.case.id for case in cases]


@given(matrices())
@settings(deadline=None)
def test_contrasts_differ_in_their_factor_only(changes: dict[str, Any]) -> None:
    """Beside the factor only what it brings along differs, and then there is a note."""
    for planned in expand(matrix(**changes)):
        if len(planned.case.arms) == 1:
            continue
        baseline, candidate = planned.case.arms
        factor = getattr(planned.case.check, "factor", "")
        common = baseline.flags.as_dict().keys() & candidate.flags.as_dict().keys()
        beside = [
            name
            for name in factors_differing(baseline, candidate)
            if name != factor and (factor != "build" or name in common)
        ]
        assert factor in factors_differing(baseline, candidate)
        assert not beside or planned.note


@given(matrices(), st.sampled_from(["mainline", "ik"]))
@settings(deadline=None)
def test_an_exclude_removes_exactly_the_arms_it_describes(changes: dict[str, Any], build: str) -> None:
    """The other cases stay as they are, in their order."""
    plain = changes | {"contrasts": [], "checks": []}
    before = [case.id for case in expand(matrix(**plain))]
    after = [case.id for case in expand(matrix(**plain, exclude=[{"build": build}]))]
    assert after == [name for name in before if f"/{build}" not in name]


@given(matrices(), st.integers(1, 4096).filter(lambda ub: ub not in VALUES["ub"]))
@settings(deadline=None)
def test_an_include_only_adds(changes: dict[str, Any], ub: int) -> None:
    """One arm more on each class, whatever is excluded, and nothing less."""
    plain = changes | {"contrasts": [], "checks": [], "exclude": [{"build": "ik"}]}
    before = expand(matrix(**plain))
    after = expand(matrix(**plain, include=[{"build": "ik", "model": "tiny", "flags": {"ub": ub}}]))
    classes, workloads = len(changes.get("node_classes", "1")), 2
    assert len(after) == len(before) + classes * workloads
    assert {case.case.key for case in before} <= {case.case.key for case in after}


@given(matrices(), st.data())
@settings(deadline=None)
def test_a_selection_and_its_opposite_are_the_whole(changes: dict[str, Any], data: st.DataObject) -> None:
    """``p`` and ``!p`` divide the cases."""
    cases = expand(matrix(**changes))
    name = data.draw(st.sampled_from([case.id for case in cases]))
    chosen, others = select(cases, [name]), select(cases, [f"!{name}"])
    assert sorted(case.id for case in (*chosen, *others)) == sorted(case.id for case in cases)


@given(matrices(), st.data())
@settings(deadline=None)
def test_every_selected_case_is_answered_once(changes: dict[str, Any], data: st.DataObject) -> None:
    """Whatever is selected: each case that can run is in one job, whose arms and workloads answer it."""
    made = matrix(**changes)
    cases = expand(made)
    chosen = [case for case in cases if data.draw(st.booleans())] if len(cases) < 40 else list(cases)
    jobs = plan_jobs(chosen, made.policy, cases)
    answered = [name for job in jobs for name in job.cases]
    assert sorted(answered) == sorted(case.id for case in chosen if case.status is None)
    by_id = {case.id: case.case for case in chosen}
    for job in jobs:
        for name in job.cases:
            case = by_id[name]
            assert set(case.arms) <= set(job.arms)
            assert job.node_class == case.node_class
            assert case.workload is None or case.workload in job.workloads


def test_ten_thousand_cases_are_quick() -> None:
    """Expanding, selecting and making jobs: under a second; a loaded machine that measures coverage gets four."""
    made = matrix(
        models={f"m{number}": {"card": "tiny-moe", "quant": "IQ4_XS"} for number in range(5)},
        flags={"fa": [0, 1], "ub": [128, 256, 512, 1024, 2048], "ngl": [0, 10, 20, 30, 40, 50, 60, 70, 80, 99]},
        when=[{"fork": "ik_llama.cpp", "flags": {"rtr": [0, 1]}}],
        workloads=[{"pp": 512}, {"tg": 128}, {"pp": 2048}],
        contrasts=[
            {"name": "fork", "factor": "build", "baseline": "mainline", "candidate": "ik"},
            {"name": "fa", "factor": "fa", "baseline": 0, "candidate": 1},
            {"name": "rtr", "factor": "rtr", "baseline": 0, "candidate": 1},
        ],
    )
    start = time.process_time()
    cases = expand(made)
    plan_jobs(select(cases, ["*"]), made.policy, cases)
    assert len(cases) == 11_250
    assert time.process_time() - start < 4
