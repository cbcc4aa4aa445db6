"""A build as a matrix or the catalogue says it: every key, its type and its default.

What the keys mean is written for users in ``docs/reference/matrix.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, StringConstraints, model_validator

from harness.domain.build import NO_GPU, Build, BuildSource, Fork, Patch, Platform, Variant
from harness.domain.node import ISA_WORDS
from harness.domain.paths import usable_path
from harness.domain.secrets import secret_in_address
from harness.domain.suggest import did_you_mean
from harness.models.address import address_fault

ORIGINS = ("wheel", "path", "variants", "recipe", "catalogue")
_MAX_TEXT = 1000
_MAX_NUMBER = 10**9


def _instruction_set(found: str) -> str:
    if found not in ISA_WORDS:
        raise ValueError(f"unknown instruction set '{found}' ({did_you_mean(found, ISA_WORDS)})")
    return found


def _shown(found: str) -> str:
    """What stands in reports."""
    if fault := secret_in_address(found):
        raise ValueError(fault)
    return found


def _url(found: str) -> str:
    if fault := address_fault(found):
        raise ValueError(f"{fault}; found {found!r}")
    if not urlsplit(found).path.strip("/"):
        raise ValueError(f"the address names no archive: {found!r}")
    return found


def _sha256(found: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", found):
        raise ValueError(f"expected a SHA-256, 64 of the digits 0-9a-f, found {found!r}")
    return found


def _commit(found: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{7,40}", found):
        raise ValueError(f"expected a commit, 7 to 40 of the digits 0-9a-f, found {found!r}")
    return found


def _settings(found: Any) -> Mapping[str, str]:
    """Options of CMake as texts: its booleans are the words ON and OFF."""
    if not isinstance(found, dict) or not all(isinstance(value, str | bool | int) for value in found.values()):
        raise ValueError(f"expected a table of texts, booleans and whole numbers, found {found!r}")
    words = {True: "ON", False: "OFF"}
    return {name: words[value] if isinstance(value, bool) else str(value) for name, value in found.items()}


Text = Annotated[str, StringConstraints(min_length=1, max_length=_MAX_TEXT)]
PathText = Annotated[str, AfterValidator(usable_path)]
Sha256 = Annotated[str, AfterValidator(_sha256)]
Commit = Annotated[str, AfterValidator(_commit)]
Isa = Annotated[str, AfterValidator(_instruction_set)]
ForkWord: TypeAlias = Literal["llama.cpp", "ik_llama.cpp"]
CMakeOptions = Annotated[
    Mapping[str, str], PlainValidator(_settings, json_schema_input_type=dict[str, str | bool | int])
]


class Table(BaseModel):
    """A table of a file that people write."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class PatchEntry(Table):
    """One entry of ``patches``: a file's name and its digest."""

    file: PathText
    sha256: Sha256


class SourceEntry(Table):
    """``[builds.X.source]``: what the build is made of. What is said is checked where the build can tell."""

    repository: Annotated[str, AfterValidator(_shown)] = ""
    commit: Commit = ""
    number: Annotated[int, Field(ge=1, le=_MAX_NUMBER)] | None = None
    patches: list[PatchEntry] = []
    cmake: CMakeOptions = {}
    compiler: str = ""
    libraries: list[Text] = []
    blas: str = ""
    backends: list[Text] = []

    @property
    def source(self) -> BuildSource:
        """The domain's."""
        return BuildSource(
            repository=self.repository,
            commit=self.commit,
            number=self.number,
            patches=tuple(Patch(entry.file.rsplit("/", 1)[-1], entry.sha256) for entry in self.patches),
            cmake=tuple(sorted(self.cmake.items())),
            compiler=self.compiler,
            libraries=tuple(self.libraries),
            blas=self.blas,
            backends=tuple(sorted(self.backends)),
        )


class VariantEntry(Table):
    """``[[builds.X.variants]]``: the files of one platform."""

    os: str = ""
    machine: str = ""
    isa: list[Isa] = []
    gpu: Literal["", "nvidia", "amd", "intel", "apple", "none"] = ""
    gpu_arch: list[Text] = []
    path: PathText = ""
    url: Annotated[str, AfterValidator(_url)] = ""
    sha256: Sha256 = ""
    wheel: str = ""

    @model_validator(mode="after")
    def _one_origin(self) -> VariantEntry:
        _exactly_one({"path": self.path, "url": self.url, "wheel": self.wheel})
        if bool(self.url) != bool(self.sha256):
            raise ValueError("'url' and 'sha256' go together: nodes fetch an archive by its digest")
        if self.gpu == NO_GPU and self.gpu_arch:
            raise ValueError("'gpu_arch' does not go with gpu = \"none\"")
        return self

    @property
    def variant(self) -> Variant:
        """The domain's."""
        platform = Platform(self.os, self.machine, tuple(sorted(self.isa)), self.gpu, tuple(sorted(self.gpu_arch)))
        return Variant(platform, self.path, self.url, self.sha256, self.wheel)


class BuildEntry(Table):
    """``[builds.X]``: a build under the name X."""

    fork: ForkWord | None = None
    wheel: str = ""
    path: PathText = ""
    variants: list[VariantEntry] = []
    recipe: PathText = ""
    catalogue: str = ""
    source: SourceEntry | None = None
    trusted: bool = True

    @model_validator(mode="after")
    def _one_origin(self) -> BuildEntry:
        _exactly_one({origin: getattr(self, origin) for origin in ORIGINS})
        if self.catalogue:
            if "fork" in self.model_fields_set:
                raise ValueError("'fork' does not go with 'catalogue': the catalogue's entry says it")
        elif self.fork is None and not self.recipe:
            raise ValueError("'fork' is missing")
        if len({bool(variant.wheel) for variant in self.variants}) > 1:
            raise ValueError("variants are all wheels or all programs: they are measured by different tools")
        return self

    def build(self, name: str) -> Build:
        """The domain's, where neither a recipe nor the catalogue has to be read."""
        return Build(
            name,
            Fork(self.fork or Fork.LLAMA_CPP),
            wheel=self.wheel,
            path=self.path,
            variants=tuple(entry.variant for entry in self.variants),
            source=self.source.source if self.source else None,
            trusted=self.trusted,
        )


def _exactly_one(values: Mapping[str, object]) -> None:
    said = [key for key, value in values.items() if value]
    if len(said) == 1:
        return
    *first, last = (f"'{key}'" for key in values)
    found = "none" if not said else " and ".join(f"'{key}'" for key in said)
    raise ValueError(f"needs exactly one of {', '.join(first)} and {last}, found {found}")
