"""``lint`` with what is known here of build and model, and its pitfalls asked for by an ``ab`` of the two sides."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath

from harness.builds.known import KnownSource, source_of_wheel
from harness.domain.build import Build, Fork
from harness.domain.errors import EXIT_FINDING, EXIT_OK, EXIT_UNDECIDED, BadInput, HarnessError
from harness.domain.flags import FlagValue
from harness.domain.words import Equivalence, Throughput
from harness.domain.words import Pitfall as Word
from harness.engines.flags import specs
from harness.execution.inspecting import told_source
from harness.judging.pitfalls import judge_pitfall
from harness.linting.command_words import CommandWords, read_words, split_command
from harness.linting.lint import Judged, forks_of, lint
from harness.linting.parsed_line import ParsedLine, parse
from harness.linting.traps import Surroundings
from harness.pitfalls.catalogue import packaged_pitfalls, read_pitfall
from harness.pitfalls.entry import INERT, Contrast, Pitfall
from harness.pitfalls.model_facts import facts_of_model
from harness.planning.model_word import model_named
from harness.running.ab import AbPlan, AbRequest, plan_ab
from harness.running.ab_arms import make_arm, read_arm
from harness.running.ab_run import AbResult

RunAb = Callable[[AbPlan], AbResult]
_QUANT = re.compile(
    r"(?:^|[-_.])(IQ\d_(?:XXS|XS|S|M|NL|KSS|KS|KL|KT|K)|Q\d_(?:K(?:_(?:XL|S|M|L))?|[01])|BF16|F16)(?=[-_.]|$)",
    re.IGNORECASE,
)
_LATENT = re.compile(r"(?:^|[-_./])(DeepSeek[-_](Coder[-_])?(V[23]|R1)|Kimi[-_]K2|GLM[-_]4\.7[-_]Flash)", re.IGNORECASE)
_OF_OTHERS = re.compile(r"Distill|Qwen|Llama|OCR|VL", re.IGNORECASE)
"""Models of other architectures that were taught by these or have their names."""
_HIDDEN_GPUS = re.compile(r"(CUDA|HIP|ROCR|GGML_VK)_VISIBLE_DEVICES=(-1)?$")
_TOKENS = {"pp": 512, "tg": 64}
_ALPHA = 0.01
"""Error rate of a workload: a trap that somebody documented is looked for, not a change that nobody expects."""


@dataclass(frozen=True, slots=True)
class LintRequest:
    """What was asked for, as written.

    Attributes:
        words: One text to be split as a shell would, or the arguments.
        fork: The fork, where it was said.
        build: A build as ``ab`` names it; empty: none.
        build_number: The build's number, where it was said.
        model: A file, or a card with or without quantization; empty: the line's own.
        placement: Where it computes, where it was said.
        minutes: Budget of each pitfall that is asked for.
        pitfalls: Files of pitfalls of one's own.
    """

    words: Sequence[str]
    fork: Fork | None = None
    build: str = ""
    build_number: int | None = None
    model: str = ""
    placement: str | None = None
    minutes: float = 2.0
    pitfalls: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run found of a pitfall.

    Attributes:
        word: Present, gone, inconclusive.
        said: The figures, or why it could not be asked.
    """

    word: Word
    said: str


@dataclass(frozen=True, slots=True)
class LintResult:
    """What was found.

    Attributes:
        command: The command.
        surroundings: What was known of build and model.
        judged: By fork.
        build: The build as it was written; empty where none was.
        model: The model for a run; empty where the line's is not here.
        verified: By pitfall, what a run found.
    """

    command: CommandWords
    surroundings: Surroundings
    judged: tuple[Judged, ...]
    build: str = ""
    model: str = ""
    verified: Mapping[str, Asked] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """1 where a warning stands, 3 where all there is was asked for and one is undecided, 0 where none is left.

        A pitfall that a run found gone is no warning any more; one that no run can ask for stands.
        """
        found = [finding for each in self.judged for finding in each.findings]
        words = {self.verified[one.id].word if one.id in self.verified and one.pitfall else None for one in found}
        if words - {Word.GONE, Word.INCONCLUSIVE}:
            return EXIT_FINDING
        return EXIT_UNDECIDED if words - {Word.GONE} else EXIT_OK


