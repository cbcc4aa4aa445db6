"""Builds of the llama.cpp family: which fork, where its engine comes from, and what it is said to be made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.domain.canonical import digest, fields_of
from harness.domain.node import NodeFacts


class Fork(StrEnum):
    """The two forks whose flags and output schemas are known."""

    LLAMA_CPP = "llama.cpp"
    IK_LLAMA_CPP = "ik_llama.cpp"


class Tool(StrEnum):
    """What measures inside an engine process."""

    EMBEDDED = "embedded"
    LLAMA_BENCH = "llama-bench"


NO_GPU = "none"
"""The word of a platform for nodes without a GPU."""
HOST_BACKENDS = frozenset({"cpu", "blas"})
"""ggml's backends that compute without a GPU, in lower case."""


@dataclass(frozen=True, slots=True)
class Platform:
    """What a variant of a build was compiled for, as a predicate on probed facts; empty means no demand.

    Attributes:
        os: Operating system, e.g. ``linux``.
        machine: Processor architecture, e.g. ``x86_64``.
        isa: Instruction sets that the processor must have.
        gpu: Vendor of a GPU that must be there, or ``none``: there must be none.
        gpu_arch: GPU architectures (CUDA's compute capabilities) it has code for: some GPU must be of one of them.
    """

    os: str = ""
    machine: str = ""
    isa: tuple[str, ...] = ()
    gpu: str = ""
    gpu_arch: tuple[str, ...] = ()

    def unmet(self, node: NodeFacts) -> str:
        """Which demand a node does not meet, with what it has; empty if it meets all."""
        if self.os and self.os != node.os:
            return f"needs {self.os}, node has {node.os or 'an unknown system'}"
        if self.machine and self.machine != node.machine:
            return f"needs {self.machine}, node has {node.machine or 'an unknown processor'}"
        missing = sorted(set(self.isa) - set(node.isa))
        if missing:
            return f"needs instruction set {', '.join(missing)}"
        return self._unmet_gpu(node)

    def _unmet_gpu(self, node: NodeFacts) -> str:
        vendors = sorted({gpu.vendor for gpu in node.gpus})
        if self.gpu == NO_GPU:
            return f"needs a node without GPU, node has {', '.join(vendors)}" if vendors else ""
        if self.gpu and self.gpu not in vendors:
            return f"needs a GPU of {self.gpu}, node has {', '.join(vendors) or 'none'}"
        found = sorted({gpu.arch or "unknown" for gpu in node.gpus if self.gpu in ("", gpu.vendor)})
        if self.gpu_arch and not set(self.gpu_arch) & set(found):
            return f"needs GPU architecture {' or '.join(self.gpu_arch)}, node has {', '.join(found) or 'no GPU'}"
        return ""


