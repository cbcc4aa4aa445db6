"""The board: what the quads say so far, what runs now, how much of the time is used."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from statistics import stdev

import pytest
from ab_support import WALL_S, board_of, events, planned

from harness.domain.stopping import JobEnd
from harness.domain.words import Throughput
from harness.execution.events import Finished, Progress
from harness.running.ab_advice import Advice, advice, minutes_for_all
from harness.running.ab_board import Board, Phase


def after(quads: float, ratios: dict[str, float], spread: float = 0.01) -> Board:
    plan = planned()
    board = board_of(plan)
    for event in events(plan, ratios, quads, spread):
        board.take(event)
    return board


def test_workloads_are_decided_as_their_quads_come_in() -> None:
    board = after(12, {"pp256": 0.5, "tg64": 1.0})
    pp, tg = board.rows
    assert (pp.workload, pp.decision.throughput) == ("pp256", Throughput.REGRESSED)
    assert pp.quads < 6
    assert (tg.workload, tg.decision.throughput) == ("tg64", Throughput.EQUIVALENT)
    assert [round(arm.tps, -1) for arm in pp.arms if arm] == [500, 250]


def test_half_a_quad_says_nothing() -> None:
    board = after(0.5, {"pp256": 0.5, "tg64": 1.0})
    assert [row.quads for row in board.rows] == [0, 0]
    assert board.next_step is not None
    assert board.next_step.block == 1
    assert board.quad_seconds == 4 * WALL_S


def test_an_event_tells_whether_it_ends_a_quad() -> None:
    plan = planned()
    board = board_of(plan)
    told = [board.take(event) for event in events(plan, {"pp256": 1.0, "tg64": 1.0}, 2)]
    assert told == [False] * 4 + ([False] * 3 + [True]) * 2


def test_time_is_counted_from_the_first_process() -> None:
    """Models may take minutes to make; the budget is for measuring."""
    plan = planned()
    board = board_of(plan, (10.0 * tick for tick in count()))
    assert board.seconds == 0
    for event in events(plan, {"pp256": 1.0, "tg64": 1.0}, 1):
        board.take(event)
    assert board.seconds > WALL_S
    board.take(Finished(plan.job.id, 1, None, JobEnd.BUDGET))
    assert board.seconds == board.seconds
    assert (board.phase, board.end) == (Phase.ENDED, JobEnd.BUDGET)


def test_a_busy_host_is_waited_for_and_a_free_one_is_not() -> None:
    plan = planned()
    for seconds, kept in ((0.01, False), (2.0, True)):
        board = board_of(plan, (seconds * tick for tick in count()))
        board.take(Progress(plan.job.id, 1, "waiting for the host"))
        assert board.is_kept_waiting is kept
        board.take(Progress(plan.job.id, 1, "waiting for the host, on which measures process 1", preparing=True))
        assert board.phase is Phase.WAITING
        assert not board.preparing


def test_advice_is_more_time_where_time_would_help() -> None:
    """Where quads scatter too far for the margin there is none; of too few quads nothing is foreseen."""
    board = after(4, {"pp256": 0.93, "tg64": 1.0}, spread=0.03)
    near = advice(board, board.rows[0])
    assert near is not None
    assert near.quad_sd is not None
    assert near.quads is not None
    assert near.minutes is not None
    assert near.quads > 4
    assert near.minutes == pytest.approx((2 + 4 * (near.quads + 1)) * WALL_S / 60), "a new run starts from nothing"
    far = advice(board, replace(board.rows[0], log_ratios=(0.3, -0.3, 0.3, -0.3)))
    assert far == Advice(stdev((0.3, -0.3, 0.3, -0.3)), None, None)
    assert advice(board, replace(board.rows[0], log_ratios=(0.3, -0.3))) == Advice(
        None, 3, pytest.approx((2 + 4 * 4) * WALL_S / 60)
    )


def test_one_budget_is_for_all_workloads() -> None:
    """The longest, in whole minutes; those that no time would decide have none."""
    assert minutes_for_all([Advice(0.03, 9, 2.1), Advice(0.03, 12, 3.05), Advice(0.3, None, None)]) == 4
    assert minutes_for_all([Advice(0.3, None, None)]) is None