def judge_line(request: LintRequest) -> LintResult:
    """Judge a command line; nothing is run but the ``--help`` and ``--version`` of a build that was named.

    Raises:
        BadInput: Whatever is wrong with the words, the build, the model.
    """
    words = request.words
    command = split_command(words[0]) if len(words) == 1 else read_words(words)
    build = _build(request) if request.build else None
    forks = forks_of(command, build.fork if build else request.fork)
    line = parse(command, forks[0])
    spoken = request.model or line.model
    model = model_named(spoken) if request.model or (spoken and Path(spoken).is_file()) else None
    known = _source(build) if build else KnownSource()
    name = PureWindowsPath(spoken).stem if spoken else line.repository
    quant = _QUANT.search(name)
    surroundings = Surroundings(
        number=known.number if request.build_number is None else request.build_number,
        commit=known.commit,
        gpu_code=_gpu_code(command, build),
        placement=request.placement,
        model=facts_of_model(model) if model else None,
        quant=quant[1].upper() if quant else "",
        latent=True if _LATENT.search(name) and not _OF_OTHERS.search(name) else None,
        own_pitfalls=_own_pitfalls(request.pitfalls),
    )
    judged = lint(command, forks, surroundings)
    return LintResult(command, surroundings, judged, request.build, spoken if model else "")


def _own_pitfalls(files: Sequence[Path]) -> tuple[Pitfall, ...]:
    """Pitfalls of files, each of a name that no other has: what is found is told by it.

    Raises:
        BadInput: ``E-pitfall-twice``, and what is wrong with a file.
    """
    taken = set(packaged_pitfalls())
    found = []
    for file in files:
        pitfall = read_pitfall(file)
        if pitfall.id in taken:
            message = f"there is a pitfall '{pitfall.id}' already"
            raise BadInput(
                "E-pitfall-twice", message, hint="give the file and its id another name", where=f"{file}: id"
            )
        taken.add(pitfall.id)
        found.append(pitfall)
    return tuple(found)


def verify(result: LintResult, minutes: float, run: RunAb) -> dict[str, Asked]:
    """Ask for every pitfall that a run can ask for: the line as it is against the line without the trap.

    Args:
        result: What was found; it has a build and a model.
        minutes: Budget of each.
        run: Measures.

    Raises:
        BadInput: ``E-nothing-to-run-with`` without build or model.
    """
    if not result.build or not result.model:
        missing = " and ".join(name for name, value in (("--build", result.build), ("-m", result.model)) if not value)
        message = f"--verify runs the two sides, and lacks {missing}"
        raise BadInput("E-nothing-to-run-with", message, hint="e.g. --build ik -m tiny-moe:Q4_K_M")
    found: dict[str, Asked] = {}
    for judged in result.judged:
        for finding in judged.findings:
            pitfall = finding.pitfall
            if pitfall is not None:
                found[pitfall.id] = _ask(pitfall, judged.line, result, minutes, run)
    return found


def _ask(pitfall: Pitfall, line: ParsedLine, result: LintResult, minutes: float, run: RunAb) -> Asked:
    if pitfall.contrast is None:
        return Asked(Word.NOT_APPLICABLE, f"not asked: {pitfall.unasked}")
    read = _inert_word if pitfall.effect == INERT else _word
    try:
        return read(run(plan_ab(request_of(pitfall, pitfall.contrast, line, result, minutes))))
    except HarnessError as error:
        return Asked(Word.INCONCLUSIVE, f"{error}")


