"""Which arms have to compute other numbers."""

from __future__ import annotations

import pytest

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.flags import FlagValue
from harness.domain.model import Model
from harness.engines.flags import complete
from harness.engines.numbers import changes_numbers

IK = Build("ik", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python")
MAINLINE = Build("mainline", Fork.LLAMA_CPP, wheel="xllamacpp")
BENCH = Build("bench", Fork.LLAMA_CPP, path="llama-bench")
MODEL = Model("m", path="m.gguf")


def arm(build: Build = IK, **flags: FlagValue) -> Arm:
    return Arm(build, MODEL, complete(build, flags))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (arm(fa=0), arm(fa=1), True),
        (arm(ctk="f16"), arm(ctk="q8_0"), True),
        (arm(ser="none"), arm(ser="1,1"), True),
        (arm(BENCH, fa=0), arm(BENCH, fa=1), True),
        (arm(BENCH, fa=0), arm(BENCH, fa="auto"), False),
        (arm(rtr=0), arm(rtr=1), False),
        (arm(fmoe=0), arm(fmoe=1), False),
        (arm(mmap=0), arm(mmap=1), False),
        (arm(MAINLINE, fa=0), arm(IK, fa=1), False),
        (arm(), arm(), False),
    ],
)
def test_arms_have_to_differ_where_a_flag_says_so(one: Arm, other: Arm, *, expected: bool) -> None:
    """Of one build: what the engine decides itself, what depends on the model and other builds promise nothing."""
    assert changes_numbers(one, other) is expected
