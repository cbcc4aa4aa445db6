"""One issue for each regression, against a fake of GitHub's interface."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fake_github import LABEL, TOKEN, FakeGitHub, Fault
from github_support import CASE, failed, journal, night, passed

from harness.cli.github import github, run_text
from harness.cli.main import cli
from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.domain.words import Status
from harness.github.api import GitHub
from harness.github.issue_plan import Act, Step
from harness.github.issues import update_issues
from harness.github.known_before import with_history
from harness.github.night import Night
from harness.history.history import History
from harness.history.series import BuildRange, BuildRef, Evidence, Regression

REPO = "someone/project"
GOOD = passed()
BAD = failed()


def client(hub: FakeGitHub, waits: list[float] | None = None, token: str = TOKEN) -> GitHub:
    return GitHub(REPO, token, hub.api, sleep=(waits if waits is not None else []).append, now=lambda: 1000.0)


def update(hub: FakeGitHub, what: Night, most_new: int = 10, waits: list[float] | None = None) -> list[str]:
    told: list[Step] = []
    done = update_issues(what, client(hub, waits), label=LABEL, run="run 7", most_new=most_new, tell=told.append)
    assert done == told
    return [f"{step.act} {step.number}" for step in done]


def test_a_regression_gets_one_issue_however_often_it_is_seen(hub: FakeGitHub) -> None:
    assert update(hub, night(BAD)) == ["open 1"]
    assert update(hub, night(BAD)) == ["keep 1"]
    assert update(hub, night(failed(ratio=0.7))) == ["update 1"]
    assert len(hub.issues) == 1
    assert "-30.0 %" in hub.by_number(1)["body"]
    assert hub.by_number(1)["labels"] == [{"name": LABEL}]


def test_what_is_gone_is_closed_and_what_comes_back_is_opened_again(hub: FakeGitHub) -> None:
    update(hub, night(BAD))
    assert update(hub, night(GOOD)) == ["close 1"]
    issue = hub.by_number(1)
    assert (issue["state"], issue["state_reason"]) == ("closed", "completed")
    assert "**Gone**" in issue["body"]
    assert update(hub, night(GOOD)) == []
    assert update(hub, night(BAD)) == ["reopen 1"]
    assert issue["state"] == "open"
    assert "**Gone**" not in issue["body"]


def test_what_nobody_could_decide_neither_opens_nor_closes(hub: FakeGitHub) -> None:
    undecided = [replace(GOOD, status=status) for status in (Status.INCONCLUSIVE, Status.ERROR, Status.NOT_JUDGED)]
    assert [update(hub, night(each)) for each in undecided] == [[], [], []]
    update(hub, night(BAD))
    assert [update(hub, night(each)) for each in undecided] == [["keep 1"]] * 3
    assert update(hub, night(passed("another"))) == [], "a case that was not asked for says nothing"
    assert hub.by_number(1)["state"] == "open"


def test_who_closes_as_not_planned_is_left_in_peace(hub: FakeGitHub) -> None:
    update(hub, night(BAD))
    hub.by_number(1).update(state="closed", state_reason="not_planned")
    assert update(hub, night(BAD)) == ["keep 1"]


def test_what_people_write_below_stays(hub: FakeGitHub) -> None:
    update(hub, night(BAD))
    hub.by_number(1)["body"] = hub.by_number(1)["body"].replace("\n", "\r\n") + "\r\nbisected to abc\r\n"
    assert update(hub, night(failed(ratio=0.7))) == ["update 1"]
    update(hub, night(GOOD))
    assert hub.by_number(1)["body"].endswith("\n\nbisected to abc\n")


def test_the_same_case_of_two_matrices_has_two_issues(hub: FakeGitHub) -> None:
    two = Night((*night(BAD).found, *night(BAD, matrix="other").found))
    assert update(hub, two) == ["open 1", "open 2"]


def test_a_broken_build_does_not_open_hundreds(hub: FakeGitHub) -> None:
    many = night(*(failed(f"throughput/m/a..b/pp{index}@any") for index in range(5)))
    assert update(hub, many, most_new=2) == ["open 1", "open 2", "wait 0", "wait 0", "wait 0"]
    assert update(hub, many, most_new=2)[2:4] == ["open 3", "open 4"]


def test_all_pages_are_read(hub: FakeGitHub) -> None:
    hub.page_size = 2
    many = night(*(failed(f"throughput/m/a..b/pp{index}@any") for index in range(5)))
    update(hub, many)
    hub.add(pull_request={}, labels=[{"name": LABEL}], body=hub.by_number(1)["body"])
    assert update(hub, many) == [f"keep {number}" for number in range(1, 6)]


def test_two_runs_at_once_leave_one_issue(hub: FakeGitHub) -> None:
    """Both have looked before either opens: the later one gives way."""
    hub.meeting = threading.Barrier(2)
    runs = [threading.Thread(target=update, args=(hub, night(BAD))) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(20)
    assert [issue["state"] for issue in hub.issues] == ["open", "closed"]
    assert hub.by_number(2)["body"].startswith("Duplicate of #1")
    assert update(hub, night(BAD)) == ["keep 1"]


def test_a_duplicate_of_a_run_that_died_is_closed_by_the_next(hub: FakeGitHub) -> None:
    update(hub, night(BAD))
    hub.add(labels=[{"name": LABEL}], body=hub.by_number(1)["body"], title="again")
    assert update(hub, night(BAD)) == ["duplicate 2", "keep 1"]


def test_an_issue_that_only_looks_like_ours_is_not_taken(hub: FakeGitHub) -> None:
    """Anybody can copy the mark; the label needs who may write."""
    update(hub, night(BAD))
    copied = hub.issues.pop()["body"]
    hub.add(labels=[], body=copied)
    assert update(hub, night(BAD)) == ["open 2"]


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_fault_that_passes_is_tried_again(hub: FakeGitHub, method: str) -> None:
    update(hub, night(BAD))
    waits: list[float] = []
    hub.faults[method] = [Fault(502), Fault(500, "<html>"), Fault(200, "no json")]
    assert update(hub, night(failed(ratio=0.7)), waits=waits) == ["update 1"]
    assert waits == [1.0, 2.0, 4.0]


def test_an_issue_whose_answer_is_lost_is_not_opened_twice(hub: FakeGitHub) -> None:
    hub.faults["POST"] = [Fault(502, done=True)]
    assert update(hub, night(BAD)) == ["open 1"]
    hub.faults["POST"] = [Fault(502), Fault(504)]
    assert update(hub, night(failed("throughput/m/a..b/pp1@any"))) == ["open 2"]
    assert len(hub.issues) == 2


def test_what_github_limits_is_waited_for(hub: FakeGitHub) -> None:
    waits: list[float] = []
    hub.faults["POST"] = [Fault(403, "{}", {"Retry-After": "7"}), Fault(429, "{}", {"Retry-After": "8"})]
    hub.faults["GET"] = [Fault(403, "{}", {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1009"})]
    assert update(hub, night(BAD), waits=waits) == ["open 1"]
    assert waits == [9.0, 7.0, 8.0]
    hub.faults["GET"] = [Fault(403, "{}", {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4600"})]
    with pytest.raises(Infrastructure, match=r"E-github-rate-limit.*3600 s.*run it again later"):
        update(hub, night(BAD))


@pytest.mark.parametrize(
    ("status", "slug"),
    [
        (401, "E-github-token"), (403, "E-github-forbidden"), (404, "E-github-not-found"), (410, "E-github-no-issues"),
        (422, "E-github-refused"), (301, "E-github-moved"), (418, "E-github-refused"),
    ],
)  # fmt: skip
def test_a_refusal_is_said_and_not_repeated(hub: FakeGitHub, status: int, slug: str) -> None:
    hub.faults["POST"] = [Fault(status, json.dumps({"message": f"no, {TOKEN}\x1b[31m", "errors": ["title"]}))]
    with pytest.raises(BadInput) as refused:
        update(hub, night(BAD))
    assert refused.value.slug == slug
    assert TOKEN not in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert hub.calls("POST") == 1


def test_what_was_done_before_a_fault_is_told(hub: FakeGitHub) -> None:
    hub.faults["POST"] = [
        Fault(201, done=True, body='{"number": 1, "labels": [{"name": "moe-regression"}]}'),
        Fault(403),
    ]
    told: list[Step] = []
    two = night(BAD, failed("throughput/m/a..b/pp1@any"))
    with pytest.raises(BadInput):
        update_issues(two, client(hub), label=LABEL, run="", most_new=10, tell=told.append)
    assert [(step.act, step.number) for step in told] == [(Act.OPEN, 1)]


def test_github_that_stays_away_is_infrastructure(hub: FakeGitHub) -> None:
    hub.faults["GET"] = [Fault(503)] * 5
    with pytest.raises(Infrastructure, match=r"E-github-down: someone/project: no answer: HTTP 503"):
        update(hub, night(BAD))
    away = GitHub(REPO, TOKEN, "http://127.0.0.1:9", sleep=lambda _: None)
    with pytest.raises(Infrastructure, match="no answer: ConnectionError"):
        away.issues(LABEL)


def test_a_token_that_sets_no_label_is_noticed(hub: FakeGitHub) -> None:
    hub.may_label = False
    with pytest.raises(BadInput, match=r"E-github-label.*#1 without the label"):
        update(hub, night(BAD))


def test_pages_of_another_host_are_not_asked(hub: FakeGitHub) -> None:
    """The token would go along."""
    hub.faults["GET"] = [Fault(200, "[]", {"Link": '<https://evil.example/x>; rel="next"'})]
    with pytest.raises(Infrastructure, match="another host"):
        update(hub, night(BAD))


@pytest.mark.parametrize(
    ("repository", "token", "api", "slug"),
    [
        ("no-slash", TOKEN, "", "E-github-repository"),
        ("a/b/../c", TOKEN, "", "E-github-repository"),
        (REPO, "", "", "E-github-token"),
        (REPO, "x\ny", "", "E-github-token"),
        (REPO, TOKEN, "http://example.com", "E-github-api"),
        (REPO, TOKEN, "ftp://127.0.0.1", "E-github-api"),
    ],
)
def test_nothing_is_sent_where_it_should_not_go(repository: str, token: str, api: str, slug: str) -> None:
    with pytest.raises(HarnessError) as wrong:
        GitHub(repository, token, api or "https://api.github.com")
    assert wrong.value.slug == slug


def invoke(hub: FakeGitHub, *arguments: str, token: str = TOKEN) -> Result:
    environment = {
        "GITHUB_TOKEN": token, "GITHUB_REPOSITORY": REPO, "GITHUB_API_URL": hub.api,
        "GITHUB_SERVER_URL": "https://github.com", "GITHUB_RUN_ID": "77",
    }  # fmt: skip
    return CliRunner(env=environment).invoke(github, ["issues", *arguments])


def test_the_command_opens_and_closes_from_journals(hub: FakeGitHub, tmp_path: Path) -> None:
    bad, good = journal(tmp_path / "bad", 80), journal(tmp_path / "good", 100)
    first = invoke(hub, str(bad))
    assert first.exit_code == 0, first.output
    assert first.output.startswith("open      #1")
    body = hub.by_number(1)["body"]
    assert "[run 77](https://github.com/someone/project/actions/runs/77)" in body
    assert "**fail regressed**" in body
    dry = invoke(hub, str(good), "--dry-run", "--format", "json")
    assert [(row["act"], row["number"]) for row in json.loads(dry.output)] == [("close", 1)]
    assert hub.by_number(1)["state"] == "open"
    assert invoke(hub, str(good.parent)).output.startswith("close     #1")
    assert invoke(hub, str(good)).output == "no regression, and no issue about one\n"


def test_a_dry_run_needs_no_token(hub: FakeGitHub, tmp_path: Path) -> None:
    done = invoke(hub, str(journal(tmp_path, 80)), "--dry-run", token="")
    assert done.exit_code == 0
    assert done.output.startswith("open   ")
    assert hub.seen == []


def test_a_journal_that_cannot_be_read_loses_nothing_of_the_others(hub: FakeGitHub, tmp_path: Path) -> None:
    bad = journal(tmp_path / "bad", 80)
    done = invoke(hub, str(tmp_path / "none"), str(bad))
    assert len(hub.issues) == 1
    assert isinstance(done.exception, BadInput)
    assert done.exception.slug == "E-no-journal"


def test_the_token_is_in_no_output(hub: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN[:-1])
    monkeypatch.setenv("GITHUB_REPOSITORY", REPO)
    monkeypatch.setenv("GITHUB_API_URL", hub.api)
    done = CliRunner().invoke(cli, ["github", "issues", str(journal(tmp_path, 80))])
    assert isinstance(done.exception, BadInput)
    assert "Bad credentials" in str(done.exception)
    everything = f"{done.output}{done.exception!r}{done.exception.__context__!r}{done.exception.__cause__!r}"
    assert TOKEN[:-1] not in everything
    assert TOKEN[:-1] not in repr(vars(client(hub)))


@pytest.mark.parametrize(
    "changed", [{"GITHUB_RUN_ID": "1)[x](y"}, {"GITHUB_REPOSITORY": "a](b"}, {"GITHUB_SERVER_URL": "http://x"}]
)
def test_a_run_that_is_not_on_github_is_no_link(changed: dict[str, Any]) -> None:
    good = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": REPO, "GITHUB_RUN_ID": "7"}
    assert run_text(good).startswith("[run 7](https://")
    assert run_text(good | changed) == "a run by hand"


def test_the_case_is_named_in_the_title(hub: FakeGitHub) -> None:
    update(hub, night(BAD))
    assert hub.by_number(1)["title"] == f"Regression: `{CASE}`"


def _fallen(evidence: Evidence) -> Regression:
    build = BuildRef("new", commit="abc1234")
    return Regression(
        CASE, evidence, "t/s", "GPU X", date(2026, 3, 4), date(2026, 3, 2), new=False, ratio=0.9, low=0.88, high=0.92,
        assumed=None, reason="10 % slower", builds=(BuildRange("arm", build, build, build, build),),
    )  # fmt: skip


def test_what_fell_against_the_nights_before_is_a_regression(hub: FakeGitHub) -> None:
    """Also where the night's own verdict is a pass; what is undecided stays so."""
    change = [_fallen(Evidence.CHANGE)]
    assert update(hub, with_history(night(GOOD), change)) == ["open 1"]
    assert "worse than the nights before: 10 % slower" in hub.by_number(1)["body"]
    assert "bad since 2026-03-02, first told on 2026-03-04" in hub.by_number(1)["body"]
    undecided = night(replace(GOOD, status=Status.INCONCLUSIVE))
    assert update(hub, with_history(undecided, change)) == ["keep 1"]
    assert update(hub, with_history(night(GOOD), [])) == ["close 1"]
    assert update(hub, with_history(night(BAD), [_fallen(Evidence.VERDICT)])) == ["reopen 1"]
    assert "20.0 % slower" in hub.by_number(1)["body"]
    assert "arm abc1234..abc1234" in hub.by_number(1)["body"]


def test_the_command_reads_the_history(hub: FakeGitHub, tmp_path: Path) -> None:
    path = journal(tmp_path / "bad", 80)
    with History(str(tmp_path / "history.db"), make=True):
        pass
    CliRunner().invoke(cli, ["history", "import", "--history", str(tmp_path / "history.db"), str(path)])
    done = invoke(hub, str(path), "--history", str(tmp_path / "history.db"))
    assert done.exit_code == 0, done.output
    assert "bad since" in hub.by_number(1)["body"]
