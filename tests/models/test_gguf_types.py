"""The table of tensor types against both forks' own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.models.gguf_types import TYPES_BY_CODE, TYPES_BY_NAME

ASK_IK = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
library.ggml_row_size.restype = ctypes.c_size_t
library.ggml_row_size.argtypes = [ctypes.c_int, ctypes.c_int64]
library.ggml_type_name.restype = ctypes.c_char_p
codes = json.loads(sys.argv[2])
print(json.dumps([[library.ggml_type_name(c).decode().upper(), library.ggml_row_size(c, 2048)] for c in codes]))
"""
RENAMED = {"Q1_0_G128": "Q1_0"}


def test_mainline_agrees() -> None:
    """Names, blocks and bytes are those of the gguf package, for every type that reaches a file."""
    constants = pytest.importorskip("gguf.constants", reason="moe-harness[local] is not installed")
    theirs = {int(code): (code.name, *sizes) for code, sizes in constants.GGML_QUANT_SIZES.items()}
    for absent in ("Q8_1", "Q8_K"):
        theirs = {code: row for code, row in theirs.items() if row[0] != absent}
    ours = {code: (kind.name, kind.block, kind.block_bytes) for code, kind in TYPES_BY_CODE.items() if code in theirs}
    assert ours == theirs


def test_ik_agrees() -> None:
    """Rows of 2048 values have the bytes that ik's own library says, for every type it knows."""
    spec = find_spec("ik_llama_cpp")
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("moe-harness[local] is not installed")
    library = next((Path(spec.submodule_search_locations[0]) / "lib").glob("libggml.so"))
    mainline_only = {"TQ1_0", "TQ2_0", "NVFP4"}
    codes = [code for code, kind in TYPES_BY_CODE.items() if kind.name not in mainline_only]
    asked = subprocess.run(
        [sys.executable, "-c", ASK_IK, str(library), json.dumps(codes)], capture_output=True, check=True, text=True
    )
    theirs = [(RENAMED.get(name, name), size) for name, size in json.loads(asked.stdout)]
    assert theirs == [(TYPES_BY_CODE[code].name, TYPES_BY_CODE[code].nbytes((2048,))) for code in codes]


def test_rows_are_whole_blocks() -> None:
    """A row that is not a whole number of blocks has no size."""
    assert TYPES_BY_NAME["IQ4_KS"].nbytes((512, 3)) == 3 * (4 + 2 * 136)
    with pytest.raises(ValueError, match="whole Q4_K blocks of 256"):
        TYPES_BY_NAME["Q4_K"].nbytes((128,))
