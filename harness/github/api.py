"""The few calls of GitHub's REST interface that issues need. The token goes into a header and nowhere else."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
import tenacity

from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.github.issue_plan import Issue
from harness.reporting.clean import one_line

PUBLIC_API = "https://api.github.com"
LONGEST_WAIT_S = 120.0
"""For a rate limit to pass. A night's run can be run again; a runner that waits for an hour costs more."""

_TIMEOUT_S = (10, 60)
_TRIES = 5
_PER_PAGE = 100
_MOST_PAGES = 100
_MOST_TOLD = 300
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")
_AT_HOME = frozenset({"localhost", "127.0.0.1", "::1"})
_MOVED = frozenset({301, 302, 307, 308})
_LIMITED = frozenset({403, 429})
_BAD_GATEWAYS_FROM = 500


class UnclearOutcome(Infrastructure):
    """Nobody knows whether GitHub did what it was asked: look before it is asked again."""


class _Again(Exception):  # noqa: N818 - no error of the user: tenacity's cue
    """Try once more, after some seconds."""

    def __init__(self, error: HarnessError, wait_s: float | None = None) -> None:
        super().__init__(error, wait_s)
        self.error = error
        self.wait_s = wait_s


class _Token(requests.auth.AuthBase):
    """As an object, so that no ``.netrc`` takes its place and no representation shows it."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request

    def hidden_in(self, text: str) -> str:
        """A text without it."""
        return text.replace(self._token, "***")


class GitHub:
    """Issues of one repository.

    Args:
        repository: ``OWNER/NAME``.
        token: Of a user, an app or a run; may write issues.
        api: Address of the interface, without a slash at its end.
        sleep: Waits some seconds.
        now: The time, in seconds since 1970.

    Raises:
        BadInput: If one of them can't be.
    """

    def __init__(
        self,
        repository: str,
        token: str,
        api: str = PUBLIC_API,
        *,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        if not _REPOSITORY.fullmatch(repository):
            hint = "give --repo OWNER/NAME, or set GITHUB_REPOSITORY"
            raise BadInput("E-github-repository", f"expected OWNER/NAME, found '{repository[:100]}'", hint=hint)
        if not token.isascii() or not token.isprintable() or not token.strip():
            hint = "set GITHUB_TOKEN; a workflow's own is github.token, with permissions: issues: write"
            raise BadInput("E-github-token", "there is no token, or it has characters that no token has", hint=hint)
        self._origin = _origin(api)
        self._repository = repository
        self._issues = f"{api.rstrip('/')}/repos/{repository}/issues"
        self._token = _Token(token.strip())
        self._session = requests.Session()
        self._session.auth = self._token
        self._session.headers.update({"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"})
        self._sleep = sleep
        self._now = now

    def issues(self, label: str) -> list[Issue]:
        """All issues with a label, open and closed; pull requests are none.

        Raises:
            BadInput: If the token or the repository is refused.
            Infrastructure: If GitHub does not answer, or limits for too long.
        """
        return [_issue(row) for row in self._pages(label) if "pull_request" not in row]

    def open_issue(self, title: str, body: str, label: str) -> int:
        """Open one; its number.

        Raises:
            UnclearOutcome: If it may be open although no answer came.
            BadInput, Infrastructure: As of `issues`.
        """
        payload = {"title": title, "body": body, "labels": [label]}
        answer = self._call("POST", self._issues, payload).json()
        if label not in _labels(answer):
            raise BadInput(
                "E-github-label",
                f"GitHub opened #{answer['number']} without the label '{label}': it would not be found again",
                hint="the token needs to write to the repository, or the label has to be set by hand",
                where=self._repository,
            )
        return int(answer["number"])

    def edit_issue(self, number: int, **fields: str) -> None:
        """Set fields of one, all at once or none: ``body``, ``state``, ``state_reason``. Errors as of `issues`."""
        self._call("PATCH", f"{self._issues}/{number}", fields)

    def _pages(self, label: str) -> Iterator[dict[str, Any]]:
        url: str | None = self._issues
        params: Mapping[str, str] | None = {
            "labels": label, "state": "all", "per_page": str(_PER_PAGE), "sort": "created", "direction": "asc",
        }  # fmt: skip
        for _ in range(_MOST_PAGES):
            answer = self._call("GET", url, params=params)
            rows = answer.json()
            if not isinstance(rows, list):
                raise Infrastructure("E-github-answer", "expected a list of issues", where=self._repository)
            yield from rows
            url, params = answer.links.get("next", {}).get("url"), None
            if url is None:
                return
            if _origin(url) != self._origin:
                raise Infrastructure("E-github-answer", "the next page is on another host", where=self._repository)
        message = f"more than {_MOST_PAGES * _PER_PAGE} issues have the label '{label}'"
        raise BadInput("E-github-too-many", message, hint="remove it from old ones", where=self._repository)

    def _call(
        self, method: str, url: str | None, payload: object = None, params: Mapping[str, str] | None = None
    ) -> requests.Response:
        """One call, again where that can help and can't do harm."""
        tries = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Again),
            stop=tenacity.stop_after_attempt(_TRIES),
            wait=_wait,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return tries(self._once, method, url or self._issues, payload, params)
        except _Again as last:
            raise last.error from None

    def _once(self, method: str, url: str, payload: object, params: Mapping[str, str] | None) -> requests.Response:
        try:
            answer = self._session.request(
                method, url, json=payload, params=params, timeout=_TIMEOUT_S, allow_redirects=False
            )
        except requests.RequestException as error:
            raise self._unanswered(method, type(error).__name__) from None  # its text may hold the request
        self._refuse(method, answer)
        try:
            answer.json()
        except ValueError:
            raise self._unanswered(method, "an answer that is no JSON") from None
        return answer

    def _refuse(self, method: str, answer: requests.Response) -> None:
        """Raise what an answer means that is not a good one."""
        code = answer.status_code
        if code in _LIMITED and (wait_s := self._limit(answer)) is not None:
            raise self._limited(wait_s)
        if code >= _BAD_GATEWAYS_FROM:
            raise self._unanswered(method, f"HTTP {code}")
        if code in _MOVED:
            raise self._bad("E-github-moved", "the repository has another name now", "give the new one as --repo")
        if code >= 400:  # noqa: PLR2004 - where HTTP's errors begin
            slug, hint = _MEANINGS.get(code, ("E-github-refused", "see what GitHub says"))
            raise self._bad(slug, f"GitHub answers {code}: {self._said(answer)}", hint)

    def _unanswered(self, method: str, what: str) -> HarnessError | _Again:
        if method == "POST":  # it may have been done
            hint = "run it again later: what is open already is found"
            return UnclearOutcome("E-github-unclear", f"no answer: {what}", hint=hint, where=self._repository)
        hint = "run it again later: what is done already is not done twice"
        return _Again(Infrastructure("E-github-down", f"no answer: {what}", hint=hint, where=self._repository))

    def _limit(self, answer: requests.Response) -> float | None:
        """Seconds until GitHub wants to be asked again; ``None`` where the answer is about permissions."""
        after = answer.headers.get("Retry-After", "")
        if after.isdecimal():
            return float(after)
        if answer.headers.get("X-RateLimit-Remaining") == "0":
            reset = answer.headers.get("X-RateLimit-Reset", "")
            return max(1.0, float(reset) - self._now()) if reset.isdecimal() else 60.0
        return 60.0 if answer.status_code == 429 or "rate limit" in answer.text.lower() else None  # noqa: PLR2004

    def _limited(self, wait_s: float) -> HarnessError | _Again:
        error = Infrastructure(
            "E-github-rate-limit",
            f"GitHub wants no more calls for {wait_s:.0f} s",
            hint="run it again later: what is done already is not done twice",
            where=self._repository,
        )
        return error if wait_s > LONGEST_WAIT_S else _Again(error, wait_s)

    def _bad(self, slug: str, message: str, hint: str) -> BadInput:
        return BadInput(slug, message, hint=hint, where=self._repository)

    def _said(self, answer: requests.Response) -> str:
        """What GitHub says, on one line; it is not asked to repeat the token, and if it did, we would not."""
        try:
            said = answer.json()
            text = f"{said.get('message', '')} {said.get('errors', '')}" if isinstance(said, dict) else answer.text
        except ValueError:
            text = answer.text
        return one_line(self._token.hidden_in(text))[:_MOST_TOLD]


