"""Only wheels whose C structures were verified are called, and only if the library agrees."""

from __future__ import annotations

import ctypes
import dataclasses
from importlib.metadata import PackageNotFoundError

import pytest

from harness.engines.embedded import layouts, library
from harness.engines.embedded.errors import EXIT_REFUSED, EmbeddedError
from harness.engines.embedded.flags import FORKS, IK, MAINLINE
from harness.engines.embedded.layouts import VERIFIED, MainlineContextParams, MainlineModelParams, check_layout

pytest.importorskip("xllamacpp")
pytest.importorskip("ik_llama_cpp")


@pytest.mark.parametrize("fork", FORKS)
def test_the_installed_wheels_agree_with_their_layout(fork: str) -> None:
    """The library writes as many bytes, and the defaults, that the layout says."""
    _, layout = library.open_verified(fork)
    assert layout.fork == fork


@pytest.mark.parametrize("fork", FORKS)
def test_an_unverified_version_is_refused(fork: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version outside the table is never called; the message says what is verified and what to type."""
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "99.0")
    with pytest.raises(EmbeddedError) as caught:
        library.open_verified(fork)
    error = caught.value
    assert (error.slug, error.exit_code) == ("E-wheel-unverified", EXIT_REFUSED)
    assert "99.0 is installed" in error.message
    assert f"pip install '{layouts.DISTRIBUTIONS[fork]}=={layouts.verified_versions(fork)[-1]}'" in error.message


def test_an_empty_table_refuses_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no verified version at all there is still an answer."""
    monkeypatch.setattr(layouts, "VERIFIED", {})
    with pytest.raises(EmbeddedError, match=r"verified for none only; pip install 'xllamacpp'"):
        layouts.find_layout(MAINLINE, "2026.10.11549")


def test_a_missing_wheel_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wheel: the command to get a verified one."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    with pytest.raises(EmbeddedError, match=r"E-wheel-missing: .*pip install 'ik-llama-cpp-python=="):
        library.open_verified(IK)


def test_a_missing_openmp_runtime_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dynamic linker's message alone helps nobody."""

    def refuse(_path: str) -> ctypes.CDLL:
        raise OSError("libgomp.so.1: cannot open shared object file: No such file or directory")

    monkeypatch.setattr("ctypes.CDLL", refuse)
    with pytest.raises(EmbeddedError, match="apt-get install libgomp1"):
        library.open_verified(MAINLINE)


def test_a_structure_of_another_size_is_refused() -> None:
    """A field more in the library is seen before anything is called with the structure."""
    found, layout = library.open_verified(MAINLINE)
    shorter = dataclasses.replace(layout.context_params, written=160)
    with pytest.raises(EmbeddedError, match=r"E-wheel-layout: .*writes 168 bytes, expected 160"):
        check_layout(found, dataclasses.replace(layout, context_params=shorter))


def test_a_default_that_moved_is_refused() -> None:
    """Equal size does not mean equal order: the defaults are compared field by field."""
    found, layout = library.open_verified(IK)
    moved = dataclasses.replace(layout.context_params, defaults={"n_ctx": 2048})
    with pytest.raises(EmbeddedError, match=r"E-wheel-layout: .*n_ctx is 512, its documented default is 2048"):
        check_layout(found, dataclasses.replace(layout, context_params=moved))


def test_the_offsets_found_by_setting_one_attribute_at_a_time() -> None:
    """The offsets seen when xllamacpp's own conversion was compared byte for byte."""
    assert {
        name: getattr(MainlineModelParams, name).offset
        for name in ("n_gpu_layers", "split_mode", "load_mode", "lazy_mode", "main_gpu", "use_extra_bufts", "load_mtp")
    } == {
        "n_gpu_layers": 16,
        "split_mode": 20,
        "load_mode": 24,
        "lazy_mode": 28,
        "main_gpu": 32,
        "use_extra_bufts": 74,
        "load_mtp": 77,
    }
    assert {
        name: getattr(MainlineContextParams, name).offset
        for name in ("n_threads", "flash_attn_type", "yarn_orig_ctx", "type_k", "type_v", "embeddings", "kv_unified")
    } == {
        "n_threads": 28,
        "flash_attn_type": 52,
        "yarn_orig_ctx": 80,
        "type_k": 104,
        "type_v": 108,
        "embeddings": 136,
        "kv_unified": 141,
    }


def test_every_written_extent_ends_inside_its_structure() -> None:
    """What the library writes never passes the end of the structure that it is given."""
    for layout in VERIFIED.values():
        for structure in (layout.model_params, layout.context_params, layout.batch):
            size = ctypes.sizeof(structure.type)
            assert size - 8 < structure.written <= size
