"""From a matrix's model to a file on this node."""

from __future__ import annotations

from pathlib import Path

from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.models.cache import ReportProgress, ensure_model
from harness.models.inspect import inspect_gguf


def model_path(model: Model, *, threads: int = 1, progress: ReportProgress | None = None) -> Path:
    """The file of a model, made first where it comes from a card and the cache has none.

    Args:
        model: The model as the matrix declares it.
        threads: Cores that making it may use.
        progress: Told what is going on.

    Raises:
        BadInput: If the file is missing, truncated or not a GGUF, or the card or quantization is unknown.
        Infrastructure: If it could not be made here.
    """
    if model.card:
        return ensure_model(model.card, model.quant, threads=threads, progress=progress)
    path = Path(model.path)
    if not path.is_file():
        raise BadInput(
            "E-model-missing",
            f"there is no model file at {path}",
            hint="put the file there, or change [models] of the matrix",
            where=model.name,
        )
    inspect_gguf(path)
    return path