_MEANINGS = {
    401: ("E-github-token", "the token is wrong or has expired: set GITHUB_TOKEN anew"),
    403: ("E-github-forbidden", "the token may not do that: in a workflow, permissions: issues: write"),
    404: ("E-github-not-found", "no such repository, or the token may not see it"),
    410: ("E-github-no-issues", "issues are switched off in the repository's settings"),
    422: ("E-github-refused", "GitHub does not take a field; a label needs a token that may write"),
}


def _wait(state: tenacity.RetryCallState) -> float:
    """As long as GitHub says, else 1, 2, 4, 8 seconds."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, _Again) and error.wait_s is not None:
        return error.wait_s
    return float(2 ** (state.attempt_number - 1))


def _origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port.

    Raises:
        BadInput: If a token sent there could be read on its way.
    """
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _AT_HOME):
        return (parts.scheme, parts.hostname or "", parts.port)
    message = f"expected https://..., found '{one_line(url)[:100]}'"
    raise BadInput("E-github-api", message, hint="a token is sent there", where="GITHUB_API_URL")


def _issue(row: Mapping[str, Any]) -> Issue:
    return Issue(
        number=int(row["number"]),
        body=str(row.get("body") or ""),
        is_open=row.get("state") == "open",
        dropped=row.get("state") == "closed" and row.get("state_reason") == "not_planned",
    )


def _labels(answer: Mapping[str, Any]) -> list[str]:
    return [label["name"] if isinstance(label, dict) else str(label) for label in answer.get("labels") or []]
