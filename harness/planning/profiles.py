"""Workloads of a matrix entry: prompt processing and generation, or the quantities of a prompt profile.

A profile is a text file: one that comes with the package, by name, or any other, by path. ``profiles.toml`` beside the
packaged texts says how long their prompts and answers are unless the matrix says otherwise.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.domain.workload import Metric, ProfileWorkload, PromptProfile, Timed, Workload
from harness.planning.schema import WorkloadEntry
from harness.planning.texts import packaged_folder, read_text

TEXT_SUFFIXES = (".txt", ".md")
_METRICS = (Metric.COLD, Metric.TTFT, Metric.PREFILL, Metric.DECODE)
_DEFAULT_PREDICT = 128
_NO_DEFAULTS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class TimedName:
    """What is known of a workload without reading any text.

    Attributes:
        name: Its name in ids.
        is_time: It is a time to the first token: its threshold is ``max_ms``.
    """

    name: str
    is_time: bool


def names_of(entry: WorkloadEntry) -> tuple[TimedName, ...]:
    """Names of the workloads that an entry makes."""
    if not entry.profile:
        return (TimedName(_plain(entry).name, is_time=False),)
    return tuple(TimedName(f"{_name(entry)}.{metric}", metric.is_time) for metric in _metrics(entry))


def workloads_of(entry: WorkloadEntry) -> tuple[Timed, ...]:
    """The domain's workloads of an entry.

    Raises:
        BadInput: As ``load_profile``.
    """
    if not entry.profile:
        return (_plain(entry),)
    profile = load_profile(entry)
    return tuple(ProfileWorkload(profile, metric) for metric in _metrics(entry))


def load_profile(entry: WorkloadEntry) -> PromptProfile:
    """The profile of an entry, its text read.

    Raises:
        BadInput: ``E-unknown-profile`` for a name or path that leads to no text, ``E-profile-unreadable`` for a text
            that can't be a prompt.
    """
    if is_path(entry.profile):
        path, defaults = Path(entry.profile), _NO_DEFAULTS
    else:
        path, defaults = _packaged(entry.profile)
    return PromptProfile(
        name=_name(entry),
        text=read_text(path, "profile", missing="E-unknown-profile", unreadable="E-profile-unreadable"),
        n_predict=entry.n_predict or defaults.get("n_predict", _DEFAULT_PREDICT),
        prompt_tokens=defaults.get("prompt_tokens", 0) if entry.prompt_tokens is None else entry.prompt_tokens,
    )


def is_path(profile: str) -> bool:
    """Whether a profile is named by the path of its text."""
    return "/" in profile or profile.endswith(TEXT_SUFFIXES)


@lru_cache(maxsize=1)
def packaged_profiles() -> Mapping[str, Mapping[str, Any]]:
    """The profiles that come with the package: by name, their default lengths and what they are like."""
    data: Mapping[str, Mapping[str, Any]] = tomllib.loads(
        (packaged_folder() / "profiles.toml").read_text(encoding="utf-8")
    )
    return data


def _packaged(name: str) -> tuple[Path, Mapping[str, Any]]:
    known = packaged_profiles()
    if name not in known:
        hint = did_you_mean(name, known)
        if not hint.startswith("did you mean"):
            hint = f"{hint}; a profile of your own is the path of a text file"
        raise BadInput("E-unknown-profile", f"there is no profile '{name}'", hint=hint)
    return packaged_folder() / f"{name}.txt", known[name]


def _plain(entry: WorkloadEntry) -> Workload:
    return Workload(entry.pp, entry.tg, entry.depth)


def _name(entry: WorkloadEntry) -> str:
    return entry.name or (Path(entry.profile).stem if is_path(entry.profile) else entry.profile)


def _metrics(entry: WorkloadEntry) -> tuple[Metric, ...]:
    return tuple(metric for metric in _METRICS if not entry.metrics or metric.value in entry.metrics)
