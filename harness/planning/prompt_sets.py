"""Prompts whose outputs are compared: listed in the matrix, or a set of them in a file.

A set is a TOML file with ``[[prompts]]``: one that comes with the package, by name, or any other, by path.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from harness.domain.canonical import id_part
from harness.domain.errors import BadInput
from harness.domain.outputs import Variation
from harness.domain.suggest import did_you_mean
from harness.domain.workload import OutputProfile, Prompt
from harness.planning.document import shown
from harness.planning.explain import schema_problems
from harness.planning.problems import Problem, report
from harness.planning.schema import OutputsEntry, PromptEntry, PromptSet
from harness.planning.source import Source
from harness.planning.texts import MAX_TEXT_BYTES, packaged_folder, read_text

UNKNOWN, INVALID, UNREADABLE = "E-unknown-prompts", "E-prompts-invalid", "E-prompts-unreadable"

_SUFFIX = ".toml"
_OF_PROFILES = "profiles"
"""The file beside the packaged sets that is none."""
_MAX_FILE_BYTES = 4 * 1024 * 1024


def output_profile(entry: OutputsEntry) -> OutputProfile:
    """What an output check asks of each arm.

    Raises:
        BadInput: ``E-unknown-prompts`` for a set, a text or a prompt that is not there, ``E-prompts-unreadable`` for
            what can't be read, ``E-prompts-invalid`` with all that is wrong with a set.
    """
    return OutputProfile(
        entry.name,
        _chosen(entry),
        entry.n_predict,
        entry.positions,
        entry.forced,
        entry.top,
        tuple(Variation(each) for each in dict.fromkeys(entry.variations)),
    )


def packaged_sets() -> tuple[str, ...]:
    """Names of the sets that come with the package."""
    return tuple(sorted(file.stem for file in packaged_folder().glob(f"*{_SUFFIX}") if file.stem != _OF_PROFILES))


def _chosen(entry: OutputsEntry) -> tuple[Prompt, ...]:
    """Its prompts, in the set's order."""
    prompts = _prompts(entry)
    names = [prompt.name for prompt in prompts]
    for name in entry.prompts_only:
        if name not in names:
            raise BadInput(UNKNOWN, f"there is no prompt '{name}' among them", hint=did_you_mean(name, names))
    return tuple(prompt for prompt in prompts if not entry.prompts_only or prompt.name in entry.prompts_only)


def _prompts(entry: OutputsEntry) -> Sequence[Prompt]:
    if isinstance(entry.prompts, list):
        return [Prompt(f"p{number}", text) for number, text in enumerate(entry.prompts, start=1)]
    path = _path(entry.prompts)
    # Behind a prompt: what is forced, or what is generated; the last generated token takes no cell.
    behind = max(entry.forced, entry.n_predict - 1)
    return [_prompt(each, path, behind) for each in _read(path).prompts]


def _path(named: str) -> Path:
    if "/" in named or named.endswith(_SUFFIX):
        return Path(named)
    known = packaged_sets()
    if named in known:
        return packaged_folder() / f"{named}{_SUFFIX}"
    hint = f"{did_you_mean(named, known)}; a set of your own is the path of a {_SUFFIX} file"
    raise BadInput(UNKNOWN, f"no set of prompts '{named}' comes with the package", hint=hint)


def _read(path: Path) -> PromptSet:
    where = shown(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
        if len(data) > _MAX_FILE_BYTES:
            raise BadInput(UNREADABLE, f"{where} has more than {_MAX_FILE_BYTES} bytes")
        found = PromptSet.model_validate(tomllib.loads(data.decode("utf-8")))
    except OSError as failure:
        message = f"the prompts can't be read: {failure.strerror}: {where}"
        raise BadInput(UNKNOWN, message, hint="paths are relative to the file that says them") from failure
    except ValidationError as invalid:
        raise _invalid(where, schema_problems(invalid, Source(where))) from invalid
    except (ValueError, RecursionError) as failure:  # no UTF-8, no TOML, or beyond the parser's limits
        raise BadInput(UNREADABLE, f"{where} is not TOML: {failure}") from failure
    if problems := list(_problems(found.prompts, Source(where))):
        raise _invalid(where, problems)
    return found


def _problems(prompts: Sequence[PromptEntry], source: Source) -> Iterator[Problem]:
    """What single entries can't show."""
    seen: set[str] = set()
    for index, each in enumerate(prompts):
        if id_part(each.name) in seen:
            yield Problem(INVALID, source.at("prompts", index, "name"), f"'{each.name}' is declared twice")
        seen.add(id_part(each.name))
        for key, text in (("text", each.text or ""), ("answer", each.answer)):
            if len(text.encode()) > MAX_TEXT_BYTES:
                message = f"has more than {MAX_TEXT_BYTES} bytes"
                yield Problem(INVALID, source.at("prompts", index, key), message, "'tokens' repeats a short text")


def _invalid(where: str, problems: Sequence[Problem]) -> BadInput:
    found = report(where, problems)
    return BadInput(INVALID, found.message, hint=found.hint, where=found.where)


def _prompt(entry: PromptEntry, path: Path, behind: int) -> Prompt:
    text = entry.text
    if text is None:
        text = read_text(path.parent / entry.file, "prompt", missing=UNKNOWN, unreadable=UNREADABLE)
    tokens = entry.tokens
    if entry.fills:
        tokens = entry.fills - behind
        if tokens <= 0:
            message = f"prompt '{entry.name}' fills {entry.fills} cells, of which its answer alone needs {behind}"
            raise BadInput(INVALID, message, hint="a larger 'fills', or less of 'forced' and 'n_predict'")
    return Prompt(entry.name, text, entry.answer, tokens)
