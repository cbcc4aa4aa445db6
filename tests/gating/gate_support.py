"""Builders for the tests of the gate: cases, verdicts and journals as runs leave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.case import Case, Check, ContrastCheck, Expectation, FloorCheck, MemoryCheck, OutputCheck
from harness.domain.choice import Choice, LeftToNight, WhyLeft
from harness.domain.flags import Flags
from harness.domain.model import Model
from harness.domain.node import NodeClass
from harness.domain.policy import Policy as Judging
from harness.domain.verdict import Estimate, Verdict
from harness.domain.words import Equivalence, Kind, Status, Throughput
from harness.domain.workload import OutputProfile, Prompt, Workload
from harness.gating.cells import Journals, joined
from harness.gating.changed import Asked
from harness.gating.deciding import Decision, decide
from harness.gating.labels import Label
from harness.gating.policy import Policy, default_policy
from harness.reporting.journal import PlannedCase, RunInfo
from harness.reporting.state import JobTry, JournalState

TODAY = date(2026, 12, 1)
PP, TG = Workload(64, 0), Workload(0, 16)
ANSWERS = OutputProfile("answers", (Prompt("p1", "Once"),), 4, 4)


def arm(build: str = "new", **flags: int) -> Arm:
    model = Model("tiny", card="tiny-moe", quant="IQ4_XS")
    return Arm(Build(build, Fork.LLAMA_CPP, wheel="xllamacpp"), model, Flags.of({"fa": 1, **flags}), shown=tuple(flags))


OLD, NEW = arm("old"), arm("new")


def speed(workload: Workload = PP, *, node: str = "any", expect: str = "no_regression", arms: Any = (OLD, NEW)) -> Case:
    check = ContrastCheck("build", "build", Expectation(expect))
    return Case(Kind.THROUGHPUT, arms, workload, NodeClass(node), check)


def outputs(node: str = "any") -> Case:
    return Case(Kind.EQUIVALENCE, (OLD, NEW), ANSWERS, NodeClass(node), OutputCheck("answers", "build"))


def single(check: Check, workload: Workload | None = PP) -> Case:
    kind = Kind.MEMORY if isinstance(check, MemoryCheck) else Kind.THROUGHPUT
    return Case(kind, (NEW,), workload, NodeClass("any"), check)


FLOOR, MEMORY = single(FloorCheck(10.0)), single(MemoryCheck(100.0), None)


def ratio(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value, value * 0.99 if low is None else low, value * 1.01 if high is None else high, 8, "ratio")


def verdict(case: Case, status: Status = Status.PASS, **fields: Any) -> Verdict:
    return Verdict(case.id, status, fields.pop("reason", f"{status}: because"), contrast=case.contrast, **fields)


def regressed(case: Case, value: float = 0.9, **fields: Any) -> Verdict:
    return verdict(case, Status.FAIL, throughput=Throughput.REGRESSED, estimate=ratio(value), **fields)


def improved(case: Case, value: float = 1.2) -> Verdict:
    return verdict(case, throughput=Throughput.IMPROVED, estimate=ratio(value))


def compared(word: Equivalence, case: Case | None = None) -> Verdict:
    status = Status.PASS if word.speed_may_be_judged else Status.FAIL
    return verdict(case or outputs(), status, equivalence=word)


def state(*pairs: tuple[Case, Verdict | None], name: str = "a", **changes: Any) -> JournalState:
    """A journal that planned these cases; ``None``: the run ended before it decided one."""
    judging = changes.pop("judging", Judging())
    jobs: dict[str, JobTry] = changes.pop("jobs", {})
    made = JournalState(
        path=Path(f"{name}/journal.jsonl"),
        run=RunInfo("matrix", "local", len(pairs), policy=judging),
        planned={case.id: PlannedCase(case, "job-1") for case, _ in pairs},
        jobs=jobs,
        verdicts={case.id: found for case, found in pairs if found is not None},
        problems=(),
        torn=0,
        finished=all(found for _, found in pairs),
        started="2026-12-01T00:00:00+00:00",
    )
    return replace(made, **changes)


def judged(policy: Policy | None, *states: JournalState, **given: Any) -> Decision:
    journals: Journals = joined(states)
    found = policy or default_policy()
    return decide(found, journals, today=TODAY, file="gate.toml" if policy else "", **given)


def effects(decision: Decision) -> dict[str, str]:
    return {each.cell.id: each.effect.value for each in decision.cells}


def slugs(decision: Decision) -> list[str]:
    return [problem.slug for problem in decision.problems]


def policy(**keys: Any) -> Policy:
    return Policy.model_validate(keys)


def blocking(*patterns: str, **keys: Any) -> Policy:
    return policy(cells=[{"cells": list(patterns or ("*",)), "stage": "block"}], **keys)


def label(number: int, case: Case, *, true: bool) -> Label:
    return Label(
        id=f"{number:010x}",
        case=case.id,
        contrast=case.contrast,
        finding="regressed",
        label=true,
        by="alice",
        date=date(2026, 11, 1),
    )


def labels(case: Case, *words: bool) -> Sequence[Label]:
    return [label(number, case, true=word) for number, word in enumerate(words)]


def chosen(*asking: str, digest: str = "", changed: int | None = 1, left: Sequence[Case] = ()) -> dict[str, Any]:
    """What a merge gate's run says beside its cells."""
    choice = Choice("merge", digest, needed=bool(asking), changed=changed, asking=tuple(asking))
    return {
        "choice": choice,
        "left": {
            case.id: LeftToNight(case.id, case.contrast, WhyLeft.PATHS, "no changed path asks for it") for case in left
        },
    }


def asked(*asking: str) -> Asked:
    return Asked(max(1, len(asking)), (("*",),) if asking else (), asking)
