"""Files that describe nodes which are elsewhere: what a plan is held against from a desk.

The keys are those of a node in a journal, and `described` writes such a file; of a node that is written down by hand,
only what decides what runs there is needed. One file is one node, or a list of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from harness import bounded
from harness.domain.canonical import fields_of
from harness.domain.errors import BadInput
from harness.domain.node import GIB, ISA_WORDS, Gpu, NodeFacts
from harness.domain.suggest import did_you_mean

_INVALID = "E-node-invalid"
_UNREADABLE = "E-node-unreadable"
_TWICE = "E-node-twice"
_DESCRIBE = "moe-harness plan --describe-node"
_MOST_BYTES = 1 << 24
_LONGEST = 60
_LEAST_BYTES = 1 << 26
"""Who writes less has written MiB."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_NAME_RULE = "at most 60 letters, digits, '.', '_' and '-', the first a letter or digit"
_PREFIX = "Input should be "
_WORDS = {"a valid string": "a text", "a valid list": "a list", "a valid integer": "a whole number"}


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has characters that can't be printed")
    return text


def _known(words: list[str]) -> list[str]:
    for word in words:
        if word not in ISA_WORDS:
            raise ValueError(f"unknown instruction set '{word}' ({did_you_mean(word, ISA_WORDS)})")
    return words


def _not_mib(size: int) -> int:
    if 0 < size < _LEAST_BYTES:
        raise ValueError(f"expected bytes (a GiB is {GIB}), found {size}")
    return size


def _with_point(arch: str) -> str:
    if arch.isdigit():
        raise ValueError(f"expected a compute capability such as '8.9', found {_shown(arch)}")
    return arch


_Text = Annotated[str, AfterValidator(_printable)]
_Count = Annotated[int, Field(ge=1, le=1 << 20)]
_Bytes = Annotated[int, Field(ge=0, le=1 << 60)]


def _named(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"expected {_NAME_RULE}, found {_shown(name)}")
    return name


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class GpuEntry(_Entry):
    """One GPU. What is not needed for planning may be left out."""

    name: _Text
    vram_bytes: Annotated[_Bytes, AfterValidator(_not_mib)]
    driver: _Text = ""
    uuid: _Text = ""
    vendor: _Text = "nvidia"
    arch: Annotated[_Text, AfterValidator(_with_point)] = ""


class NodeEntry(_Entry):
    """A node. What is not needed for planning may be left out; the attributes are those of `NodeFacts`."""

    name: Annotated[str, AfterValidator(_named)] | None = None
    cpu_model: _Text
    cores: _Count
    isa: Annotated[list[str], AfterValidator(_known)]
    ram_bytes: Annotated[int, Field(ge=1, le=1 << 60), AfterValidator(_not_mib)]
    gpus: list[GpuEntry]
    kernel: _Text = ""
    niceness: int = 0
    governor: _Text = "unknown"
    cgroup_memory_bytes: Annotated[_Bytes, AfterValidator(_not_mib)] | None = None
    numa_nodes: _Count = 1
    swap_bytes: _Bytes = 0
    os: _Text = ""
    machine: _Text = ""

    def facts(self, name: str) -> NodeFacts:
        """The domain's.

        Args:
            name: What it is called.
        """
        parts = {key: getattr(self, key) for key in type(self).model_fields}
        gpus = tuple(Gpu(**{key: getattr(gpu, key) for key in GpuEntry.model_fields}) for gpu in self.gpus)
        return NodeFacts(**{**parts, "name": name, "isa": tuple(sorted(self.isa)), "gpus": gpus})


def described(node: NodeFacts, name: str) -> str:
    """A node as the text of a file that `read_nodes` reads.

    Args:
        node: Its facts.
        name: What it is to be called.
    """
    facts = {**fields_of(node), "gpus": [fields_of(gpu) for gpu in node.gpus], "name": name}
    return json.dumps({"name": facts.pop("name"), **facts}, indent=2)


def read_nodes(paths: Iterable[Path]) -> tuple[NodeFacts, ...]:
    """Read descriptions of nodes, in the order given.

    Args:
        paths: Files, or folders of which every ``.json`` is read. A file of one node without a name is named after it.

    Raises:
        BadInput: ``E-node-unreadable``, ``E-node-invalid``, ``E-node-twice``, each with file and key.
    """
    found: dict[str, tuple[Path, NodeFacts]] = {}
    for file in (file for path in paths for file in _files(path)):
        for node in _of_file(file):
            if node.name in found:
                first = found[node.name][0]
                said = f"two nodes are named '{node.name}': one in {first}, one in {file}"
                raise BadInput(_TWICE, said, hint='give one of them another "name"', where=str(file))
            found[node.name] = (file, node)
    return tuple(node for _, node in found.values())


