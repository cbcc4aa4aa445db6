"""Cases against the memory of the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planning_support import matrix, node

from harness.domain.node import GIB, Gpu, NodeFacts
from harness.domain.words import Status
from harness.planning.expand import expand
from harness.planning.memory import check_memory
from harness.planning.needs import Needs
from harness.planning.plan import PlannedCase

MODELS = {"q": {"card": "qwen3-30b-a3b", "quant": "Q4_K_M"}}
BUILDS = {"ik": {"fork": "ik_llama.cpp", "path": "/builds/ik"}}
WHEELS = {"ik": {"fork": "ik_llama.cpp", "wheel": "ik-llama-cpp-python"}}


def cases(flags: Mapping[str, Any], *, gpus: int = 0, **changes: Any) -> tuple[PlannedCase, ...]:
    """Cases of a model of 17 GiB."""
    wanted = {
        "builds": BUILDS,
        "models": MODELS,
        "node_classes": {"any": {"min_gpus": gpus}},
        "workloads": [{"pp": 64}],
    }
    return expand(matrix(**(wanted | {"flags": dict(flags)} | changes)))


def found(flags: Mapping[str, Any], *nodes: NodeFacts, gpus: int = 0, **changes: Any) -> PlannedCase:
    """The first case, checked."""
    return check_memory(cases(flags, gpus=gpus, **changes), nodes)[0]


def test_what_no_gpu_holds_is_not_applicable_with_what_it_needs_and_what_there_is() -> None:
    """The whole model on a card of 16 GiB; with its experts in RAM it fits."""
    small = node(gpus=1, vram_gib=16)
    whole = found({"ngl": 99}, small, gpus=1)
    assert whole.status is Status.NOT_APPLICABLE
    assert whole.reason.startswith(
        "E-model-does-not-fit: ik needs 17701 MiB of GPU 0 (weights 17524, KV 24, compute 152)"
    )
    assert "Test GPU has 16384 MiB, 1024 of it kept free: 2341 MiB short; experts in RAM" in whole.reason
    assert found({"ngl": 99, "ot": "exps=CPU"}, small, gpus=1).status is None
    assert found({"ngl": 99}, node(gpus=1, vram_gib=18), gpus=1).status is Status.NOT_APPLICABLE
    assert found({"ngl": 99}, small, node(gpus=1, vram_gib=24), gpus=1).status is None
    assert found({"ngl": 99}, node(gpus=2, vram_gib=16), gpus=2).status is None


def test_ram_is_a_hard_limit_without_mmap_and_a_note_with_it() -> None:
    """The flag rtr switches mmap off too."""
    laptop = node(ram_gib=16)
    assert found({"mmap": 0}, laptop).status is Status.NOT_APPLICABLE
    assert "needs 17767 MiB of RAM (weights 17691, " in found({"mmap": 0}, laptop).reason
    assert "node has 16384 MiB, 1024 of it kept free: 2407 MiB short" in found({"rtr": 1}, laptop).reason
    mapped = found({}, laptop)
    assert (mapped.status, "mapped weights are read again and again" in mapped.note) == (None, True)
    assert found({}, laptop, node(ram_gib=64)).note == ""
    assert found({"mmap": 0}, laptop, node(ram_gib=64)).status is None


def test_a_wheel_uses_no_gpu() -> None:
    """Its model is in RAM, whatever the node has."""
    assert found({"mmap": 0}, node(gpus=1, vram_gib=4), gpus=1, builds=WHEELS).status is None
    told = Needs(()).most(cases({"mmap": 0}, gpus=1, builds=WHEELS)[0].case)
    assert told is not None
    assert told.gpus == ()


def test_a_build_that_says_it_has_no_code_for_gpus_uses_none() -> None:
    """By its source's backends."""
    builds = {"ik": {**BUILDS["ik"], "source": {"backends": ["cpu"]}}}
    assert found({"ngl": 99}, node(gpus=1, vram_gib=4), gpus=1, builds=builds).status is None


def test_where_a_class_asks_for_no_gpu_either_place_is_enough() -> None:
    """Nobody knows then whether the job sees the node's GPUs."""
    assert found({"ngl": 99, "mmap": 0}, node(gpus=1, vram_gib=4, ram_gib=64)).status is None
    assert found({"ngl": 99, "mmap": 0}, node(gpus=1, vram_gib=40, ram_gib=8)).status is None
    assert found({"ngl": 99, "mmap": 0}, node(gpus=1, vram_gib=4, ram_gib=8)).status is Status.NOT_APPLICABLE


