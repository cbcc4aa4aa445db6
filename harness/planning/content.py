"""Claims about content: random weights can't bear them, so plans refuse them or say so.

Equal outputs of two builds on one file are a claim about the builds, whatever the weights. Alike outputs of two models
or quantizations, or with fewer experts, are a claim about what a network has learned, and a random one has learned
nothing. Speeds of what depends on the experts that tokens choose are measured, with a note.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.domain.arm import Arm

LEARNED_FLAGS = {
    "ser": "leaves experts out by their scores",
    "ger": "chooses experts by groups",
}
"""Flags that change what a network computes in ways that only a trained one is made for."""
ROUTED_FLAGS = {**LEARNED_FLAGS, "defer_experts": "reads experts when tokens first choose them"}
"""Flags whose speed depends on which experts are chosen."""


def content_claim(arms: Sequence[Arm]) -> str:
    """Why alike outputs of these arms would be a claim about content that random weights can't bear; empty if not."""
    if not any(arm.model.synthetic for arm in arms):
        return ""
    names = list(dict.fromkeys(arm.model.name for arm in arms))
    if len(names) > 1:
        return f"{' and '.join(names)} are different random networks, or roundings of one: alike outputs mean nothing"
    changed = _changed(arms, LEARNED_FLAGS)
    return (
        f"'{changed}' {LEARNED_FLAGS[changed]}, which means nothing for the random weights of {names[0]}"
        if changed
        else ""
    )


def content_note(arms: Sequence[Arm]) -> str:
    """What to know of a speed that depends on the routing of random weights; empty where it does not."""
    changed = _changed(arms, ROUTED_FLAGS) if any(arm.model.synthetic for arm in arms) else ""
    return (
        f"random weights: '{changed}' {ROUTED_FLAGS[changed]}, real models may gain or lose otherwise"
        if changed
        else ""
    )


def _changed(arms: Sequence[Arm], names: dict[str, str]) -> str:
    """The first of some flags that differs between arms that have it; empty if none. The other fork has it not."""
    for name in names:
        values = {arm.flags.get(name) for arm in arms} - {None}
        if len(values) > 1:
            return name
    return ""
