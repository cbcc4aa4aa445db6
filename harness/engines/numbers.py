"""Whether two arms have to compute other numbers, by what is known of their flags."""

from __future__ import annotations

from harness.domain.arm import Arm
from harness.engines.flag_spec import Numbers
from harness.engines.flags import specs

_UNDECIDED = "auto"
"""A value that the engine turns into one of the others."""


def changes_numbers(one: Arm, other: Arm) -> bool:
    """Whether outputs of two arms that are equal to the bit would mean that a flag does nothing.

    Of two builds or models nobody knows that beforehand: false.
    """
    if one.build != other.build or one.model != other.model:
        return False
    known = specs(one.build.fork, one.build.tool)
    return any(
        known[name].numbers is Numbers.CHANGE and _UNDECIDED not in (one.flags.get(name), other.flags.get(name))
        for name in one.flags.differing(other.flags)
        if name in known
    )
