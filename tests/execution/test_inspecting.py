"""What is asked of a build before it measures: its --help, and what becomes of one that cannot answer."""

from __future__ import annotations

from pathlib import Path

from harness.domain.build import Build, Fork
from harness.engines.bench import BenchEngine
from harness.execution.inspecting import informed_engine, known_options

HELP = "#!/bin/sh\necho '  -p, --n-prompt <n>'\n"


def build_at(folder: Path, script: str) -> Build:
    """A build whose llama-bench is a script."""
    program = folder / "llama-bench"
    program.write_text(script)
    program.chmod(0o755)
    return Build("b", Fork.LLAMA_CPP, path=str(program))


def options_of(build: Build, environment: dict[str, str] | None = None) -> frozenset[str] | None:
    engine = informed_engine(build, environment)
    assert isinstance(engine, BenchEngine)
    return engine.options


def test_a_build_that_cannot_be_started_is_not_taken_for_one_without_options(tmp_path: Path) -> None:
    """Its complaint is no list: with an empty list every flag would be left out, and with it the reason."""
    broken = build_at(tmp_path, "#!/bin/sh\necho 'error while loading shared libraries: libcudart.so' >&2\nexit 127\n")
    assert options_of(broken) is None
    assert known_options([broken]) == {}


def test_a_build_is_asked_with_the_variables_of_its_processes(tmp_path: Path) -> None:
    needy = build_at(tmp_path, HELP.replace("\n", '\n[ "$NEEDED" = yes ] || exit 127\n', 1))
    assert known_options([needy]) == {}
    assert known_options([needy], {"NEEDED": "yes"}) == {"b": frozenset({"-p", "--n-prompt"})}


def test_a_build_is_asked_again_once_a_library_of_it_has_changed(tmp_path: Path) -> None:
    """The program itself may be a few lines that never change."""
    build = build_at(tmp_path, "#!/bin/sh\ncat ${0%/*}/libllama-bench.so\n")
    library = tmp_path / "libllama-bench.so"
    library.write_text("  -p, --n-prompt <n>\n")
    assert options_of(build) == {"-p", "--n-prompt"}
    before = (tmp_path / "llama-bench").stat().st_mtime_ns
    library.write_text("  -p, --n-prompt <n>\n  --new <n>\n")
    assert options_of(build) == {"-p", "--n-prompt", "--new"}
    assert (tmp_path / "llama-bench").stat().st_mtime_ns == before


def test_a_build_of_the_other_fork_is_left_out(tmp_path: Path) -> None:
    """What it lacks would be told of it as unsupported, where the whole build is wrong."""
    assert known_options([build_at(tmp_path, HELP + "echo '  -fmoe <0|1>'\n")]) == {}


def test_a_build_that_is_not_here_is_left_out(tmp_path: Path) -> None:
    assert known_options([Build("b", Fork.LLAMA_CPP, path=str(tmp_path / "none"))]) == {}
