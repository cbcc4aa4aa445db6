"""The gate's policy: every key, its type and its default. ``docs/reference/gate-policy.md`` says what the keys mean."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, StringConstraints, model_validator

from harness.domain.canonical import digest
from harness.domain.paths import usable_path
from harness.domain.words import Equivalence
from harness.gating.words import MISSING, Finding, Stage

MEMORY, OUTPUTS = "memory", "outputs"
"""What a trade can be about beside workloads."""
ACCEPTABLE = tuple(word for word in Equivalence if word.speed_may_be_judged)
"""Words of outputs that a policy may accept: the wrong ones never are."""


def _word_of(words: Sequence[str]) -> PlainValidator:
    def read(found: Any) -> Any:
        if found not in words:
            raise ValueError(f"expected one of {', '.join(words)}; found {found!r}")
        return next(word for word in words if word == found)

    return PlainValidator(read, json_schema_input_type=str)


def _at_most(found: Any) -> float | Equivalence:
    if isinstance(found, str):
        if found not in ACCEPTABLE:
            raise ValueError(f"expected a share, or for outputs one of {', '.join(ACCEPTABLE)}; found {found!r}")
        return Equivalence(found)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 1:
        raise ValueError(f"expected a share above 0 and below 1, found {found!r}")
    return float(found)


def _names_something(found: str) -> str:
    if not found.strip("!"):
        raise ValueError(f"expected a pattern over case ids, found {found!r}")
    return found


Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Pattern = Annotated[Text, AfterValidator(_names_something)]
Patterns = Annotated[list[Pattern], Field(min_length=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
Growth = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Minutes = Annotated[float, Field(gt=0, le=7 * 1440.0)]
Labels = Annotated[int, Field(ge=1, le=10_000)]
StageWord = Annotated[Stage, _word_of(tuple(Stage))]
StageOrAuto = Annotated[str, _word_of((*Stage, "auto"))]
FindingWord = Annotated[Finding, _word_of(tuple(Finding))]
EquivalenceWord = Annotated[Equivalence, _word_of(ACCEPTABLE)]
Action: TypeAlias = Literal["undecided", "warn", "block"]


class Table(BaseModel):
    """A table of the policy."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class MissingEntry(Table):
    """``[missing]``: what becomes of a required cell without a verdict."""

    absent: Action = "undecided"
    error: Action = "undecided"
    inconclusive: Action = "undecided"
    not_judged: Action = "undecided"
    unsupported: Action = "undecided"
    not_applicable: Action = "undecided"


class CellsEntry(Table):
    """``[[cells]]``: the stage of some cells."""

    cells: Patterns
    stage: StageOrAuto
    required: bool = True
    at_least: Annotated[int, Field(ge=1)] = 1
    floors: StageWord | None = None
    absent: Action | None = None
    error: Action | None = None
    inconclusive: Action | None = None
    not_judged: Action | None = None
    unsupported: Action | None = None
    not_applicable: Action | None = None


class StepEntry(Table):
    """One step of a promotion: how many labels it needs, and how precise the alerts have to be."""

    alerts: Labels
    precision: Share


class PromotionEntry(Table):
    """``[promotion]``: when ``stage = "auto"`` goes up, and down."""

    over: Literal["row", "cell"] = "row"
    confidence: Share = 0.95
    window: Labels = 50
    warn: StepEntry = StepEntry(alerts=5, precision=0.5)
    block: StepEntry = StepEntry(alerts=10, precision=0.7)

    @model_validator(mode="after")
    def _can_be_reached(self) -> PromotionEntry:
        needed = max(self.warn.alerts, self.block.alerts)
        if self.window < needed:
            raise ValueError(f"a 'window' of {self.window} labels never holds the {needed} that a step needs")
        return self


class LimitsEntry(Table):
    """``[limits]``: what is a finding although the case's own check passes."""

    memory_growth: Growth | None = None
    outputs: EquivalenceWord | None = None


class TradeEntry(Table):
    """``[[trades]]``: a loss that is accepted for a gain of the same arms."""

    loss: Text
    at_most: Annotated[float | Equivalence, PlainValidator(_at_most, json_schema_input_type=float | str)]
    gain: Text
    at_least: Growth
    outputs: EquivalenceWord | None = None

    @model_validator(mode="after")
    def _fits(self) -> TradeEntry:
        if (self.loss == OUTPUTS) != isinstance(self.at_most, Equivalence):
            wanted = f"a word such as {ACCEPTABLE[-1]!s}" if self.loss == OUTPUTS else "a share such as 0.02"
            raise ValueError(f"'at_most' of a loss of {self.loss} is {wanted}, found {self.at_most!s}")
        if self.gain == OUTPUTS:
            raise ValueError("outputs are no gain: 'gain' is a pattern over workloads, or memory")
        return self

    def is_about(self, quantity: str) -> bool:
        """Whether it is about a loss of a workload, of memory or of outputs."""
        if self.loss in (MEMORY, OUTPUTS) or quantity in (MEMORY, OUTPUTS):
            return quantity == self.loss
        return fnmatchcase(quantity, self.loss)

    def pays_with(self, workload: str) -> bool:
        """Whether it is about a gain of this workload."""
        return self.gain != MEMORY and fnmatchcase(workload, self.gain)


class WaiverEntry(Table):
    """``[[waivers]]``: findings that somebody answers for until a day."""

    cells: Patterns
    owner: Text
    reason: Text
    expires: date
    findings: Annotated[list[FindingWord], Field(min_length=1)] | None = None
    at_most: Share | None = None


class PathsEntry(Table):
    """``[[paths]]``: the cells that changed paths ask for."""

    paths: Annotated[list[Text], Field(min_length=1)]
    cells: list[Pattern]


class Policy(Table):
    """A whole file."""

    name: Text = "gate"
    labels: Annotated[str, AfterValidator(usable_path)] = ""
    floors: StageWord = Stage.WARN
    unnamed: StageWord = Stage.SHADOW
    budget_minutes: Minutes | None = None
    finds: Share | None = None
    unlisted: Literal["none", "all"] = "none"
    missing: MissingEntry = MissingEntry()
    cells: list[CellsEntry] = []
    promotion: PromotionEntry = PromotionEntry()
    limits: LimitsEntry = LimitsEntry()
    trades: list[TradeEntry] = []
    waivers: list[WaiverEntry] = []
    paths: list[PathsEntry] = []

    @property
    def digest(self) -> str:
        """Hash of what chooses cells for a run: two files that choose alike have the same."""
        chooses = {"cells", "paths", "budget_minutes", "finds", "unlisted", "unnamed"}
        return digest(self.model_dump(include=chooses))

    def action(self, row: CellsEntry | None, finding: Finding) -> Action:
        """What becomes of a required cell without a verdict.

        Args:
            row: The row that the cell is of; ``None``: no row names it.
            finding: Why it has none.
        """
        assert finding in MISSING  # noqa: S101 - the caller chose it so
        found: Action | None = getattr(row, finding.value, None)
        general: Action = getattr(self.missing, finding.value)
        return found or general


def default_policy() -> Policy:
    """Without a file: every cell is required and blocks, but for floors."""
    return Policy(name="default", cells=[CellsEntry(cells=["*"], stage="block")])
