"""Jobs as their order needs them: what they load, and how long they may take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from harness.domain.job import Job
from harness.domain.model import Model
from harness.domain.node import GIB
from harness.execution.at_hand import Models
from harness.execution.order_tasks import Places, Task
from harness.models.memory_model import model_shape

_PROCESS_S = 10.0
"""Of a process that nobody ever timed: jobs with more of them are taken to be longer."""
_UNKNOWN_BYTES = 16 * GIB
_KEPT = 256


def task_of(job: Job, places: Places, seconds: float | None) -> Task:
    """A job for the order.

    Args:
        job: The job.
        places: Where it can run.
        seconds: What it is thought to take; ``None``: not known, so its schedule says it, or its budget.
    """
    return Task(job.id, places, _schedule_s(job) if seconds is None else seconds, _models_of(job))


def _schedule_s(job: Job) -> float:
    whole_s = job.process_starts * _PROCESS_S
    return whole_s if job.design.minutes is None else min(whole_s, 60 * job.design.minutes)


def _models_of(job: Job) -> Models:
    """Each model once, whatever its name."""
    return tuple(sorted(sized(models_by_key([job]))))


def models_by_key(jobs: Iterable[Job]) -> dict[str, Model]:
    """Each model of some jobs once, by what the order calls it."""
    return {_key(arm.model): arm.model for job in jobs for arm in job.arms}


def sized(models: Mapping[str, Model]) -> Models:
    """Models as the order knows them.

    Args:
        models: By what it calls them.
    """
    return tuple((key, _bytes(model)) for key, model in models.items())


def _key(model: Model) -> str:
    """Equal for models of equal content, as far as is known without reading them."""
    return " ".join(model.sha256) or model.path or model.url or f"{model.card} {model.quant}"


@lru_cache(maxsize=_KEPT)
def _bytes(model: Model) -> int:
    shape = model_shape(model)
    return shape.file_bytes if shape else _UNKNOWN_BYTES
