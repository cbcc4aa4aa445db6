"""Reading headers: sound files in figures, all others as errors."""

from __future__ import annotations

import os
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.domain.errors import BadInput, HarnessError
from harness.models.gguf_reader import read_header
from harness.models.gguf_writer import header_bytes
from harness.models.hashing import file_sha256
from harness.models.inspect import inspect_gguf

ANY_FIXTURE = (HealthCheck.function_scoped_fixture,)


def slug(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        inspect_gguf(path)
    assert caught.value.where == str(path)
    return caught.value.slug


def written(folder: Path, content: bytes) -> Path:
    path = folder / "file.gguf"
    path.write_bytes(content)
    return path


def header_with(
    metadata: bytes = b"", entries: int = 0, tensors: bytes = b"", count: int = 0, version: int = 3
) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, count, entries) + metadata + tensors


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def tensor(name: bytes, shape: tuple[int, ...], code: int, offset: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, code, offset)


def test_figures_of_the_micro_model(micro_file: Path) -> None:
    """Architecture, shape, vocabulary and provenance are those of the card."""
    info = inspect_gguf(micro_file)
    assert (info.architecture, info.layers, info.width) == ("qwen3moe", 1, 64)
    assert (info.experts, info.experts_used, info.context_length) == (4, 2, 8192)
    assert (info.tokenizer.model, info.tokenizer.pre, info.tokenizer.size) == ("gpt2", "qwen2", 278)
    assert (info.quant, info.synthetic, info.card, info.shards) == ("F16", True, "micro-moe", 1)
    assert info.size == micro_file.stat().st_size
    assert info.parameters == sum(each.nbytes // {"F16": 2, "F32": 4}[each.type] for each in info.tensors)
    assert sum(info.quant_mix.values()) == sum(each.nbytes for each in info.tensors)


def test_quantized_mix(tiny_iq4: Path, tiny_f16: Path) -> None:
    """A quantized file names its mixture, keeps parameters, vocabulary and the mark of synthetic weights."""
    info, twin = inspect_gguf(tiny_iq4), inspect_gguf(tiny_f16)
    assert info.quant == "IQ4_XS"
    assert next(iter(info.quant_mix)) == "IQ4_XS"
    assert (info.parameters, info.tokenizer) == (twin.parameters, twin.tokenizer)
    assert info.synthetic
    assert info.card == "tiny-moe"


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.02, 0.5, 0.999])
def test_cut_files_are_truncated(tmp_path: Path, micro_file: Path, share: float) -> None:
    """A file cut anywhere, in header or weights, is truncated, not something else."""
    content = micro_file.read_bytes()
    assert slug(written(tmp_path, content[: int(len(content) * share)])) == "E-gguf-truncated"


def test_files_of_another_kind(tmp_path: Path) -> None:
    """Foreign, empty, missing and irregular files are told apart."""
    assert slug(written(tmp_path, b"PK\x03\x04 a zip file")) == "E-not-gguf"
    assert slug(written(tmp_path, b"")) == "E-not-gguf"
    assert slug(tmp_path / "absent.gguf") == "E-model-missing"
    assert slug(tmp_path) == "E-not-gguf"
    os.mkfifo(tmp_path / "pipe.gguf")
    assert slug(tmp_path / "pipe.gguf") == "E-not-gguf"


def test_versions(tmp_path: Path) -> None:
    """Unknown versions say which are known; a big-endian file says that it is one."""
    assert slug(written(tmp_path, header_with(version=9))) == "E-gguf-version"
    path = written(tmp_path, b"GGUF" + struct.pack(">IQQ", 3, 0, 0))
    with pytest.raises(BadInput, match="big-endian"):
        inspect_gguf(path)


