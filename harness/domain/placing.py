"""Which nodes can take a job, and which of their GPUs it gets there: asked by executors, answered by planning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from harness.domain.job import Job
from harness.domain.node import NodeFacts


@dataclass(frozen=True, slots=True)
class Seat:
    """A job on one node.

    Attributes:
        refused: Why the node can't take it, with what is needed and what the node has; empty: it can.
        gpus: Numbers of the node's GPUs that are the job's there; it sees no other.
        ram_bytes: Main memory that must stay its own there, with what is kept free; 0: not known.
        distance: How far the node is from taking it, to be compared with that of other nodes.
    """

    refused: str = ""
    gpus: tuple[int, ...] = ()
    ram_bytes: int = 0
    distance: tuple[float, float] = (0, 0)


class Placing(Protocol):
    """What an executor is handed, so that it places jobs without knowing how their bytes are counted."""

    def seat(self, job: Job, node: NodeFacts) -> Seat:
        """A job on a node.

        Args:
            job: The job.
            node: Facts of the node.
        """
        ...


class ByClass:
    """Places by node class alone, whatever a job's bytes are."""

    def seat(self, job: Job, node: NodeFacts) -> Seat:
        """A node of the class takes it, with as many GPUs as the class asks for, or all where it asks for none."""
        if lacks := job.node_class.lacks(node):
            return class_refusal(job.node_class.name, [(lack.said, lack.share) for lack in lacks])
        return Seat(gpus=job.node_class.gpu_choices(node)[0])


def class_refusal(name: str, lacks: Iterable[tuple[str, float]]) -> Seat:
    """The seat on a node that is not of a class: farther than any that is, the farther the more it lacks.

    Args:
        name: The class.
        lacks: Each demand that the node does not meet, in words, and how far it is from meeting it.
    """
    found = list(lacks)
    said = f"not of class {name}: {'; '.join(said for said, _ in found)}"
    return Seat(said, distance=(1 + len(found), sum(share for _, share in found)))
