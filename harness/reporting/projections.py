"""All that is made of a journal, in one place: the same files after a run and from ``report``."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from harness.reporting.state import JournalState
from harness.reporting.summary import summary_text

JUNIT_NAME = "junit.xml"
SUMMARY_NAME = "summary.txt"


def write_projections(state: JournalState, folder: Path) -> None:
    """Write ``junit.xml`` and ``summary.txt``.

    Args:
        state: The journal, read.
        folder: Where to; made if it is not there.

    Raises:
        Infrastructure: If a file cannot be written.
    """
    junit = import_module("harness.reporting.junit")  # it brings an XML library, which a collection does without
    verdicts = state.final_verdicts()
    junit.write_junit(junit.make_junit(state.name, verdicts, state.content_keys()), folder / JUNIT_NAME)
    junit.write_whole(folder / SUMMARY_NAME, summary_text(verdicts, notes(state)).encode())


def notes(state: JournalState) -> list[str]:
    """Say what of the journal could not be used, what was run again, and whether the run came to its end."""
    told = [
        f"line {problem.line}: {problem.message}" if problem.line else problem.message for problem in state.problems
    ]
    told.extend(state.joined or ())
    told.extend(state.set_aside)
    told.extend(_troubles(state))
    told.extend(f"the run broke and was resumed at {time}" for time in state.resumed)
    if state.run is None:
        told.append("the journal does not say how the run started")
    elif not state.finished:
        told.append("the run did not come to its end" if state.joined is None else "the night is not whole")
    if state.shard is not None:
        told.append(
            f"shard {state.shard.text}, {len(state.planned)} of the {len(state.shard.plan.cases)} cases of a night"
        )
    return told


def _troubles(state: JournalState) -> Iterator[str]:
    """Which jobs had to be tried again, and which waited for somebody else's measurement."""
    for job, last in state.jobs.items():
        if last.earlier:
            yield f"{job} was tried {len(last.tries)} times: {'; '.join(last.tries)}"
        if last.waiting:
            yield f"{job}: {last.waiting}"
