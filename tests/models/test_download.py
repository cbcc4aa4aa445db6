"""Fetching one file: whole with the right digest, or a named error; from a server on this machine."""

from __future__ import annotations

import dataclasses
import hashlib
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_server import Shelf, serving

from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.models.address import address_fault
from harness.models.download import Download, _CheckedRedirects, download

CONTENT = bytes(range(256)) * 8192
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    """A server with one file."""
    with serving() as shelf:
        shelf.files["/m.gguf"] = CONTENT
        yield shelf


def wanted(address: str, folder: Path, sha256: str = DIGEST) -> Download:
    return Download(address, sha256, folder / "m.gguf", silence_s=1.0)


def fault(wanted: Download) -> HarnessError:
    with pytest.raises(HarnessError) as caught:
        download(wanted)
    assert not wanted.target.exists()
    assert caught.value.where == wanted.url
    return caught.value


def test_a_file_comes_whole_with_progress(shelf: Shelf, tmp_path: Path) -> None:
    """The bytes are the server's, and who waits is told how many are there."""
    told: list[tuple[int, int]] = []
    asked: list[int] = []
    target = tmp_path / "m.gguf"
    download(Download(f"{shelf.address}/m.gguf", DIGEST, target, lambda *of: told.append(of), asked.append))
    assert target.read_bytes() == CONTENT
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert asked == [len(CONTENT)]
    assert [path.name for path in tmp_path.iterdir()] == ["m.gguf"]


def test_a_local_file_is_copied(tmp_path: Path) -> None:
    """``file://`` addresses are held against the digest too."""
    (tmp_path / "the source").write_bytes(CONTENT)
    download(wanted(f"file://{tmp_path}/the%20source", tmp_path))
    assert (tmp_path / "m.gguf").read_bytes() == CONTENT


def test_a_broken_transfer_is_told_and_gone_on_with(shelf: Shelf, tmp_path: Path) -> None:
    """What has arrived is kept, and only the rest is asked for."""
    shelf.cut["/m.gguf"] = 700_000
    error = fault(wanted(f"{shelf.address}/m.gguf", tmp_path))
    assert isinstance(error, Infrastructure)
    assert error.slug == "E-fetch-failed"
    assert "700000 of 2097152 bytes" in error.message
    download(wanted(f"{shelf.address}/m.gguf", tmp_path))
    assert (tmp_path / "m.gguf").read_bytes() == CONTENT
    assert shelf.asked == [("/m.gguf", ""), ("/m.gguf", "bytes=700000-")]


def test_a_server_without_ranges_sends_it_all_again(shelf: Shelf, tmp_path: Path) -> None:
    """An answer from the start is written from the start."""
    shelf.cut["/m.gguf"] = 700_000
    shelf.ranges = False
    fault(wanted(f"{shelf.address}/m.gguf", tmp_path))
    download(wanted(f"{shelf.address}/m.gguf", tmp_path))
    assert (tmp_path / "m.gguf").read_bytes() == CONTENT


@pytest.mark.parametrize("left", [b"of another file", CONTENT + b"too much", CONTENT])
def test_what_was_left_behind_by_another_file_does_no_harm(shelf: Shelf, tmp_path: Path, left: bytes) -> None:
    """A partial file that does not fit is thrown away and the file fetched from the start."""
    wish = wanted(f"{shelf.address}/m.gguf", tmp_path)
    wish.partial.write_bytes(left)
    download(wish)
    assert wish.target.read_bytes() == CONTENT


def test_another_digest_is_refused(shelf: Shelf, tmp_path: Path) -> None:
    """What came is named with both digests, and nothing of it is kept."""
    error = fault(wanted(f"{shelf.address}/m.gguf", tmp_path, "0" * 64))
    assert isinstance(error, BadInput)
    assert error.slug == "E-digest-mismatch"
    assert DIGEST in error.message
    assert list(tmp_path.iterdir()) == []


def test_what_is_too_large_is_not_kept(shelf: Shelf, tmp_path: Path) -> None:
    """Where the server says the size nothing is asked for room; where it says none the transfer ends at the limit."""
    asked: list[int] = []
    wish = Download(f"{shelf.address}/m.gguf", DIGEST, tmp_path / "m.gguf", room=asked.append, most_bytes=1_500_000)
    assert fault(wish).slug == "E-fetch-too-large"
    assert asked == []
    shelf.sizes = False
    assert fault(wish).slug == "E-fetch-too-large"
    assert list(tmp_path.iterdir()) == []
    download(dataclasses.replace(wish, most_bytes=len(CONTENT)))


