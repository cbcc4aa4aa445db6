"""Which program of a build by path answers the prompts whose outputs are compared: ``llama-bench`` gives none.

``llama-server`` where every such build of a job has one: it generates, so tokens and what follows them are compared.
Otherwise ``llama-perplexity``, which knows of prompt positions alone and so can be compared with itself only. All arms
of a job use the same, or their outputs would have no position in common.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.domain.build import Build
from harness.domain.job import Job
from harness.engines import served_engine
from harness.engines.abilities import lacks_answers
from harness.engines.engine import Engine
from harness.engines.programs import beside_bench
from harness.execution.inspecting import answering_engine, evaluating_engine


class NoAnswers(Exception):  # noqa: N818 - reads as what it is at the raise
    """No program of the builds gives outputs that can be compared; the text says which and what to do."""


def answering_programs(job: Job, builds: Sequence[Build]) -> tuple[Engine | None, ...]:
    """The engines that answer a job's prompts apart; ``None`` for arms that answer them as they are timed.

    Args:
        job: The job.
        builds: The builds of its arms, as they are on this node.

    Raises:
        NoAnswers: Some build has no program for it.
        BadInput: A program is there and cannot be started.
    """
    apart = [job.answers_apart(arm) for arm in range(len(job.arms))]
    if not any(apart):
        return (None,) * len(builds)
    lacking = lacks_answers(builds)
    if lacking:
        raise NoAnswers(lacking)
    by_path = [build for build, is_apart in zip(builds, apart, strict=True) if is_apart]
    served = all(beside_bench(build, served_engine.NAME) for build in by_path)
    inspect = answering_engine if served else evaluating_engine
    return tuple(
        inspect(build, dict(arm.environment)) if is_apart else None
        for build, arm, is_apart in zip(builds, job.arms, apart, strict=True)
    )
