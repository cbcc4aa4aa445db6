"""The whole plan in the journal of a shard: what the night has to have, so that what no shard took shows.

Arms, workloads, classes and checks stand once each, for a plan of thousands of cases is written into every journal of
its shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.domain.canonical import canonical_json, digest
from harness.domain.case import Case
from harness.reporting.codec import decode_case, encode_case

Spec: TypeAlias = Mapping[str, Any]
"""A part of a case, encoded."""


@dataclass(frozen=True, slots=True)
class WholeCase:
    """One case of the whole plan.

    Attributes:
        id: Its id.
        content: Hash of what is measured where and what has to hold; no paths of a machine enter it.
        kind: What is asked.
        arms: Its arms, by their places in the plan's.
        workload: Its workload's place; ``None``: the peak over everything.
        node_class: Its class's place.
        check: Its check's place.
    """

    id: str
    content: str
    kind: str
    arms: tuple[int, ...]
    workload: int | None
    node_class: int
    check: int


@dataclass(frozen=True, slots=True)
class WholePlan:
    """All cases of which a shard took some.

    Attributes:
        cases: In the matrix's order.
        arms: All arms, each once.
        workloads: All workloads.
        classes: All node classes.
        checks: All checks.
    """

    cases: tuple[WholeCase, ...]
    arms: tuple[dict[str, Any], ...]
    workloads: tuple[dict[str, Any], ...]
    classes: tuple[dict[str, Any], ...]
    checks: tuple[dict[str, Any], ...]

    @property
    def contents(self) -> dict[str, str]:
        """What the cases are, by id: plans that are equal in this are one plan."""
        return {case.id: case.content for case in self.cases}

    def class_of(self, case: WholeCase) -> str:
        """The name of a case's node class."""
        return str(self.classes[case.node_class]["name"])

    def case(self, which: WholeCase) -> Case:
        """A case as it was planned.

        Raises:
            ValueError: If it is damaged; also KeyError, TypeError and IndexError.
        """
        return decode_case(
            {
                "kind": which.kind,
                "arms": [self.arms[arm] for arm in which.arms],
                "workload": None if which.workload is None else self.workloads[which.workload],
                "node_class": self.classes[which.node_class],
                "check": self.checks[which.check],
            }
        )


def whole_plan(cases: Iterable[Case]) -> WholePlan:
    """Write down a plan."""
    arms, workloads, classes, checks = _Pool(), _Pool(), _Pool(), _Pool()
    listed = tuple(_cases(cases, arms, workloads, classes, checks))
    return WholePlan(listed, arms.all, workloads.all, classes.all, checks.all)


def _cases(cases: Iterable[Case], arms: _Pool, workloads: _Pool, classes: _Pool, checks: _Pool) -> Iterator[WholeCase]:
    for case in cases:
        spec = encode_case(case)
        yield WholeCase(
            case.id,
            digest([case.key, spec["node_class"], spec["check"]]),
            spec["kind"],
            tuple(arms.place(arm) for arm in spec["arms"]),
            None if spec["workload"] is None else workloads.place(spec["workload"]),
            classes.place(spec["node_class"]),
            checks.place(spec["check"]),
        )


class _Pool:
    """Values, each once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._all: list[dict[str, Any]] = []

    def place(self, value: dict[str, Any]) -> int:
        """Where a value stands; it is added if it is not there."""
        key = canonical_json(value)
        if key not in self._places:
            self._places[key] = len(self._all)
            self._all.append(value)
        return self._places[key]

    @property
    def all(self) -> tuple[dict[str, Any], ...]:
        """All values, in the order of their places."""
        return tuple(self._all)


@dataclass(frozen=True, slots=True)
class Part:
    """What a shard takes of a node class.

    Attributes:
        node_class: The class's name.
        number: Which part of its jobs, from 1.
        of: How many parts there are.
    """

    node_class: str
    number: int = 1
    of: int = 1

    @property
    def text(self) -> str:
        """As it is asked for: ``hybrid``, or ``hybrid:1/2``."""
        return self.node_class if self.of == 1 else f"{self.node_class}:{self.number}/{self.of}"


@dataclass(frozen=True, slots=True)
class Shard:
    """Of which part of which plan a journal is.

    Attributes:
        parts: What it takes.
        plan: The whole plan.
    """

    parts: tuple[Part, ...]
    plan: WholePlan

    @property
    def text(self) -> str:
        """Its parts, as they are asked for."""
        return ",".join(part.text for part in self.parts)
