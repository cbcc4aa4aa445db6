"""Options that a program does not have, and values that mean something else to it than they seem to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence

from harness.domain.build import Fork
from harness.domain.suggest import did_you_mean
from harness.engines.flag_spec import FlagKind
from harness.linting.command_words import Program
from harness.linting.finding import Edit, Finding, Sort
from harness.linting.option_table import Option, options_of, removed_options
from harness.linting.parsed_line import OFF_WORDS, ParsedLine, Part, tests_of, value_of
from harness.linting.saying import said_by

_BUFFERS = ("CPU", "CUDA0", "ROCm0", "Vulkan0", "SYCL0", "MUSA0", "CANN0", "Metal", "MTL0")
_BUFFER = re.compile(
    r"CPU(_\w+)?|AMX|BLAS|Metal\w*|(MTL|CUDA|ROCm|HIP|Vulkan|SYCL|MUSA|CANN|HTP|OPENVINO)(\d+|_\w+)"
    r"|(RPC|OpenCL|GPUOpenCL|Kompute|WebGPU|zDNN|ZenDNN|ET|ggml-virtgpu|Meta).*"
)
"""Names of buffer types as the backends of both forks give them; some go on with an address or a device's name."""
_GUESS = re.compile(r"did you mean '(.+)'\?")
_INTEGER = re.compile(r"-?\d+")
_RANGE = re.compile(r"\d+-\d+([+*]\d+)?")
_TRUNCATED = re.compile(r"\s*-?\d+")
_THRESHOLD_MOST = 1.0
_NEEDS_A_WORD = {Fork.IK_LLAMA_CPP: 3985, Fork.LLAMA_CPP: 6303}
"""The first build in which ``-fa`` may not stand alone: exact for ik_llama.cpp, else the newest known that let it."""
_PAIR = 2


def misspelt(line: ParsedLine, number: int) -> Iterator[Finding]:
    """All findings about single options, in the order of the line.

    Args:
        line: The command line.
        number: The build's number: options and habits of older builds are right there.
    """
    for part in line.parts:
        if _was_right(part, line, number):
            continue
        if part.option is None:
            yield _unknown(part, line)
            continue
        for rule in _RULES:
            found = rule(part, part.option, line)
            if found is not None:
                yield found
                break


def _was_right(part: Part, line: ParsedLine, number: int) -> bool:
    """Whether a build of that number took what newer ones do not."""
    if part.option is None:
        removed = removed_options(line.fork, line.program).get(part.name)
        return removed is not None and number < removed.since and len(part.words) == 1
    bare = part.option.flag == "fa" and part.value is None and not line.is_bench
    return bare and number < _NEEDS_A_WORD[line.fork]


def _unknown(part: Part, line: ParsedLine) -> Finding:
    """An option that this program does not have: removed, another program's, the other fork's, or nobody's."""
    if not part.name.startswith("-"):
        why = f"'{part.text}' belongs to no option: {line.program} ends with an error"
        return _finding(Sort.UNKNOWN, "stray-word", part, line, why, "take it out", (Edit(part, ()),))
    removed = removed_options(line.fork, line.program).get(part.name)
    if removed is not None:
        why = f"{line.program} of {line.fork} has no {part.name}: {removed.said}"
        words = tuple(removed.write.split())
        instead = f"write {removed.write}" if removed.write else "leave it out"
        return _finding(Sort.UNKNOWN, "removed-option", part, line, why, instead, (Edit(part, words),))
    for fork, program in _elsewhere(line):
        option = options_of(fork, program).get(part.name)
        if option is not None:
            return _of_another(part, option, line, fork, program)
    near = did_you_mean(part.name, options_of(line.fork, line.program))
    guess = _GUESS.fullmatch(near)
    opposite = guess is not None and guess[1].startswith("--no-") != part.name.startswith(("--no-", "-no-"))
    edits = (Edit(part, (guess[1], *part.words[1:])),) if guess and not opposite else ()
    why = f"{line.program} of {line.fork} has no {part.name}: it ends with an error"
    return _finding(Sort.UNKNOWN, "unknown-option", part, line, why, near if guess else "take it out", edits)


def _elsewhere(line: ParsedLine) -> Iterator[tuple[Fork, Program]]:
    """Other programs of the fork, then the same program of the other fork, then its others."""
    here = (line.fork, line.program)
    forks = (line.fork, *(fork for fork in Fork if fork is not line.fork))
    programs = (line.program, *(each for each in (Program.BENCH, Program.SERVER) if each is not line.program))
    yield from ((fork, program) for fork in forks for program in programs if (fork, program) != here)


