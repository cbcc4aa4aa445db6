"""The engine of a wheel: its library in a child process of ours, for both forks."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.domain.build import Build
from harness.domain.errors import BadInput
from harness.domain.failure import Failure, FailureKind
from harness.domain.workload import Metric, PromptProfile, Workload
from harness.engines.bench_argv import threads_of
from harness.engines.child import child_command
from harness.engines.echo import not_echoed
from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded.layouts import DISTRIBUTIONS, find_layout, install_command
from harness.engines.embedded_events import Events, child_failure, identity, load_seconds, read_events
from harness.engines.engine import Command, Exit, Order, Report, Row
from harness.engines.flags import embedded_request_flags
from harness.engines.load_log import told_load
from harness.engines.output_lines import asked_outputs, outputs_request
from harness.engines.parse import first_failure
from harness.engines.profile_rows import profile_rows, wants
from harness.engines.rows import checked_row, workload_of

_CHILD = "harness.engines.embedded"
_SEED = 42
"""Of the random tokens that are timed: one for all arms, so that all see the same tokens."""


class EmbeddedEngine:
    """Measures with the library of a verified wheel.

    Args:
        build: A build given by wheel.
    """

    def __init__(self, build: Build) -> None:
        self._build = build

    def locate(self) -> Sequence[Path]:
        """The shared libraries that the wheel installed, found without running any of its code.

        Raises:
            BadInput: ``E-wheel-missing``, ``E-wheel-unverified``.
        """
        fork, where = self._build.fork, f"builds.{self._build.name}"
        name = DISTRIBUTIONS[fork]
        try:
            wheel = importlib.metadata.distribution(name)
            find_layout(fork, wheel.version)
        except importlib.metadata.PackageNotFoundError:
            hint = f"pip install 'moe-harness[local]', or {install_command(fork)}"
            raise BadInput("E-wheel-missing", f"{name} is not installed", hint=hint, where=where) from None
        except EmbeddedError as problem:
            raise BadInput(problem.slug, problem.message, where=where) from None
        found = _shared_libraries(wheel)
        if not found:
            hint = f"reinstall it: {install_command(fork)}"
            raise BadInput("E-wheel-missing", f"{name} {wheel.version} has no library", hint=hint, where=where)
        return found

    def opaque(self) -> str:
        """Nothing: the wheel's libraries are what runs."""
        return ""

    def refusal(self, order: Order) -> str:
        """Empty unless nothing is asked, or two first requests of one process: the child does everything else."""
        if not order.workloads and order.outputs is None:
            return "there is neither a workload to time nor a prompt to answer"
        cold = [load for load in order.of_profiles if load.metric is Metric.COLD]
        if len(cold) > 1:
            return f"{' and '.join(load.name for load in cold)}: only one request is the first of a process"
        empty = next((load for load in order.workloads if load.tokens is not None and load.tokens <= 0), None)
        return "a workload has no tokens to time" if empty else ""

    def command(self, order: Order) -> Command:
        """One child, told on standard input what to do."""
        return child_command(_CHILD, _request(order), dict(order.arm.environment))

    def read(self, order: Order, ended: Exit) -> Report:
        """Rows, outputs, self-description and failure of one child; never raises."""
        events = read_events(ended.stdout)
        rows, problems = _sort_rows(order, events)
        answered = profile_rows(order, events.answers)
        rows.update(answered.rows)
        problems += answered.problems
        kept = tuple(rows[load.name] for load in order.workloads if load.name in rows)
        outputs, misshapen = asked_outputs(order.outputs, events.outputs)
        problems += [*misshapen, *_missing(order, events)]
        return Report(
            rows=kept,
            outputs=outputs,
            load_s=load_seconds(events),
            engine={**_engine(order, events), **answered.prompts},
            failure=first_failure(child_failure(ended, events), problems, order.workloads, kept, ended.stderr),
            load=told_load(order, ended),
        )

    def asking_why(self, order: Order, ended: Exit) -> Command | None:  # noqa: ARG002 - the protocol's signature
        """Nothing to ask: the child always says why."""
        return None


def _shared_libraries(wheel: importlib.metadata.Distribution) -> tuple[Path, ...]:
    paths = {Path(str(wheel.locate_file(file))).resolve() for file in wheel.files or () if ".so" in file.name}
    return tuple(sorted(path for path in paths if path.is_file()))


def _request(order: Order) -> dict[str, Any]:
    """The request, every flag explicit."""
    return {
        "fork": str(order.arm.build.fork),
        "model": str(order.model),
        "threads": threads_of(order),
        "flags": embedded_request_flags(order.arm.flags),
        "workloads": [_workload(load) for load in order.plain],
        "profiles": [profile_request(order, profile) for profile in order.profiles],
        "repetitions": order.repetitions,
        "seed": _SEED,
        "outputs": outputs_request(order.outputs) if order.outputs else None,
        **({"slowdown": order.slowdown} if order.slowdown else {}),
        **({"logs": True} if order.logs else {}),
    }


def _workload(load: Workload) -> dict[str, Any]:
    return {"name": load.name, "n_prompt": load.n_prompt, "n_gen": load.n_gen, "n_depth": load.n_depth}


def profile_request(order: Order, profile: PromptProfile) -> dict[str, Any]:
    """A profile as children take it."""
    cold, warm = wants(order, profile)
    return {
        "name": profile.name,
        "text": profile.text,
        "n_predict": profile.n_predict,
        "prompt_tokens": profile.prompt_tokens,
        "cold": cold,
        "warm": warm,
    }


def _sort_rows(order: Order, events: Events) -> tuple[dict[str, Row], list[Failure]]:
    """Right rows by workload name, and what is wrong with the others."""
    asked = {load.name: load for load in order.plain}
    rows: dict[str, Row] = {}
    problems: list[Failure] = []
    for name, row in events.rows:
        load = asked.get(name)
        if load is None or name in rows or workload_of(row) != load:
            problems.append(_unparsable("E-unexpected-row", f"a row {name!r} that was not asked for, or a second one"))
            continue
        outcome = checked_row(order, load, row)
        if isinstance(outcome, Row):
            rows[name] = outcome
        else:
            problems.append(outcome)
    return rows, problems


def _missing(order: Order, events: Events) -> list[Failure]:
    """Rows or the last line that did not come."""
    have = {name for name, _ in events.rows}
    rows = [load.name for load in order.plain if load.name not in have]
    problems = [_unparsable("E-rows-missing", f"rows missing: {', '.join(rows)}")] if rows else []
    if not events.done or events.unreadable:
        said = (
            f"{events.unreadable} unreadable line(s)" if events.unreadable else "the child did not say that it was done"
        )
        problems.append(_unparsable("E-incomplete-output", said))
    return problems


def _engine(order: Order, events: Events) -> dict[str, str]:
    silent = ",".join(not_echoed(order, events.rows[0][1])) if events.rows else ""
    return {**identity(events), **({"not_echoed": silent} if silent else {})}


def _unparsable(slug: str, message: str) -> Failure:
    return Failure(FailureKind.UNPARSABLE, message, slug)


def wheels() -> Mapping[str, str]:
    """Known wheels by distribution name, with the fork that each is of."""
    return {name: fork for fork, name in DISTRIBUTIONS.items()}
