"""What a build said of how it loaded a model: what lies where, what it switched off. Facts, from its own log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

RAM = "RAM"
"""The one name of everything that lies in main memory."""
_HOST = re.compile(r"CPU|AMX|BLAS|Host|\w+_Host$")
_NO_PART = re.compile(r"_(?:Mapped|Private|Split)$")
_LAYER = re.compile(r"blk\.(\d{1,6})\.(.+)")


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer.

    Attributes:
        use: ``weights``, ``KV``, ``state`` (of recurrent layers), ``compute`` or ``output``.
        device: As printed, e.g. ``CUDA0``, ``CPU_Mapped``, ``CUDA_Host``; of what was planned ``RAM`` or ``GPU 0``.
        mib: Its size.
    """

    use: str
    device: str
    mib: float


@dataclass(frozen=True, slots=True)
class Placed:
    """Tensors of the same kind in the same place.

    Attributes:
        layers: Numbers of repeating layers, e.g. ``0-3,7``; empty for tensors outside them.
        tensors: Names inside the layer, sorted, e.g. ``ffn_down_exps.weight``; empty: all that has no other place.
        buffer: Buffer type or device, as printed.
    """

    layers: str
    tensors: tuple[str, ...]
    buffer: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A line in which a build says that it does something else than what was asked, or can't do it.

    Attributes:
        line: The line.
        number: Its number in the log, from 1.
        flag: The flag that it is about, by canonical name; empty where no flag is.
        value: What the flag amounts to.
    """

    line: str
    number: int
    flag: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class LoadFacts:
    """What one process said while it loaded its model and made its contexts. What it did not say is empty.

    Attributes:
        buffers: Buffers in the order in which they were first named. A device's weights are added up; of several
            contexts the largest counts.
        overrides: Tensors that were put elsewhere than their layer.
        homes: Devices of repeating layers; the number after the last one is the output layer.
        offloaded: Layers on GPUs, and layers in all.
        settings: Flags by canonical name with the value that the build says it uses; sorted.
        nodes: Nodes of the graph.
        splits: Parts into which the graph falls between devices, of a whole batch.
        splits_of_one: The same of a batch of one token, where it differs.
        repacked: Tensors that were repacked while loading.
        notices: What the build did otherwise than asked, each kind once.
        unread: The log was longer than what is read.
        planned: What the process was estimated to need.
    """

    buffers: tuple[Buffer, ...] = ()
    overrides: tuple[Placed, ...] = ()
    homes: tuple[Placed, ...] = ()
    offloaded: tuple[int, int] | None = None
    settings: tuple[tuple[str, str], ...] = ()
    nodes: int | None = None
    splits: int | None = None
    splits_of_one: int | None = None
    repacked: int = 0
    notices: tuple[Notice, ...] = ()
    unread: bool = False
    planned: tuple[Buffer, ...] = ()

    @property
    def values(self) -> dict[str, str]:
        """Flags by canonical name with what they amount to: what is used, and what a line says they became."""
        return {**dict(self.settings), **{notice.flag: notice.value for notice in self.notices if notice.flag}}


def device_word(buffer: str) -> str:
    """The device of a buffer type: ``RAM`` for all that lies in main memory, else the GPU's name, e.g. ``CUDA0``."""
    return RAM if _HOST.match(buffer) else _NO_PART.sub("", buffer)


def grouped(places: Mapping[str, str]) -> tuple[Placed, ...]:
    """Tensors by name with their place, in as few groups as say the same.

    Args:
        places: Place by tensor name.
    """
    layers: dict[tuple[str, str], list[int]] = {}
    outside: dict[str, list[str]] = {}
    for name, place in places.items():
        if found := _LAYER.fullmatch(name):
            layers.setdefault((found[2], place), []).append(int(found[1]))
        else:
            outside.setdefault(place, []).append(name)
    tensors: dict[tuple[str, str], list[str]] = {}
    for (tensor, place), numbers in layers.items():
        tensors.setdefault((ranges(numbers), place), []).append(tensor)
    inside = (Placed(span, tuple(sorted(names)), place) for (span, place), names in tensors.items())
    return (*inside, *(Placed("", tuple(sorted(names)), place) for place, names in outside.items()))


def places(groups: Iterable[Placed]) -> dict[str, str]:
    """Place by tensor name: what `grouped` was made of."""
    return {
        (f"blk.{number}.{tensor}" if group.layers else tensor): group.buffer
        for group in groups
        for number in (numbers(group.layers) if group.layers else (0,))
        for tensor in group.tensors
    }


def ranges(found: Iterable[int]) -> str:
    """Numbers as ranges, e.g. ``0-3,7``."""
    spans: list[list[int]] = []
    for number in sorted(set(found)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{low}-{high}" if high > low else f"{low}" for low, high in spans)


def numbers(text: str) -> list[int]:
    """The numbers that ranges stand for."""
    spans = (span.partition("-") for span in text.split(",") if span)
    return [number for low, _, high in spans for number in range(int(low), int(high or low) + 1)]