def _of_another(part: Part, option: Option, line: ParsedLine, fork: Fork, program: Program) -> Finding:
    """An option that another program has: by its meaning, this one may say it otherwise."""
    whose = f"{program} of {fork}" if fork is not line.fork else program
    why = f"{line.program} of {line.fork} has no {part.name}, {whose} has: it ends with an error"
    value = option.values.get("") if not option.valued else None
    text = next(iter(part.words[1:]), None)
    if option.valued and text is not None:
        value = value_of(option, text, line)
    elif option.spec is not None and option.spec.kind is FlagKind.SWITCH and value is None:
        value = 1
    words = said_by(line.fork, line.program, option.flag, value) if option.flag and value is not None else None
    if words is None:
        return _finding(Sort.UNKNOWN, "other-programs-option", part, line, why, "leave it out", (Edit(part, ()),))
    instead = f"write {shlex.join(words)}" if words else "leave it out: it is so by itself"
    return _finding(Sort.UNKNOWN, "other-programs-option", part, line, why, instead, (Edit(part, words),))


def _no_value(part: Part, option: Option, line: ParsedLine) -> Finding | None:
    """``-fa`` alone: builds took it, and do not any more."""
    if not option.valued or part.value is not None:
        return None
    why = f"{part.name} needs a value in {line.program} of {line.fork}: it takes the next word for it, or ends"
    if option.flag == "fa":
        since = "build 3985 (874926800)" if line.fork is Fork.IK_LLAMA_CPP else "September 2025"
        why += f". Before {since} it stood alone"
    if option.spec is None or option.spec.kind is not FlagKind.SWITCH:
        return _finding(Sort.SPELLING, "missing-value", part, line, why, "say its value", ())
    words = said_by(line.fork, line.program, option.flag, 1) or ()
    return _finding(Sort.SPELLING, "missing-value", part, line, why, f"write {shlex.join(words)}", (Edit(part, words),))


def _stray(part: Part, option: Option, line: ParsedLine) -> Finding | None:
    """``-rtr 1`` where the option stands alone."""
    if not part.stray:
        return None
    extra = " ".join(part.stray)
    if option.valued:
        why = f"'{extra}' after {part.name} {part.value} belongs to no option: {line.program} ends with an error"
        edit = Edit(part, (part.name, part.value or ""))
        return _finding(Sort.UNKNOWN, "stray-word", part, line, why, "take it out", (edit,))
    why = f"{part.name} takes no value in {line.program} of {line.fork}, '{extra}' is an unknown argument: it ends"
    words: tuple[str, ...] = (part.name,)
    if part.stray[0] in OFF_WORDS and option.flag:
        words = said_by(line.fork, line.program, option.flag, 0) or ()
    instead = f"write {shlex.join(words)}" if words else f"leave {part.name} out"
    return _finding(Sort.SPELLING, "takes-no-value", part, line, why, instead, (Edit(part, words),))


def _switch_word(part: Part, option: Option, line: ParsedLine) -> Finding | None:
    """ik_llama.cpp's llama-bench reads a number: ``-fa on`` is off."""
    if line.fork is not Fork.IK_LLAMA_CPP or not line.is_bench or option.spec is None or part.value is None:
        return None
    texts = tests_of(part, line)
    if option.spec.kind is not FlagKind.SWITCH or all(text in ("0", "1") for text in texts):
        return None
    why = (
        f"llama-bench of {line.fork} reads a number after {part.name}: '{part.value}' is 0, that is off, without a word"
    )
    meant = [0 if text.lower() in OFF_WORDS else 1 for text in texts]
    edits = (Edit(part, (part.name, ",".join(map(str, meant)))),)
    return _finding(Sort.SPELLING, "word-is-off", part, line, why, f"write {' '.join(edits[0].words)}", edits)


