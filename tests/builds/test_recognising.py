"""What a build is, from its programs, files and build folder; and refused where the matrix says otherwise."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.builds.calls import Call, Ended
from harness.builds.checking import require_as_said, told_otherwise
from harness.builds.provenance import commit_differs
from harness.builds.recognising import Recognised, recognise
from harness.domain.build import Build, BuildSource, Fork, Patch
from harness.domain.errors import BadInput
from harness.execution.builds import run_call
from harness.planning.presence import build_missing

MAINLINE = """load_backend: loaded CUDA backend from {folder}/libggml-cuda.so
load_backend: loaded CPU backend from {folder}/libggml-cpu-icelake.so
usage: llama-bench [options]
  --prio <0|1|2|3>
  -pg <pp,tg>
"""
VERSION = "version: 6982 (e14e842e8)\nbuilt with cc (Ubuntu 11.4.0-1ubuntu1~22.04.2) 11.4.0 for x86_64-linux-gnu\n"
CACHE = """# This is the CMakeCache file.
CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/c++
CMAKE_BUILD_TYPE:STRING=Release
CMAKE_CUDA_ARCHITECTURES:STRING=90;100
GGML_CUDA:BOOL=ON
GGML_BLAS:BOOL=OFF
GGML_BLAS_VENDOR:STRING=Generic
GGML_NATIVE:BOOL=OFF
GGML_AVX2:BOOL=ON
GGML_AVX512:BOOL=OFF
LLAMA_CURL:BOOL=1
OTHER_THING:BOOL=ON
GGML_RVV:BOOL=ON
//ADVANCED property for variable: CMAKE_CXX_COMPILER
CMAKE_CXX_COMPILER-ADVANCED:INTERNAL=1
CMAKE_CXX_COMPILER_AR:FILEPATH=/usr/bin/gcc-ar-12
"""


def script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n")
    file.chmod(0o755)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A build folder as CMake leaves it; its programs are scripts."""
    folder = tmp_path / "build" / "bin"
    folder.mkdir(parents=True)
    script(folder / "llama-bench", MAINLINE.format(folder=folder))
    script(folder / "llama-cli", VERSION)
    (folder.parent / "CMakeCache.txt").write_text(CACHE)
    return Build("b", Fork.LLAMA_CPP, path=str(folder.parent))


def test_a_build_folder_is_recognised(build: Build, tmp_path: Path) -> None:
    """Fork, commit and number, compiler, backends that were loaded, options, instruction sets."""
    found = recognise(build, run_call)
    assert found.fork is Fork.LLAMA_CPP
    assert (found.commit, found.number) == ("e14e842e8", "6982")
    assert found.compiler == "cc (Ubuntu 11.4.0-1ubuntu1~22.04.2) 11.4.0"
    assert found.backends == ("CPU", "CUDA")
    assert found.blas == "none"
    assert found.features == ("avx2", "icelake")
    assert found.options["CMAKE_CUDA_ARCHITECTURES"] == "90;100"
    assert [name for name in found.options if not name.startswith(("GGML_", "LLAMA_"))] == [
        "CMAKE_CXX_COMPILER",
        "CMAKE_BUILD_TYPE",
        "CMAKE_CUDA_ARCHITECTURES",
    ]
    assert set(found.libraries) == {"libggml-cuda.so", "libggml-cpu-icelake.so"}
    assert list(found.programs) == ["llama-bench", "llama-cli"]
    assert found.told()["CUDA architectures"] == "90;100"
    assert found.complaint == ""


def test_a_program_that_tells_nothing_is_known_by_its_generated_source(build: Build) -> None:
    folder = Path(build.path)
    (folder / "bin" / "llama-cli").unlink()
    (folder / "common").mkdir()
    (folder / "common" / "build-info.cpp").write_text(
        'int LLAMA_BUILD_NUMBER = 4000;\nchar const * LLAMA_COMMIT = "0123abc";\n'
    )
    found = recognise(build, run_call)
    assert (found.commit, found.number, found.compiler) == ("0123abc", "4000", "")
    assert found.options["CMAKE_CXX_COMPILER"] == "/usr/bin/c++"


