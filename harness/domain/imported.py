"""Rows of measurements that somebody else made: what a file says, and what in it could not be used."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.domain.build import Fork

UNKNOWN = ""
"""What a file does not say."""
BENCH = "llama-bench"
"""The program whose rows name workloads without its own name."""


@dataclass(frozen=True, slots=True)
class ImportedBuild:
    """The build as a row names it; what the row does not say is empty.

    Attributes:
        fork: The fork whose ``llama-bench`` prints such rows; ``None`` where the row does not tell.
        commit: Commit of the source.
        number: Build number; 0 where unknown.
        backends: Compiled-in backends, e.g. ``CUDA,BLAS``.
        content: Hash of what really ran; only our own journals have it.
    """

    fork: Fork | None = None
    commit: str = UNKNOWN
    number: int = 0
    backends: str = UNKNOWN
    content: str = UNKNOWN


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """The model as a row names it; what the row does not say is empty or zero.

    Attributes:
        file: Name of the file without its folders.
        architecture: E.g. ``qwen3moe``.
        quant: E.g. ``IQ4_XS_R8``.
        size_bytes: Bytes of the tensors; tables round them.
        n_params: Parameters; tables round them.
    """

    file: str = UNKNOWN
    architecture: str = UNKNOWN
    quant: str = UNKNOWN
    size_bytes: float = 0.0
    n_params: float = 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and deviation of repetitions whose times are not there.

    Attributes:
        mean_tps: Mean speed, tokens per second, the first repetition included.
        sd_tps: Standard deviation of the repetitions; ``None`` where the table has none that is a number.
        repetitions: How many there were. Tables do not say: ``llama-bench``'s default is assumed.
    """

    mean_tps: float
    sd_tps: float | None
    repetitions: int


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """One workload in one process, as a file has it. Either ``samples_ns`` or ``summary`` is there.

    Attributes:
        workload: Name of what was timed, e.g. ``pp512``.
        tokens: Tokens inside the timed part; speed is this over the time.
        settings: Flags by canonical name as far as the row says them, and other columns by their own; sorted.
        build: The build.
        model: The model.
        machine: Facts of the machine by name (``cpu``, ``gpu``, ...), sorted.
        samples_ns: Every repetition's time in nanoseconds, in order.
        discarded: How many of the first were warm-up; ``None``: the file does not know, it is to be judged.
        summary: Mean and deviation where there are no times.
        time: When it was measured, ISO 8601 in UTC; empty where unknown.
        source: Name of the file.
        place: Where in the file, e.g. ``row 3``.
        case: Id of the arm in a journal of ours; empty otherwise. Rows of equal ids may be compared through time.
        control: The ``case`` of the baseline that was measured beside it, in a journal of ours.
        label: Readable name of the arm, in a journal of ours.
        program: Who timed it; what another program timed has workloads of other names.
    """

    workload: str
    tokens: int
    settings: tuple[tuple[str, str], ...] = ()
    build: ImportedBuild = field(default_factory=ImportedBuild)
    model: ImportedModel = field(default_factory=ImportedModel)
    machine: tuple[tuple[str, str], ...] = ()
    samples_ns: tuple[float, ...] = ()
    discarded: int | None = None
    summary: Summary | None = None
    time: str = UNKNOWN
    source: str = UNKNOWN
    place: str = UNKNOWN
    case: str = UNKNOWN
    control: str = UNKNOWN
    label: str = UNKNOWN
    program: str = BENCH

    @property
    def where(self) -> str:
        """File and place, for messages."""
        return ", ".join(part for part in (self.source, self.place) if part)


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """Something in a file that could not be used.

    Attributes:
        slug: Stable word, ``E-...``.
        where: File and place.
        lost: What is wrong, and what was lost by it.
        workload: Name of the workload whose row was lost, where that is known.
        row_lost: Whether a row was refused or broken, not only something beside the rows.
    """

    slug: str
    where: str
    lost: str
    workload: str = ""
    row_lost: bool = True

    def __str__(self) -> str:
        return f"{self.slug}: {self.where}: {self.lost}" if self.where else f"{self.slug}: {self.lost}"


@dataclass(frozen=True, slots=True)
class Imported:
    """Everything that was found in a text.

    Attributes:
        rows: Rows that can be used, in order.
        problems: What could not.
        form: ``json``, ``csv``, ``sql``, ``markdown``, ``sweep``, ``batched``, ``journal``; several joined by commas;
            empty where nothing was recognised.
    """

    rows: tuple[ImportedRow, ...] = ()
    problems: tuple[ImportProblem, ...] = ()
    form: str = ""
