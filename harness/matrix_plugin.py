"""The hooks and fixtures of a pytest run that asks for the matrix; ``pytest_plugin`` registers them.

pytest collects and filters; jobs run; items are asserted here as their jobs end. Nothing is started when no selected
item needs it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness import garbage
from harness.domain.errors import BadInput, HarnessError
from harness.domain.sandboxing import Sandboxing
from harness.domain.verdict import Verdict
from harness.domain.words import Kind, Pitfall, Status
from harness.reporting.clean import clean
from harness.running.forecasts import forecast_plan
from harness.running.interrupts import Interrupts
from harness.running.matrix_run import MatrixRun
from harness.running.options import RunOptions
from harness.running.session import MatrixSession, in_ci
from harness.settings import check_settings

if TYPE_CHECKING:
    from harness.running.live import LiveLine

_MODULE = Path(__file__).parent / "cases" / "test_matrix.py"
_VENV = Path(sys.prefix) if sys.prefix != sys.base_prefix and _MODULE.is_relative_to(sys.prefix) else None
"""The virtual environment that holds this package, if one does."""
_NODE_ID = "moe"
_TABLE_WIDTH = 120
_SESSION = pytest.StashKey[MatrixSession]()
_VERDICT = pytest.StashKey[Verdict]()
_INTERRUPTS = pytest.StashKey[Interrupts]()
_TROUBLE = pytest.StashKey[list[str]]()
"""What ended the run or kept its reports from being made."""
_SKIPPED = (Status.INCONCLUSIVE, Status.UNSUPPORTED, Status.NOT_APPLICABLE, Status.NOT_JUDGED)


class PitfallGone(UserWarning):
    """A documented trap does not show on this build: the advice is out of date."""


def pytest_configure(config: pytest.Config) -> None:
    """Plan the matrix, so that what is wrong with it is said before all else."""
    inputs = getattr(config, "workerinput", {})
    options = RunOptions(
        matrix=config.option.matrix,
        executor=config.option.moe_executor,
        ray_address=inputs.get("moe_ray_address") or config.option.ray_address,
        select=tuple(config.option.moe_select),
        reports=Path(inputs.get("moe_reports") or config.invocation_params.dir / config.option.moe_reports),
        references=_given_path(config, config.option.moe_references),
        resume=_given_path(config, config.option.moe_resume),
        gate=_given_path(config, config.option.moe_gate),
        changed=_given_path(config, config.option.moe_changed),
        shard=config.option.moe_shard,
        sandboxing=Sandboxing(config.option.moe_sandbox),
    )
    try:
        check_settings()
        config.stash[_SESSION] = MatrixSession(options, worker=bool(inputs), decided=inputs.get("moe_decided"))
    except HarnessError as error:
        raise _usage_error(error) from error
    config.stash[_TROUBLE] = []
    config.stash[_INTERRUPTS] = Interrupts()
    _add_module(config)


def _given_path(config: pytest.Config, chosen: str | None) -> Path | None:
    return config.invocation_params.dir / chosen if chosen else None


def _usage_error(error: HarnessError) -> pytest.UsageError:
    return pytest.UsageError(clean(str(error)))


def _add_module(config: pytest.Config) -> None:
    """Collect the packaged module too, unless tests were named."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    if not named or config.option.matrix:
        config.args.append(str(_MODULE))


