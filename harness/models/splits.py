"""Models that are split into several files: ``name-00001-of-00003.gguf`` and so on, found, checked and read as one."""

from __future__ import annotations

import re
from pathlib import Path

from harness.domain.errors import BadInput
from harness.models.gguf_reader import GgufHeader, read_header

_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
_NUMBER, _COUNT, _TENSORS = "split.no", "split.count", "split.tensors.count"
_HINT = "a split model is all its files, as they were made, in one folder"


def parts_of(path: Path) -> tuple[Path, ...]:
    """The files of a model, whichever of them is named: itself, or all parts that its name promises, there or not."""
    return tuple(path.with_name(name) for name in part_names(path.name))


def part_names(name: str) -> tuple[str, ...]:
    """The names of all parts of a model, from that of any of them."""
    found = _PART.search(name)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        return (name,)
    return tuple(f"{name[: found.start()]}-{number:05d}-of-{found[2]}.gguf" for number in range(1, int(found[2]) + 1))


def stem_of(path: Path) -> str:
    """The name of a model without its ending and the number of its part."""
    return _PART.sub("", path.name).removesuffix(".gguf")


def read_headers(path: Path) -> tuple[GgufHeader, ...]:
    """The headers of all files of a model; the weights are not read.

    Args:
        path: The file, or any part of a split model.

    Raises:
        BadInput: As `read_header`; ``E-model-part-missing``, ``E-model-parts`` where the parts don't belong together.
    """
    if path.exists():
        for part in parts_of(path):
            if not part.exists():
                raise BadInput("E-model-part-missing", f"there is no {part.name}", hint=_HINT, where=str(path))
    headers = tuple(read_header(part) for part in parts_of(path))
    for number, header in enumerate(headers):
        _check_number(header, number, len(headers))
    _check_tensors(headers)
    return headers


def _check_number(header: GgufHeader, number: int, count: int) -> None:
    """Each part says what its name says."""
    said = (_figure(header, _NUMBER, 0), max(1, _figure(header, _COUNT, 1)))
    if said != (number, count):
        name = f"its name says part {number + 1} of {count}"
        message = f"it is part {said[0] + 1} of {said[1]}, {name}"
        raise BadInput("E-model-parts", message, hint=_HINT, where=str(header.path))


def _check_tensors(headers: tuple[GgufHeader, ...]) -> None:
    """No tensor is missing, none is there twice."""
    if len(headers) == 1:
        return
    names = [tensor.spec.name for header in headers for tensor in header.tensors]
    promised = _figure(headers[0], _TENSORS, len(names))
    if len(names) != promised or len(set(names)) < len(names):
        message = f"the parts hold {len(names)} tensors, {len(set(names))} different ones, expected {promised}"
        raise BadInput("E-model-parts", message, hint=_HINT, where=str(headers[0].path))


def _figure(header: GgufHeader, key: str, default: int) -> int:
    entry = header.metadata.get(key)
    return entry.value if entry is not None and isinstance(entry.value, int) else default
