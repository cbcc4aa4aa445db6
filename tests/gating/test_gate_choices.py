"""Several journals of which some were chosen for another policy or change than the gate's."""

from __future__ import annotations

from gate_support import TG, asked, blocking, chosen, judged, speed, state, verdict

from harness.gating.words import Outcome

RULES = blocking("*")
WHOLE = state((speed(), verdict(speed())), name="night")


def test_a_run_for_another_policy_is_found_behind_one_that_chose_nothing() -> None:
    """Whichever journal is given first."""
    other = state((speed(TG), verdict(speed(TG))), name="merge", **chosen("src/a.c", digest="another"))
    for journals in ((WHOLE, other), (other, WHOLE)):
        decision = judged(RULES, *journals, asked=asked("src/a.c"))
        (problem,) = decision.problems
        assert (decision.outcome, problem.slug, problem.where) == (
            Outcome.UNDECIDED,
            "E-gate-other-policy",
            "merge/journal.jsonl",
        )
        assert problem.hint == "run it with --moe-gate and this file"


def test_a_run_for_another_change_is_found_behind_one_that_was_asked_for_everything() -> None:
    """The run that left nothing out is no reason to believe the other."""
    everything = state((speed(), verdict(speed())), name="all", **chosen(digest=RULES.digest, changed=None))
    other = state((speed(TG), verdict(speed(TG))), name="merge", **chosen("src/b.c", digest=RULES.digest))
    for journals in ((everything, other), (other, everything)):
        decision = judged(RULES, *journals, asked=asked("src/a.c"))
        (problem,) = decision.problems
        assert (problem.slug, problem.where) == ("E-gate-other-changes", "merge/journal.jsonl")
        assert problem.hint == "run it with --moe-changed and this list"
    assert judged(RULES, everything, asked=asked("src/a.c")).outcome is Outcome.GO