def test_a_pattern_that_matches_nothing_is_a_note_whatever_is_known_of_nodes() -> None:
    """A contrast about such an override would compare a thing with itself."""
    said = "ot: 'experts' matches no tensor of qwen3-30b-a3b"
    for nodes in (None, [node(gpus=1)], []):
        assert check_memory(cases({"ngl": 0, "ot": "experts=CPU"}, gpus=1), nodes)[0].note == said


def test_a_deep_context_is_told_apart_from_a_shallow_one() -> None:
    """Each case by its own workload; a limit of peak memory by all of them."""
    deep, shallow, peak = cases(
        {"ngl": 99},
        gpus=1,
        workloads=[{"tg": 8, "depth": 100_000}, {"pp": 64}],
        checks=[{"kind": "memory", "max_rss_mib": 1e6}],
    )
    needs = Needs((deep, shallow, peak))
    sizes = [most.gpus[0].cache if (most := needs.most(each.case)) else 0 for each in (shallow, deep, peak)]
    assert sizes[0] * 300 < sizes[1] == sizes[2]
    kept = check_memory((shallow, deep, peak), [node(gpus=1, vram_gib=24)])
    assert [each.status for each in kept] == [None, Status.NOT_APPLICABLE, Status.NOT_APPLICABLE]


def test_a_contrast_fits_where_both_arms_do() -> None:
    """The one that does not fit is named."""
    contrast = {"name": "moe", "factor": "ncmoe", "baseline": 48, "candidate": 0, "where": {}}
    checked = check_memory(
        cases({"ngl": 99, "ncmoe": [48, 0]}, gpus=1, contrasts=[contrast]), [node(gpus=1, vram_gib=8)]
    )
    by_arms = {tuple(arm.label for arm in each.case.arms): each for each in checked}
    assert by_arms[("ik+ncmoe=48",)].status is None
    both = by_arms["ik+ncmoe=48", "ik+ncmoe=0"]
    assert both.status is Status.NOT_APPLICABLE
    assert "ik+ncmoe=0 needs" in both.reason


def test_what_is_not_known_is_not_refused() -> None:
    """A file of another node."""
    unknown = found({}, node(ram_gib=1), models={"far": {"path": "/no/such.gguf"}})
    assert (unknown.status, unknown.note) == (None, "")
    assert Needs((unknown,)).most(unknown.case) is None


def test_of_a_mixed_host_only_gpus_of_the_class_count() -> None:
    """By name, vendor and compute capability, and of those the ones that have most, whatever their number."""
    gpus = (
        Gpu("AMD Instinct MI210", 64 * GIB, "1", "a", vendor="amd", arch="gfx90a"),
        Gpu("NVIDIA T4", 16 * GIB, "1", "b", arch="7.5"),
        Gpu("NVIDIA A10", 24 * GIB, "1", "c", arch="8.6"),
    )
    mixed = replace(node(), gpus=gpus)

    def on(**asked: Any) -> PlannedCase:
        return found({"ngl": 99}, mixed, node_classes={"c": {"min_gpus": 1, **asked}})

    assert on().status is None
    assert on(gpu_vendor="nvidia").status is None
    assert on(min_compute_capability="8.0").status is None
    small = on(gpu_name="T4")
    assert small.status is Status.NOT_APPLICABLE
    assert "of GPU 1 (weights 17524, " in small.reason
    assert "NVIDIA T4 has 16384 MiB" in small.reason


def test_what_fits_none_of_several_nodes_is_told_of_the_nearest() -> None:
    """By name, where the nodes have some."""
    fleet = (replace(node(gpus=1, vram_gib=8), name="old"), replace(node(gpus=1, vram_gib=16), name="new"))
    told = found({"ngl": 99}, *fleet, gpus=1)
    assert told.status is Status.NOT_APPLICABLE
    assert told.reason.startswith("E-model-does-not-fit: on none of 2 nodes of its class, the nearest one is 'new', ")
    assert "Test GPU of node 'new' has 16384 MiB" in told.reason
