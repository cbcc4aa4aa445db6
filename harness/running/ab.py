"""``ab``: two ways of running, interleaved on this machine until every workload is decided or the minutes are over.

It is a matrix of one contrast that nobody had to write: the same cases, jobs, journal and verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.domain.build import Fork
from harness.domain.case import Case, ContrastCheck, Expectation, OutputCheck
from harness.domain.errors import BadInput, Infrastructure
from harness.domain.flags import FlagValue
from harness.domain.job import Job
from harness.domain.model import Model
from harness.domain.node import ANY_CLASS, NodeClass
from harness.domain.words import Kind
from harness.domain.workload import OutputProfile, Prompt, Workload
from harness.engines.abilities import beyond, lacks_answers
from harness.engines.numbers import changes_numbers
from harness.execution.builds import Report
from harness.judging.throughput import limits_of
from harness.models.inspect import inspect_gguf
from harness.planning.bench_line import BenchLine, read_bench_line
from harness.planning.jobs import plan_jobs
from harness.planning.model_word import TINY_CARD, model_named
from harness.planning.plan import Plan, PlannedCase
from harness.planning.schema import Policy
from harness.running.ab_arms import AbArms, make_arms, read_arm
from harness.running.options import known_spreads

NAME = "ab"
_ANY = NodeClass(ANY_CLASS)
_SIZES = (512, 128)
"""Tokens of pp and tg where none are said: ``llama-bench``'s own."""
_TINY_SIZES = (256, 64)
_PROMPTS = (
    "List three reasons to measure a change before shipping it.",
    'def median(values):\n    """Middle of the sorted values."""\n',
    "The quick brown fox jumps over the lazy dog. The quick brown fox",
    "Q: What is 17 + 25?\nA:",
)
_BLOCKS = 192
"""The 96 quads after which the rule looks for the last time: the minutes end it before."""
_OUTPUTS = OutputProfile(
    "same-answers",
    tuple(Prompt(f"p{number}", text) for number, text in enumerate(_PROMPTS, start=1)),
    n_predict=32,
    positions=64,
)


@dataclass(frozen=True, slots=True)
class AbRequest:
    """What was asked for, as written.

    Attributes:
        old: The baseline's word.
        new: The candidate's word.
        model: A file, or a card with or without quantization; empty: see ``line``, then the tiny card.
        line: Arguments of ``llama-bench`` for both arms.
        fork: Of builds whose ``--help`` tells none.
        minutes: Budget of measuring.
        margin: Relative change that is still equivalent; ``None``: the policy's own.
        alpha: Error rate of a workload; ``None``: the policy's own.
        threads: Compute threads of both arms; ``None``: what flags or the machine say.
        check_outputs: Whether outputs are compared first; ``None``: where both engines can.
    """

    old: str
    new: str
    model: str = ""
    line: Sequence[str] = ()
    fork: Fork | None = None
    minutes: float = 5.0
    margin: float | None = None
    alpha: float | None = None
    threads: int | None = None
    check_outputs: bool | None = None


@dataclass(frozen=True, slots=True)
class AbPlan:
    """What will be run.

    Attributes:
        plan: Cases and their one job.
        arms: Baseline and candidate.
        common: Flags of both arms, by canonical name.
        synthetic: The weights are random.
        notes: What the user should know before it starts.
    """

    plan: Plan
    arms: AbArms
    common: Mapping[str, FlagValue]
    synthetic: bool
    notes: tuple[str, ...]

    @property
    def job(self) -> Job:
        """The one job."""
        return self.plan.jobs[0]

    @property
    def minutes(self) -> float:
        """Budget of measuring."""
        return self.job.design.minutes or 0.0

    @property
    def margins(self) -> dict[str, float]:
        """By workload, the relative change that is still equivalent."""
        names = [workload.name for workload in self.job.workloads]
        return {name: limits_of(self.plan.policy.judging, self.job, name).margin for name in names}

    @property
    def model(self) -> Model:
        """The model of both arms."""
        return self.arms.arms[0].model


def plan_ab(request: AbRequest, report: Report = lambda _: None) -> AbPlan:
    """Work a request out. Nothing is run but the ``--help`` of builds by path, and what makes builds of the catalogue.

    Args:
        request: What was asked for.
        report: Told what is made or fetched.

    Raises:
        BadInput: Whatever is wrong with it: builds, flags, model, workloads.
        Infrastructure: ``E-quarantined``: the calibration of this machine found every workload unfit to be judged.
        HarnessError: If the file of known spreads is there and can't be read.
    """
    line = read_bench_line(request.line)
    model = model_named(_model_word(request, line))
    common = _common_flags(request, line)
    words = (read_arm("OLD", request.old), read_arm("NEW", request.new))
    arms = make_arms(words, model, common, request.fork, report)
    workloads = line.workloads(*(_TINY_SIZES if model.card == TINY_CARD else _SIZES))
    _require_workloads(arms, workloads)
    outputs = _outputs(request, arms)
    said = {"margin": request.margin, "alpha": request.alpha, "repetitions": line.repetitions, "blocks": _BLOCKS}
    policy = Policy.model_validate({name: value for name, value in said.items() if value is not None})
    plan = _plan(arms, workloads, outputs, policy)
    known = known_spreads()
    jobs = tuple(known.informed(replace(job, design=replace(job.design, minutes=request.minutes))) for job in plan.jobs)
    synthetic = model.synthetic or inspect_gguf(Path(model.path)).synthetic
    notes = (*_notes(request, line, arms, outputs, model), *_unfit(jobs[0]))
    return AbPlan(replace(plan, jobs=jobs), arms, common, synthetic, notes)