def pytest_report_header(config: pytest.Config) -> str | None:
    """What the whole matrix can decide, before anything runs."""
    matrix = config.stash.get(_SESSION, None)
    if matrix is None or matrix.worker:
        return None
    name = matrix.plan.matrix_name
    lines = [forecast_plan(matrix.plan, matrix.known).headline(), matrix.broken.headline if matrix.broken else ""]
    lines += [matrix.sharded.headline] if matrix.sharded else []
    lines += [matrix.chosen.headline] if matrix.chosen else []
    return "\n".join(f"matrix {name}: {line}" for line in lines if line) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The items of a large matrix all stay."""
    with garbage.what_is_made_stays():
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Reach the packaged module also in a virtual environment inside the project, and nothing else in there."""
    if not _VENV or not collection_path.is_relative_to(_VENV):
        return None
    return collection_path != _MODULE and collection_path not in _MODULE.parents


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A planned matrix of which nothing was collected is no quiet night; ``--lf`` may skip it on purpose."""
    planned = config.stash[_SESSION].plan.cases
    if config.stash[_SESSION].nothing_chosen:
        items[:] = [item for item in items if not _is_case(item)]  # pytest makes one of no parameters
    expected = planned and str(_MODULE) in config.args and not getattr(config.option, "lf", False)
    if expected and not any(_is_case(item) for item in items):
        raise pytest.UsageError(
            f"E-nothing-collected: {len(planned)} cases are planned, pytest found none in {_MODULE}"
        )


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Name the packaged module where it lies outside the project: pytest has no name for it then."""
    if module_path != _MODULE or module_path.is_relative_to(parent.config.rootpath):
        return None
    return pytest.Module.from_parent(parent, path=module_path, nodeid=_NODE_ID)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize by case id: a light key, not the case."""
    session = metafunc.config.stash.get(_SESSION, None)
    if session is None or "moe_case" not in metafunc.fixturenames:
        return
    marks = {kind: (pytest.mark.moe, getattr(pytest.mark, str(kind))) for kind in Kind}
    params = [pytest.param(case.id, id=case.id, marks=marks[case.case.kind]) for case in session.plan.cases]
    metafunc.parametrize("moe_case", params)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run what is not of the matrix first, then cases in the order in which their jobs end."""
    matrix = session.config.stash.get(_SESSION, None)
    if matrix is None or session.config.option.collectonly or _is_xdist_controller(session.config):
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        return None
    items = {_case_of(item): item for item in session.items if _is_case(item)}
    if not items:
        return None
    try:
        run = matrix.begin(items.keys())
        if matrix.worker:
            return None
        session.config.stash[_INTERRUPTS].end_on_term()
        _run_other_items(session, items)
        with _live_line(session.config, len(items), run.process_starts) as live:
            _run_cases(session, run, items, live)
    except KeyboardInterrupt:
        session.config.stash[_INTERRUPTS].ignore()
        raise
    except BadInput as error:
        raise _usage_error(error) from error
    except HarnessError as error:
        _note_trouble(session.config, error)
    return True


def _note_trouble(config: pytest.Config, error: HarnessError) -> None:
    """The run can't go on, or its reports can't be made: the session ends by itself, and shows what there is."""
    config.stash[_TROUBLE].append(clean(str(error)))


def _is_case(item: pytest.Item) -> bool:
    return "moe_case" in getattr(item, "fixturenames", ())


def _case_of(item: pytest.Item) -> str:
    return str(item.callspec.params["moe_case"])  # type: ignore[attr-defined]  # functions have it, items in general not


def _run_other_items(session: pytest.Session, cases: dict[str, pytest.Item]) -> None:
    others = [item for item in session.items if not _is_case(item)]
    for item, following in pairwise([*others, next(iter(cases.values()))]):
        _run_item(session, item, following)


def _run_cases(session: pytest.Session, run: MatrixRun, items: dict[str, pytest.Item], live: LiveLine) -> None:
    left = dict(items)
    for case in run.run_all(live.take):
        item = left.pop(case)
        live.case_decided()
        _run_item(session, item, next(iter(left.values()), None))


