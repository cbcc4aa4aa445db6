"""The order of jobs: each is placed once, where it fits, none waits for ever, models are used where they lie."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.node import GIB
from harness.execution import order as order_module
from harness.execution.at_hand import ModelsAtHand
from harness.execution.order import Order
from harness.execution.order_places import Place
from harness.execution.order_tasks import Task

NAMES = ("a", "b", "c", "d")
MODELS = tuple((f"model-{number}", number * 8 * GIB) for number in range(1, 5))
A = frozenset("a")
BOTH = frozenset("ab")
Fleet: TypeAlias = tuple[tuple[Place, ...], tuple[tuple[Task, float], ...]]


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Places, and tasks that some of them can take, with what each really takes."""
    names = NAMES[: draw(st.integers(1, 4))]
    places = tuple(Place(name, draw(st.integers(1, 2)), draw(st.sampled_from((8, 32, 64))) * GIB) for name in names)
    tasks = []
    for number in range(draw(st.integers(0, 25))):
        where = draw(st.frozensets(st.sampled_from(names), min_size=1))
        models = tuple(sorted(draw(st.sets(st.sampled_from(MODELS), max_size=2))))
        thought = draw(st.floats(0, 1000))
        tasks.append((Task(f"job-{number}", where, thought, models), draw(st.floats(0, 1000))))
    return places, tuple(tasks)


def run(places: Sequence[Place], tasks: Sequence[tuple[Task, float]]) -> list[tuple[str, str]]:
    """Drive an order to its end; whatever takes slots longer than it should is never waited for."""
    order, takes = Order(), {task.id: seconds for task, seconds in tasks}
    order.set_places(places)
    for task, _ in tasks:
        order.add(task)
    placed: list[tuple[str, str]] = []
    running: list[tuple[float, str]] = []
    now = 0.0
    while order or running:
        while (found := order.next(now)) is not None:
            placed.append(found)
            heapq.heappush(running, (now + takes[found[0]], found[0]))
        assert running, "tasks wait and nothing runs"
        now, ended = heapq.heappop(running)
        order.ended(ended, now)
    return placed


