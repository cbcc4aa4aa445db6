"""A node as probed, and the node classes that a matrix declares as predicates on those facts."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.domain.canonical import digest

GIB = 1024**3

ANY_CLASS = "any"
"""The class that every node belongs to: a case of it runs once, on any node."""

ISA_WORDS = frozenset(
    {
        *("sse3", "ssse3", "sse4_1", "sse4_2", "avx", "avx2", "fma", "f16c", "bmi2"),
        *("avx_vnni", "avx_vnni_int8", "avx_ifma"),
        *("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vbmi", "avx512_vbmi2", "avx512_vnni"),
        *("avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
        *("neon", "dotprod", "i8mm", "bf16", "sve", "sve2", "sme", "vsx", "rvv"),
    }
)
"""The instruction sets that ggml has kernels for, as the Linux kernel spells them, or as below."""


_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as its driver reports it.

    Attributes:
        name: Marketing name, e.g. ``NVIDIA H200``.
        vram_bytes: Total memory.
        driver: Driver version.
        uuid: Stable id of the device.
        vendor: ``nvidia``, ``amd``, ...
        arch: What code is compiled for: CUDA's compute capability, e.g. ``9.0``; empty where the driver does not tell.
    """

    name: str
    vram_bytes: int
    driver: str
    uuid: str
    vendor: str = "nvidia"
    arch: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is really there: read from the machine, never declared.

    Attributes:
        cpu_model: As the kernel names it.
        cores: Cores this process may use (affinity and cgroup respected).
        isa: Relevant instruction sets, sorted, e.g. ``avx2``, ``avx512f``.
        ram_bytes: Physical memory.
        gpus: Visible GPUs, in PCI order.
        kernel: Kernel release.
        niceness: Niceness of the measuring process; a throughput verdict needs 0.
        governor: CPU frequency governor, or ``unknown``.
        cgroup_memory_bytes: Memory limit of the cgroup, where there is one.
        numa_nodes: Number of NUMA nodes.
        swap_bytes: Configured swap.
        os: Operating system as a build's platform says it, e.g. ``linux``; empty in journals that did not ask.
        machine: Processor architecture, e.g. ``x86_64``; likewise.
        name: What a description of a node that is elsewhere calls it; empty for a machine that was probed.
    """

    cpu_model: str
    cores: int
    isa: tuple[str, ...]
    ram_bytes: int
    gpus: tuple[Gpu, ...]
    kernel: str
    niceness: int
    governor: str
    cgroup_memory_bytes: int | None
    numa_nodes: int
    swap_bytes: int
    os: str = ""
    machine: str = ""
    name: str = ""

    @property
    def described(self) -> str:
        """It in a few words, so that a person knows which one is meant."""
        named = f"'{self.name}', " if self.name else ""
        counts = Counter(gpu.name for gpu in self.gpus)
        gpus = ", ".join(f"{count} x {name}" for name, count in counts.items()) or "no GPU"
        return f"{named}{self.cpu_model}, {self.cores} cores, {self.usable_ram_bytes / GIB:.0f} GiB, {gpus}"

    @property
    def usable_ram_bytes(self) -> int:
        """Physical memory, or the cgroup's limit where that is smaller."""
        return min(self.ram_bytes, self.cgroup_memory_bytes or self.ram_bytes)

    @property
    def fingerprint(self) -> str:
        """Hash of what has to be equal for figures of another time to be comparable: CPU, cores, memory, GPUs, kernel.

        Memory in whole GiB: the kernel keeps a little more or less of it for itself at each start.
        """
        gpus = [[gpu.name, round(gpu.vram_bytes / GIB), gpu.driver] for gpu in self.gpus]
        memory = [round(self.ram_bytes / GIB), round(self.usable_ram_bytes / GIB)]
        return "node-" + digest([self.cpu_model, self.cores, memory, gpus, self.kernel, self.numa_nodes])


