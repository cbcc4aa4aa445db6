"""The matrix file: every key, its type and its default. Extra keys are errors and no value is converted.

:mod:`harness.planning.values` reads the values.

What the keys mean is written for users in ``docs/reference/matrix.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from harness.builds.entry import BuildEntry
from harness.domain import policy
from harness.domain.canonical import id_part
from harness.domain.case import Expectation
from harness.domain.job import Design
from harness.domain.node import NodeClass
from harness.planning.source import Source
from harness.planning.values import (
    Address,
    Amount,
    AtKey,
    Axis,
    Blocks,
    Capability,
    Count,
    Digests,
    Loss,
    Margin,
    Minutes,
    Name,
    Names,
    Numbers,
    PathText,
    Positive,
    Predicted,
    Prompts,
    PromptText,
    Reference,
    Repeats,
    Settings,
    Side,
    SomeRepeats,
    SomeTokens,
    Text,
    Threads,
    Timeout,
    Tokens,
    Value,
    Variables,
)

_ONE_FACTOR = ("factor", "baseline", "candidate")
_ADVICE = ("source", "instead")


class Entry(BaseModel):
    """A table of the matrix file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class ModelEntry(Entry):
    """``[models.X]``: a model under the name X: of a shape card, a file, an address, or in the cache by its digest."""

    card: PathText = ""
    quant: str = ""
    path: PathText = ""
    url: Address = ""
    sha256: Digests = ()

    @model_validator(mode="after")
    def _one_origin(self) -> ModelEntry:
        origins = [key for key in ("card", "path", "url") if getattr(self, key)]
        if len(origins) > 1 or not (origins or self.sha256):
            found = " and ".join(f"'{key}'" for key in origins) or "none of them"
            raise ValueError(f"needs exactly one of 'card', 'path' and 'url', or only 'sha256'; found {found}")
        if self.quant and not self.card:
            raise ValueError("'quant' goes with 'card'; a file has the quantization that it has")
        if self.card and self.sha256:
            raise ValueError("'sha256' goes with 'path' or 'url'; what is made of a card is known by the card")
        if self.url and not self.sha256:
            raise ValueError("'url' needs 'sha256': what is fetched is held against it")
        return self


class NodeClassEntry(Entry):
    """``[node_classes.X]``: what a node must have to be of class X."""

    min_gpus: Count = 0
    min_vram_gib: Amount = 0.0
    gpu_name: str = ""
    gpu_vendor: Literal["", "nvidia", "amd", "intel", "apple"] = ""
    min_compute_capability: Capability = ""
    no_gpu: bool = False
    min_ram_gib: Amount = 0.0
    min_cores: Count = 0
    cpu_model: str = ""
    isa: list[str] = []
    os: str = ""
    machine: str = ""

    @model_validator(mode="after")
    def _gpus_or_none(self) -> NodeClassEntry:
        if self.no_gpu and (asked := self.asked_of_gpus):
            raise ValueError(f"'{asked[0]}' does not go with 'no_gpu'")
        return self

    @property
    def asked_of_gpus(self) -> tuple[str, ...]:
        """The keys that ask for GPUs."""
        keys = ("min_gpus", "min_vram_gib", "gpu_name", "gpu_vendor", "min_compute_capability")
        return tuple(key for key in keys if getattr(self, key))

    def node_class(self, name: str) -> NodeClass:
        """The domain's. Where something is asked of GPUs, at least one is needed."""
        return NodeClass(
            name,
            min_gpus=max(self.min_gpus, 1 if self.asked_of_gpus else 0),
            min_vram_gib=self.min_vram_gib,
            min_ram_gib=self.min_ram_gib,
            min_cores=self.min_cores,
            isa=tuple(sorted(self.isa)),
            gpu_name=self.gpu_name,
            gpu_vendor=self.gpu_vendor,
            min_compute_capability=self.min_compute_capability,
            no_gpu=self.no_gpu,
            cpu_model=self.cpu_model,
            os=self.os,
            machine=self.machine,
        )


class BundleEntry(Entry):
    """One value of an ``[axes]``: several flags under one name."""

    name: Name
    flags: dict[str, Value]


