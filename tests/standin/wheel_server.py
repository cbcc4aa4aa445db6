"""The real llama.cpp server of the xllamacpp wheel, started like ``llama-server``: its own arguments, its own HTTP.

The wheel has no such program, but all of its parts: ``common_params_parse`` reads the arguments (and prints the real
``--help``), and ``Server`` serves. Marked as a launcher; never shipped. The parser is called on the structure inside
the wheel's ``CommonParams``; that it is the right place is seen from what it has written there.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from itertools import pairwise

import xllamacpp
from xllamacpp import xllamacpp as extension

_PARSE = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
_SERVER = 12
"""``LLAMA_EXAMPLE_SERVER`` of this version."""
_OBJECT_HEAD = 16


def parsed(argv: list[str]) -> xllamacpp.CommonParams | None:
    """The parameters that arguments come to, by the server's own parser; ``None`` where it refuses them."""
    parse = ctypes.CDLL(extension.__file__)[_PARSE]
    parse.restype = ctypes.c_bool
    parse.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    params = xllamacpp.CommonParams()
    words = [word.encode() for word in argv]
    pointers = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    if not parse(len(words), pointers, id(params) + _OBJECT_HEAD, _SERVER, None):
        return None
    asked = dict(pairwise(argv))
    assert (str(params.port), str(params.n_ctx)) == (asked["--port"], asked["-c"]), "not the structure it is taken for"
    return params


def main() -> int:
    """Parse, load, serve until TERM."""
    params = parsed(sys.argv)
    if params is None:
        return 1
    server = xllamacpp.Server(params)
    sys.stderr.write(f"serving at {server.listening_address}\n")
    sys.stderr.flush()
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
