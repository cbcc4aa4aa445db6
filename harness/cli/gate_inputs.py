"""What ``gate`` and ``alerts`` read beside journals: the policy and the labels that it names."""

from __future__ import annotations

from pathlib import Path

from harness.gating.labels import Label, read_labels
from harness.gating.policy import Policy, default_policy
from harness.gating.policy_file import read_policy


def policy_of(file: Path | None) -> Policy:
    """The policy of a file; the default one without.

    Raises:
        BadInput: What is wrong with it.
    """
    return read_policy(file) if file is not None else default_policy()


def labels_file(policy: Policy, file: Path | None) -> Path | None:
    """Where the policy's labels lie; ``None`` where it names none."""
    return file.parent / policy.labels if file is not None and policy.labels else None


def labels_of(policy: Policy, file: Path | None) -> tuple[Label, ...]:
    """The labels that the policy names; none where it names none, or nothing was labelled yet.

    Raises:
        BadInput: ``E-gate-labels-unreadable``.
    """
    path = labels_file(policy, file)
    return read_labels(path) if path is not None else ()