def _bundles(found: Sequence[BundleEntry]) -> Sequence[BundleEntry]:
    """The values of one axis, told apart by their names."""
    names = [id_part(bundle.name) for bundle in found]
    if repeated := next((name for index, name in enumerate(names) if name in names[:index]), ""):
        raise ValueError(f"value '{repeated}' is listed twice (in ids, upper and lower case, '_' and '-' are the same)")
    return found


class Condition(Entry):
    """Which builds, models, classes and placements something is about. A key that is left out matches everything."""

    fork: Names | None = None
    build: Names | None = None
    build_number: Numbers | None = None
    commit: Names | None = None
    placement: Names | None = None
    model: Names | None = None
    quant: Names | None = None
    node_class: Names | None = None


class WhenEntry(Condition):
    """``[[when]]``: axes that exist only where the condition holds."""

    flags: Annotated[dict[str, Axis], Field(min_length=1)]


class Where(Condition):
    """A condition that may ask for flag values too."""

    flags: dict[str, Axis] = {}


class ExcludeEntry(Where):
    """``[[exclude]]``: arms to leave out."""

    @model_validator(mode="after")
    def _says_something(self) -> ExcludeEntry:
        if not self.model_fields_set:
            raise ValueError("an empty exclude would remove every arm; say which ones")
        return self


class IncludeEntry(Entry):
    """``[[include]]``: an arm to add, whatever the excludes say."""

    build: str
    model: str
    node_class: Names | None = None
    flags: dict[str, Value] = {}


class FactorEntry(Entry):
    """One of the two ``factors`` of an attribution."""

    name: Name = ""
    factor: Text
    baseline: Side
    candidate: Side

    @property
    def word(self) -> str:
        """What verdicts call it."""
        return self.name or self.factor


class ContrastEntry(Entry):
    """``[[contrasts]]``: two arms that differ in one factor, or the four of two factors."""

    name: Name = ""
    kind: Literal["throughput", "pitfall", "attribution"] = "throughput"
    pitfall: PathText = ""
    factor: Text = ""
    baseline: Side | None = None
    candidate: Side | None = None
    factors: list[FactorEntry] = []
    where: Where = Where()
    workloads: list[str] = []
    expect: Literal["no_regression", "improved", "report"] = "no_regression"
    source: str = ""
    instead: str = ""

    @model_validator(mode="before")
    @classmethod
    def _named_after_its_pitfall(cls, found: Any) -> Any:
        if isinstance(found, dict) and (name := contrast_name(found)):
            return {
                **found,
                "name": name,
                **({"kind": "pitfall"} if "kind" not in found and "pitfall" in found else {}),
            }
        return found

    @model_validator(mode="after")
    def _keys_of_kind(self) -> ContrastEntry:
        if not self.name:
            raise AtKey("the key is missing", "name")
        _keys_fit_kind(self)
        return self

    @property
    def expectation(self) -> Expectation:
        """What is expected; an attribution informs where nothing was said."""
        said = self.kind != "attribution" or "expect" in self.model_fields_set
        return Expectation(self.expect) if said else Expectation.REPORT


class WorkloadEntry(Entry):
    """``[[workloads]]``: tokens of prompt processing and generation, or a profile of requests."""

    pp: Tokens = 0
    tg: Tokens = 0
    depth: Tokens = 0
    profile: PathText = ""
    name: Name = ""
    n_predict: Predicted | None = None
    prompt_tokens: Tokens | None = None
    metrics: list[Literal["cold", "ttft", "prefill", "decode"]] = []
    where: Where = Where()

    @model_validator(mode="after")
    def _does_something(self) -> WorkloadEntry:
        mine = ("name", "n_predict", "prompt_tokens", "metrics") if not self.profile else ("pp", "tg", "depth")
        alien = [key for key in mine if key in self.model_fields_set]
        if alien:
            raise ValueError(f"'{alien[0]}' {'does not go with' if self.profile else 'goes with'} 'profile'")
        if not self.pp and not self.tg and not self.profile:
            raise ValueError("needs 'pp' or 'tg' above 0, or a 'profile'")
        return self