def _model_word(request: AbRequest, line: BenchLine) -> str:
    if request.model and line.model and request.model != line.model:
        message = f"two models: -m {request.model} and, after '--', -m {line.model}"
        raise BadInput("E-several-values", message, hint="name one")
    return request.model or line.model


def _common_flags(request: AbRequest, line: BenchLine) -> dict[str, FlagValue]:
    flags = dict(line.flags)
    if request.threads is not None and flags.setdefault("t", request.threads) != request.threads:
        message = f"two numbers of threads: --threads {request.threads} and, after '--', t={flags['t']}"
        raise BadInput("E-several-values", message, hint="name one")
    return flags


def _require_workloads(arms: AbArms, workloads: Sequence[Workload]) -> None:
    for place, arm in zip(("OLD", "NEW"), arms.arms, strict=True):
        for workload in workloads:
            reason = beyond(arm.build, workload, arms.options.get(arm.build.name))
            if reason:
                hint = f"leave {workload.name} out, or give a build that can time it"
                raise BadInput("E-unsupported-workload", reason, hint=hint, where=f"{place} ({arm.build.name})")


def _outputs(request: AbRequest, arms: AbArms) -> OutputProfile | None:
    """The prompts, where outputs are to be compared."""
    unable = _unable(arms)
    if request.check_outputs and unable:
        raise BadInput("E-no-outputs", unable, hint="or leave --check-outputs out")
    return None if unable or request.check_outputs is False else _OUTPUTS


def _unable(arms: AbArms) -> str:
    """Why no outputs can be compared, as far as the builds are on this machine."""
    builds = [arm.build for arm in arms.arms]
    return lacks_answers(builds) if all(build.is_here for build in builds) else ""


def _plan(arms: AbArms, workloads: Sequence[Workload], outputs: OutputProfile | None, policy: Policy) -> Plan:
    factor = "+".join(arms.difference.factors)
    check = ContrastCheck(NAME, factor, Expectation.NO_REGRESSION)
    cases = [Case(Kind.THROUGHPUT, arms.arms, workload, _ANY, check) for workload in workloads]
    if outputs:
        moves = changes_numbers(*arms.arms)
        check_outputs = OutputCheck(outputs.name, factor, changes_numbers=moves)
        cases.append(Case(Kind.EQUIVALENCE, arms.arms, outputs, _ANY, check_outputs))
    planned = tuple(PlannedCase(case, "command line") for case in cases)
    return Plan(NAME, planned, plan_jobs(planned, policy), policy, planned)


def _unfit(job: Job) -> tuple[str, ...]:
    """What is known beforehand to stay undecided: better said now than after the minutes.

    Raises:
        Infrastructure: Where that is every workload.
    """
    reasons = {each.workload: each.reason for each in job.quarantines}
    if len(reasons) == len(job.workloads):
        message = f"no workload can be judged on this machine: {_by_workload(reasons)}"
        hint = "see what disturbs it, then run 'moe-harness calibrate' again"
        raise Infrastructure("E-quarantined", message, hint=hint)
    return (f"will stay undecided: {_by_workload(reasons)}",) if reasons else ()


def _by_workload(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{workload}: {reason}" for workload, reason in reasons.items())


def _notes(
    request: AbRequest, line: BenchLine, arms: AbArms, outputs: OutputProfile | None, model: Model
) -> tuple[str, ...]:
    notes = []
    if not _model_word(request, line):
        notes.append(f"no -m: the card {TINY_CARD} in {model.quant}, made in the cache where it is not there yet")
    if len(arms.difference.factors) > 1:
        several = " and ".join(arms.difference.factors)
        notes.append(
            f"{several} differ at once: what is found can't be attributed to one of them;"
            ' a matrix with kind = "attribution" takes them apart'
        )
    if arms.difference.consequences:
        notes.append(f"changes along with it: {', '.join(arms.difference.consequences)}")
    if outputs is None and request.check_outputs is None:
        notes.append(f"outputs are not compared: {_unable(arms)}")
    if line.left_out:
        notes.append(f"left out, the harness sets it: {' '.join(line.left_out)}")
    return tuple(notes)