def request_of(pitfall: Pitfall, contrast: Contrast, line: ParsedLine, result: LintResult, minutes: float) -> AbRequest:
    """The ``ab`` of a pitfall on a line: the flags of the line for both, the trap's own flags apart."""
    build = _build(LintRequest((), build=result.build, fork=line.fork))
    known = specs(build.fork, build.tool)
    safe = contrast.side("safe")
    trap = {name: _trapped(name, pitfall, line, value, safe.get(name)) for name, value in contrast.side("trap").items()}
    common = {name: _held(name, pitfall, values) for name, values in line.said.items() if name in known}
    words = [f"{name}={value}" for name, value in common.items() if name not in safe]
    batch = max([int(value) for value in (common.get("ub"), safe.get("ub"), trap.get("ub")) if value], default=0)
    tokens = {kind: str(size if kind in contrast.workloads else 0) for kind, size in _TOKENS.items()}
    if "pp" in contrast.workloads:
        tokens["pp"] = str(max(_TOKENS["pp"], batch))
    return AbRequest(
        old=_arm(result.build, safe),
        new=_arm(result.build, trap),
        model=result.model,
        line=(*words, "-p", tokens["pp"], "-n", tokens["tg"]),
        fork=line.fork,
        minutes=minutes,
        alpha=_ALPHA,
        check_outputs=pitfall.effect == INERT,
    )


def _arm(build: str, flags: Mapping[str, FlagValue]) -> str:
    return "+".join([build, *(f"{name}={value}" for name, value in flags.items())])


def _trapped(name: str, pitfall: Pitfall, line: ParsedLine, otherwise: FlagValue, safe: FlagValue | None) -> FlagValue:
    """The line's own value where it is the trap and not the safe side's; the pitfall's where the line says none."""
    tests = [table[name] for table in pitfall.trap if name in table]
    said = (value for value in line.said.get(name, ()) if str(value) != str(safe))
    own = [value for value in said if any(test(value) for test in tests)]
    return own[0] if own and str(own[0]) != str(otherwise) else otherwise


def _held(name: str, pitfall: Pitfall, values: Sequence[FlagValue]) -> FlagValue:
    """Of several tests the one for which the pitfall's conditions hold."""
    test = pitfall.when.flags.get(name)
    return next((value for value in values if test is None or test(value)), values[0])


def _word(result: AbResult) -> Asked:
    """Present where any workload suffers, gone where none does."""
    words = {
        name: judge_pitfall(verdict.throughput) if verdict.throughput else Word.INCONCLUSIVE
        for name, verdict in result.verdicts.items()
    }
    found = set(words.values())
    word = Word.PRESENT if Word.PRESENT in found else Word.GONE if found == {Word.GONE} else Word.INCONCLUSIVE
    return Asked(word, "; ".join(f"{name}: {verdict.reason}" for name, verdict in result.verdicts.items()))


def _inert_word(result: AbResult) -> Asked:
    """Present where outputs are equal to the bit and the flag should change them, or no speed changes either."""
    outputs, speeds = result.outputs, [verdict.throughput for verdict in result.verdicts.values()]
    changed = any(speed in (Throughput.REGRESSED, Throughput.IMPROVED) for speed in speeds)
    if changed or (outputs and outputs.equivalence in (Equivalence.DIFFERENT, Equivalence.BROKEN)):
        word = Word.GONE
    elif not outputs or outputs.equivalence is not Equivalence.BITWISE:
        word = Word.INCONCLUSIVE
    else:
        unmoved = all(speed is Throughput.EQUIVALENT for speed in speeds)
        word = Word.PRESENT if outputs.inert or unmoved else Word.INCONCLUSIVE
    told = {**({"outputs": outputs} if outputs else {}), **result.verdicts}
    return Asked(word, "; ".join(f"{name}: {verdict.reason}" for name, verdict in told.items()))


def _build(request: LintRequest) -> Build:
    """The build, with the fork that it tells."""
    return make_arm(read_arm("--build", request.build), model_named(""), {}, request.fork).build


def _source(build: Build) -> KnownSource:
    return source_of_wheel(build) if build.wheel else told_source(build)


def _gpu_code(command: CommandWords, build: Build | None) -> bool | None:
    """Whether it could compute on a GPU: not a wheel, not where the GPUs are hidden from it."""
    hidden = any(_HIDDEN_GPUS.match(word) for word in command.before)
    return False if hidden or (build is not None and not build.has_gpu_code) else None
