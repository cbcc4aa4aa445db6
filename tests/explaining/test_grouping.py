"""Reds of a night by what they share."""

from __future__ import annotations

import random

from harness.explaining.factors import Value
from harness.explaining.grouping import Grouped, group_reds


def night(number: int, seed: int = 1) -> list[dict[str, Value]]:
    draw = random.Random(seed)  # noqa: S311 - no secret
    return [
        {
            "fork": draw.choice(["ik_llama.cpp", "llama.cpp"]),
            "placement": draw.choice(["cpu", "hybrid", "gpu"]),
            "ub": draw.choice([64.0, 128.0, 512.0, 1024.0, 2048.0]),
            "model": draw.choice(list("abcdef")),
            "work": draw.choice(["pp", "tg"]),
            **{f"flag{index}": draw.choice([0.0, 1.0]) for index in range(12)},
        }
        for _ in range(number)
    ]


def is_planted(case: dict[str, Value]) -> bool:
    ub = case["ub"]
    return case["placement"] == "hybrid" and case["fork"] == "ik_llama.cpp" and isinstance(ub, float) and ub >= 512


def sorted_out(cases: list[dict[str, Value]], reds: set[int]) -> Grouped:
    named = {f"case{index}": case for index, case in enumerate(cases)}
    return group_reds(
        {name: case for index, (name, case) in enumerate(named.items()) if index in reds},
        {name: case for index, (name, case) in enumerate(named.items()) if index not in reds},
    )


def told(found: Grouped) -> list[set[str]]:
    return [set(map(str, group.conditions)) for group in found.groups]


def test_three_planted_factors_are_found_among_seventeen() -> None:
    cases = night(2000)
    reds = {index for index, case in enumerate(cases) if is_planted(case)}
    (group,) = sorted_out(cases, reds).groups
    assert set(map(str, group.conditions)) == {"placement = hybrid", "fork = ik_llama.cpp", "ub >= 512"}
    assert (group.purity, group.coverage) == (1.0, 1.0)
    assert group.chance < 1e-6


def test_flakes_among_them_are_told_as_alone_and_passes_among_them_as_passes() -> None:
    cases = night(1000)
    planted = [index for index, case in enumerate(cases) if is_planted(case)]
    others = [index for index, case in enumerate(cases) if not is_planted(case)]
    found = sorted_out(cases, {*planted[3:], others[5]})
    assert told(found)[0] == {"placement = hybrid", "fork = ik_llama.cpp", "ub >= 512"}
    assert len(found.groups[0].greens) == 3
    assert 0.9 < found.groups[0].purity < 1
    assert found.alone == (f"case{others[5]}",)


def test_two_causes_are_two_groups_in_the_order_of_their_size() -> None:
    cases = night(1500)
    first = {index for index, case in enumerate(cases) if is_planted(case)}
    second = {index for index, case in enumerate(cases) if case["model"] == "f" and case["work"] == "tg"}
    found = told(sorted_out(cases, first | second))
    assert {"model = f", "work = tg"} in found
    assert {"placement = hybrid", "fork = ik_llama.cpp", "ub >= 512"} in found
    assert len(found) == 2


def test_reds_at_random_are_no_finding() -> None:
    cases = night(300)
    found = sorted_out(cases, set(random.Random(3).sample(range(300), 4)))  # noqa: S311 - no secret
    assert all(group.may_be_chance for group in found.groups)


def test_factors_that_can_not_be_told_apart_are_said_to_be_the_same() -> None:
    cases = [{"model": "ab"[index % 2], "quant": ["q4", "q8"][index % 2], "n": float(index % 5)} for index in range(40)]
    (group,) = sorted_out(cases, {index for index in range(40) if index % 2}).groups  # type: ignore[arg-type]  # mixed
    (condition,) = group.conditions
    assert str(condition) == "model = b"
    assert "quant = q8" in condition.same


def test_the_same_night_gives_the_same_groups() -> None:
    cases = night(400)
    reds = set(random.Random(5).sample(range(400), 40))  # noqa: S311 - no secret
    assert sorted_out(cases, reds) == sorted_out(cases, reds)


def test_one_red_and_no_red_have_no_group() -> None:
    cases = night(20)
    assert sorted_out(cases, {3}) == Grouped((), ("case3",))
    assert sorted_out(cases, set()) == Grouped((), ())


def test_reds_alone_share_nothing_that_passes_lack() -> None:
    """Without a pass to tell them from, no factor explains anything."""
    cases = [{"model": "a"} for _ in range(3)]
    assert sorted_out(cases, {0, 1, 2}).groups == ()  # type: ignore[arg-type]  # mixed