def _overrides(part: Part, option: Option, line: ParsedLine) -> Finding | None:
    """What joins overrides: ``;`` in llama.cpp's llama-bench, where a comma makes another test; else a comma."""
    if option.flag != "ot" or part.value is None:
        return None
    by_comma = part.value.split(",")
    if option.joiner == ";":
        if len(by_comma) > 1 and ";" not in part.value and all(map(_is_override, by_comma)):
            why = f"a comma separates tests in llama-bench of {line.fork}: these are {len(by_comma)} tests, not one"
            edits = (Edit(part, (part.name, part.value.replace(",", ";"))),)
            instead = "join overrides of one test with ';'"
            return _finding(Sort.SPELLING, "comma-separates-tests", part, line, why, instead, edits)
        by_comma = re.split("[,;]", part.value)
    elif ";" in part.value:
        why = f"{line.program} of {line.fork} joins overrides with ',': ';' is part of a buffer's name, and it ends"
        edits = (Edit(part, (part.name, part.value.replace(";", ","))),)
        return _finding(Sort.SPELLING, "wrong-joiner", part, line, why, "join overrides with ','", edits)
    wrong = next((piece for piece in by_comma if not _is_override(piece)), None)
    return _no_override(wrong, part, line) if wrong is not None else _unknown_buffer(by_comma, part, line)


def _is_override(piece: str) -> bool:
    pattern, _, buffer = piece.partition("=")
    return bool(pattern and buffer) and "=" not in buffer


def _no_override(piece: str, part: Part, line: ParsedLine) -> Finding:
    """A comma in a pattern, or an equal sign: both programs take the first one for the end of the pattern."""
    pattern, _, buffer = piece.partition("=")
    if "=" in buffer:
        why = (
            f"an override is split at its first '=', so a pattern can't hold one: '{piece}' is read as the pattern "
            f"'{pattern}' for a buffer '{buffer}', and {line.program} ends with an error"
        )
        instead = "write the pattern without '=', e.g. blk\\.(3|4)\\. in place of a look at what is around it"
    elif "," in (part.value or ""):
        why = f"overrides are split at commas, so a pattern can't hold one, and each is PATTERN=BUFFER: '{part.value}'"
        instead = "write the pattern without a comma, e.g. [0-9]|1[0-9] for a range"
    else:
        why = f"an override is PATTERN=BUFFER: '{piece}' is none, and {line.program} ends with an error"
        instead = "e.g. -ot exps=CPU"
    return _finding(Sort.SPELLING, "override-pattern", part, line, why, instead, ())


def _unknown_buffer(pieces: Sequence[str], part: Part, line: ParsedLine) -> Finding | None:
    """A buffer that no backend has: the program ends, and lists those of its machine."""
    wrong = next((piece for piece in pieces if not _BUFFER.fullmatch(piece.partition("=")[2])), None)
    if wrong is None:
        return None
    pattern, _, buffer = wrong.partition("=")
    why = f"no backend has a buffer type '{buffer}': {line.program} lists those that there are, and ends with an error"
    near = did_you_mean(buffer, _BUFFERS)
    guess = _GUESS.fullmatch(near)
    whole = re.compile(rf"(?<![^,;]){re.escape(wrong)}(?![^,;])")
    mended = whole.sub(lambda _: f"{pattern}={guess[1]}", part.value or "") if guess else ""
    edits = (Edit(part, (part.name, mended)),) if guess else ()
    return _finding(Sort.SPELLING, "unknown-buffer", part, line, why, near, edits)


def _shares(part: Part, option: Option, line: ParsedLine) -> Finding | None:
    if option.flag != "ts" or not line.is_bench or part.value is None or "," not in part.value:
        return None
    count = part.value.count(",") + 1
    why = f"a comma separates tests: these are {count} tests, each with everything on one GPU"
    edits = (Edit(part, (part.name, part.value.replace(",", "/"))),)
    return _finding(Sort.SPELLING, "comma-separates-tests", part, line, why, "join shares with '/'", edits)


def _model_path(part: Part, option: Option, line: ParsedLine) -> Finding | None:
    if not line.is_bench or "-m" not in option.names or part.value is None or "," not in part.value:
        return None
    why = "llama-bench splits -m at commas: a path that holds one is two models"
    return _finding(Sort.SPELLING, "comma-in-path", part, line, why, "give the file a name without a comma", ())


def _reduction(part: Part, option: Option, line: ParsedLine) -> Finding | None:
    """The documentation says ``-ser 1,6`` uses six experts; the second number is a threshold."""
    if option.flag != "ser" or part.value is None:
        return None
    numbers = part.value.split(",")
    try:
        sound = len(numbers) == _PAIR and float(numbers[1]) <= _THRESHOLD_MOST
    except ValueError:
        sound = False
    if sound:
        return None
    why = (
        "the first number is the least experts, the second a threshold from 0 to 1 on their weight: "
        f"'{part.value}' is not what the documentation says it is"
    )
    return _finding(Sort.SPELLING, "reduction-threshold", part, line, why, "e.g. -ser 6,0.4", ())


