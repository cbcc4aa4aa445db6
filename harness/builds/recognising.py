"""What a build really is: asked of its programs, its files, the system's loader and its build folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.builds.calls import Call, Run
from harness.builds.cmake_cache import Compilation, compilation_of, same_value
from harness.builds.linked import Linked, linked_libraries
from harness.builds.provenance import Provenance, commit_differs, provenance_of
from harness.builds.version import TIMEOUT_S, told_version
from harness.domain.build import Build, Fork
from harness.engines.bench import BenchEngine
from harness.engines.bench_help import help_flags, identify_fork
from harness.engines.programs import with_libraries

PROGRAMS = ("llama-bench", "llama-server", "llama-cli", "llama-quantize", "llama-perplexity")
_LOADED_BACKEND = re.compile(r"load_backend: loaded (\w+) backend from (\S+)")

_BACKENDS = {
    "CUDA": ("libggml-cuda", "libcudart", "libcublas"),
    "HIP": ("libggml-hip", "libamdhip64", "libhipblas"),
    "Vulkan": ("libggml-vulkan", "libvulkan"),
    "SYCL": ("libggml-sycl", "libsycl"),
    "Metal": ("libggml-metal",),
    "MUSA": ("libggml-musa", "libmusart"),
    "CANN": ("libggml-cann", "libascendcl"),
    "OpenCL": ("libggml-opencl", "libOpenCL"),
    "RPC": ("libggml-rpc",),
    "BLAS": ("libggml-blas",),
}
"""ggml's backends, by the libraries of which one is loaded where it is compiled in."""
_BLAS = {
    "openblas": ("libopenblas",),
    "mkl": ("libmkl_",),
    "blis": ("libblis",),
    "flexiblas": ("libflexiblas",),
    "nvpl": ("libnvpl_blas",),
    "reference": ("libblas.so", "libcblas.so"),
}
_FEATURES = re.compile(r"^GGML_(NATIVE|SSE42|AVX\w*|FMA|F16C|BMI2|AMX\w*|CPU_ALL_VARIANTS)$")
"""Not those of other processors: their options are on whatever is compiled for."""
NO_BLAS = "none"


@dataclass(frozen=True, slots=True)
class Recognised:
    """What is known of a build. What could not be found out is empty or ``None``.

    Attributes:
        program: Its ``llama-bench``.
        programs: Its programs by name.
        fork: The fork that its ``--help`` tells.
        commit: Its commit: that of the recipe that made it, or as compiled in.
        reported: The commit that its programs tell, or its beginning.
        number: Its build number.
        compiler: The compiler, as compiled in.
        backends: ggml's backends that are compiled in.
        blas: The BLAS library, ``none``.
        features: Instruction sets that it was compiled for, as CMake's options say, or as loaded CPU variants do.
        options: Options of CMake.
        libraries: Files that are really loaded, by name.
        missing: Libraries that are not found, by the program that can't start without them.
        provenance: How a recipe made it.
        complaint: What the program printed where it can't list its options.
    """

    program: Path
    programs: Mapping[str, Path]
    fork: Fork | None = None
    commit: str = ""
    reported: str = ""
    number: str = ""
    compiler: str = ""
    backends: tuple[str, ...] | None = None
    blas: str = ""
    features: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, Path] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provenance: Provenance | None = None
    complaint: str = ""

    def told(self) -> dict[str, str]:
        """It as words, for people and for the catalogue."""
        made = self.provenance
        words = {
            "program": str(self.program),
            "programs": ", ".join(self.programs),
            "fork": str(self.fork or ""),
            "commit": self.commit + (" with changes" if self.commit and made and made.changed else ""),
            "reports": f"commit {self.reported}, not its own" if commit_differs(self.commit, self.reported) else "",
            "build number": self.number,
            "compiler": self.compiler,
            "backends": ", ".join(self.backends or ()),
            "BLAS": self.blas,
            "instruction sets": ", ".join(self.features),
            "CUDA architectures": self.options.get("CMAKE_CUDA_ARCHITECTURES", ""),
            "libraries": ", ".join(sorted(self.libraries)),
            "missing libraries": missing_text(self.missing),
            "complains": self.complaint,
        }
        return {word: value for word, value in words.items() if value}


