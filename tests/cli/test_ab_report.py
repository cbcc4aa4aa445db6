"""What ``ab`` tells beside its verdicts: why margins are wider, how long the next run has to be."""

from __future__ import annotations

import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "running"))

from ab_support import board_of, events, planned
from rich.console import Console

from harness.cli.ab_report import markdown, print_result
from harness.cli.ab_view import head
from harness.domain.spread import Spread
from harness.domain.verdict import Verdict
from harness.domain.words import Equivalence, Status
from harness.running.ab import AbPlan
from harness.running.ab_advice import Advice
from harness.running.ab_run import AbResult

RATIOS = {"pp256": 0.98, "tg64": 1.0}


def ended(plan: AbPlan, *, stopped: bool = False, **minutes: float | None) -> AbResult:
    board = board_of(plan)
    for event in events(plan, RATIOS, 3):
        board.take(event)
    advised = {name: Advice(0.03, None if most is None else 9, most) for name, most in minutes.items()}
    return AbResult(plan, board, {}, advised, None, stopped, Path("reports"))


def lines(result: AbResult, begin: str) -> list[str]:
    return [line for line in markdown(result).splitlines() if line.startswith(f"- `{begin}")]


def test_the_next_run_has_one_budget() -> None:
    """The longest of all workloads in whole minutes, and more than this one had; none where time would not help."""
    (line,) = lines(ended(planned(minutes=5.0), pp256=6.2, tg64=8.1), "next:")
    assert "--minutes 9 has room for the quads that pp256, tg64 would need" in line
    assert "--minutes 6 " in lines(ended(planned(minutes=5.0), pp256=4.9), "next:")[0]
    assert not lines(ended(planned(), pp256=None), "next:")


def test_who_stopped_it_is_not_told_to_ask_for_less() -> None:
    assert not lines(ended(planned(minutes=5.0), stopped=True, pp256=3.0), "next:")
    assert lines(ended(planned(minutes=5.0), stopped=True, pp256=7.0), "next:")


def test_a_page_says_what_was_compared() -> None:
    """Builds with what they say of themselves, model, flags of both, margin, alpha."""
    text = markdown(ended(planned("-fa", "1")))
    for told in (
        "- `old ik+rtr=0 wheel ik-llama-cpp-python`",
        "- `new ik+rtr=1 the same build`",
        "fa=1; margin 5 %, alpha 0.001",
        "- `ik+rtr=1: commit abc, content key-1`",
    ):
        assert told in text


def test_a_margin_by_a_known_spread_says_which() -> None:
    """Where it was set by hand, or nothing is known, there is nothing to explain."""
    plan = planned()
    assert "margin of" not in "".join(line.plain for line in head(plan))
    known = Spread("pp256", 0.093, 4.0, "calibration of 2026-11-30, of pp512")
    job = replace(plan.job, spreads=(known,))
    informed = replace(plan, plan=replace(plan.plan, jobs=(job,)))
    told = [line.plain.strip() for line in head(informed)]
    assert (
        "margin of pp256: 10 %, as quads are known to scatter by 9.3 % (calibration of 2026-11-30, of pp512);"
        " --margin sets another"
    ) in told


def test_a_difference_of_outputs_stands_below_and_what_the_check_does_not_show_beside() -> None:
    outputs = Verdict(
        "equivalence/a/b/c@any",
        Status.FAIL,
        "different: mean KLD 0.3 on Test CPU 9000 @any",
        equivalence=Equivalence.DIFFERENT,
        detail="  words  the quick [-brown-]{+red+} fox ``` \x1b[31m",
        scope="compared: 4 prompts; not covered: sampling",
        node="Test CPU 9000",
    )
    speed = Verdict("throughput/a/b/pp256@any", Status.NOT_JUDGED, "not_judged: the outputs are different")
    result = replace(ended(planned()), outputs=outputs, verdicts={"pp256": speed})
    page = markdown(result)
    assert "- `outputs: different: mean KLD 0.3`\n" in page
    assert "````text\n  words  the quick [-brown-]{+red+} fox ``` \n````" in page
    assert "of outputs, not covered: sampling" in page
    buffer = StringIO()
    print_result(Console(file=buffer, width=100), result)
    assert "difference:\n      words  the quick [-brown-]{+red+} fox" in buffer.getvalue()
    assert "[-brown-]" not in markdown(replace(result, outputs=replace(outputs, status=Status.PASS)))
