"""Ports and addresses of this host."""

from __future__ import annotations

import socket

from harness.domain.errors import BadInput

_WORKERS = range(10002, 20000)
"""Ray gives these to its workers."""


def require_free(host: str, port: int = 0) -> None:
    """Return where a server can listen at an address of this host; without a port, at any.

    Raises:
        BadInput: ``E-fleet-listen``: it is no address of this host, the port is taken, or Ray needs it otherwise.
    """
    where = f"{host}:{port}" if port else host
    if port in _WORKERS:
        hint = "choose one outside 10002 to 19999"
        raise BadInput("E-fleet-listen", "Ray needs this port for its workers", hint=hint, where=where)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, UnicodeError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else error
        hint = "give an address of this host as `ip address` lists it, and a port that is free (--port)"
        raise BadInput("E-fleet-listen", f"can't listen there: {said}", hint=hint, where=where) from error


def own_address_towards(host: str) -> str:
    """This host's address on the way to another; nothing is sent.

    Raises:
        BadInput: ``E-fleet-no-way``: there is none.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError as error:
        message = f"there is no way to it: {error.strerror or error}"
        raise BadInput(
            "E-fleet-no-way", message, hint="name this host's address with --own-address", where=host
        ) from error
