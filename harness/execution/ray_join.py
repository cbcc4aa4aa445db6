"""Joining a Ray cluster: what is wrong with the address, the token or the versions is said within seconds.

Ray alone goes on trying for minutes, and then says that it could not connect.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import platform
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import ray
from ray.exceptions import AuthenticationError, RayError
from tenacity import Retrying, retry_if_exception, stop_after_attempt

from harness.domain.errors import BadInput, HarnessError, Infrastructure

_CONNECT_S = 5.0
_MAX_PORT = 65535
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
"""How a gRPC client begins: the preface of HTTP/2, and settings without any."""
_FRAME = 9
_STDERR = 2
_SETTINGS = 4
_METADATA = (b"CLUSTER_METADATA", b"cluster")
_ALIVE = 0
"""State of a node in Ray's messages."""
_STARTS = 2
_TOO_SLOW = "timed out during startup"
"""Ray's words for a node that was not up in time."""
_TRY = "try --moe-executor=local, or check --ray-address, the token, and that versions agree"


def join(address: str, where: str = "--ray-address") -> None:
    """Join a running cluster.

    Args:
        address: ``HOST:PORT`` of its head.
        where: What gave the address, for messages.

    Raises:
        BadInput: ``E-ray-address``, ``E-ray-token``, ``E-ray-version``.
        Infrastructure: ``E-ray-unreachable``, ``E-not-ray``, ``E-ray-start``.
    """
    require_cluster(address, where)
    start_ray(where, address=address)


def embed(where: str = "embedded", **settings: Any) -> None:
    """Start a cluster of this process; once more where a busy host did not let a node come up in Ray's thirty seconds.

    Args:
        where: What is started, for messages.
        settings: As of ``ray.init``.

    Raises:
        Infrastructure: ``E-ray-start``.
    """
    patient = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, Infrastructure) and _TOO_SLOW in error.message),
        stop=stop_after_attempt(_STARTS),
        before_sleep=lambda _: ray.shutdown(),
        reraise=True,
    )
    patient(start_ray, where, address="local", include_dashboard=False, **settings)


def start_ray(where: str, **settings: Any) -> None:
    """Call ``ray.init`` quietly, and keep our own answer to TERM.

    Raises:
        Infrastructure: ``E-ray-start``.
    """
    try:
        with _own_sigterm():
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
    except Exception as error:  # a node that does not come up in time is a bare one
        raise Infrastructure(
            "E-ray-start", f"Ray did not start: {first_line(error)}", hint=_TRY, where=where
        ) from error


def require_cluster(address: str, where: str = "--ray-address") -> None:
    """Return where a cluster answers at an address, takes our token, and has our versions; errors as of `join`."""
    host, port = host_and_port(address, where)
    _require_grpc(host, port, address, where)
    told = _metadata(address, where)
    theirs = (told.get("ray_version", ""), told.get("python_version", ""))
    ours = (ray.__version__, platform.python_version())
    if all(theirs) and theirs != ours:
        raise BadInput(
            "E-ray-version",
            f"the cluster runs Ray {theirs[0]} on Python {theirs[1]}, here are Ray {ours[0]} on Python {ours[1]}",
            hint="install the cluster's versions here; both must agree to the last digit on all nodes and drivers",
            where=f"{where} {address}",
        )


def host_and_port(address: str, where: str) -> tuple[str, int]:
    """The two parts of an address.

    Raises:
        BadInput: ``E-ray-address``.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) <= _MAX_PORT or "/" in host:
        raise BadInput(
            "E-ray-address",
            f"'{address}' is not an address of the form HOST:PORT",
            hint="the head node says it when it starts, e.g. 10.0.0.7:6379",
            where=where,
        )
    return host.strip("[]"), int(port)


def _require_grpc(host: str, port: int, address: str, where: str) -> None:
    """Say hello as Ray would: only what answers as a gRPC server can be Ray."""
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_S) as connection:
            answer = _hello(connection)
    except (OSError, UnicodeError) as error:
        said = error.strerror if isinstance(error, OSError) else ""
        raise Infrastructure(
            "E-ray-unreachable",
            f"nothing answers at {address}: {said or error}",
            hint="check that the cluster is up and that no firewall is between; --moe-executor=local needs none",
            where=where,
        ) from error
    if len(answer) < _FRAME or answer[3] != _SETTINGS:
        raise _not_ray(address, where, "another kind of server answers" if answer else "a server listens and is mute")


def _hello(connection: socket.socket) -> bytes:
    """The first bytes of the answer; fewer where the other end closes or says nothing."""
    answer = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        connection.sendall(_PREFACE)
        while len(answer) < _FRAME and (part := connection.recv(_FRAME - len(answer))):
            answer += part
    return answer


def _not_ray(address: str, where: str, told: str) -> Infrastructure:
    return Infrastructure(
        "E-not-ray",
        f"what listens at {address} is not the head of a Ray cluster: {told}",
        hint="the head says its address when it starts; its port is 6379 unless chosen",
        where=where,
    )


def _metadata(address: str, where: str) -> dict[str, str]:
    """What the cluster tells of its versions; empty where it tells nothing."""
    client: Any = importlib.import_module("ray._raylet").GcsClient  # below what Ray documents: only here
    try:
        with _native_stderr_closed():
            found = client(address=address).internal_kv_get(*_METADATA, timeout=_CONNECT_S)
        return dict(json.loads(found)) if found else {}
    except AuthenticationError as error:
        raise _wrong_token(address, where) from error
    except (RayError, RuntimeError, ValueError) as error:
        raise _not_ray(address, where, first_line(error)) from error


def _wrong_token(address: str, where: str) -> HarnessError:
    return BadInput(
        "E-ray-token",
        "the cluster does not take our token, or we have none",
        hint="copy the head's token file here, mode 600, to the same place, or name it in RAY_AUTH_TOKEN_PATH",
        where=f"{where} {address}",
    )


@contextlib.contextmanager
def _native_stderr_closed() -> Iterator[None]:
    """What Ray's native code writes of a failure is less than what we say of it, and no line of ours."""
    kept, nothing = os.dup(_STDERR), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
        os.close(nothing)


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the driver's answer to TERM: Ray puts in its own, which ends the interpreter in the midst of a run."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    text = str(error).strip()
    return text.splitlines()[0] if text else repr(error)


def knows_node(address: str, label: str, value: str) -> bool:
    """Whether the cluster at an address has a live node with a label; false too while nothing answers there."""
    client: Any = importlib.import_module("ray._raylet").GcsClient
    try:
        socket.create_connection(host_and_port(address, "fleet"), timeout=_CONNECT_S).close()
        with _native_stderr_closed():
            nodes = client(address=address).get_all_node_info(timeout=_CONNECT_S)
    except (OSError, RayError, RuntimeError):
        return False
    alive = [node for node in nodes.values() if node.state == _ALIVE]
    return any(dict(node.labels).get(label) == value for node in alive)
