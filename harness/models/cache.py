"""The node-local cache of made models: asked for by card and quant, made once, never half.

A model's file name ends in a key over everything that decides its bytes: the card, the maker's version, the quant, and
the quantizer's program and libraries. Makers of one key take turns by a file lock, so a second one waits and uses what
the first made. A model counts as present when its sidecar is: the sidecar is written last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from harness.domain.halting import ShouldStop, Stopped, go_on, never
from harness.models.card import Card, load_card
from harness.models.hashing import DigestingWriter, file_sha256, remember_sha256
from harness.models.inspect import inspect_gguf
from harness.models.make import MAKER_VERSION, Plan, estimate_routing, plan_model, write_model
from harness.models.quantize import (
    UNQUANTIZED,
    Quant,
    Quantizer,
    Run,
    find_quantizer,
    known_quant,
    quantize,
    run_to_end,
)
from harness.models.shelf import made_folder, make_room
from harness.models.storage import (
    appearing,
    cache_root,
    disk_errors,
    read_json,
    remove_stale,
    require_space,
    write_json,
)
from harness.models.turns import turn
from harness.models.usage import cache_held, want

_KEY_DIGITS = 16
_LOCK_SECONDS = 3600.0
_BITS_OF_F16 = 16.0
_SPACE_MARGIN = 1.25


@dataclass(frozen=True)
class Progress:
    """What a maker is doing.

    Attributes:
        stage: ``waiting`` for who makes or fetches it, drawing ``weights``, ``quantizing``, ``hashing``, or
            ``fetching``.
        done: Bytes done.
        total: Bytes in all; 0 where it is not known.
    """

    stage: Literal["waiting", "weights", "quantizing", "hashing", "fetching"]
    done: int = 0
    total: int = 0


ReportProgress: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True)
class ModelRequest:
    """A model to be had.

    Attributes:
        card: Its shape card.
        quant: Name of the mixture; ``F16`` is the card's own.
    """

    card: Card
    quant: str = UNQUANTIZED


@dataclass(frozen=True)
class Sidecar:
    """What is written beside a cached model.

    Attributes:
        sha256: Of the model file.
        size: Its bytes.
        synthetic: Always true here: random weights.
        card: Name of the card.
        card_sha256: Digest of the card and its training text.
        quant: Name of the mixture.
        maker_version: Version of the maker of the F16 file.
        quantizer_sha256: Of the quantizer's program and libraries; empty for F16.
        experts_chosen: How often each expert of each router is chosen: an *estimate* from random inputs.
    """

    sha256: str
    size: int
    synthetic: bool
    card: str
    card_sha256: str
    quant: str
    maker_version: int
    quantizer_sha256: str
    experts_chosen: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Workshop:
    """What a maker works with.

    Attributes:
        root: Root of the cache.
        threads: Cores reserved for quantizing.
        run: Starts the quantizer.
        report: Told the progress.
        lock_seconds: How long another maker is waited for.
        should_stop: Ends the making, with nothing half-made; of the quantizer, ``run`` sees to it.
    """

    root: Path
    threads: int = 1
    run: Run = run_to_end
    report: ReportProgress = lambda _: None
    lock_seconds: float = _LOCK_SECONDS
    should_stop: ShouldStop = never


def ensure_model(
    card: str | Path | Card,
    quant: str = "IQ4_XS",
    *,
    threads: int = 1,
    run: Run = run_to_end,
    progress: ReportProgress | None = None,
    cache: Path | None = None,
) -> Path:
    """The path of a made model, making it first where the cache has none.

    Args:
        card: A packaged card's name, a card file's path, or a card.
        quant: Name of the mixture.
        threads: Cores the caller has reserved.
        run: Starts the quantizer.
        progress: Told what is going on.
        cache: Root of the cache; `cache_root()` when None.

    Raises:
        BadInput: Faults of the card, ``E-unknown-quant``, ``E-quantizer-missing``, ``E-quantize-failed``.
        Infrastructure: ``E-disk-full``, ``E-no-permission``, ``E-cache-unusable``, ``E-cache-busy``, the quantizer's.
    """
    request = ModelRequest(card if isinstance(card, Card) else load_card(card), quant)
    path = ensure(request, Workshop(cache or cache_root(), threads, run, progress or (lambda _: None)))
    want(record_of(path))
    return path


def ensure(request: ModelRequest, workshop: Workshop) -> Path:
    """As `ensure_model`, for a request and a workshop.

    Raises:
        Stopped: The workshop was told to stop.
    """
    quant, quantizer = _makers(request)
    if quantizer is None:
        return _ensure_written(request.card, quant, workshop)
    final = _final_path(request.card, quant, quantizer, workshop.root)
    if _ready(final):
        return final
    with cache_held():  # the source must not be what makes room for the result
        source = _ensure_written(request.card, known_quant(UNQUANTIZED), workshop)
        want(record_of(source))
        with _turn(final, workshop) as made_meanwhile:
            if not made_meanwhile:
                _quantize_into(final, source, quant, quantizer, workshop)
                _finish(final, request.card, quant, quantizer.digest(), workshop)
    return final


def made_already(request: ModelRequest, root: Path) -> Path | None:
    """What `ensure` would find in a cache; ``None`` where it would make it.

    Raises:
        BadInput: As `ensure_model`.
    """
    final = _final_path(request.card, *_makers(request), root)
    return final if _ready(final) else None


def _makers(request: ModelRequest) -> tuple[Quant, Quantizer | None]:
    """The mixture, and what makes it of the F16 file; ``None`` where this package writes it as it is."""
    own = request.card.own_quant
    quant = known_quant(own if request.quant == UNQUANTIZED else request.quant)
    written = own != UNQUANTIZED or quant.name == UNQUANTIZED or request.card.weights.blocks == "drawn"
    return quant, None if written else find_quantizer()


def read_sidecar(model: Path) -> Sidecar | None:
    """What is known of a cached model; None for other files and half-made ones."""
    content = read_json(record_of(model))
    try:
        return Sidecar(**content) if content else None
    except TypeError:
        return None


def _ensure_written(card: Card, quant: Quant, workshop: Workshop) -> Path:
    """The model as this package writes it, without a quantizer."""
    final = _final_path(card, quant, None, workshop.root)
    if _ready(final):
        return final
    plan = plan_model(card, None if quant.name == UNQUANTIZED else quant)
    with _turn(final, workshop) as made_meanwhile:
        if not made_meanwhile:
            _write_into(final, plan, workshop)
            _finish(final, card, quant, "", workshop)
    return final


def _final_path(card: Card, quant: Quant, quantizer: Quantizer | None, root: Path) -> Path:
    deciding: dict[str, Any] = {"card": card.digest(), "maker": MAKER_VERSION, "quant": quant.name}
    if quantizer is not None:
        deciding["quantizer"] = quantizer.digest()
    key = hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:_KEY_DIGITS]
    return made_folder(root) / f"{card.name}-{quant.name}-{key}.gguf"


def record_of(model: Path) -> Path:
    """The sidecar of a made model."""
    return model.with_suffix(".json")


def _ready(model: Path) -> bool:
    """Whether the model is whole: the sidecar is there and the size is the one it says."""
    known = read_sidecar(model)
    try:
        return known is not None and model.stat().st_size == known.size
    except OSError:
        return False


@contextmanager
def _turn(final: Path, workshop: Workshop) -> Iterator[bool]:
    """Hold the lock of a model; yields whether another maker has made it meanwhile."""
    with turn(final, lambda: workshop.report(Progress("waiting")), workshop.lock_seconds, workshop.should_stop):
        ready = _ready(final)
        if not ready:
            with disk_errors(final.parent):
                remove_stale(final)
        yield ready


def _require_room(final: Path, needed: int, workshop: Workshop) -> None:
    make_room(workshop.root, needed)
    require_space(final.parent, needed)


def _write_into(final: Path, plan: Plan, workshop: Workshop) -> None:
    needed = plan.nbytes
    _require_room(final, needed, workshop)

    def report(done: int, total: int) -> None:
        go_on(workshop.should_stop)
        workshop.report(Progress("weights", done, total))

    with disk_errors(final, needed), appearing(final) as temporary:
        with temporary.open("xb") as file:
            digesting = DigestingWriter(file)
            write_model(digesting, plan, report)
        inspect_gguf(temporary)
    remember_sha256(final, digesting.hexdigest(), cache=workshop.root)


def _quantize_into(final: Path, source: Path, quant: Quant, quantizer: Quantizer, workshop: Workshop) -> None:
    size = source.stat().st_size
    needed = int(size * quant.bits / _BITS_OF_F16 * _SPACE_MARGIN)
    _require_room(final, needed, workshop)
    workshop.report(Progress("quantizing", 0, size))
    with disk_errors(final, needed), appearing(final) as temporary:
        quantize(source, temporary, quant, quantizer=quantizer, threads=workshop.threads, run=workshop.run)
        inspect_gguf(temporary)
    workshop.report(Progress("quantizing", size, size))


def _finish(final: Path, card: Card, quant: Quant, quantizer: str, workshop: Workshop) -> None:
    """Write the sidecar, which makes the model count as present."""
    size = final.stat().st_size
    workshop.report(Progress("hashing", 0, size))
    try:
        digest = file_sha256(final, cache=workshop.root, should_stop=workshop.should_stop)
    except Stopped:
        final.unlink(missing_ok=True)  # without its sidecar nobody would use it
        raise
    chosen = _experts_chosen(card)
    sidecar = Sidecar(digest, size, True, card.name, card.digest(), quant.name, MAKER_VERSION, quantizer, chosen)
    with disk_errors(final):
        write_json(record_of(final), asdict(sidecar))


def _experts_chosen(card: Card) -> dict[str, Any]:
    layers = estimate_routing(plan_model(card))
    if not layers:
        return {}
    counts = {layer.tensor: list(layer.chosen) for layer in layers}
    return {"estimate": "random inputs of unit size", "tokens": layers[0].tokens, "counts": counts}
