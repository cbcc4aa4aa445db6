"""What a case needs that this machine does not have.

It is a note and not a status: a plan is also made where nothing will be run, and the nodes of a fleet have files of
their own.
"""

from __future__ import annotations

from pathlib import Path

from harness.domain.build import Build
from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.engines.registry import engine_for
from harness.models.shelf import held_models
from harness.models.storage import cache_root


def build_missing(build: Build) -> str:
    """Why a build can't be started here: no such file, no program, no such wheel; empty if it can."""
    try:
        engine_for(build).locate()
    except BadInput as bad:
        return f"build {build.name}: {bad.message}"
    return ""


def model_missing(model: Model) -> str:
    """Why a model can't be loaded here: no such file, or no such card to make it of; empty if it can.

    What has an address is fetched when it is run.
    """
    if model.sha256 and not model.path and not model.url:
        held = any(each.sha256 == model.sha256 for each in held_models(cache_root()))
        return "" if held else f"model {model.name}: the cache has none with the digest {model.sha256[0]}"
    path = model.path or (model.card if model.card.endswith(".json") else "")
    if not path or Path(path).is_file():
        return ""
    return f"model {model.name}: there is no file {path}"
