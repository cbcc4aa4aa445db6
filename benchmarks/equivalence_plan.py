"""What the benchmark of output equivalence runs: networks, quantizations, harmless ways of running, planted faults."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.flags import FlagValue
from harness.domain.model import Model
from harness.domain.outputs import Variation
from harness.domain.workload import OutputProfile, Prompt
from harness.engines.flags import complete
from harness.models.card import Card, load_card, parse_card
from harness.models.corruptions import Kind

QUANTS = ("F16", "Q8_0", "Q4_K_M", "IQ4_XS")
WHEELS = {Fork.LLAMA_CPP: "xllamacpp", Fork.IK_LLAMA_CPP: "ik-llama-cpp-python"}
SHORT = {Fork.LLAMA_CPP: "main", Fork.IK_LLAMA_CPP: "ik"}

_PROMPT_TOKENS = 128
_POSITIONS, _FORCED, _GREEDY = 88, 24, 16
PER_PROMPT = _POSITIONS + _FORCED + _GREEDY
"""Positions that a prompt gives: in the prompt, in a given answer, in the arm's own."""
_UBATCH = 128
_WORDS = 60
_SHAPES: Mapping[str, Mapping[str, object]] = {
    "tiny": {},
    "wide": {
        "layers": 3, "width": 512, "heads": 4, "kv_heads": 1, "head_width": 128, "experts": 16, "experts_used": 2
    },
    "short": {
        "layers": 4, "heads": 4, "kv_heads": 4, "experts": 8, "experts_used": 2, "expert_width": 512
    },
    "lean": {"layers": 5, "heads": 4, "experts": 16, "experts_used": 4},
    "deep": {"layers": 8, "heads": 4, "kv_heads": 1, "experts": 24, "experts_used": 3},
}  # fmt: skip
"""What is changed in the packaged tiny card: 6 layers, 256 wide, 8 heads of 64, 2 of keys, 4 of 32 experts used."""


class Role(StrEnum):
    """What a network is for: no network sets tolerances and is judged by them."""

    CALIBRATION = "calibration"
    SCORED = "scored"


@dataclass(frozen=True, slots=True)
class Net:
    """A network of random weights.

    Attributes:
        shape: ``tiny`` as the packaged card, ``wide``, ``short``, ``lean`` or ``deep``.
        seed: Of its weights, its prompts and of where faults are planted.
        role: What it is for.
    """

    shape: str
    seed: int
    role: Role

    @property
    def name(self) -> str:
        """Such as ``tiny-101``."""
        return f"{self.shape}-{self.seed}"

    def card(self) -> Card:
        """The packaged card with other weights, and in another shape where it has one."""
        content = json.loads(load_card("tiny-moe").canonical_json())
        content["name"], content["weights"]["seed"] = self.name, self.seed
        content["shape"] |= _SHAPES[self.shape]
        return parse_card(json.dumps(content), where=self.name)


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running: one process.

    Attributes:
        name: Unique among those of a network and quantization.
        fork: Whose engine.
        flags: All but the defaults.
        prompts: How many prompts it answers.
        kind: A fault planted in the model file.
        fault: One planted in the run, as the child takes it.
    """

    name: str
    fork: Fork
    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    prompts: int = 8
    kind: Kind | None = None
    fault: Mapping[str, object] | None = None

    @property
    def sound(self) -> bool:
        """Nothing is planted."""
        return self.kind is None and self.fault is None

    def arm(self, model: str, quant: str) -> Arm:
        """As an arm of a matrix."""
        build = Build(SHORT[self.fork], self.fork, wheel=WHEELS[self.fork])
        flags = complete(build, {"t": 1, "ub": _UBATCH, **self.flags})
        return Arm(build, Model(model, card="tiny-moe", quant=quant), flags)


HARMLESS: Mapping[Fork, Mapping[str, Mapping[str, FlagValue]]] = {
    Fork.LLAMA_CPP: {"base": {}, "fa0": {"fa": 0}, "ub48": {"ub": 48}, "repack0": {"repack": 0}},
    Fork.IK_LLAMA_CPP: {
        "base": {},
        "fa0": {"fa": 0},
        "ub48": {"ub": 48},
        "fmoe0": {"fmoe": 0},
        "rtr1": {"rtr": 1},
    },
}
"""Changes that leave the network as it is, by fork."""
COMBINED: Mapping[Fork, Mapping[str, Mapping[str, FlagValue]]] = {
    Fork.LLAMA_CPP: {"fa0-ub48": {"fa": 0, "ub": 48}},
    Fork.IK_LLAMA_CPP: {"fa0-ub48": {"fa": 0, "ub": 48}, "fmoe0-fa0": {"fmoe": 0, "fa": 0}},
}
"""Two of them at once, for scored networks."""
FAULTS: Mapping[str, Mapping[str, object]] = {
    "kv-dropped-1": {"kind": "kv_dropped", "cells": 1},
    "kv-dropped-4": {"kind": "kv_dropped", "cells": 4},
    "position-gap": {"kind": "position_gap"},
}
"""Faults in the run, by name."""
MUST = (
    Kind.SWAPPED_EXPERTS,
    Kind.PERMUTED_ROUTER,
    Kind.FEWER_EXPERTS,
    Kind.ZEROED_HEAD,
    Kind.ROPE_BASE,
    Kind.NAN_ROW,
)
"""Each of these has to be found at 4,000 positions."""


def harmless_ways(*, threads: bool = False, combined: bool = False) -> Iterator[Way]:
    """Every harmless way, those of two changes at once too where asked; or with two threads only."""
    for fork, ways in HARMLESS.items():
        if threads:
            yield Way(f"{SHORT[fork]}-t2", fork, {"t": 2}, prompts=2)
            continue
        changes = {**ways, **(COMBINED[fork] if combined else {})}
        yield from (Way(f"{SHORT[fork]}-{name}", fork, flags) for name, flags in changes.items())


def broken_ways(seed: int, prompts: int = 8, only: tuple[str, ...] = ()) -> Iterator[Way]:
    """Every planted fault on both forks, those of one file together."""
    suffix = "" if prompts == 8 else f"-x{prompts}"  # noqa: PLR2004 - the usual number
    for kind in Kind:
        if not only or kind in only:
            yield from (Way(f"{SHORT[fork]}-{kind}{suffix}", fork, prompts=prompts, kind=kind) for fork in Fork)
    for name, fault in FAULTS.items():
        if not only or name in only:
            planted = {**fault, **({"seed": seed} if "cells" in fault else {})}
            yield from (Way(f"{SHORT[fork]}-{name}{suffix}", fork, prompts=prompts, fault=planted) for fork in Fork)


def profile(net: Net, prompts: int) -> OutputProfile:
    """What a network is asked: words of the packaged text in an order of its own."""
    draw = random.Random(f"prompts/{net.seed}")  # noqa: S311 - no secret
    text = (resources.files("harness.models") / "cards" / "tiny-corpus.txt").read_text(encoding="ascii")
    words = text.split()

    def say() -> str:
        return " ".join(draw.choices(words, k=_WORDS))

    asked = tuple(Prompt(f"p{number}", say(), say(), _PROMPT_TOKENS) for number in range(prompts))
    return OutputProfile("equivalence", asked, _GREEDY, _POSITIONS, _FORCED, variations=(Variation.BATCH,))
