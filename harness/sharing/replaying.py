"""Cases of a journal as a plan to be run here: its very arms, workloads and policy, with files of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness.domain.arm import Arm
from harness.domain.build import Build
from harness.domain.errors import BadInput, HarnessError
from harness.domain.job import Job
from harness.domain.model import Model
from harness.domain.policy import Policy as Judging
from harness.domain.suggest import did_you_mean
from harness.engines.bench import BenchEngine
from harness.execution.builds import present_build
from harness.models.card import load_card
from harness.planning.plan import Plan, PlannedCase
from harness.planning.schema import Policy
from harness.reporting.state import JournalState
from harness.sharing.bundle import model_digest
from harness.sharing.opened import Opened


@dataclass(frozen=True, slots=True)
class Given:
    """What this machine has in place of what the journal names.

    Attributes:
        builds: Path by the name of a build.
        models: Model file by the name of a model.
        minutes: Budget of each job; ``None``: as recorded.
        trust: Recipes, programs, addresses and variables of a bundle may be used.
    """

    builds: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    minutes: float | None = None
    trust: bool = False


def replay_plan(opened: Opened, cases: Sequence[str], given: Given) -> Plan:
    """The plan of some cases of a journal.

    Args:
        opened: The journal or bundle.
        cases: Ids of its cases.
        given: What this machine has.

    Raises:
        BadInput: ``E-replay-unknown-name``, ``E-replay-nothing``: planning had decided a case; ``E-replay-missing``:
            what is not here, with the option that takes it; ``E-replay-untrusted``: what a bundle would run or fetch.
    """
    state = opened.state
    _require_measured(state, cases)
    arms = list(_arms(state, cases))
    _require_known(arms, given)
    if opened.folder is not None and not given.trust:
        _require_harmless(arms, opened, given)
    local = _Local(opened, given)
    jobs = _jobs(state, cases, local, given)
    missing = list(dict.fromkeys(line for arm in arms for line in _missing(local.arm(arm), state, arm)))
    if missing:
        message = f"what it takes is not all here: {'; '.join(missing)}"
        raise BadInput("E-replay-missing", message, hint="give it with the options named", where=f"{opened.origin}")
    planned = tuple(
        PlannedCase(replace(case, arms=tuple(map(local.arm, case.arms))), f"replay of {opened.origin.name}")
        for case in (state.planned[each].case for each in cases)
    )
    return Plan(f"{state.name}-replay", planned, jobs, matrix_policy(state.policy), planned)


def _arms(state: JournalState, cases: Sequence[str]) -> Iterator[Arm]:
    """The arms of cases and of their jobs: the jobs' are what runs, and a forged journal can have others there."""
    for case in cases:
        job = state.jobs[state.planned[case].job].job
        yield from state.planned[case].case.arms
        yield from job.arms if job else ()


def matrix_policy(judging: Judging) -> Policy:
    """The keys of a matrix that give a journal's policy again."""
    return Policy.model_validate(
        {
            "alpha": judging.alpha,
            "margin": "auto" if judging.auto_margin else judging.margin,
            "ceiling_tps": judging.ceiling_tps,
            "inconclusive": judging.inconclusive,
            "trades": [
                {"gain": each.gain, "at_least": each.at_least, "loss": each.loss, "at_most": each.at_most}
                for each in judging.trades
            ],
        }
    )


class _Local:
    """Arms of a journal with files of this machine. What a bundle says of paths is of another machine."""

    def __init__(self, opened: Opened, given: Given) -> None:
        self._builds = {**opened.builds, **given.builds}
        self._models = {**opened.models, **given.models}
        self._cards = opened.cards
        self._foreign = opened.folder is not None

    def arm(self, arm: Arm) -> Arm:
        return replace(arm, build=self._build(arm.build), model=self._model(arm.model))

    def _build(self, build: Build) -> Build:
        if path := self._builds.get(build.name):
            return replace(build, path=path, wheel="", variants=(), recipe=None)
        return replace(build, path="") if self._foreign else build

    def _model(self, model: Model) -> Model:
        if path := self._models.get(model.name):
            return replace(model, path=path, url="", card="", quant="")
        if self._foreign and model.name in self._cards:
            return replace(model, card=self._cards[model.name])
        return replace(model, path="") if self._foreign else model


def _jobs(state: JournalState, cases: Sequence[str], local: _Local, given: Given) -> tuple[Job, ...]:
    wanted: dict[str, list[str]] = {}
    for case in cases:
        wanted.setdefault(state.planned[case].job, []).append(case)
    return tuple(_job(state.jobs[job_id].job, ids, local, given) for job_id, ids in wanted.items())