class FloorEntry(Entry):
    """``[[checks]] kind = "floor"``: an absolute threshold on the speed, or first token, of single arms."""

    kind: Literal["floor"]
    tokens_per_second: Positive | None = None
    max_ms: Positive | None = None
    workloads: list[str] = []
    where: Where = Where()

    @model_validator(mode="after")
    def _one_threshold(self) -> FloorEntry:
        _exactly_one("tokens_per_second", self.tokens_per_second, "max_ms", self.max_ms)
        return self


class OutputsEntry(Entry):
    """``[[checks]] kind = "outputs"``: two arms must answer alike, or single arms as it is on record."""

    kind: Literal["outputs"]
    name: Name
    contrasts: list[str] = []
    factor: str = ""
    baseline: Side | None = None
    candidate: Side | None = None
    where: Where = Where()
    reference: Reference = False
    reference_arm: Where | None = None
    prompts: Prompts
    prompts_only: list[str] = []
    n_predict: SomeTokens = 32
    positions: SomeTokens = 96
    forced: Tokens = 20
    top: Annotated[int, Field(ge=2, le=100)] = 20
    variations: list[Literal["batch", "threads"]] = ["batch", "threads"]
    lossy: Loss | None = None

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> OutputsEntry:
        own = [key for key in _ONE_FACTOR if key in self.model_fields_set]
        if self.reference_arm is not None and not self.reference:
            raise ValueError("'reference_arm' goes with 'reference'")
        if self.reference and (own or self.contrasts):
            key = own[0] if own else "contrasts"
            raise ValueError(f"'{key}' does not go with 'reference': that is about single arms")
        if self.contrasts and (own or "where" in self.model_fields_set):
            raise ValueError("takes either 'contrasts' or 'factor', 'baseline', 'candidate' and 'where'")
        if not self.contrasts and not self.reference and len(own) != len(_ONE_FACTOR):
            raise ValueError("needs 'contrasts', or all of 'factor', 'baseline' and 'candidate', or a 'reference'")
        return self

    @property
    def reference_name(self) -> str:
        """Under which name its reference is kept; empty where it has none."""
        return (self.name if self.reference is True else self.reference) or ""


class PromptEntry(Entry):
    """``[[prompts]]`` of a file of prompts."""

    name: Name
    text: PromptText | None = None
    file: PathText = ""
    answer: PromptText = ""
    tokens: Tokens = 0
    fills: Tokens = 0

    @model_validator(mode="after")
    def _one_text_and_length(self) -> PromptEntry:
        if (self.text is None) == (not self.file):
            raise ValueError(f"needs exactly one of 'text' and 'file', found {'both' if self.file else 'neither'}")
        if self.tokens and self.fills:
            raise ValueError("takes either 'tokens' or 'fills'")
        if self.text == "" and (self.tokens or self.fills):
            raise ValueError("an empty text can't be repeated: leave out 'tokens' and 'fills'")
        return self


class PromptSet(Entry):
    """A file of prompts."""

    prompts: Annotated[list[PromptEntry], Field(min_length=1)]


class MemoryEntry(Entry):
    """``[[checks]] kind = "memory"``: a limit on the peak resident memory of single arms."""

    kind: Literal["memory"]
    max_rss_mib: Positive
    where: Where = Where()


CheckEntry = Annotated[FloorEntry | OutputsEntry | MemoryEntry, Field(discriminator="kind")]


class TradeEntry(Entry):
    """``[[policy.trades]]``: a loss that is accepted for a gain of the same contrast."""

    gain: Text
    at_least: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    loss: Text
    at_most: Annotated[float, Field(gt=0, lt=1)]


class Policy(Entry):
    """``[policy]``: how often things are repeated and how they are judged."""

    warmup: Repeats = 4
    repetitions: SomeRepeats = 3
    blocks: Blocks = 24
    minutes: Minutes | None = None
    burn_in: SomeRepeats = 1
    timeout_s: Timeout = 600.0
    alpha: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    margin: Margin = "auto"
    ceiling_tps: Positive = 1_000_000.0
    inconclusive: Literal["skip", "error"] = "skip"
    threads: Threads = "auto"
    trades: list[TradeEntry] = []

    @property
    def design(self) -> Design:
        """The part that jobs carry."""
        return Design(self.warmup, self.repetitions, self.burn_in, self.blocks, self.timeout_s, self.minutes)

    @property
    def judging(self) -> policy.Policy:
        """The part that verdicts are made by."""
        return policy.Policy(
            alpha=self.alpha,
            margin=policy.UNKNOWN_SPREAD_MARGIN if self.margin == "auto" else self.margin,
            ceiling_tps=self.ceiling_tps,
            inconclusive=self.inconclusive,
            auto_margin=self.margin == "auto",
            trades=tuple(policy.Trade(each.gain, each.at_least, each.loss, each.at_most) for each in self.trades),
        )


