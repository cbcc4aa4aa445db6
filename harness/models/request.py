"""From a matrix's model to a file on this node."""

from __future__ import annotations

from pathlib import Path

from harness.domain.errors import BadInput
from harness.domain.halting import ShouldStop, never
from harness.domain.model import Model
from harness.models.cache import ModelRequest, Progress, ReportProgress, Workshop, ensure, record_of
from harness.models.card import load_card
from harness.models.fetched import Fetching, cached_model, check_digests, fetch_model
from harness.models.quantize import stoppable_run
from harness.models.splits import parts_of, read_headers
from harness.models.storage import cache_root
from harness.models.usage import obtain


def model_path(
    model: Model, *, threads: int = 1, progress: ReportProgress | None = None, should_stop: ShouldStop = never
) -> Path:
    """The file of a model, the first of a split one; made of its card or fetched where the cache has none.

    Inside `harness.models.usage.cache_held` it stays in the cache to the end of that block.

    Args:
        model: The model as the matrix declares it.
        threads: Cores that making it may use.
        progress: Told what is going on.
        should_stop: Ends the making or fetching, with nothing half-made.

    Raises:
        BadInput: If the file is missing, truncated, not a GGUF or another one than its digest says; if the card or
            quantization is unknown; if it can't be had from where it is said to be.
        Infrastructure: If it could not be made or fetched here.
        Stopped: It was told to stop.
    """
    report = progress or (lambda _: None)
    if model.path:
        return _lying(model, should_stop)
    return obtain(lambda: _cached(model, threads, report, should_stop), model.name)


def _cached(model: Model, threads: int, report: ReportProgress, should_stop: ShouldStop) -> tuple[Path, Path]:
    root = cache_root()
    if model.card:
        workshop = Workshop(root, threads, stoppable_run(should_stop), report, should_stop=should_stop)
        made = ensure(ModelRequest(load_card(model.card), model.quant), workshop)
        return made, record_of(made)
    if not model.url:
        return cached_model(model.sha256, root)

    def told(_: str, done: int, total: int) -> None:
        report(Progress("fetching" if total or done else "waiting", done, total))

    return fetch_model(model.url, model.sha256, Fetching(root, told, should_stop=should_stop))


def _lying(model: Model, should_stop: ShouldStop) -> Path:
    path = Path(model.path)
    if not path.is_file():
        raise BadInput(
            "E-model-missing",
            f"there is no model file at {path}",
            hint="put the file there, or change [models] of the matrix",
            where=model.name,
        )
    first = read_headers(path)[0].path
    if model.sha256:
        check_digests(path, model.sha256, parts_of(path), should_stop)
    return first