def test_a_version_that_nobody_compiled_in_is_not_known(build: Build) -> None:
    """``version: 0 (unknown)`` is what a source without git gives."""
    script(Path(build.path) / "bin" / "llama-cli", "version: 0 (unknown)\nbuilt with cc 13 for x86_64-linux-gnu\n")
    found = recognise(build, run_call)
    assert (found.commit, found.number, found.compiler) == ("", "", "cc 13")


def test_a_program_alone_in_its_folder(tmp_path: Path) -> None:
    """Nothing is claimed that nothing tells."""
    script(tmp_path / "llama-bench", "  -rtr <0|1>\n")
    found = recognise(Build("b", Fork.IK_LLAMA_CPP, path=str(tmp_path)), run_call)
    assert found.complaint == ""
    assert found.fork is Fork.IK_LLAMA_CPP
    assert (found.commit, found.backends, found.blas, dict(found.libraries)) == ("", None, "", {})


def test_what_a_program_complains_of_is_told(tmp_path: Path) -> None:
    """A build that can't list its options says why."""
    script(tmp_path / "llama-bench", "error while loading shared libraries: libcudart.so.12\n")
    told = recognise(Build("b", Fork.LLAMA_CPP, path=str(tmp_path)), run_call).told()
    assert told["complains"] == "error while loading shared libraries: libcudart.so.12"


def test_a_real_programs_libraries_are_those_that_its_loader_finds(tmp_path: Path) -> None:
    """Asked of the system's loader; an unknown one is missing."""
    (tmp_path / "llama-bench").symlink_to("/bin/true")
    found = recognise(Build("b", Fork.LLAMA_CPP, path=str(tmp_path)), run_call)
    assert Path("/").joinpath(found.libraries["libc.so.6"]).is_file()
    assert found.missing == {}


@pytest.mark.parametrize(
    ("lines", "backends", "blas"),
    [
        ("\tlibggml-base.so => /x/libggml-base.so (0x1)\n", ("CPU",), "none"),
        ("\tlibopenblas.so.0 => /usr/lib/libopenblas.so.0 (0x1)\n", ("CPU",), "openblas"),
        (
            "\tlibcudart.so.12 => /usr/lib/libcudart.so.12 (0x1)\n\tlibvulkan.so.1 => not found\n",
            ("CPU", "CUDA"),
            "none",
        ),
        ("\tlibamdhip64.so.6 => /opt/rocm/libamdhip64.so.6 (0x1)\n", ("CPU", "HIP"), "none"),
        ("\tlibmkl_rt.so.2 => /opt/libmkl_rt.so.2 (0x1)\n\tlibggml-blas.so => /x (0x1)\n", ("BLAS", "CPU"), "mkl"),
    ],
)
def test_what_is_loaded_tells_backends_and_blas(
    tmp_path: Path, lines: str, backends: tuple[str, ...], blas: str
) -> None:
    """Also of a build whose folder is gone."""
    script(tmp_path / "llama-bench", "  --prio <n>\n")

    def run(call: Call) -> Ended:
        return Ended("", lines if "LD_TRACE_LOADED_OBJECTS" in call.environment else "", "")

    found = recognise(Build("b", Fork.LLAMA_CPP, path=str(tmp_path)), run)
    assert (found.backends, found.blas) == (backends, blas)
    assert found.missing == ({"llama-bench": ("libvulkan.so.1",)} if "not found" in lines else {})


# ---- against what is said --------------------------------------------------------------------------------------------

FOUND = Recognised(
    program=Path("/b/llama-bench"),
    programs={},
    fork=Fork.LLAMA_CPP,
    commit="e14e842e8",
    number="6982",
    compiler="cc (Ubuntu 11.4.0) 11.4.0",
    backends=("CPU", "CUDA"),
    blas="none",
    options={"GGML_CUDA": "ON", "LLAMA_CURL": "1"},
    libraries={"libcudart.so.12": Path("/x")},
)
TRUE = BuildSource(
    repository="https://example.org",
    commit="e14e842e8d2f",
    compiler="Ubuntu 11.4",
    cmake=(("GGML_CUDA", "1"), ("LLAMA_CURL", "on")),
    libraries=("libcudart",),
    blas="none",
    backends=("CPU", "CUDA"),
)