class Matrix(Entry):
    """A whole matrix file, files that it extends merged in."""

    name: Name
    extends: str = ""
    builds: Annotated[dict[Name, BuildEntry], Field(min_length=1)]
    models: Annotated[dict[Name, ModelEntry], Field(min_length=1)]
    node_classes: dict[Name, NodeClassEntry] = {}
    flags: dict[str, Axis] = {}
    axes: dict[Name, Annotated[list[BundleEntry], Field(min_length=1), AfterValidator(_bundles)]] = {}
    environment: Variables = {}
    configurations: dict[Name, Settings] = {}
    when: list[WhenEntry] = []
    include: list[IncludeEntry] = []
    exclude: list[ExcludeEntry] = []
    contrasts: list[ContrastEntry] = []
    workloads: list[WorkloadEntry] = []
    checks: list[CheckEntry] = []
    policy: Policy = Policy()
    _source: Source = PrivateAttr(default_factory=Source)

    @property
    def source(self) -> Source:
        """Where its keys were written."""
        return self._source


def _exactly_one(first: str, first_value: object, second: str, second_value: object) -> None:
    if bool(first_value) == bool(second_value):
        found = "both" if first_value else "neither"
        raise ValueError(f"needs exactly one of '{first}' and '{second}', found {found}")


def contrast_name(contrast: Mapping[str, Any]) -> str:
    """The name of a contrast as a file has it: that of its pitfall where none is said; empty where there is none."""
    said, pitfall = contrast.get("name"), contrast.get("pitfall")
    if isinstance(said, str) and said:
        return said
    return PurePath(pitfall).stem if isinstance(pitfall, str) and pitfall and "name" not in contrast else ""


def _keys_fit_kind(contrast: ContrastEntry) -> None:
    if contrast.pitfall:
        _only_of_pitfall(contrast)
        return
    _factors_fit_kind(contrast)
    if contrast.kind == "pitfall":
        if not contrast.source or not contrast.instead:
            raise ValueError("a pitfall needs 'source' (who reported it) and 'instead' (what to use in its place)")
        if "expect" in contrast.model_fields_set:
            raise ValueError("a pitfall has no 'expect': it expects a slower candidate")
    elif contrast.source or contrast.instead:
        raise ValueError("'source' and 'instead' belong to kind = \"pitfall\"")


def _only_of_pitfall(contrast: ContrastEntry) -> None:
    """The file of a pitfall says what is compared, who reported it and what to use instead."""
    said = [key for key in (*_ONE_FACTOR, "factors", "expect", *_ADVICE) if key in contrast.model_fields_set]
    if said:
        raise ValueError(f"'{said[0]}' does not go with 'pitfall', whose file says it")
    if contrast.kind != "pitfall":
        raise ValueError(f"'pitfall' goes with kind = \"pitfall\", found {contrast.kind!r}")


def _factors_fit_kind(contrast: ContrastEntry) -> None:
    said = [key for key in _ONE_FACTOR if key in contrast.model_fields_set]
    if contrast.kind == "attribution":
        if said or len(contrast.factors) != len(("first", "second")):
            found = f"'{said[0]}'" if said else f"{len(contrast.factors)}"
            raise ValueError(f"an attribution has two 'factors', each with {_listed(_ONE_FACTOR)}; found {found}")
    elif contrast.factors:
        raise ValueError("'factors' belong to kind = \"attribution\"; other contrasts have one 'factor'")
    elif len(said) < len(_ONE_FACTOR):
        missing = [key for key in _ONE_FACTOR if key not in said]
        raise ValueError(f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} missing")


def _listed(keys: Sequence[str]) -> str:
    quoted = [f"'{key}'" for key in keys]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