def _job(job: Job | None, cases: Sequence[str], local: _Local, given: Given) -> Job:
    assert job is not None  # noqa: S101 - `_require_measured` has seen to it
    design = job.design if given.minutes is None else replace(job.design, minutes=given.minutes)
    return replace(job, arms=tuple(map(local.arm, job.arms)), design=design, cases=tuple(cases))


# ---- what is in the way ----------------------------------------------------------------------------------------------


def _require_known(arms: Iterable[Arm], given: Given) -> None:
    listed = list(arms)
    for option, names, known in (
        ("--build", given.builds, {arm.build.name for arm in listed}),
        ("--model", given.models, {arm.model.name for arm in listed}),
    ):
        for name in names:
            if name not in known:
                message = f"no arm of these cases has '{name}'"
                raise BadInput("E-replay-unknown-name", message, hint=did_you_mean(name, known), where=option)


def _require_measured(state: JournalState, cases: Sequence[str]) -> None:
    for case in cases:
        planned = state.planned[case]
        last = state.jobs.get(planned.job)
        if last is None or last.job is None:
            why = planned.verdict.reason if planned.verdict else "the line that describes its job is lost"
            message = f"there is nothing to run again: {why}"
            raise BadInput("E-replay-nothing", message, hint="choose a case that was measured", where=case)


def _require_harmless(arms: Iterable[Arm], opened: Opened, given: Given) -> None:
    """A bundle is anybody's: what of it would be run, fetched or set is said first."""
    told = list(dict.fromkeys(line for arm in arms for line in _powers(arm, opened, given)))
    if told:
        message = f"the bundle would have this machine {'; '.join(told)}"
        hint = "look at it, then say --trust, or give a build or model of your own"
        raise BadInput("E-replay-untrusted", message, hint=hint, where=f"{opened.origin}")


def _powers(arm: Arm, opened: Opened, given: Given) -> Iterator[str]:
    build, model = arm.build, arm.model
    if build.name not in given.builds:
        if build.name in opened.builds:
            yield f"run the programs packed as {build.name}"
        if build.recipe:
            yield f"make {build.name} by the recipe {build.recipe.name}"
        yield from (f"fetch {build.name} from {variant.url}" for variant in build.variants if variant.url)
        yield from (f"run {variant.path} as {build.name}" for variant in build.variants if variant.path)
    if model.url and model.name not in given.models:
        yield f"fetch {model.name} from {model.url}"
    yield from (f"set {name}={value} for {build.name}" for name, value in arm.environment)


def _missing(arm: Arm, state: JournalState, recorded: Arm) -> Iterator[str]:
    yield from _missing_build(arm.build, state, recorded.build)
    yield from _missing_model(arm.model, state, recorded.model)


def _missing_build(build: Build, state: JournalState, recorded: Build) -> Iterator[str]:
    how = f"--build {build.name}=PATH"
    said = ", ".join(filter(None, [str(build.fork), _commit(state, recorded)]))
    if build.wheel:
        if not _installed(build.wheel):
            yield f"the wheel {build.wheel} of build {build.name} ({said}): pip install {build.wheel}, or {how}"
    elif build.path:
        try:
            BenchEngine(build).locate()
        except HarnessError as error:
            yield f"build {build.name} ({said}): {error.message}: {how}"
    elif build.recipe and any(not patch.text for patch in build.recipe.patches) and present_build(build) is None:
        yield f"build {build.name} ({said}), whose patches' texts no journal has: {how}"
    elif not build.recipe and not build.variants:
        yield f"build {build.name} ({said}): {how}"


def _missing_model(model: Model, state: JournalState, recorded: Model) -> Iterator[str]:
    how = f"--model {model.name}=PATH"
    if model.card:
        try:
            load_card(model.card)
        except HarnessError as error:
            yield f"the shape card of model {model.name}: {error.message}: {how}"
    elif model.path:
        if not Path(model.path).is_file():
            yield f"model {model.name}: there is no file {model.path}: {how}"
    elif not model.url and not model.sha256:
        digest = model_digest(state, recorded)
        yield f"model {model.name} ({recorded.file_name}{f', sha256 {digest}' if digest else ''}): {how}"


def _commit(state: JournalState, build: Build) -> str:
    """The commit that was declared, or that its programs told when they ran."""
    if build.source and build.source.commit:
        return f"commit {build.source.commit}"
    for last in state.jobs.values():
        for run in last.runs:
            if last.job and run.step.arm < len(last.job.arms) and last.job.arms[run.step.arm].build.name == build.name:
                told = run.engine.get("package_version") or run.engine.get("build_commit", "")
                return f"{'version' if 'package_version' in run.engine else 'commit'} {told}" if told else ""
    return ""


def _installed(wheel: str) -> bool:
    try:
        version(wheel)
    except PackageNotFoundError:
        return False
    return True
