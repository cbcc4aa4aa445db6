"""What flags do together: values that a program ignores or changes, and flags that can't both be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.domain.build import Build
from harness.domain.flags import FlagValue
from harness.engines.flags import FlagFault, Unsupported, complete, specs
from harness.engines.server_flags import server_flags
from harness.linting.finding import Edit, Finding, Sort
from harness.linting.parsed_line import ParsedLine
from harness.linting.saying import edits_saying, said_by


def ignored(line: ParsedLine) -> Iterator[Finding]:
    """Values that a server takes, and changes or ignores."""
    if line.is_bench:
        return
    table = server_flags(line.fork)
    for part in line.parts:
        option = part.option
        if option is None or option.flag not in table:
            continue
        for value in line.said.get(option.flag, ()):
            refused = next((way.refused[value] for way in table[option.flag] if value in way.refused), "")
            if refused:
                applies = f"{line.program} of {line.fork}"
                yield Finding(
                    "value-ignored",
                    Sort.IGNORED,
                    line.fork,
                    part.text,
                    refused,
                    applies,
                    "leave it out",
                    (Edit(part, ()),),
                )


def contradictions(line: ParsedLine) -> Iterator[Finding]:
    """Flags that can't both be: what planning refuses in a matrix."""
    build = Build("this build", line.fork, path="llama-bench")
    known = specs(line.fork, build.tool)
    declared: dict[str, FlagValue] = {
        name: values[0] for name, values in line.said.items() if name in known and len(set(values)) == 1
    }
    for _ in range(len(declared)):
        try:
            complete(build, declared)
        except FlagFault as fault:
            yield _contradictory(line, declared, fault)
            del declared[next((name for name in fault.flags if name in declared), next(iter(declared)))]
        except Unsupported as unsupported:
            if "ub" in declared and "ub=" in unsupported.reason:  # what else there is, other rules tell
                yield _lowered(line, declared, unsupported.reason)
            return
        else:
            return


def _contradictory(line: ParsedLine, declared: Mapping[str, FlagValue], fault: FlagFault) -> Finding:
    where = ", ".join(f"{name}={declared[name]}" for name in fault.flags if name in declared)
    edits, instead = _instead(line, fault)
    return Finding("contradictory", Sort.CONTRADICTION, line.fork, where, fault.message, str(line.fork), instead, edits)


def _instead(line: ParsedLine, fault: FlagFault) -> tuple[tuple[Edit, ...], str]:
    """What to change, and the same in the command's words; a matrix has others."""
    if "fa" in fault.flags:
        return (), _choice(line)
    if "mmap" in fault.flags:
        words = " ".join(said_by(line.fork, line.program, "mmap", 0) or ())
        return edits_saying(line, "mmap", 0), f"{words}: it is off anyway"
    return (), fault.hint


def _choice(line: ParsedLine) -> str:
    """A quantized V cache needs flash attention: which of the two was meant nobody knows, so no line is offered."""
    name = next(part.name for part in line.parts if part.option is not None and part.option.flag == "ctv")
    return f"{' '.join(said_by(line.fork, line.program, 'fa', 1) or ())}, or leave {name} out"


def _lowered(line: ParsedLine, declared: Mapping[str, FlagValue], reason: str) -> Finding:
    where = ", ".join(f"{name}={declared[name]}" for name in ("ub", "b") if name in declared)
    sort, edits = Sort.CONTRADICTION, edits_saying(line, "b", declared["ub"])
    return Finding("lowered-batch", sort, line.fork, where, reason, str(line.fork), "say both", edits)
