"""Put journals of one night into one file: every line of every run, each run once.

Nothing is rewritten, so nothing is lost and merging can be done again: with what came later, with what was merged
before, in any order, with the same bytes as the result. How the runs become one night is decided when they are read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.domain.errors import BadInput
from harness.reporting.joining import require_one_night
from harness.reporting.journal import JOURNAL_NAME, SCHEMA
from harness.reporting.junit import write_whole
from harness.reporting.replay import MERGED, begins_run, read_runs, without_run


@dataclass(frozen=True, slots=True)
class RawRun:
    """The lines of one run, as they were written.

    Attributes:
        head: The line by which it began.
        lines: All its lines, that one too, each with its end.
    """

    head: bytes
    lines: bytes

    @property
    def place(self) -> tuple[str, str, str]:
        """Where it stands among others: by when it began."""
        try:
            began = str(json.loads(self.head)["t"])
        except (ValueError, KeyError, TypeError):
            began = ""
        return (began, _hash(self.head), _hash(self.lines))


def merge_journals(paths: Sequence[Path], out: Path) -> Path:
    """Merge journals of one night, merged ones too.

    Args:
        paths: The journals, or the folders that hold them. A run that several of them have counts once, with all that
            it has come to.
        out: The file, or the folder for it.

    Returns:
        The file.

    Raises:
        BadInput: ``E-no-journal``, ``E-journal-schema``, ``E-merge-out``: what lies at ``out`` would be lost, for it is
            not among the journals; what `require_one_night` finds.
        Infrastructure: It can't be written.
    """
    runs: list[RawRun] = []
    states = []
    for path in paths:
        found = [state for state in read_runs(path) if state.run is not None or state.planned]
        if not found:
            raise without_run(path)
        states += found
        runs += raw_runs(_file(path).read_bytes())
    require_one_night(states)
    kept = _each_once(runs)
    target = out if out.suffix == ".jsonl" else out / JOURNAL_NAME
    _require_kept(target, kept)
    target.parent.mkdir(parents=True, exist_ok=True)
    header = json.dumps({"schema": SCHEMA, "event": "journals_merged", "t": kept[-1].place[0], "runs": len(kept)})
    write_whole(target, b"".join([header.encode() + b"\n", *(run.lines for run in kept)]))
    return target


def raw_runs(content: bytes) -> list[RawRun]:
    """A journal's bytes, run by run."""
    return [RawRun(lines[0], b"".join(line + b"\n" for line in lines)) for lines in _split(content)]


def _split(content: bytes) -> Iterator[list[bytes]]:
    lines: list[bytes] = []
    begun = False
    for line in content.split(b"\n"):
        if not line.strip() or (not begun and not lines and MERGED in line):
            continue
        if begins_run(line):
            if begun:
                yield lines
                lines = []
            begun = True
        lines.append(line)
    if lines:
        yield lines


def _each_once(runs: Sequence[RawRun]) -> list[RawRun]:
    """Of a run that has grown since it was merged the longer record; of two that went on apart both."""
    kept: dict[bytes, list[RawRun]] = {}
    for run in sorted(runs, key=lambda each: (-len(each.lines), each.place)):
        known = kept.setdefault(run.head, [])
        begun = run.lines[:-1]  # its last line may have been written in part
        if not any(longer.lines.startswith(begun) for longer in known):
            known.append(run)
    return sorted((run for same in kept.values() for run in same), key=lambda each: each.place)


def _require_kept(target: Path, kept: Sequence[RawRun]) -> None:
    """What lies there already may be replaced where all of it is in what replaces it."""
    try:
        there = raw_runs(target.read_bytes())
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadInput("E-merge-out", f"it can't be written: {error.strerror or error}", where=f"{target}") from error
    if any(run not in kept for run in _each_once([*there, *kept])):
        message = "there is a journal already, and what it has is in none of those that are merged: it would be lost"
        hint = "name OUT first, a file or folder that is not there; or give that journal too"
        raise BadInput("E-merge-out", message, hint=hint, where=f"{target}")


def _file(path: Path) -> Path:
    return path / JOURNAL_NAME if path.is_dir() else path


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
