"""Recipes: TOML files that say how a build is made. Data only: commands are argument vectors, nothing is a shell's."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainValidator, StringConstraints, ValidationError, model_validator

from harness import bounded
from harness.builds.entry import ForkWord, PatchEntry, Sha256, Table, Text
from harness.domain.build import Fork, Patch, Recipe
from harness.domain.errors import BadInput
from harness.domain.paths import usable_path
from harness.domain.secrets import is_secret_name, secret_in_address
from harness.domain.suggest import did_you_mean

PLACEHOLDERS = ("source", "build", "jobs")
_PLACEHOLDER = re.compile(r"(?<!\$)\{(\w*)\}")
"""``${...}`` is CMake's own and stays."""
_URL = re.compile(r"[a-z][a-z0-9+.-]*://|[^/@:]+@[^/:]+:")
_FORBIDDEN = re.compile(r"^-|::")
"""What git would take for an option, or for the name of a program that it shall run."""
_MAX_PATCH_BYTES = 16 * 1024**2
_MAX_MINUTES = 24 * 60


def _vectors(found: Any) -> tuple[tuple[str, ...], ...]:
    """One argument vector, or a list of them."""
    vectors = [found] if isinstance(found, list) and found and isinstance(found[0], str) else found
    if not isinstance(vectors, list) or not all(_is_vector(vector) for vector in vectors):
        raise ValueError(f'expected a list of arguments such as ["cmake", "--build", "{{build}}"], found {found!r}')
    for name in _PLACEHOLDER.findall(" ".join(word for vector in vectors for word in vector)):
        if name not in PLACEHOLDERS:
            raise ValueError(f"unknown placeholder '{{{name}}}' ({did_you_mean(name, PLACEHOLDERS)})")
    return tuple(tuple(vector) for vector in vectors)


def _is_vector(found: Any) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(word, str) and "\0" not in word for word in found)


def _patch(found: Any) -> PatchEntry | str:
    """A file, or a table of a file and its digest."""
    if isinstance(found, str) and found:
        return usable_path(found)
    if isinstance(found, dict):
        return PatchEntry.model_validate(found)
    raise ValueError(f"expected a file's name, or {{ file = ..., sha256 = ... }}; found {found!r}")


_RawVectors = list[str] | list[list[str]]
Vectors = Annotated[tuple[tuple[str, ...], ...], PlainValidator(_vectors, json_schema_input_type=_RawVectors)]
PatchWord = Annotated[PatchEntry | str, PlainValidator(_patch, json_schema_input_type=str | PatchEntry)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
RecipeName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([._-]?[A-Za-z0-9]+)*$", max_length=60)]


class RecipeEntry(Table):
    """A recipe file; ``docs/reference/recipe.md`` says what the keys mean."""

    name: RecipeName
    fork: ForkWord
    repository: Text
    revision: str = ""
    merge_base: Annotated[list[Text], Field(min_length=2, max_length=2)] | None = None
    patches: list[PatchWord] = Field(default_factory=list)
    configure: Vectors = ()
    build: Annotated[Vectors, Field(min_length=1)]
    outputs: list[Text] = Field(default_factory=lambda: ["bin"], min_length=1)
    environment: dict[VariableName, str] = Field(default_factory=dict)
    timeout_minutes: Annotated[float, Field(gt=0, le=_MAX_MINUTES)] = 120.0

    @model_validator(mode="after")
    def _sound(self) -> RecipeEntry:
        if self.revision and self.merge_base:
            raise ValueError("takes either 'revision' or 'merge_base'")
        for key, word in (("repository", self.repository), ("revision", self.revision)):
            if _FORBIDDEN.search(word):
                raise ValueError(f"'{key}' can't be {word!r}")
        if fault := secret_in_address(self.repository):
            raise ValueError(f"'repository': {fault}; let git's own credential helper give it")
        if named := next(filter(is_secret_name, self.environment), ""):
            raise ValueError(f"'environment': '{named}' looks like a secret, and would stand in every report")
        wrong = [pattern for pattern in self.outputs if pattern.startswith("/") or ".." in pattern.split("/")]
        if wrong:
            raise ValueError(f"'outputs' lie inside the build folder, found {wrong[0]!r}")
        return self


def read_recipe(path: Path) -> tuple[Fork, Recipe]:
    """Read a recipe and the patches that it names.

    Args:
        path: The file; what it names is relative to it.

    Returns:
        The fork that comes out, and the recipe.

    Raises:
        BadInput: ``E-recipe-missing``, ``E-recipe-invalid``, ``E-patch-missing``, ``E-digest-mismatch``.
    """
    try:
        entry = RecipeEntry.model_validate(bounded.read_toml(path))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise BadInput("E-recipe-missing", "there is no such recipe", where=f"{path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
        raise BadInput("E-recipe-invalid", f"not a TOML file: {failure}", where=f"{path}") from failure
    except ValidationError as invalid:
        raise _invalid(path, invalid) from invalid
    recipe = Recipe(
        name=entry.name,
        repository=_repository(entry.repository, path.parent),
        revision=entry.revision,
        merge_base=tuple(entry.merge_base or ()),
        patches=tuple(_read_patch(word, path) for word in entry.patches),
        configure=entry.configure,
        build=entry.build,
        outputs=tuple(entry.outputs),
        environment=tuple(sorted(entry.environment.items())),
        timeout_s=entry.timeout_minutes * 60,
    )
    return Fork(entry.fork), recipe


def is_url(repository: str) -> bool:
    """Whether a repository lies elsewhere; else it is a folder."""
    return bool(_URL.match(repository))


def filled(vector: tuple[str, ...], values: dict[str, str]) -> tuple[str, ...]:
    """An argument vector with its placeholders replaced, each word staying one word."""
    return tuple(_PLACEHOLDER.sub(lambda found: values[found.group(1)], word) for word in vector)


def _repository(word: str, folder: Path) -> str:
    return word if is_url(word) else str((folder / Path(word).expanduser()).absolute())


def _read_patch(word: PatchEntry | str, recipe: Path) -> Patch:
    file = recipe.parent / Path(word if isinstance(word, str) else word.file).expanduser()
    try:
        content = bounded.read_bytes(file, _MAX_PATCH_BYTES)
    except OSError as failure:
        message = f"the patch {file} can't be read: {failure.strerror or failure}"
        raise BadInput("E-patch-missing", message, where=f"{recipe}: patches") from failure
    digest: Sha256 = hashlib.sha256(content).hexdigest()
    if isinstance(word, PatchEntry) and word.sha256 != digest:
        message = f"the patch {file.name} has the digest {digest}, the recipe says {word.sha256}"
        raise BadInput("E-digest-mismatch", message, where=f"{recipe}: patches")
    return Patch(file.name, digest, content.decode("utf-8", "surrogateescape"))


def _invalid(path: Path, invalid: ValidationError) -> BadInput:
    """Every fault, each with its key."""
    told = [_fault(dict(error)) for error in invalid.errors(include_url=False)]
    return BadInput("E-recipe-invalid", "; ".join(told), where=f"{path}")


def _fault(error: dict[str, Any]) -> str:
    key = ".".join(map(str, error["loc"]))
    said = {"missing": "the key is missing", "too_short": "is empty"}.get(error["type"])
    if error["type"] == "extra_forbidden":
        said = f"unknown key ({did_you_mean(key, RecipeEntry.model_fields)})"
    said = said or error["msg"].removeprefix("Value error, ")
    return f"{key}: {said}" if key else said