@pytest.mark.parametrize("to", ["http://example.org/b", "http://127.0.0.1/b", "https://me:secret@example.org/b"])
def test_a_redirection_out_of_tls_is_refused(to: str) -> None:
    """What a request gives away is not protected by the digest."""
    handler = _CheckedRedirects()
    request = urllib.request.Request("https://example.org/a")
    with pytest.raises(urllib.error.URLError, match="it redirects to"):
        handler.redirect_request(request, None, 302, "Found", {}, to)
    signed = "https://example.org/b?X-Amz-Signature=abc"
    again = handler.redirect_request(request, None, 302, "Found", {}, signed)
    assert again is not None
    assert again.full_url == signed


def test_a_file_that_is_not_there_is_told(shelf: Shelf, tmp_path: Path) -> None:
    """404 is the address's fault, and is not tried again."""
    error = fault(wanted(f"{shelf.address}/absent.gguf", tmp_path))
    assert isinstance(error, BadInput)
    assert (error.slug, "404" in error.message) == ("E-fetch-refused", True)
    missing = fault(wanted(f"file://{tmp_path}/absent", tmp_path))
    assert missing.slug == "E-fetch-refused"


def test_a_silent_server_is_given_up(shelf: Shelf, tmp_path: Path) -> None:
    """A server that stops sending costs the limit and not the night."""
    shelf.silent.add("/m.gguf")
    error = fault(wanted(f"{shelf.address}/m.gguf", tmp_path))
    assert (error.slug, "sent nothing for 1 s" in error.message) == ("E-fetch-stalled", True)


def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    """Nor does one that takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        error = fault(wanted(f"http://127.0.0.1:{deaf.getsockname()[1]}/m.gguf", tmp_path))
    assert error.slug == "E-fetch-stalled"


def test_nobody_there(tmp_path: Path) -> None:
    """A port where nobody listens is infrastructure."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    error = fault(wanted(f"http://127.0.0.1:{port}/m.gguf", tmp_path))
    assert (type(error), error.slug) == (Infrastructure, "E-fetch-failed")


def test_redirects_are_followed_where_a_matrix_could_point(shelf: Shelf, tmp_path: Path) -> None:
    """A redirect on the same terms is followed; one to plain HTTP elsewhere, or in a circle, is named."""
    shelf.redirects |= {
        "/moved": f"{shelf.address}/m.gguf",
        "/away": "http://example.invalid/m.gguf",
        "/circle": f"{shelf.address}/circle",
        "/odd": "http://[::1/m.gguf",
        "/signed": "http://me:S3CR3T@example.invalid/m.gguf?X-Amz-Signature=S3CR3T",
    }
    download(wanted(f"{shelf.address}/moved", tmp_path))
    (tmp_path / "m.gguf").unlink()
    away = fault(wanted(f"{shelf.address}/away", tmp_path))
    assert "it redirects to http://example.invalid" in away.message
    assert fault(wanted(f"{shelf.address}/circle", tmp_path)).slug == "E-fetch-failed"
    assert fault(wanted(f"{shelf.address}/odd", tmp_path)).slug == "E-fetch-failed"
    signed = fault(wanted(f"{shelf.address}/signed", tmp_path))
    assert "example.invalid/m.gguf" in signed.message
    assert "S3CR3T" not in str(signed)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://example.org/m.gguf", ""),
        ("http://127.0.0.1:8000/m.gguf", ""),
        ("file:///m.gguf", ""),
        ("http://example.org/m.gguf", "expected https://"),
        ("ftp://example.org/m.gguf", "expected https://"),
        ("m.gguf", "expected https://"),
        ("file://host/m.gguf", "absolute"),
        ("https://me:secret@example.org/m.gguf", "password"),
        ("https://token@example.org/m.gguf", "password"),
        ("https://example.org/m.gguf?a=1&X-Amz-Signature=abc", "X-Amz-Signature"),
        ("https://example.org/my model.gguf", "%XX"),
        ("https://[::1/m.gguf", "IPv6"),
    ],
)
def test_addresses(url: str, said: str) -> None:
    """TLS, this machine, or a file; nothing secret in it."""
    assert said in address_fault(url)
    assert bool(said) == bool(address_fault(url))


def test_another_address_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    """Plain HTTP to another machine is bad input."""
    assert fault(wanted("http://example.org/m.gguf", tmp_path)).slug == "E-bad-address"
