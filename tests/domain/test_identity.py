"""Identity: computed from the types, so that nothing that matters can be left out."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.arm import Arm
from harness.domain.build import Build, BuildSource, Fork, Recipe, Variant
from harness.domain.canonical import canonical_json, id_part
from harness.domain.case import Case, FloorCheck, MemoryCheck
from harness.domain.flags import Flags
from harness.domain.model import Model
from harness.domain.node import NodeClass
from harness.domain.words import Kind
from harness.domain.workload import Workload

ARM = Arm(
    Build("ik", Fork.IK_LLAMA_CPP, wheel="w"),
    Model("m", card="c", quant="IQ4_XS"),
    Flags.of({"fa": 1, "rtr": 0}),
    (("A", "1"),),
    shown=("fa",),
)

CHANGES: dict[str, Any] = {
    "build.name": "other",
    "build.fork": Fork.LLAMA_CPP,
    "build.wheel": "other",
    "build.variants": (Variant(url="https://example.org/a.tar", sha256="0" * 64),),
    "build.recipe": Recipe("r", "https://example.org/r", "main", (), (), (), (("make",),), ("bin",), (), 60.0),
    "build.source": BuildSource(commit="abc1234"),
    "model.name": "other",
    "model.card": "other",
    "model.quant": "Q4_K_M",
    "model.sha256": ("0" * 64,),
    "flags": Flags.of({"fa": 1, "rtr": 1}),
    "environment": (("A", "2"),),
}
NO_IDENTITY = {"build.path", "build.trusted", "model.path", "model.url", "named", "shown"}


def _fields(value: Any, prefix: str = "") -> list[str]:
    names = []
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        deep = dataclasses.is_dataclass(inner) and not isinstance(inner, Flags)
        names += _fields(inner, f"{prefix}{field.name}.") if deep else [prefix + field.name]
    return names


def _changed(name: str) -> Arm:
    outer, _, inner = name.partition(".")
    if inner:
        return dataclasses.replace(ARM, **{outer: dataclasses.replace(getattr(ARM, outer), **{inner: CHANGES[name]})})
    return dataclasses.replace(ARM, **{outer: CHANGES[name]})


def test_every_field_of_an_arm_is_tested_here() -> None:
    """A new field must be listed: either it changes the identity, or somebody said why it does not."""
    assert set(_fields(ARM)) == set(CHANGES) | NO_IDENTITY


@pytest.mark.parametrize("name", CHANGES)
def test_every_field_is_part_of_the_identity(name: str) -> None:
    """Two arms that differ in anything declared are two arms."""
    assert _changed(name).identity != ARM.identity


def test_where_things_lie_is_no_part_of_it() -> None:
    """Two checkouts in different folders declare the same arms; what lies there is the content key's business."""
    paths = [
        dataclasses.replace(ARM, build=Build("b", Fork.IK_LLAMA_CPP, path=path), model=Model("m", path=path))
        for path in ("/a/x", "/b/x")
    ]
    assert paths[0].identity == paths[1].identity


def test_labels_do_not_change_the_identity() -> None:
    """What a label shows depends on the matrix around it."""
    assert dataclasses.replace(ARM, shown=()).identity == ARM.identity


def test_the_label_shows_declared_flags_and_variables_sorted() -> None:
    """Names in order, each with its value."""
    assert dataclasses.replace(ARM, shown=("rtr", "fa", "A")).label == "ik+a=1+fa=1+rtr=0"


@given(st.text())
def test_id_parts_use_the_contracts_alphabet(text: str) -> None:
    """Any text folds into ``[a-z0-9._=+-]`` and is never empty."""
    assert re.fullmatch(r"[a-z0-9._=+-]+", id_part(text))


def test_a_case_id_has_the_contracts_form() -> None:
    """``kind/model/arm[..arm]/workload@class``."""
    any_node = NodeClass("any")
    single = Case(Kind.THROUGHPUT, (ARM,), Workload(512, 0), any_node, FloorCheck(1.0))
    assert single.id == "throughput/m/ik+fa=1/pp512@any"
    other = dataclasses.replace(ARM, flags=Flags.of({"fa": 0, "rtr": 0}))
    assert dataclasses.replace(single, arms=(ARM, other)).id == "throughput/m/ik+fa=1..ik+fa=0/pp512@any"
    memory = Case(Kind.MEMORY, (ARM,), None, any_node, MemoryCheck(1.0))
    assert memory.id == "memory/m/ik+fa=1/peak@any"


def test_a_case_key_forgets_no_figure_of_the_workload() -> None:
    """Keys differ where prompt, generation, depth, arms, class or kind do."""
    any_node = NodeClass("any")
    loads = [Workload(512, 0), Workload(0, 512), Workload(512, 0, 512), Workload(512, 512)]
    keys = {Case(Kind.THROUGHPUT, (ARM,), load, any_node, FloorCheck(None)).key for load in loads}
    keys.add(Case(Kind.PITFALL, (ARM,), loads[0], any_node, FloorCheck(None)).key)
    keys.add(Case(Kind.THROUGHPUT, (ARM,), loads[0], NodeClass("gpu"), FloorCheck(None)).key)
    keys.add(Case(Kind.THROUGHPUT, (ARM, ARM), loads[0], any_node, FloorCheck(None)).key)
    assert len(keys) == 7


def test_true_and_one_are_one_arm() -> None:
    """Booleans become numbers."""
    assert Flags.of({"fa": True}) == Flags.of({"fa": 1})


def test_nan_has_no_identity() -> None:
    """A value that is not equal to itself cannot identify anything."""
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


@pytest.mark.parametrize(
    ("load", "name"),
    [
        (Workload(512, 0), "pp512"),
        (Workload(0, 128), "tg128"),
        (Workload(512, 128), "pp512+tg128"),
        (Workload(0, 128, 4096), "tg128.d4096"),
    ],
)
def test_workload_names(load: Workload, name: str) -> None:
    """The field's words."""
    assert load.name == name
