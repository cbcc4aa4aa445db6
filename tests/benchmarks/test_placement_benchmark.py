"""The simulator of nights: its bound is one, our order stays near it, and an order with a fault does not."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from dataclasses import replace

import placement
import pytest
from placement_bound import lower_bound
from placement_nights import Night, night, real_seconds
from placement_rivals import FirstCome, Planner, ShortestFirst
from placement_run import run_night

from harness.execution import order, order_choice, order_shares
from harness.execution.order import Order
from harness.execution.order_choice import Choice
from harness.execution.order_places import Site
from harness.execution.order_shares import Shares
from harness.execution.order_tasks import Group, Task

SEEDS = range(20_001, 20_007)
"""Neither those of the page's table nor those that the order was tuned on."""
NEAR = 1.05
SHORT_SEEDS = range(20_001, 20_011)
SHORT_NEAR = 1.10


@pytest.fixture(scope="module")
def nights() -> list[tuple[Night, float]]:
    """Eight nodes and 250 jobs each, with their bounds."""
    return [(found, lower_bound(found)) for found in (night(8, 250, seed) for seed in SEEDS)]


@pytest.fixture(scope="module")
def short_nights() -> list[tuple[Night, float]]:
    """Eight nodes and 48 jobs each: all of them are shared out at once."""
    return [(found, lower_bound(found)) for found in (night(8, 48, seed) for seed in SHORT_SEEDS)]


def mean_ratio(nights: list[tuple[Night, float]], make: Callable[[], Planner] = Order) -> float:
    return statistics.mean(run_night(found, make()).end_s / bound for found, bound in nights)


def test_our_order_ends_near_the_bound_and_first_come_does_not(nights: list[tuple[Night, float]]) -> None:
    """The same nights; a schedule below its bound would be a wrong bound."""
    assert 1.0 <= mean_ratio(nights) < NEAR < mean_ratio(nights, FirstCome)
    assert mean_ratio(nights, ShortestFirst) > NEAR


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (Group, "longest", property(lambda group: group.entries[0][2])),
        (Site, "load_s", lambda *_: 0.0),
        (order_choice, "_PRESSING", math.inf),
        (Choice, "_sooner_here", lambda _, group, __: group.longest),
    ],
    ids=["shortest first", "forgets models", "keeps nothing scarce", "loads for nothing"],
)
def test_rules_with_a_fault_are_told(
    nights: list[tuple[Night, float]], monkeypatch: pytest.MonkeyPatch, owner: object, name: str, fault: object
) -> None:
    """The rules alone: sharing out the last jobs makes good most of what they do wrong before."""
    monkeypatch.setattr(order, "_LAST", 0)
    assert 1.0 <= mean_ratio(nights) < NEAR
    monkeypatch.setattr(owner, name, fault)
    assert mean_ratio(nights) > NEAR


def test_short_nights_end_near_the_bound_and_by_rules_alone_they_do_not(
    short_nights: list[tuple[Night, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 1.0 <= mean_ratio(short_nights) < SHORT_NEAR < mean_ratio(short_nights, FirstCome)
    monkeypatch.setattr(order, "_LAST", 0)
    assert mean_ratio(short_nights) > SHORT_NEAR


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (Shares, "_improve", lambda _: None),
        (Site, "load_s", lambda *_: 0.0),
        (Shares, "_best_task", lambda *_: order_shares.NO_CHANGE),
    ],
    ids=["no search", "forgets models", "gives no single task"],
)
def test_shares_with_a_fault_are_told(
    short_nights: list[tuple[Night, float]], monkeypatch: pytest.MonkeyPatch, owner: object, name: str, fault: object
) -> None:
    monkeypatch.setattr(owner, name, fault)
    assert mean_ratio(short_nights) > SHORT_NEAR


@pytest.mark.parametrize("seed", range(30_000, 30_006))
def test_no_schedule_of_a_small_night_ends_before_its_bound(seed: int) -> None:
    """All ways to share seven jobs out among two nodes; each loads each of its models once. The best is proved."""
    tiny = night(2, 7, seed)
    best = _best(tiny)
    assert best * (1 - 0.005) <= lower_bound(tiny) <= best * (1 + 1e-9)


def _best(found: Night) -> float:
    choices = [sorted(task.places) for task in found.tasks]
    return min(_end(found, places) for places in itertools.product(*choices))


def _end(found: Night, places: tuple[str, ...]) -> float:
    ends = []
    for place in found.places:
        mine = [task for task, where in zip(found.tasks, places, strict=True) if where == place.id]
        models = {model for task in mine for model in task.models}
        loads = place.load_s_per_byte * sum(size for _, size in models)
        ends.append(loads + sum(found.takes[task.id] for task in mine))
    return max(ends)


def test_the_bound_counts_work_sharing_and_loads() -> None:
    """Two slots, three jobs of 10 s: two share one; a load of 4 s comes before either."""
    tiny = night(2, 3, 1)
    places = tuple(replace(place, load_s_per_byte=1.0) for place in tiny.places)
    tasks = tuple(replace(task, places=frozenset(tiny.kinds), models=(("m", 4),)) for task in tiny.tasks)
    takes = dict.fromkeys(tiny.takes, 10.0)
    bound = lower_bound(Night(places, dict.fromkeys(tiny.kinds, 0), tasks, takes))
    assert 20 <= bound <= 24


def test_a_planner_that_puts_a_job_where_it_cannot_run_is_caught() -> None:
    class Blind(FirstCome):
        def _chosen(self, place: str) -> Task | None:
            del place
            return next(iter(self._tasks), None)

    unlike = next(found for seed in range(100) if len((found := night(4, 40, seed)).tasks) and _is_unlike(found))
    with pytest.raises(RuntimeError, match="was put to"):
        run_night(unlike, Blind())


def _is_unlike(found: Night) -> bool:
    return any(len(task.places) < len(found.places) for task in found.tasks)


def test_durations_are_those_of_real_jobs() -> None:
    """Read from the journals; nights are drawn with their median and spread."""
    found = real_seconds()
    assert len(found) >= 15
    drawn = [seconds for seed in range(5) for seconds in night(16, 500, seed).takes.values()]
    assert statistics.median(drawn) == pytest.approx(statistics.median(found), rel=0.1)


def test_the_table_has_a_row_for_each_size() -> None:
    row = placement.measured(4, 24, range(1, 3))
    head, _, line = placement.table([row])
    assert head.count("|") == line.count("|")
    assert "| 4 | 24 |" in line
    assert set(placement.as_data(row)["ratios"]) == set(placement.WAYS)  # type: ignore[call-overload]
