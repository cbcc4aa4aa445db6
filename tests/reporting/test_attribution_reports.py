"""Contrasts by name and attributions in JUnit, in the closing table and in the journal."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging_support import ANY, BUILD, MODEL, PP, contrast

from harness.domain.arm import Arm
from harness.domain.case import AttributionCheck, Case, Expectation
from harness.domain.flags import Flags
from harness.domain.verdict import Effect, Estimate, Verdict
from harness.domain.words import Kind, Status, Throughput
from harness.reporting.codec import decode, decode_case, encode, encode_case
from harness.reporting.journal import JournalWriter, PlannedCase, RunInfo
from harness.reporting.junit import make_junit
from harness.reporting.replay import read_journal
from harness.reporting.summary import summary_text

ARMS = tuple(Arm(BUILD, MODEL, Flags.of({"fa": fa, "ub": ub}), shown=("fa", "ub")) for fa in (0, 1) for ub in (64, 512))
CASE = Case(
    Kind.ATTRIBUTION, ARMS, PP, ANY, AttributionCheck("which", ("attention", "batch"), Expectation.NO_REGRESSION)
)


def ratio(value: float) -> Estimate:
    return Estimate(value, value - 0.01, value + 0.01, 8, "ratio", 0.5)


VERDICT = Verdict(
    CASE.id,
    Status.PASS,
    "of -12.0 %: attention -1.0 % (equivalent), batch -11.1 % (regressed), interaction none shown",
    throughput=Throughput.EQUIVALENT,
    contrast="which",
    effects=(
        Effect("attention", Throughput.EQUIVALENT, ratio(0.99)),
        Effect("batch", Throughput.REGRESSED, ratio(0.889)),
        Effect("interaction", Throughput.INCONCLUSIVE, None),
        Effect("attention alone", None, ratio(0.99)),
        Effect("batch alone", None, ratio(0.889)),
        Effect("both", None, ratio(0.88)),
    ),
)


def test_journals_keep_an_attribution_whole() -> None:
    """The case with its two factors and the verdict with its effects come back as they were."""
    assert decode_case(encode_case(CASE)) == CASE
    assert decode(Verdict, encode(VERDICT)) == VERDICT


def test_the_properties_name_the_contrast_and_each_effect() -> None:
    """Word, ratio and interval for programs; steps have no word, what has no figure says so."""
    suite = next(iter(make_junit("m", [VERDICT])))
    properties = {each.get("name"): each.get("value") for each in suite._elem.iter("property")}
    assert properties["contrast"] == "which"
    assert properties["effect[batch]"] == "regressed 0.889 [0.879, 0.899]"
    assert properties["effect[interaction]"] == "inconclusive unknown"
    assert properties["effect[both]"] == "0.88 [0.87, 0.89]"


def test_the_table_shows_the_whole_then_what_is_judged_and_says_it_in_words() -> None:
    """Four figures in one row, and the sentence below also where it passes."""
    text = summary_text([VERDICT])
    row = text.splitlines()[1:4]
    assert [figure in line for figure, line in zip(("] both", "] attention", "] batch"), row, strict=True)] == [
        True
    ] * 3
    assert "0.880 [0.870, 0.890] both" in row[0]
    assert "(which)" in text
    assert f"pass: {CASE.id}\n    of -12.0 %: attention -1.0 % (equivalent)" in text


def test_what_never_finished_has_the_name_of_its_contrast(tmp_path: Path) -> None:
    """Also in the reports of a run whose driver was killed."""
    with JournalWriter(tmp_path) as journal:
        journal.run_started(RunInfo("m", "local", 1))
        journal.planned(PlannedCase(contrast()))
    (verdict,) = read_journal(tmp_path).final_verdicts()
    assert (verdict.slug, verdict.contrast) == ("E-never-finished", "rtr")


@pytest.mark.parametrize("name", ["a" * 40, "attention"])
def test_long_names_of_factors_keep_the_table_narrow(name: str) -> None:
    """A factor's name may have a hundred characters; the column of figures has not."""
    effects = (Effect(name, Throughput.EQUIVALENT, ratio(1.0)), *VERDICT.effects[1:])
    table = summary_text([Verdict("a/b/c/pp@any", Status.PASS, "fine", effects=effects)]).splitlines()
    assert max(map(len, table)) <= 120