def _files(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return (path,)
    files = sorted(path.glob("*.json"))
    if not files:
        hint = f"write one on the node: {_DESCRIBE} > NAME.json"
        raise BadInput(_UNREADABLE, "the folder holds no .json file", hint=hint, where=str(path))
    return files


def _of_file(file: Path) -> Sequence[NodeFacts]:
    content = _content(file)
    entries = content if isinstance(content, list) else [content]
    if not entries:
        raise BadInput(_INVALID, "the list is empty", hint=f"write one: {_DESCRIBE}", where=str(file))
    several = len(entries) > 1
    return [_node(entry, file, f"[{index}]" if several else "") for index, entry in enumerate(entries)]


def _content(file: Path) -> Any:
    try:
        return json.loads(bounded.read_text(file, _MOST_BYTES), object_pairs_hook=_once)
    except OSError as failure:
        beside = [each.name for each in file.parent.glob("*.json")] if file.parent.is_dir() else []
        hint = did_you_mean(file.name, beside) or f"write one on the node: {_DESCRIBE} > {file.name}"
        said = f"the description can't be read: {failure.strerror or failure}"
        raise BadInput(_UNREADABLE, said, hint=hint, where=str(file)) from failure
    except (ValueError, RecursionError) as failure:
        raise BadInput(_INVALID, f"no JSON: {failure}", hint=f"{_DESCRIBE} writes one", where=str(file)) from failure


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if twice := next((key for index, key in enumerate(keys) if key in keys[:index]), ""):
        raise ValueError(f"the key {_shown(twice)} is there twice")
    return dict(pairs)


def _node(content: Any, file: Path, at: str) -> NodeFacts:
    try:
        entry = NodeEntry.model_validate(content)
        name = entry.name or _named_after(file, at)
    except ValidationError as invalid:
        raise _refusal(invalid, file, at) from invalid
    return entry.facts(name)


def _named_after(file: Path, at: str) -> str:
    """The file's name, which has to be as one that is written in it."""
    if at:
        missing = "the key is missing; only a node that is alone in its file is named after it"
        raise BadInput(_INVALID, missing, where=f"{file}: {at}.name")
    if not _NAME.fullmatch(file.stem):
        said = f"a node is named after its file, and '{file.stem}' is no name: {_NAME_RULE}"
        raise BadInput(_INVALID, said, hint='rename the file, or write a "name" into it', where=str(file))
    return file.stem


def _refusal(invalid: ValidationError, file: Path, at: str) -> BadInput:
    """All faults of one node, the first one's place in front."""
    told = [_fault(dict(error)) for error in invalid.errors(include_url=False)]
    (key, first, hint), *others = told
    more = "".join(f"; {other}: {said}" + (f" ({way})" if way else "") for other, said, way in others)
    where = f"{file}: {at}.{key}" if at and key else f"{file}: {at or key}" if at or key else str(file)
    return BadInput(
        _INVALID, first + (f" ({hint})" if hint and more else "") + more, hint="" if more else hint, where=where
    )


def _fault(error: dict[str, Any]) -> tuple[str, str, str]:
    """The key, what is wrong with it, and what to do."""
    path: tuple[str | int, ...] = error["loc"]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{_key(part)}" for part in path).removeprefix(".")
    of_gpu = len(path) > 2  # noqa: PLR2004 - gpus, its number, the key
    if error["type"] == "extra_forbidden":
        known = (GpuEntry if of_gpu else NodeEntry).model_fields
        return key, "unknown key", did_you_mean(str(path[-1]), known)
    if error["type"] == "missing":
        return key, "the key is missing", f"{_DESCRIBE} writes all of them"
    if error["type"] == "value_error":
        return key, str(error["ctx"]["error"]), ""
    if error["type"] == "model_type" or not path:
        return key, f"expected an object with the facts of a node, found {_shown(error['input'])}", ""
    message = str(error["msg"]).removeprefix(_PREFIX)
    return key, f"expected {_WORDS.get(message, message)}, found {_shown(error['input'])}", ""


def _key(part: str) -> str:
    return part if part.isidentifier() and part.isascii() else json.dumps(part)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
