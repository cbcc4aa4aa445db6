"""The conditions of a pitfall in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.pitfalls.entry import When

_LISTS = {
    "placement": "placement",
    "quants": "weights of",
    "holds": "models that hold",
    "architectures": "architecture",
}
_YES_OR_NO: Mapping[str, tuple[str, str]] = {
    "gpu_code": ("builds with code for GPUs", "builds without code for GPUs"),
    "grouped_queries": ("models with grouped queries", "models without grouped queries"),
    "latent_attention": ("models with latent attention", "models without latent attention"),
    "experts": ("mixtures of experts", "dense models"),
    "mixed_cache": ("caches of two types", "caches of one type"),
    "splits_experts": ("overrides that put experts' up and gate on two devices", "overrides that keep them together"),
}


def described_conditions(when: When) -> Iterator[str]:
    """Each condition in a few words."""
    for key, word in _LISTS.items():
        if listed := getattr(when, key):
            yield f"{word} {' or '.join(listed)}"
    for key, (if_true, if_false) in _YES_OR_NO.items():
        if (wanted := getattr(when, key)) is not None:
            yield if_true if wanted else if_false
    if when.offload:
        side = "below" if when.offload == "below" else "of at least"
        yield f"ub {side} experts / used experts x 32 (llama.cpp: 32)"
    for name, test in when.flags.items():
        yield f"{name} {test}"