@dataclass(frozen=True, slots=True)
class Variant:
    """One platform's files of a build. Exactly one of ``path``, ``url`` and ``wheel`` is set.

    Attributes:
        platform: Where it runs.
        path: ``llama-bench`` or the folder that holds it.
        url: An archive, ``https://`` or ``file://``; ``http://`` on this machine alone.
        sha256: Digest of the archive.
        wheel: Distribution name of a wheel.
    """

    platform: Platform = Platform()
    path: str = ""
    url: str = ""
    sha256: str = ""
    wheel: str = ""

    @property
    def declared(self) -> dict[str, Any]:
        """What makes it what it is: not where its files lie."""
        return {"platform": fields_of(self.platform), "sha256": self.sha256, "wheel": self.wheel}


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch that a build's source was changed by.

    Attributes:
        name: Its file's name.
        sha256: Digest of the file.
        text: Its content, where the build is still to be made of it.
    """

    name: str
    sha256: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class BuildSource:
    """What a build is said to be made of; what is empty is not checked.

    Attributes:
        repository: Where its source lies.
        commit: Its commit, or the beginning of it.
        number: Its build number; ``None``: not said.
        patches: What was applied to that commit.
        cmake: Options of CMake.
        compiler: Words of the compiler's name and version.
        libraries: Beginnings of names of libraries that must be loaded.
        blas: ``none`` or the BLAS library.
        backends: ggml's backends, exactly these.
    """

    repository: str = ""
    commit: str = ""
    number: int | None = None
    patches: tuple[Patch, ...] = ()
    cmake: tuple[tuple[str, str], ...] = ()
    compiler: str = ""
    libraries: tuple[str, ...] = ()
    blas: str = ""
    backends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a build is made, as a user wrote it down. Nothing of it goes through a shell.

    Attributes:
        name: A word for its folders and logs.
        repository: A git repository's URL or folder, or a plain folder of sources.
        revision: What to build; empty for a folder as it is.
        merge_base: Two revisions whose merge base is built instead.
        patches: What is applied then, in this order, with their texts.
        configure: Argument vectors that are run first.
        build: Argument vectors that are run then.
        outputs: Patterns of what is kept of the build folder.
        environment: Variables that the commands get beside a clean environment.
        timeout_s: Limit of each command, seconds.
    """

    name: str
    repository: str
    revision: str
    merge_base: tuple[str, ...]
    patches: tuple[Patch, ...]
    configure: tuple[tuple[str, ...], ...]
    build: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    timeout_s: float

    @property
    def longest_s(self) -> float:
        """Seconds after which the last of its commands would be killed."""
        return self.timeout_s * (len(self.configure) + len(self.build))

    @property
    def identity(self) -> str:
        """Hash of all that decides what comes out of the same source: not where that lies, nor how long it may take."""
        parts = fields_of(self)
        for key in ("name", "repository", "revision", "merge_base", "timeout_s"):
            del parts[key]
        parts["patches"] = [patch.sha256 for patch in self.patches]
        return digest(parts)


@dataclass(frozen=True, slots=True)
class Build:
    """One build under a name. Exactly one of ``wheel``, ``path``, ``variants`` and ``recipe`` is set.

    Attributes:
        name: The matrix's name for it.
        fork: Whose flags and schemas it speaks.
        wheel: Distribution name of a wheel whose library is used in a child process.
        path: ``llama-bench`` or the folder that holds it.
        variants: Files per platform: which of them is chosen on the node.
        recipe: How it is made on the node, once.
        source: What it is said to be made of; it is refused where it is something else. ``None``: nothing is said.
        trusted: Whether its programs may do what the harness's user may; others run in a sandbox. No part of what it
            is: the same files measure the same.
    """

    name: str
    fork: Fork
    wheel: str = ""
    path: str = ""
    variants: tuple[Variant, ...] = ()
    recipe: Recipe | None = None
    source: BuildSource | None = None
    trusted: bool = True

    @property
    def tool(self) -> Tool:
        """What measures: our loop over the wheel's library, or the build's own ``llama-bench``."""
        of_wheel = self.wheel or any(variant.wheel for variant in self.variants)
        return Tool.EMBEDDED if of_wheel else Tool.LLAMA_BENCH

    @property
    def has_gpu_code(self) -> bool:
        """Whether it may compute on a GPU: wheels never do, others are taken to unless they say that they don't."""
        if self.wheel or (self.variants and all(each.wheel or each.platform.gpu == NO_GPU for each in self.variants)):
            return False
        backends = {backend.lower() for backend in self.source.backends} if self.source else set()
        return not backends or not backends <= HOST_BACKENDS

    @property
    def is_here(self) -> bool:
        """Whether it names files of this machine: nothing has to be chosen, fetched or made."""
        return not self.variants and self.recipe is None

    @property
    def declared(self) -> dict[str, Any]:
        """What makes it what it is, as JSON values: not where its files lie on one machine."""
        parts: dict[str, Any] = {"name": self.name, "fork": self.fork, "wheel": self.wheel}
        if self.variants:
            parts["variants"] = [variant.declared for variant in self.variants]
        if self.recipe:
            recipe = self.recipe
            parts["recipe"] = [recipe.identity, recipe.revision, list(recipe.merge_base)]
        if self.source is not None:
            parts["source"] = {
                **fields_of(self.source),
                "patches": [patch.sha256 for patch in self.source.patches],
            }
        return parts
