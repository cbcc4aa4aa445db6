"""The last line that an engine wrote before it failed: it mostly says why, and the whole log is elsewhere."""

from __future__ import annotations

from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.reporting.clean import one_line

_MOST_CHARACTERS = 160


def last_words(verdict: Verdict) -> str:
    """The last line of a failure's log in a sentence, cleaned and cut; empty where the reason has it or there is none.

    Args:
        verdict: Any; a difference of outputs, which has a scope, is no log.
    """
    if verdict.scope or verdict.status not in (Status.FAIL, Status.ERROR):
        return ""
    lines = [line for line in map(one_line, verdict.detail.splitlines()) if line]
    if not lines or lines[-1] in one_line(verdict.reason):
        return ""
    last = lines[-1]
    return f"its log ends: {last if len(last) <= _MOST_CHARACTERS else f'{last[: _MOST_CHARACTERS - 3]}...'}"