def _integer(part: Part, option: Option, line: ParsedLine) -> Finding | None:
    """``-p 8k`` is 8 in ik_llama.cpp, and an error in llama.cpp."""
    counted = line.is_bench and set(option.names) & {"-p", "-n", "-d", "-r"}
    is_integer = option.spec is not None and option.spec.kind is FlagKind.INTEGER
    if part.value is None or not (counted or is_integer):
        return None
    texts = part.value.split(",") if line.is_bench else [part.value]
    wrong = [text for text in texts if not _INTEGER.fullmatch(text) and text not in option.values]
    ranges = line.is_bench and line.fork is Fork.LLAMA_CPP
    wrong = [text for text in wrong if not (ranges and _RANGE.fullmatch(text))]
    if not wrong:
        return None
    read = _TRUNCATED.match(wrong[0])
    why = (
        f"'{wrong[0]}' is read as {read[0].strip() if read else 0}, without a word"
        if line.fork is Fork.IK_LLAMA_CPP and (line.is_bench or read)
        else f"'{wrong[0]}' is no whole number: it ends with an error"
    )
    return _finding(Sort.SPELLING, "no-whole-number", part, line, why, "write the number out", ())


def _output_format(part: Part, option: Option, line: ParsedLine) -> Finding | None:
    """Help and readme of ik_llama.cpp say ``table`` and ``csv``; its parser takes two words."""
    timing = line.program in (Program.SWEEP, Program.BATCHED) and "--output-format" in option.names
    if not timing or part.value is None or part.value in ("md", "jsonl"):
        return None
    why = f"{line.program} takes md or jsonl, whatever its help says: '{part.value}' ends with an error"
    edits = (Edit(part, (part.name, "md")),) if part.value == "table" else ()
    return _finding(Sort.SPELLING, "bad-value", part, line, why, "md, which it prints by itself, or jsonl", edits)


def _value(part: Part, option: Option, line: ParsedLine) -> Finding | None:
    """A value that the flag does not have."""
    if option.spec is None or part.value is None or not option.valued:
        return None
    texts = [text for text in tests_of(part, line) if text not in option.others]
    wrong = next((text for text in texts if value_of(option, text, line) is None), None)
    if wrong is None:
        return None
    words = [word for word in option.values if word]
    expected = f"one of {', '.join(words)}" if option.spec.kind is FlagKind.SWITCH and words else option.spec.expected
    why = f"{line.program} of {line.fork} knows no {part.name} {wrong}: expected {expected}"
    if line.fork is Fork.IK_LLAMA_CPP and line.is_bench and option.flag in ("ctk", "ctv"):
        why += "; with -o after it the error is lost, and f16 is used"
    near = did_you_mean(wrong, option.spec.choices)
    guess = _GUESS.fullmatch(near)
    edits = (Edit(part, (part.name, part.value.replace(wrong, guess[1]))),) if guess else ()
    return _finding(Sort.SPELLING, "bad-value", part, line, why, near or expected, edits)


def said_twice(line: ParsedLine) -> Iterator[Finding]:
    """A flag that is said twice: the last one counts, or there are two tests."""
    first: dict[str, Part] = {}
    for part in line.parts:
        option = part.option
        if option is None or option.spec is None or option.flag == "ot":
            continue
        before = first.setdefault(option.flag, part)
        if before is part or before.words == part.words:
            continue
        why = f"{before.text} and {part.text}: " + ("both are tested" if line.is_bench else "the last one counts")
        yield _finding(Sort.CONTRADICTION, "said-twice", part, line, why, "say it once", (Edit(before, ()),))


def _finding(  # noqa: PLR0917 - the parts of a record, in its order
    sort: Sort, rule: str, part: Part, line: ParsedLine, why: str, instead: str, edits: tuple[Edit, ...]
) -> Finding:
    applies = f"{line.program} of {line.fork}"
    return Finding(rule, sort, line.fork, part.text, why, applies, instead, edits)


_RULES: tuple[Callable[[Part, Option, ParsedLine], Finding | None], ...] = (
    _no_value,
    _stray,
    _switch_word,
    _overrides,
    _shares,
    _model_path,
    _reduction,
    _integer,
    _output_format,
    _value,
)
