"""The variant of a build that fits a node, and why none does."""

from __future__ import annotations

from typing import Any

import pytest

from harness.builds.choosing import as_variant, choose_variant, no_variant
from harness.domain.arm import Arm
from harness.domain.build import Build, Fork, Platform, Tool, Variant
from harness.domain.errors import BadInput
from harness.domain.flags import Flags
from harness.domain.model import Model
from harness.domain.node import Gpu, NodeFacts

H200 = Gpu("NVIDIA H200", 1, "1", "u", "nvidia", "9.0")
OLD = Gpu("NVIDIA Tesla P40", 1, "1", "u", "nvidia", "6.1")


def node(*gpus: Gpu, isa: tuple[str, ...] = ("avx2",), machine: str = "x86_64", os: str = "linux") -> NodeFacts:
    return NodeFacts("CPU", 8, isa, 1, gpus, "6.1", 0, "unknown", None, 1, 0, os=os, machine=machine)


def build(*platforms: Platform) -> Build:
    variants = tuple(Variant(platform, path=f"/{number}") for number, platform in enumerate(platforms, 1))
    return Build("b", Fork.LLAMA_CPP, variants=variants)


CUDA = Platform(gpu="nvidia", gpu_arch=("8.0", "9.0"))
AVX512 = Platform(os="linux", machine="x86_64", isa=("avx512f", "avx512_vnni"))
ANY_CPU = Platform(machine="x86_64")
ARM_CPU = Platform(machine="aarch64")


@pytest.mark.parametrize(
    ("facts", "chosen"),
    [
        (node(H200), "/1"),
        (node(OLD), "/3"),
        (node(), "/3"),
        (node(isa=("avx2", "avx512_vnni", "avx512f")), "/2"),
        (node(machine="aarch64"), "/4"),
    ],
)
def test_the_first_that_fits_is_chosen(facts: NodeFacts, chosen: str) -> None:
    """Their order is the user's preference."""
    assert choose_variant(build(CUDA, AVX512, ANY_CPU, ARM_CPU), facts).path == chosen


@pytest.mark.parametrize(
    ("platform", "facts", "reason"),
    [
        (CUDA, node(), "needs a GPU of nvidia, node has none"),
        (CUDA, node(OLD), "needs GPU architecture 8.0 or 9.0, node has 6.1"),
        (Platform(gpu_arch=("9.0",)), node(), "needs GPU architecture 9.0, node has no GPU"),
        (Platform(gpu="none"), node(H200), "needs a node without GPU, node has nvidia"),
        (AVX512, node(), "needs instruction set avx512_vnni, avx512f"),
        (Platform(os="darwin"), node(), "needs darwin, node has linux"),
        (ARM_CPU, node(), "needs aarch64, node has x86_64"),
        (ARM_CPU, node(machine=""), "needs aarch64, node has an unknown processor"),
    ],
)
def test_why_none_fits(platform: Platform, facts: NodeFacts, reason: str) -> None:
    """What each variant lacks, with what the node has."""
    with pytest.raises(BadInput) as refused:
        choose_variant(build(platform), facts)
    assert refused.value.slug == "E-no-variant"
    assert reason in refused.value.message
    assert "variant 1" in refused.value.message
    assert no_variant(build(platform), facts) == refused.value.message


def test_a_build_without_variants_lacks_none() -> None:
    assert no_variant(Build("b", Fork.LLAMA_CPP, path="/x"), node()) == ""


def test_a_chosen_build_is_one_by_path_or_wheel() -> None:
    variant = build(ANY_CPU).variants[0]
    assert as_variant(build(ANY_CPU), variant) == Build("b", Fork.LLAMA_CPP, path="/1")
    assert as_variant(build(ANY_CPU), variant, "/unpacked").path == "/unpacked"
    wheels = Build("b", Fork.LLAMA_CPP, variants=(Variant(wheel="xllamacpp"),))
    assert wheels.tool is Tool.EMBEDDED
    assert as_variant(wheels, wheels.variants[0]).wheel == "xllamacpp"


def identity(**said: Any) -> str:
    return Arm(Build("b", Fork.LLAMA_CPP, **said), Model("m", path="/m"), Flags.of({})).identity


def test_an_arm_is_the_same_wherever_the_files_of_its_variants_lie() -> None:
    """What they were compiled for and their digests count, places do not."""
    here = Variant(ANY_CPU, url="https://a/x.tar", sha256="1" * 64)
    there = Variant(ANY_CPU, url="https://b/y.tar", sha256="1" * 64)
    other = Variant(ANY_CPU, url="https://a/x.tar", sha256="2" * 64)
    elsewhere = Variant(ARM_CPU, url="https://a/x.tar", sha256="1" * 64)
    assert identity(variants=(here,)) == identity(variants=(there,))
    assert len({identity(variants=(each,)) for each in (here, other, elsewhere)}) == 3