def test_a_build_that_is_what_is_said_is_not_refused() -> None:
    """A commit may be said longer than it is told; what the build does not tell is not held against it."""
    require_as_said(Build("b", Fork.LLAMA_CPP, path="/b", source=TRUE), FOUND)
    nothing = Recognised(program=Path("/b/llama-bench"), programs={})
    require_as_said(Build("b", Fork.LLAMA_CPP, path="/b", source=TRUE), nothing)
    require_as_said(Build("b", Fork.LLAMA_CPP, path="/b"), FOUND)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"commit": "e14e842f"}, "commit e14e842f was said, it is of e14e842e8"),
        ({"number": 1}, "build number 1 was said, it has 6982"),
        ({"backends": ("CPU",)}, "backends CPU were said, it has CPU, CUDA"),
        ({"blas": "OpenBLAS"}, "BLAS OpenBLAS was said, it has none"),
        ({"compiler": "clang"}, "compiler clang was said, it was compiled with cc (Ubuntu 11.4.0) 11.4.0"),
        ({"cmake": (("GGML_CUDA", "OFF"),)}, "GGML_CUDA=OFF was said, it was compiled with GGML_CUDA=ON"),
        ({"cmake": (("GGML_VULKAN", "ON"),)}, "GGML_VULKAN=ON was said, its CMakeCache.txt does not have it"),
        ({"libraries": ("libopenblas",)}, "library libopenblas was said, it loads libcudart.so.12"),
    ],
)
def test_a_build_that_is_something_else_is_refused_with_both(change: Mapping[str, object], said: str) -> None:
    build = Build("b", Fork.LLAMA_CPP, path="/b", source=dataclasses.replace(TRUE, **change))
    with pytest.raises(BadInput) as refused:
        require_as_said(build, FOUND)
    assert refused.value.slug == "E-build-mismatch"
    assert said in refused.value.message
    assert refused.value.message.count(" said, ") == 1


def test_patches_of_a_made_build_are_compared_by_their_digests(tmp_path: Path) -> None:
    """Those that were applied are written beside it."""
    script(tmp_path / "llama-bench", "  -rtr <0|1>\n")
    made = {
        **dict.fromkeys(("recipe", "repository", "commit", "tree", "platform", "number", "compiler"), ""),
        "fork": "ik_llama.cpp",
        "wanted": [],
        "changed": True,
        "patches": [{"name": "x.patch", "sha256": "1" * 64}],
        "offsets": [],
        "commands": [],
        "made": "2026-01-01T00:00:00Z",
        "seconds": 1.0,
    }
    (tmp_path / "made.json").write_text(json.dumps(made))
    found = recognise(Build("b", Fork.IK_LLAMA_CPP, path=str(tmp_path)), run_call)
    right, wrong = (BuildSource(patches=(Patch("x.patch", digit * 64),)) for digit in "12")
    require_as_said(Build("b", Fork.IK_LLAMA_CPP, path="/b", source=right), found)
    with pytest.raises(BadInput, match=r"patches x\.patch were said, it was made with x\.patch"):
        require_as_said(Build("b", Fork.IK_LLAMA_CPP, path="/b", source=wrong), found)
    here = Build("b", Fork.IK_LLAMA_CPP, path=str(tmp_path), source=wrong)
    assert build_missing(here).startswith("build b is not what is said: patches x.patch were said"), "a plan says it"
    assert build_missing(dataclasses.replace(here, source=right)) == ""


def test_a_commit_that_the_programs_report_otherwise_is_told_without_running_them(tmp_path: Path) -> None:
    """By a plan: what is compiled in stands in the build folder."""
    script(tmp_path / "llama-bench", "  -rtr <0|1>\n")
    (tmp_path / "CMakeCache.txt").write_text("GGML_CUDA:BOOL=OFF\n")
    (tmp_path / "build-info.cpp").write_text('char const * LLAMA_COMMIT = "abc1234";\n')
    build = Build("b", Fork.IK_LLAMA_CPP, path=str(tmp_path), source=BuildSource(commit="fff1234"))
    assert told_otherwise(build) == "commit fff1234 was said, it is of abc1234"
    assert told_otherwise(dataclasses.replace(build, source=BuildSource(commit="abc1234ff"))) == ""
    assert told_otherwise(dataclasses.replace(build, path="/none")) == ""


@pytest.mark.parametrize(
    ("said", "found", "differ"), [("abc1234", "abc1234ff", False), ("abc1234", "abc1235", True), ("", "a", False)]
)
def test_a_commit_may_be_its_beginning(said: str, found: str, differ: bool) -> None:
    assert commit_differs(said, found) is differ
