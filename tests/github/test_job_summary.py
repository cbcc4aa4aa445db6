"""Job summaries and annotations: worst first, within GitHub's limits, and nothing of an engine's text alive."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from github_support import CASE, EVIL, failed, journal, night, passed
from markdown_it import MarkdownIt
from markdown_it.token import Token

from harness.cli.github import github
from harness.domain.errors import BadInput
from harness.domain.verdict import Verdict
from harness.domain.words import Pitfall, Status
from harness.github.annotations import MOST_OF_A_LEVEL, command, commands
from harness.github.issue_text import body_of, gone_body, title_of
from harness.github.job_summary import MOST_BYTES, job_summary
from harness.github.night import Night, read_night
from harness.reporting.clean import one_line

PARSER = MarkdownIt("commonmark").enable("table")
OURS = ("<details>", "<summary>", "</summary>", "</details>", "<!-- moe-harness")


def _evil() -> Night:
    verdict = failed(EVIL, reason=EVIL, detail=f"{EVIL}\n`````\nmore", scope=EVIL)
    bad = replace(verdict, node=EVIL)
    return Night(night(bad, passed(EVIL + "2"), matrix=EVIL).found, (EVIL,), (BadInput("E-x", EVIL, where=EVIL),))


def _inline(tokens: list[Token]) -> list[Token]:
    return [each for token in tokens for each in [token, *_inline(token.children or [])]]


def _alive(markdown: str) -> list[str]:
    """What a page holds beside words of ours, code, and the HTML that we write ourselves."""
    told = []
    for token in _inline(PARSER.parse(markdown)):
        if token.type in {"code_inline", "fence", "inline"}:
            continue
        if token.type in {"link_open", "image"}:
            told.append(str(token.attrs))
        if token.type.startswith("html") and not token.content.strip().startswith(OURS):
            told.append(token.content)
        if re.search(r"@|://|evil|#\d|::|\x1b", token.content):
            told.append(token.content)
    return told


@pytest.mark.parametrize(
    "page",
    [job_summary(_evil()), body_of(_evil().found[0], "a run"), gone_body(_evil().found[0], "a run", "")],
    ids=["summary", "issue", "gone"],
)
def test_nothing_of_a_journal_is_alive_in_markdown(page: str) -> None:
    """Mentions, references, addresses, HTML, markup and commands are text, read by a parser that is not ours."""
    assert "evil.example" in page
    assert _alive(page) == []
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert not re.search(r"(?m)^\s*(::|##\[)", re.sub(r"(?s)\n`{6,}text\n.*?\n`{6,}", "", page))


def test_planted_life_is_seen() -> None:
    """The check above finds what it is there for."""
    assert len(_alive("@team [a](https://x.example) <img src=x> #12")) >= 3


def test_a_title_is_one_line_of_code() -> None:
    title = title_of(_evil().found[0])
    assert title.startswith("Regression: ```@team/all see")
    assert len(title) < 256
    assert "\n" not in title


def test_no_annotation_can_begin_a_command_of_its_own() -> None:
    told = commands(_evil())
    assert len(told) == 2
    assert all(re.fullmatch(r"::(error|warning) title=[^:,\n\r]*::[^\n\r]*", line) for line in told)
    assert "\x1b" not in "".join(told)


def test_what_a_command_is_written_with_is_escaped() -> None:
    assert command("error", "a: b, c %", "50 % slower\nthan: that") == (
        "::error title=a%3A b%2C c %25::50 %25 slower than: that"
    )


def test_github_shows_ten_of_a_level_and_is_told_no_more() -> None:
    """The worst stay, and the last one says how many there are beside."""
    bad = [failed(f"throughput/m/a..b/pp{index}@any") for index in range(12)]
    odd = [Verdict(f"throughput/m/a/pp{index}@any", Status.ERROR, "node lost") for index in range(MOST_OF_A_LEVEL)]
    gone = replace(passed(), pitfall=Pitfall.GONE)
    told = commands(night(*bad, *odd))
    assert [sum(line.startswith(f"::{level}") for line in told) for level in ("error", "warning")] == [10, 10]
    assert "title=3 more failed" in told[9]
    assert "more" not in told[-1]
    assert commands(night(passed())) == []
    assert commands(night(gone))[0].startswith("::warning")


def test_the_worst_comes_first_and_what_passed_is_folded_away(tmp_path: Path) -> None:
    for name, rate in (("good", 100), ("worse", 60), ("bad", 80)):
        journal(tmp_path / name, rate, node_class=name)
    page = job_summary(read_night(sorted(tmp_path.iterdir())))
    rows = [line for line in page.splitlines() if line.startswith("| ") and "@" in line]
    assert [line.split("@")[1].split("`")[0] for line in rows] == ["worse", "bad", "good"]
    assert page.startswith("## `nightly`: 3 cases: 1 pass, 2 fail\n")
    assert page.index("<details>") > page.index("@bad")
    assert "-40.0 %" in rows[0]
    assert "100.0 -> 60.0" in rows[0]


def test_of_two_verdicts_on_a_case_the_worse_counts(tmp_path: Path) -> None:
    """And a node that is not of the class says nothing about one that is."""
    found = read_night([journal(tmp_path / "a", 100), journal(tmp_path / "b", 80)]).found
    assert [each.verdict.status for each in found] == [Status.FAIL]


def test_a_page_that_is_too_long_is_cut_from_its_end_and_says_so() -> None:
    many = [
        failed(f"throughput/m/a..b/pp{index}@any", detail=f"{index}{'x' * 9000}", scope=f"s{index}")
        for index in range(60)
    ]
    page = job_summary(night(*many, *(passed(f"throughput/m/a/tg{index}@any") for index in range(400))), 40_000)
    assert len(page.encode()) <= 40_000
    cases = set(re.findall(r"pp(\d+)@any", page))
    assert len(cases) == 60, "all that failed is there"
    cut = page.splitlines()[-1]
    assert re.search(r"Cut, the page would be too long.*57 x difference of outputs.*x case that passed", cut), cut
    assert page.count("<details>") == page.count("</details>")


def test_hundreds_of_evil_cases_fit_github() -> None:
    many = [failed(f"{index} {EVIL * 30}", reason=EVIL * 30) for index in range(250)]
    page = job_summary(night(*many))
    assert len(page.encode()) <= MOST_BYTES
    assert "case that did not pass" in page.splitlines()[-1]


def test_the_commands_tell_all_and_end_with_what_could_not_be_read(tmp_path: Path) -> None:
    bad = journal(tmp_path / "bad", 80)
    for name, told in (("summary", "## `nightly`"), ("annotations", "::error title=")):
        fine = CliRunner().invoke(github, [name, str(bad)])
        assert fine.exit_code == 0
        assert told in fine.output
        half = CliRunner().invoke(github, [name, str(tmp_path / "none"), str(bad)])
        assert told in half.output
        assert isinstance(half.exception, BadInput)
        assert "E-no-journal" in half.output


def test_nothing_measured_is_said() -> None:
    assert job_summary(Night(())) == "## nothing was measured\n"
    assert one_line(CASE) in job_summary(night(passed()))