def _run_item(session: pytest.Session, item: pytest.Item, following: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def _live_line(config: pytest.Config, cases: int, processes: int) -> LiveLine:
    make: type[LiveLine] = import_module("harness.running.live").LiveLine  # a collection draws nothing
    if not config.pluginmanager.has_plugin("terminalreporter"):
        return make(sys.stdout, cases=cases, processes=processes, enabled=False)
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    told = config.option.verbose >= 0
    watched = not in_ci() and told and not config.option.usepdb
    stream = config.get_terminal_writer()._file  # noqa: SLF001 - no public way

    def say(text: str) -> None:
        reporter.ensure_newline()
        reporter.write_line(clean(f"matrix: {text}"))

    return make(stream, cases=cases, processes=processes, enabled=watched, say=say if told else None)


@pytest.fixture
def verdict(request: pytest.FixtureRequest, moe_case: str) -> Verdict:
    """The verdict on the case. Infrastructure trouble errs here, what is undecided or impossible is skipped here."""
    found = _verdict_or_trouble(request.config.stash[_SESSION], moe_case)
    if isinstance(found, HarnessError):
        pytest.fail(clean(str(found)), pytrace=False)
    request.node.stash[_VERDICT] = found
    request.node.user_properties.extend([("moe_case", found.case), ("moe_status", str(found.status))])
    if found.status is Status.ERROR:
        pytest.fail("\n".join(filter(None, [found.reason, found.detail])), pytrace=False)
    if found.status in _SKIPPED:
        pytest.skip(found.reason)
    if found.pitfall is Pitfall.GONE:
        _warn(request.node, found.reason)
    return found


def _verdict_or_trouble(matrix: MatrixSession, case: str) -> Verdict | HarnessError:
    """The error as a value: raised inside an ``except``, pytest would print the whole chain."""
    try:
        return matrix.verdict(case)
    except HarnessError as error:
        return error


def _warn(item: pytest.Item, text: str) -> None:
    """Show a warning in pytest's summary whatever the filters: ``error`` must not turn a pass into a failure."""
    message = warnings.WarningMessage(PitfallGone(text), PitfallGone, str(_MODULE), 1)
    item.config.hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": message, "when": "runtest", "nodeid": item.nodeid, "location": None}
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A case's duration is what its job measured, not how long its item waited."""
    report = yield
    found = item.stash.get(_VERDICT, None)
    if found is not None and report.when in ("setup", "call"):
        last_word = report.when == "call" or not report.passed
        report.duration = found.seconds if last_word else 0.0
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End every process, then make the reports from the journal."""
    matrix = session.config.stash.get(_SESSION, None)
    if matrix is None:
        return
    session.config.stash[_INTERRUPTS].ignore()
    try:
        if matrix.nothing_chosen and not matrix.worker and not session.config.option.collectonly:
            _say_nothing_is_measured(session, matrix)
        matrix.close()
        if matrix.has_results:
            writing = import_module("harness.pages.writing")  # a collection writes nothing
            writing.write_reports(matrix.finish(), matrix.reports)
    except HarnessError as error:
        _note_trouble(session.config, error)
    if session.config.stash[_TROUBLE]:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def _say_nothing_is_measured(session: pytest.Session, matrix: MatrixSession) -> None:
    """In the journal; that no changed path asks for anything, or other shards have all, is no failure to collect."""
    matrix.begin_nothing()
    unneeded = matrix.sharded is not None or (matrix.chosen is not None and not matrix.chosen.choice.needed)
    if unneeded and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The closing table, from the journal."""
    matrix = config.stash.get(_SESSION, None)
    if matrix is None or not matrix.has_results:
        return
    for trouble in config.stash[_TROUBLE]:
        terminalreporter.write_line(f"ERROR: {trouble}", red=True)
    try:
        state = matrix.end()
    except HarnessError as error:
        terminalreporter.write_line(f"ERROR: {clean(str(error))}", red=True)
        return
    width = max(_TABLE_WIDTH, terminalreporter._tw.fullwidth)  # noqa: SLF001 - no public way
    terminalreporter.section(f"matrix {state.name}")
    shown = () if config.option.tbstyle == "no" else (Status.FAIL, Status.ERROR)  # among pytest's failures
    summary, projections = import_module("harness.reporting.summary"), import_module("harness.reporting.projections")
    terminalreporter.write(summary.summary_text(state.final_verdicts(), projections.notes(state), width, shown))
    terminalreporter.write_line(f"reports: {matrix.reports}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Whatever happened, leave no process behind."""
    matrix = config.stash.get(_SESSION, None)
    if matrix is not None:
        with suppress(HarnessError):  # said already
            matrix.close()
        matrix.leave()
        config.stash[_INTERRUPTS].restore()


# ---- xdist -----------------------------------------------------------------------------------------------------------


def _is_xdist_controller(config: pytest.Config) -> bool:
    return bool(getattr(config.option, "numprocesses", None)) and not hasattr(config, "workerinput")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[Any]) -> None:
    """Start what the workers will join, before the first of them is spawned: they inherit its environment."""
    del specs
    matrix = config.stash.get(_SESSION, None)
    if matrix is not None:
        try:
            config.stash[_ADDRESS] = matrix.share_executor()
        except HarnessError as error:
            raise _usage_error(error) from error


_ADDRESS = pytest.StashKey[str]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where the executor and the reports are."""
    matrix = node.config.stash.get(_SESSION, None)
    if matrix is not None:
        node.workerinput["moe_ray_address"] = node.config.stash.get(_ADDRESS, "")
        node.workerinput["moe_reports"] = str(matrix.reports)
        node.workerinput["moe_decided"] = {case: list(each) for case, each in matrix.decided.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the cases out by job."""
    matrix = config.stash.get(_SESSION, None)
    if matrix is None or config.option.dist != "loadgroup":
        return None
    scheduler = import_module("harness.running.xdist_scheduler")  # only where xdist is at work
    return scheduler.JobScheduling(config, log, matrix.job_groups())
