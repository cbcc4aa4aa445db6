"""What has to be done so that each regression has exactly one issue. Pure: issues and a night in, steps out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.domain.words import Status
from harness.github.issue_text import below_of, body_of, duplicate_body, gone_body, key_of, marked_key, title_of
from harness.github.night import Found, Night


class Act(StrEnum):
    """What is done, or why nothing is."""

    OPEN = "open"
    REOPEN = "reopen"
    UPDATE = "update"
    CLOSE = "close"
    DUPLICATE = "duplicate"
    KEEP = "keep"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue as it is on GitHub.

    Attributes:
        number: Its number.
        body: Its text.
        is_open: Whether it is open.
        dropped: Whether people closed it as not planned: it is not opened again.
    """

    number: int
    body: str
    is_open: bool
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    Attributes:
        act: What.
        case: The case's id; untrusted text.
        key: What its issue is found by.
        number: The issue's; 0 before it is open.
        title: Of a new issue.
        body: The new text, where there is one.
        why: Of what is left as it is.
    """

    act: Act
    case: str
    key: str
    number: int = 0
    title: str = ""
    body: str = ""
    why: str = ""


def plan_issues(night: Night, issues: Sequence[Issue], run: str, most_new: int) -> list[Step]:
    """The steps, in the order of the night: worst first.

    Args:
        night: What was measured.
        issues: Those with our label, open and closed.
        run: Markdown that names the run.
        most_new: So many are opened at once: a broken build is not to open hundreds.
    """
    known = _by_key(issues)
    steps = [*_duplicates(night, issues, known)]
    room = most_new
    for found in night.found:
        issue = known.get(key_of(found.matrix, found.verdict.case))
        step = _step(found, issue, run)
        if step is None:
            continue
        if step.act is Act.OPEN and room <= 0:
            step = _kept(found, Act.WAIT, 0, f"{most_new} new issues are enough for one run: the next one opens it")
        room -= step.act is Act.OPEN
        steps.append(step)
    return steps


def first_of(key: str, issues: Sequence[Issue]) -> Issue | None:
    """The issue that counts for a key: an open one before a closed one, then the oldest."""
    same = [issue for issue in issues if marked_key(issue.body) == key]
    return min(same, key=lambda issue: (not issue.is_open, issue.number), default=None)


def _by_key(issues: Sequence[Issue]) -> dict[str, Issue]:
    keys = dict.fromkeys(key for issue in issues if (key := marked_key(issue.body)))
    return {key: first for key in keys if (first := first_of(key, issues))}


def _duplicates(night: Night, issues: Sequence[Issue], known: Mapping[str, Issue]) -> Iterator[Step]:
    """Open issues beside the one that counts."""
    cases = {key_of(each.matrix, each.verdict.case): each.verdict.case for each in night.found}
    for issue in issues:
        key = marked_key(issue.body)
        if key and issue.is_open and known[key].number != issue.number:
            body = duplicate_body(known[key].number)
            yield Step(Act.DUPLICATE, cases.get(key, ""), key, issue.number, body=body)


def _step(found: Found, issue: Issue | None, run: str) -> Step | None:
    """What one case asks for; ``None`` where it has no issue and needs none."""
    status = found.verdict.status
    if status is Status.FAIL:
        return _of_finding(found, issue, run)
    if issue is None or not issue.is_open:
        return None
    if status is Status.PASS:
        return _changed(found, issue, Act.CLOSE, gone_body(found, run, below_of(issue.body)))
    return _kept(found, Act.KEEP, issue.number, f"{status} in this run: neither there nor gone")


def _of_finding(found: Found, issue: Issue | None, run: str) -> Step:
    if issue is None:
        case = found.verdict.case
        return Step(Act.OPEN, case, key_of(found.matrix, case), title=title_of(found), body=body_of(found, run))
    if issue.dropped:
        return _kept(found, Act.KEEP, issue.number, "somebody closed it as not planned")
    body = body_of(found, run, below_of(issue.body))
    if not issue.is_open:
        return _changed(found, issue, Act.REOPEN, body)
    if body == issue.body.replace("\r\n", "\n"):
        return _kept(found, Act.KEEP, issue.number, "it says so already")
    return _changed(found, issue, Act.UPDATE, body)


def _changed(found: Found, issue: Issue, act: Act, body: str) -> Step:
    case = found.verdict.case
    return Step(act, case, key_of(found.matrix, case), issue.number, body=body)


def _kept(found: Found, act: Act, number: int, why: str) -> Step:
    case = found.verdict.case
    return Step(act, case, key_of(found.matrix, case), number, why=why)