@settings(max_examples=40, deadline=None)
@given(fleets())
def test_every_task_is_placed_once_where_it_fits(
    fleet: tuple[tuple[Place, ...], tuple[tuple[Task, float], ...]],
) -> None:
    """And something always runs while tasks wait; equal calls give equal answers."""
    places, tasks = fleet
    placed = run(places, tasks)
    fits = {task.id: task.places for task, _ in tasks}
    assert sorted(name for name, _ in placed) == sorted(fits)
    assert all(place in fits[name] for name, place in placed)
    assert run(places, tasks) == placed


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(MODELS), st.floats(1, 1000)), min_size=1, max_size=8), st.integers(0, 3))
def test_a_model_is_used_where_it_lies_when_that_place_is_free(
    found: list[tuple[tuple[str, int], float]], held: int
) -> None:
    """Of free places that can take the same tasks, none loads a model that lies at another of them.

    Before the last tasks are shared out: then a load may pay, where the place that has the model is to end last.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_module, "_LAST", 0)
        first = first_places(found, held)
    if MODELS[held] in {model for model, _ in found}:
        assert first[MODELS[held]] == "c"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(MODELS), min_size=1, unique=True), st.floats(1, 1000), st.integers(0, 3))
def test_the_last_of_each_model_is_where_it_lies(found: list[tuple[str, int]], seconds: float, held: int) -> None:
    """One task of each model, all as long: the place that has one of them takes it."""
    first = first_places([(model, seconds) for model in found], held)
    assert first.get(MODELS[held], "c") == "c"
    assert len(set(first.values())) == len(found)


def first_places(found: Sequence[tuple[tuple[str, int], float]], held: int) -> dict[tuple[str, int], str]:
    """Where the first task of each model begins, on four places of which ``c`` holds one."""
    order = Order()
    order.set_places(Place(name, holds=(MODELS[held],) if name == "c" else ()) for name in NAMES)
    for number, (model, seconds) in enumerate(found):
        order.add(Task(f"job-{number}", frozenset(NAMES), seconds, (model,)))
    first: dict[tuple[str, int], str] = {}
    while (placed := order.next(0.0)) is not None:
        first.setdefault(found[int(placed[0].removeprefix("job-"))][0], placed[1])
    return first


def test_no_task_is_passed_over_for_ever() -> None:
    """Longer ones of the model that lies there keep coming, one for each that ends; a short one gets its turn."""
    order = Order()
    order.set_places([Place("a"), Place("b")])
    order.add(Task("short", BOTH, 1.0, (MODELS[3],)))
    for number in range(4):
        order.add(Task(f"long-{number}", BOTH, 100.0, (MODELS[0],)))
    running: list[str] = []
    for number in range(4, 400):
        while (placed := order.next(100.0 * number)) is not None:
            running.append(placed[0])
        if "short" in running:
            break
        order.ended(running.pop(0), 100.0 * number + 100)
        order.add(Task(f"long-{number}", BOTH, 100.0, (MODELS[0],)))
    assert "short" in running


def test_scarce_places_are_kept_for_what_only_they_can_take() -> None:
    """One that has as much of its own as all have together takes nothing else, whatever came first."""
    order = Order()
    order.set_places([Place("a"), Place("b")])
    for number in range(3):
        order.add(Task(f"any-{number}", BOTH, 100.0))
    for number in range(3):
        order.add(Task(f"own-{number}", A, 90.0))
    placed = run_out(order)
    assert {name for name, place in placed if place == "a"} == {"own-0", "own-1", "own-2"}


def run_out(order: Order) -> list[tuple[str, str]]:
    """Every task takes 100 s."""
    placed: list[tuple[str, str]] = []
    ends: list[tuple[float, str]] = []
    now = 0.0
    while order:
        while (found := order.next(now)) is not None:
            placed.append(found)
            ends.append((now + 100, found[0]))
        now, ended = ends.pop(0)
        order.ended(ended, now)
    return placed


def test_the_longest_task_of_a_model_is_first() -> None:
    order = Order()
    order.set_places([Place("a"), Place("b")])
    for name, seconds in (("short", 10.0), ("long", 100.0), ("middle", 50.0)):
        order.add(Task(name, A, seconds, (MODELS[0],)))
    assert [name for name, _ in run_out(order)] == ["long", "middle", "short"]


def test_at_one_place_alone_tasks_run_as_they_came() -> None:
    """No order is quicker there, but for the loads of models; and it is the one that people gave."""
    order = Order()
    order.set_places([Place("a", cache_bytes=0)])
    for name, model in (("first", 0), ("second", 1), ("third", 0)):
        order.add(Task(name, A, float(len(name)), (MODELS[model],)))
    assert [name for name, _ in run_out(order)] == ["first", "third", "second"]


def test_nothing_is_loaded_to_end_later_than_where_the_model_is_in_use() -> None:
    """The free place waits while the other is nearly through, and helps where that takes much longer."""
    for left, helps in ((10.0, False), (1000.0, True)):
        order = Order()
        slow = 100 / MODELS[0][1]
        order.set_places([Place("a", load_s_per_byte=slow, holds=MODELS[:1]), Place("b", load_s_per_byte=slow)])
        order.add(Task("runs", A, 50.0, (MODELS[0],)))
        assert order.next(0.0) == ("runs", "a")
        for number in range(2):
            order.add(Task(f"waits-{number}", BOTH, left, (MODELS[0],)))
        assert (order.next(1.0) is not None) is helps


def test_what_began_elsewhere_counts_there() -> None:
    """Somebody else had the place: its slot is free, the other one's is taken, and the model lies there."""
    order = Order()
    order.set_places([Place("a"), Place("b")])
    order.add(Task("one", BOTH, 10.0, (MODELS[0],)))
    assert order.next(0.0) == ("one", "a")
    order.moved("one", "b", 5.0)
    order.add(Task("two", A, 10.0))
    assert order.next(5.0) == ("two", "a")
    order.ended("one", 20.0)
    order.ended("two", 20.0)
    order.add(Task("three", BOTH, 10.0, (MODELS[0],)))
    assert order.next(20.0) == ("three", "b")


def test_a_place_that_goes_takes_no_more_and_one_that_comes_does() -> None:
    order = Order()
    order.set_places([Place("a")])
    order.add(Task("one", BOTH, 10.0))
    order.add(Task("two", BOTH, 10.0))
    assert order.next(0.0) == ("one", "a")
    order.set_places([Place("b")])
    assert order.next(0.0) == ("two", "b")
    order.ended("one", 5.0)
    order.drop("never was")
    assert order.next(5.0) is None


def test_models_make_room_for_others_oldest_first() -> None:
    at_hand = ModelsAtHand(20, (("a", 8), ("b", 8)))
    at_hand.use((("a", 8),))
    at_hand.use((("c", 8),))
    assert at_hand.missing((("a", 8), ("b", 8), ("c", 8))) == 8
    at_hand.use((("huge", 99),))
    assert at_hand.missing((("huge", 99),)) == 0
