"""Which variant of a build belongs on a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.domain.build import Build, Variant
from harness.domain.errors import BadInput
from harness.domain.node import NodeFacts


def choose_variant(build: Build, node: NodeFacts) -> Variant:
    """The first variant whose demands a node meets: their order is the user's preference.

    Args:
        build: A build with variants.
        node: Probed facts.

    Raises:
        BadInput: ``E-no-variant`` with what each one lacks.
    """
    unmet = [variant.platform.unmet(node) for variant in build.variants]
    fitting = [variant for variant, reason in zip(build.variants, unmet, strict=True) if not reason]
    if fitting:
        return fitting[0]
    raise BadInput(
        "E-no-variant",
        f"no variant of build '{build.name}' fits this node: {_listed(unmet)}",
        hint="add a variant for this platform, or keep its cases from this node with [node_classes]",
        where=f"builds.{build.name}.variants",
    )


def no_variant(build: Build, node: NodeFacts) -> str:
    """Why no variant of a build fits a node; empty if one does, or if it has no variants at all."""
    if not build.variants:
        return ""
    try:
        choose_variant(build, node)
    except BadInput as bad:
        return bad.message
    return ""


def as_variant(build: Build, variant: Variant, path: str = "") -> Build:
    """The build as one of its variants.

    Args:
        build: The build.
        variant: One of its variants.
        path: Where its archive was unpacked.
    """
    return replace(build, variants=(), wheel=variant.wheel, path=path or variant.path)


def _listed(reasons: Sequence[str]) -> str:
    return ", ".join(f"variant {number} {reason}" for number, reason in enumerate(reasons, 1))
