"""Builders for the tests of known spreads and calibrations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.flags import Flags, FlagValue
from harness.domain.model import Model
from harness.domain.node import NodeFacts
from harness.running.spread_file import Record, SpreadFile

NODE = NodeFacts("Test CPU 9000", 8, ("avx2",), 64 * 1024**3, (), "6.1", 0, "performance", None, 1, 0)
OTHER_NODE = replace(NODE, cores=16)
TINY = Model("tiny", card="tiny-moe", quant="IQ4_XS")
LARGE = Model("large", path="/somewhere/large.gguf")
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def arm(model: Model = TINY, fork: Fork = Fork.IK_LLAMA_CPP, **flags: FlagValue) -> Arm:
    wheel = "ik-llama-cpp-python" if fork is Fork.IK_LLAMA_CPP else "xllamacpp"
    return Arm(Build("any-name", fork, wheel=wheel), model, Flags.of({"t": 1, "ngl": 0, **flags}))


def record(quad_sd: float, quads: int = 9, quarantine: str = "", **changes: object) -> Record:
    fields = {"process_s": 2.0, "start_s": 0.5, "load_s": 0.2, "repetition_s": 0.1, **changes}
    return Record.model_validate({"when": NOON, "quads": quads, "quad_sd": quad_sd, "quarantine": quarantine, **fields})


EMPTY = SpreadFile()
