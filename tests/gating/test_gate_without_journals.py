"""What the gate says where nothing was run: by the changed paths alone."""

from __future__ import annotations

from dataclasses import replace

from gate_support import asked, blocking, chosen, judged, outputs, speed, state, verdict

from harness.domain.choice import Choice
from harness.domain.words import Status
from harness.gating.deciding import Decision, headline
from harness.gating.words import Weight

UNLISTED = replace(asked("src/a.c", "src/b.c"), unlisted=("new.c",))


def said(decision: Decision) -> tuple[str, str]:
    """Message and hint of the one problem, which leaves it undecided."""
    (problem,) = decision.problems
    assert (problem.slug, problem.weight) == ("E-gate-nothing-measured", Weight.UNDECIDED)
    return problem.message, problem.hint


def test_the_choice_is_what_the_paths_ask_for() -> None:
    """As a run would have recorded it, with the policy that it was asked by."""
    rules = blocking("*", name="merge", budget_minutes=5)
    decision = judged(rules, asked=UNLISTED)
    assert decision.choice == Choice("merge", rules.digest, True, 2, ("src/a.c", "src/b.c"), ("new.c",), 5)
    assert judged(rules).choice is None
    run = state((speed(), verdict(speed())), **chosen("src/a.c", digest=rules.digest))
    assert judged(rules, run, asked=asked("src/a.c")).choice == run.choice
    assert judged(rules, state((speed(), verdict(speed()))), asked=UNLISTED).choice is None


def test_cells_that_are_asked_for_have_to_be_run() -> None:
    """Said so without a journal alone: of journals it is said what they lack."""
    assert said(judged(None, asked=UNLISTED)) == (
        "cells are asked for by 2 changed paths, and there is no journal",
        "run them, and give the journals",
    )
    assert said(judged(None)) == ("nothing was measured at all", "was anything run?")
    broken = state((speed(), verdict(speed(), Status.ERROR)))
    assert said(judged(None, broken, asked=UNLISTED)) == ("nothing was measured at all", "see the reasons below")
    left = state(**chosen("src/a.c", left=[speed()]))
    assert said(judged(None, left)) == ("nothing was measured at all", "see the reasons below")


def test_what_is_not_needed_says_by_what() -> None:
    """How many paths were looked at, and how many of them nobody has a row for."""
    none = replace(asked(), changed=3)
    assert headline(judged(None, asked=none)) == "not needed: no cell is asked for by 3 changed paths"
    odd = replace(none, unlisted=("a", "b"))
    assert headline(judged(None, asked=odd)) == (
        "not needed: no cell is asked for by 3 changed paths, 2 of them in no [[paths]] of the policy"
    )
    untold = state(**chosen(changed=None, left=[outputs()]))
    assert headline(judged(None, untold)) == "not needed: no cell is asked for"