def recognise(build: Build, run: Run, environment: Mapping[str, str] | None = None) -> Recognised:
    """Find out what a build is.

    Its programs are run with ``--help`` and ``--version``, in a clean environment; nothing else is.

    Args:
        build: A build by path.
        run: Runs them.
        environment: Variables that they get.

    Raises:
        BadInput: ``E-build-missing``, ``E-build-not-executable``, ``E-build-not-a-program``.
    """
    program = Path(BenchEngine(build).locate()[0])
    variables = with_libraries(program, environment or {})
    programs = {name: program.with_name(name) for name in PROGRAMS if program.with_name(name).is_file()}
    linked = linked_libraries(program, variables, run)
    listing = run(Call((str(program), "--help"), TIMEOUT_S, environment=variables))
    text = listing.stdout + listing.stderr
    loaded_late = {Path(file).name: Path(file) for _, file in _LOADED_BACKEND.findall(text)}
    libraries = {**linked.found, **loaded_late}
    compiled = compilation_of(program)
    made = provenance_of(program.parent)
    version = told_version(program, variables, run)
    reported = _first(version.commit, made.reported if made else "", compiled.told.get("commit", ""))
    return Recognised(
        program=program,
        programs={"llama-bench": program, **programs},
        fork=identify_fork(text),
        commit=_first(made.commit if made else "", reported),
        reported=reported,
        number=_first(version.number, made.number if made else "", compiled.told.get("number", "")),
        compiler=_first(version.compiler, made.compiler if made else "", compiled.told.get("compiler", "")),
        backends=_backends(compiled, libraries, linked),
        blas=_blas(compiled, libraries, linked),
        features=_features(compiled, libraries),
        options=compiled.options,
        libraries=libraries,
        missing=missing_libraries(program, run, variables),
        provenance=made,
        complaint="" if help_flags(text) else " ".join(text.split())[-300:] or listing.how,
    )


def missing_libraries(
    program: Path, run: Run, environment: Mapping[str, str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Libraries without which programs of a build can't start, as far as the loader tells.

    Args:
        program: Its ``llama-bench``; the others lie beside it.
        run: Runs the loader.
        environment: Variables that they get.

    Returns:
        Names of libraries by the name of the program; programs that miss none are left out.
    """
    variables = with_libraries(program, environment or {})
    family = {program.name: program, **{name: program.with_name(name) for name in PROGRAMS}}
    missing = {
        name: tuple(dict.fromkeys(linked_libraries(file, variables, run).missing))
        for name, file in family.items()
        if file.is_file()
    }
    return {name: names for name, names in missing.items() if names}


def missing_text(missing: Mapping[str, tuple[str, ...]]) -> str:
    """Which program misses which libraries, in words; empty if none does."""
    return "; ".join(f"{program} misses {', '.join(names)}" for program, names in missing.items())


def _first(*found: str) -> str:
    return next(filter(None, found), "")


def _is_loaded(prefixes: Sequence[str], libraries: Mapping[str, Path]) -> bool:
    return any(name.startswith(tuple(prefixes)) for name in libraries)


def _backends(compiled: Compilation, libraries: Mapping[str, Path], linked: Linked) -> tuple[str, ...] | None:
    """By options of CMake where there are some, and by what is loaded; the CPU's is always there."""
    if not linked.known and not compiled.options:
        return None

    def is_in(name: str, prefixes: Sequence[str]) -> bool:
        return same_value("ON", compiled.options.get(f"GGML_{name.upper()}", "OFF")) or _is_loaded(prefixes, libraries)

    return tuple(sorted({"CPU", *(name for name, prefixes in _BACKENDS.items() if is_in(name, prefixes))}))


def _blas(compiled: Compilation, libraries: Mapping[str, Path], linked: Linked) -> str:
    loaded = next((name for name, prefixes in _BLAS.items() if _is_loaded(prefixes, libraries)), "")
    if loaded:
        return loaded
    if same_value("ON", compiled.options.get("GGML_BLAS", "OFF")):
        return compiled.options.get("GGML_BLAS_VENDOR", "unknown").lower()
    return NO_BLAS if linked.known or compiled.options else ""


def _features(compiled: Compilation, libraries: Mapping[str, Path]) -> tuple[str, ...]:
    on = [name for name, value in compiled.options.items() if same_value("ON", value)]
    said = [match.group(1).lower() for name in on if (match := _FEATURES.match(name))]
    variants = [name.split(".so")[0].removeprefix("libggml-cpu-") for name in libraries if "libggml-cpu-" in name]
    return tuple(sorted({*said, *variants}))
