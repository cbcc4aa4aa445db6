"""A node as probed, and the node classes that a matrix declares as predicates on those facts."""

from __future__ import annotations

from dataclasses import dataclass

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
class NodeClass:
    """A predicate on probed facts; ``None`` and empty mean no demand.

    Attributes:
        name: The word after ``@`` in a case id.
        min_gpus: GPUs needed.
        min_vram_gib: Memory that each of these GPUs needs.
        min_ram_gib: Main memory needed.
        min_cores: Cores needed.
        isa: Instruction sets needed.
    """

    name: str
    min_gpus: int = 0
    min_vram_gib: float = 0.0
    min_ram_gib: float = 0.0
    min_cores: int = 0
    isa: tuple[str, ...] = ()

    def unmet(self, node: NodeFacts) -> str:
        """Say which demand the node does not meet.

        Returns:
            The first unmet demand as a phrase with both figures, or an empty string when the node belongs to the class.
        """
        fitting = [gpu for gpu in node.gpus if gpu.vram_bytes >= self.min_vram_gib * GIB]
        if len(fitting) < self.min_gpus:
            size = f" with {self.min_vram_gib:g} GiB" if self.min_vram_gib else ""
            return f"needs {self.min_gpus} GPU{size}, node has {_describe_gpus(node)}"
        if node.usable_ram_bytes < self.min_ram_gib * GIB:
            return f"needs {self.min_ram_gib:g} GiB of RAM, node has {node.usable_ram_bytes / GIB:.1f}"
        if node.cores < self.min_cores:
            return f"needs {self.min_cores} cores, node has {node.cores}"
        missing = sorted(set(self.isa) - set(node.isa))
        if missing:
            return (
                f"needs instruction set {', '.join(missing)}, node has {', '.join(node.isa) or 'none of those known'}"
            )
        return ""


def _describe_gpus(node: NodeFacts) -> str:
    if not node.gpus:
        return "none"
    return ", ".join(f"{gpu.name} ({gpu.vram_bytes / GIB:.0f} GiB)" for gpu in node.gpus)
