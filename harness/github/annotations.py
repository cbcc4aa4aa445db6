"""Annotations by commands of the runner: what failed as errors, what is undecided as warnings.

A line is a command to the runner, so an untrusted text may not begin one: line breaks and what the command itself is
written with are escaped as the runner wants it.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.domain.verdict import Verdict
from harness.domain.words import Pitfall, Status
from harness.github.night import Found, Night
from harness.reporting.clean import one_line
from harness.reporting.summary import verdict_words

MOST_OF_A_LEVEL = 10
"""GitHub shows so many errors and so many warnings of a step, and drops the rest without a word."""

_MOST_CHARACTERS = 1000
_WARNED_OF = frozenset({Status.ERROR, Status.INCONCLUSIVE, Status.NOT_JUDGED})


def commands(night: Night) -> list[str]:
    """Commands, the worst first. Where there are more than GitHub shows, the last one tells how many."""
    failed = [each for each in night.found if each.verdict.status is Status.FAIL]
    undecided = [each for each in night.found if _is_warned_of(each.verdict)]
    broken = [
        command("error", "journal not read", f"{problem.slug}: {problem.where}: {problem.message}")
        for problem in night.problems
    ]
    return [
        *_shown("error", [*broken, *(_command("error", each) for each in failed)], "failed"),
        *_shown("warning", [_command("warning", each) for each in undecided], "undecided"),
    ]


def command(level: str, title: str, text: str) -> str:
    """One command of the runner, with texts that may hold anything."""
    return f"::{level} title={_property(title)}::{_data(text)}"


def _is_warned_of(verdict: Verdict) -> bool:
    return verdict.status in _WARNED_OF or verdict.pitfall is Pitfall.GONE


def _command(level: str, found: Found) -> str:
    verdict = found.verdict
    return command(
        level, f"{verdict_words(verdict)}: {verdict.case}", f"{verdict.reason} [{verdict.node or 'no node'}]"
    )


def _shown(level: str, all_of_it: Sequence[str], what: str) -> list[str]:
    if len(all_of_it) <= MOST_OF_A_LEVEL:
        return list(all_of_it)
    more = len(all_of_it) - MOST_OF_A_LEVEL + 1
    told = command(level, f"{more} more {what}", f"{more} more {what}: the job's summary and the journal have them")
    return [*all_of_it[: MOST_OF_A_LEVEL - 1], told]


def _data(text: str) -> str:
    return one_line(text)[:_MOST_CHARACTERS].replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
