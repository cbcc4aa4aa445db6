"""The summary says once what many cases can't do."""

from __future__ import annotations

from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.reporting.summary import summary_text


def test_a_reason_of_many_cases_is_one_line() -> None:
    """All are in the table; other reasons and what was found keep lines of their own."""
    gpu = [Verdict(f"throughput/m/a/pp{n}@gpu", Status.NOT_APPLICABLE, "no node is of class gpu") for n in range(46)]
    other = Verdict("throughput/m/a/pp1@big", Status.NOT_APPLICABLE, "no node is of class big")
    failed = [Verdict(f"throughput/m/a/tg{n}@any", Status.FAIL, "too slow") for n in range(2)]
    lines = summary_text([*gpu, other, *failed]).splitlines()
    assert lines.count("    no node is of class gpu") == 1
    assert "not_applicable: throughput/m/a/pp0@gpu and 45 more" in lines
    assert "not_applicable: throughput/m/a/pp1@big" in lines
    assert lines.count("    too slow") == 2
    assert sum("@gpu" in line for line in lines) == 47