@pytest.mark.parametrize(
    "content",
    [
        b"GGUF" + struct.pack("<IQQ", 3, 2**62, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 2**62),
        header_with(struct.pack("<Q", 2**60), 1),
        header_with(text(b"k") + struct.pack("<IIQ", 9, 4, 2**61), 1),
        header_with(text(b"k") + struct.pack("<IIQ", 9, 8, 2**40), 1),
        header_with(text(b"k") + struct.pack("<IQ", 8, 2**50), 1),
        header_with(text(b"k") + struct.pack("<I", 77), 1),
        header_with(text(b"k") + struct.pack("<II", 9, 9), 1),
        header_with((text(b"k") + struct.pack("<IB", 0, 1)) * 2, 2),
        header_with(text(b"general.alignment") + struct.pack("<II", 4, 3), 1),
        header_with(tensors=tensor(b"t", (1,) * 5, 0, 0), count=1),
        header_with(tensors=tensor(b"t", (2**63,), 0, 0), count=1),
        header_with(tensors=tensor(b"t", (100,), 12, 0), count=1),
        header_with(tensors=tensor(b"t", (4,), 0, 1), count=1),
        header_with(tensors=tensor(b"t", (4,), 0, 0) + tensor(b"u", (4,), 0, 0), count=2) + bytes(64),
        header_with(tensors=tensor(b"t", (4,), 0, 0) + tensor(b"t", (4,), 0, 32), count=2) + bytes(128),
    ],
)
def test_absurd_headers_cost_an_error_and_no_memory(tmp_path: Path, content: bytes) -> None:
    """What can't be true of a sound file is corrupt; nothing is allocated for it."""
    path = written(tmp_path, content)
    tracemalloc.start()
    try:
        assert slug(path) == "E-gguf-corrupt"
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_unknown_tensor_type(tmp_path: Path) -> None:
    """A type that neither fork has is named with its tensor."""
    path = written(tmp_path, header_with(tensors=tensor(b"odd", (32,), 250, 0), count=1))
    with pytest.raises(BadInput, match=r"E-gguf-tensor-type.*'odd' has type 250"):
        inspect_gguf(path)


@settings(max_examples=150, deadline=None, suppress_health_check=ANY_FIXTURE)
@given(data=st.data())
def test_mutated_headers_are_errors_or_sound(tmp_path: Path, micro_file: Path, data: st.DataObject) -> None:
    """Whatever bytes of a header change, reading ends well or in one of our errors."""
    header = read_header(micro_file)
    content = bytearray(micro_file.read_bytes()[: header.data_start])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        patch = data.draw(st.binary(min_size=1, max_size=9))
        content[at : at + len(patch)] = patch
    path = written(tmp_path, bytes(content) + bytes(header.size - header.data_start))
    try:
        inspect_gguf(path)
    except HarnessError as error:
        assert error.slug.startswith(("E-gguf-", "E-not-gguf"))  # noqa: PT017 - either outcome is right


@settings(max_examples=100, deadline=None, suppress_health_check=ANY_FIXTURE)
@given(content=st.binary(max_size=200))
def test_any_bytes_after_the_magic_are_an_error_or_sound(tmp_path: Path, content: bytes) -> None:
    """Arbitrary content never escapes as another exception."""
    try:
        inspect_gguf(written(tmp_path, b"GGUF\x03\0\0\0" + content))
    except HarnessError as error:
        assert error.slug.startswith("E-gguf-")  # noqa: PT017 - either outcome is right


def test_written_headers_read_back_without_loss(tmp_path: Path, micro_file: Path) -> None:
    """Reading a header and writing it again gives the same bytes, so that cards can be made from files."""
    header = read_header(micro_file)
    again = header_bytes(header.metadata, [placed.spec for placed in header.tensors])
    assert again == micro_file.read_bytes()[: header.data_start]


def test_hash_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    """The hash is right, comes from the cache the second time, and is made anew after a change."""
    path, cache = tmp_path / "f", tmp_path / "cache"
    path.write_bytes(b"one")
    first = file_sha256(path, cache=cache)
    memory = next((cache / "hashes").iterdir())
    memory.write_text(memory.read_text().replace(first, "remembered"))
    assert file_sha256(path, cache=cache) == "remembered"
    path.write_bytes(b"other")
    assert file_sha256(path, cache=cache) not in (first, "remembered")


def test_hash_does_not_need_the_cache(tmp_path: Path) -> None:
    """A cache that can't be written is no error; a missing file is."""
    path = tmp_path / "f"
    path.write_bytes(b"one")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the cache folder should be")
    assert len(file_sha256(path, cache=blocked)) == 64
    with pytest.raises(BadInput, match="E-model-missing"):
        file_sha256(tmp_path / "absent", cache=blocked)
