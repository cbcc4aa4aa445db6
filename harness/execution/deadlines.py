"""When a job must be over, and when it must have said something, by the driver's clock."""

from __future__ import annotations

from harness.domain.job import Job

_PREPARE_ALLOWANCE_S = 3600.0 + 1800.0
"""For the wait for the host, and for making and reading models."""
_PROCESS_ALLOWANCE_S = 10.0
_SILENCE_ALLOWANCE_S = 30.0
_STARTS_IN_SILENCE = 2
"""A process whose load fails can be started once more, to be asked why, before anything is said."""


def deadline_s(job: Job) -> float:
    """Seconds after its start when a job must be over: every process at its limit, and time to make models.

    Of a budget in minutes: all of it, the burn-ins before its first quad, and one quad that was begun within it.
    """
    process_s = _process_s(job)
    whole_s = job.process_starts * process_s
    if job.design.minutes is not None:
        beyond = len(job.arms) * (max(1, job.design.burn_in) + job.blocks_at_once)
        whole_s = min(whole_s, job.design.minutes * 60 + beyond * process_s)
    return whole_s + _PREPARE_ALLOWANCE_S + sum(arm.build.recipe.longest_s for arm in job.arms if arm.build.recipe)


def silence_s(job: Job) -> float:
    """Seconds after which a job that measures must have said something: its process has a limit."""
    return _STARTS_IN_SILENCE * _process_s(job) + _SILENCE_ALLOWANCE_S


def _process_s(job: Job) -> float:
    return job.design.timeout_s + _PROCESS_ALLOWANCE_S
