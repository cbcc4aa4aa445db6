"""What a case needs that this machine does not have.

It is a note and not a status: a plan is also made where nothing will be run, and the nodes of a fleet have files of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.builds.checking import told_otherwise
from harness.domain.build import Build
from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.engines.registry import engine_for
from harness.models.fetched import part_addresses
from harness.models.shelf import held_models
from harness.models.storage import cache_root

_MIB = 1024**2


def build_missing(build: Build) -> str:
    """Why a build can't be measured here, where it can't: its files are not there, or tell that it is another one."""
    try:
        engine_for(build).locate()
    except BadInput as bad:
        return f"build {build.name}: {bad.message}"
    otherwise = told_otherwise(build)
    return f"build {build.name} is not what is said: {otherwise}" if otherwise else ""


def model_missing(model: Model) -> str:
    """Why a model can't be loaded here: no such file, no such card to make it of, not fetched yet; empty if it can."""
    if model.sha256 and not model.path:
        held = any(each.sha256 == model.sha256 for each in held_models(cache_root()))
        return "" if held else f"model {model.name}: {_to_fetch(model)}"
    path = model.path or (model.card if model.card.endswith(".json") else "")
    if not path or Path(path).is_file():
        return ""
    return f"model {model.name}: there is no file {path}"


def _to_fetch(model: Model) -> str:
    """Where it will come from, and how much that is as far as this can be told without asking anybody."""
    if not model.url:
        return f"the cache has none with the digest {model.sha256[0]}"
    size = _local_bytes(part_addresses(model.url, model.sha256))
    much = f"{size / _MIB:.0f} MiB are" if size else "it is"
    return f"{much} fetched from {model.url} by the first job that needs it"


def _local_bytes(addresses: Iterable[str]) -> int:
    """The sum of files at ``file://`` addresses; 0 where one lies elsewhere or nowhere."""
    files = [Path(unquote(urlsplit(each).path)) for each in addresses if urlsplit(each).scheme == "file"]
    try:
        return sum(file.stat().st_size for file in files)
    except OSError:
        return 0