@dataclass(frozen=True, slots=True)
class Lack:
    """A demand that a node does not meet.

    Attributes:
        said: What is needed, and what the node has.
        share: How far it is from meeting it: near 0 for almost, 1 for not at all.
    """

    said: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class NodeClass:
    """A predicate on probed facts; ``None`` and empty mean no demand.

    Attributes:
        name: The word after ``@`` in a case id.
        min_gpus: GPUs needed; the other demands of GPUs are made of so many.
        min_vram_gib: Memory that each of these GPUs needs.
        min_ram_gib: Main memory needed.
        min_cores: Cores needed.
        isa: Instruction sets needed.
        gpu_name: Part or glob of the names of these GPUs, as in `matches_name`.
        gpu_vendor: Vendor of these GPUs.
        min_compute_capability: Least compute capability of these GPUs, e.g. ``8.9``.
        no_gpu: There must be no GPU.
        cpu_model: Part or glob of the processor's name, likewise.
        os: Operating system needed.
        machine: Processor architecture needed.
    """

    name: str
    min_gpus: int = 0
    min_vram_gib: float = 0.0
    min_ram_gib: float = 0.0
    min_cores: int = 0
    isa: tuple[str, ...] = ()
    gpu_name: str = ""
    gpu_vendor: str = ""
    min_compute_capability: str = ""
    no_gpu: bool = False
    cpu_model: str = ""
    os: str = ""
    machine: str = ""

    def unmet(self, node: NodeFacts) -> str:
        """Say which demand the node does not meet.

        Returns:
            The first unmet demand as a phrase with both figures, or an empty string when the node belongs to the class.
        """
        return next((lack.said for lack in self.lacks(node)), "")

    def lacks(self, node: NodeFacts) -> tuple[Lack, ...]:
        """All demands that the node does not meet; none when the node belongs to the class."""
        found = (
            *self._gpu_lacks(node),
            _too_little(
                "GiB of RAM", self.min_ram_gib, node.usable_ram_bytes / GIB, f"{node.usable_ram_bytes / GIB:.1f}"
            ),
            _too_little("cores", self.min_cores, node.cores, str(node.cores)),
            self._isa_lack(node),
            self._cpu_lack(node),
            _other("operating system", self.os, node.os),
            _other("processor architecture", self.machine, node.machine),
        )
        return tuple(lack for lack in found if lack)

    def gpus_of(self, node: NodeFacts) -> tuple[int, ...]:
        """Numbers of a node's GPUs that meet all that the class asks of one."""
        return tuple(number for number, gpu in enumerate(node.gpus) if self._fits(gpu))

    def gpu_choices(self, node: NodeFacts) -> tuple[tuple[int, ...], ...]:
        """Numbers of the GPUs that a job of the class can get on a node, the first choice first.

        As many as the class asks for, the largest of a mixed host; of a class that asks for none, all or none.
        """
        if not self.min_gpus:
            return (tuple(range(len(node.gpus))), ()) if node.gpus else ((),)
        by_size = sorted(self.gpus_of(node), key=lambda number: -node.gpus[number].vram_bytes)
        return (tuple(sorted(by_size[: self.min_gpus])),)

    def _gpu_lacks(self, node: NodeFacts) -> tuple[Lack, ...]:
        if self.no_gpu:
            return (Lack(f"needs a node without GPU, node has {_describe_gpus(node)}"),) if node.gpus else ()
        fitting = len(self.gpus_of(node))
        if fitting >= self.min_gpus:
            return ()
        said = f"needs {self.min_gpus} GPU{self._gpu_demands}, node has {_describe_gpus(node, self)}"
        return (Lack(said, (1 if node.gpus else 2) * (1 - fitting / self.min_gpus) / 2),)

    @property
    def _gpu_demands(self) -> str:
        words = (
            (" of vendor {}", self.gpu_vendor),
            (" named '{}'", self.gpu_name),
            (" of compute capability {} or more", self.min_compute_capability),
            (" with {:g} GiB", self.min_vram_gib),
        )
        return "".join(word.format(value) for word, value in words if value)

    def _fits(self, gpu: Gpu) -> bool:
        return (
            gpu.vram_bytes >= self.min_vram_gib * GIB
            and self.gpu_vendor in ("", gpu.vendor)
            and matches_name(gpu.name, self.gpu_name)
            and (not self.min_compute_capability or _version(gpu.arch) >= _version(self.min_compute_capability))
        )

    def _cpu_lack(self, node: NodeFacts) -> Lack | None:
        if matches_name(node.cpu_model, self.cpu_model):
            return None
        return Lack(f"needs a processor named '{self.cpu_model}', node has {node.cpu_model}")

    def _isa_lack(self, node: NodeFacts) -> Lack | None:
        missing = sorted(set(self.isa) - set(node.isa))
        if not missing:
            return None
        had = ", ".join(node.isa) or "none of those known"
        return Lack(f"needs instruction set {', '.join(missing)}, node has {had}", len(missing) / len(self.isa))


def matches_name(name: str, pattern: str) -> bool:
    """Whether a name has a part, or matches a glob (with ``*``, ``?`` or ``[``); upper and lower case are alike."""
    folded, wanted = name.lower(), pattern.lower()
    return fnmatchcase(folded, wanted) if _GLOB.search(wanted) else wanted in folded


def _too_little(what: str, needed: float, found: float, shown: str) -> Lack | None:
    return None if found >= needed else Lack(f"needs {needed:g} {what}, node has {shown}", 1 - found / needed)


def _other(what: str, needed: str, found: str) -> Lack | None:
    if needed in ("", found):
        return None
    return Lack(f"needs {what} {needed}, node has {found or 'an unknown one'}")


def _version(arch: str) -> tuple[int, ...]:
    """A compute capability as numbers; empty, and so below all, where it is none (other vendors have names)."""
    return tuple(map(int, arch.split("."))) if re.fullmatch(r"\d+(\.\d+)*", arch) else ()


def _describe_gpus(node: NodeFacts, wanted: NodeClass | None = None) -> str:
    """The GPUs with what a class asks of them."""
    if not node.gpus:
        return "none"
    return ", ".join(f"{gpu.name} ({_gpu_figures(gpu, wanted)})" for gpu in node.gpus)


def _gpu_figures(gpu: Gpu, wanted: NodeClass | None) -> str:
    capability = f", compute capability {gpu.arch or 'unknown'}" if wanted and wanted.min_compute_capability else ""
    vendor = f"{gpu.vendor}, " if wanted and wanted.gpu_vendor else ""
    return f"{vendor}{gpu.vram_bytes / GIB:.0f} GiB{capability}"
