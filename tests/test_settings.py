"""The variables of the environment: what each may be, and what is said before anything runs where one is nonsense."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from forked import run_forked

from harness import settings
from harness.domain.errors import BadInput

ALL = {name for name in vars(settings).values() if isinstance(name, str) and re.fullmatch(r"MOE_[A-Z_]+", name)}


@pytest.fixture(autouse=True)
def _none_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ALL:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_variable_is_not_set(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CI systems write one for a value that nobody gave."""
    for name in ALL:
        monkeypatch.setenv(name, empty)
    settings.check_settings()
    assert settings.cache_dir() is None
    assert settings.cache_bytes() is None
    assert settings.cores() == ()


@pytest.mark.parametrize(("said", "size"), [("2", 2 * 1024**3), (" .5 ", 512 * 1024**2), ("1.", 1024**3)])
def test_a_quota_is_a_number_of_gib(said: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CACHE_GIB, said)
    assert settings.cache_bytes() == size


def test_paths_are_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a relative one every process would make another folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(settings.CACHE_DIR, "c")
    monkeypatch.setenv(settings.CONFIG_DIR, "~/x")
    assert settings.cache_dir() == tmp_path / "c"
    assert settings.config_dir() == Path.home() / "x"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *(
            (settings.CACHE_GIB, said)
            for said in ("much", "0", "0.0", "-3", "inf", "nan", "1e99", "1_0", "9" * 40, "5GiB")
        ),
        *((settings.CORES, said) for said in ("a", "1-", "2-1", ",", "-1", "0x1", "1;2", "1,,2")),
        *((name, "{file}") for name in (settings.CACHE_DIR, settings.CONFIG_DIR, settings.LOCK_DIR)),
        *((name, "~nobody-of-that-name/x") for name in sorted(ALL) if name.endswith(("_DIR", "SPREADS"))),
        *((name, "/" + "x" * 300) for name in sorted(ALL) if name.endswith(("_DIR", "SPREADS"))),
        (settings.SPREADS, "{folder}"),
    ],
)
def test_nonsense_is_told_with_its_variable(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(name, said.format(file=tmp_path / "file", folder=tmp_path))
    with pytest.raises(BadInput, match=f"E-bad-setting: {name}: ") as refused:
        settings.check_settings()
    assert refused.value.hint


@pytest.mark.parametrize("command", [("moe-harness", "models", "list"), ("pytest", "-m", "moe", "--collect-only")])
def test_a_command_refuses_nonsense_before_it_does_anything(command: tuple[str, ...], tmp_path: Path) -> None:
    """Each would have gone on for a while without needing the value."""
    program, *words = command
    done = run_forked(program, *words, cwd=tmp_path, env={**os.environ, settings.CORES: "all"})
    told = done.stdout + done.stderr
    assert "E-bad-setting: MOE_CORES: expected cores such as 0-3,8, found 'all'" in told
    assert "Traceback" not in told
    assert done.returncode == (2 if program == "moe-harness" else pytest.ExitCode.USAGE_ERROR)


def test_nobody_else_reads_them() -> None:
    """One reader each: a second one would have rules of its own."""
    package = Path(settings.__file__).parent
    readers = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"""environ[^\n]*["']MOE_|getenv[^\n]*["']MOE_|=\s*["']MOE_""", path.read_text(encoding="utf-8"))
    ]
    assert readers == ["settings.py"]
    page = (package.parent / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert {name for name in ALL if f"`{name}`" not in page} == set()
