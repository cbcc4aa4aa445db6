"""The folder of references: one file for each recorded arm, and how it is read and written.

A file is JSON lines, so that it can be read, compressed and shown by ``git diff``: first what was recorded, then one
line for each prompt, last the digest of all lines before.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.domain.arm import Arm
from harness.domain.errors import BadInput
from harness.domain.golden import UPDATE, Asked, Golden, Record
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.outputs import Output
from harness.judging.outputs_golden import missing
from harness.models.storage import appearing
from harness.reporting.codec import decode, encode

FORMAT, SCHEMA = "moe-harness-reference", 1
FOLDER = "references"
"""Beside the matrix."""
_SUFFIX = ".jsonl"
_MAX_BYTES = 256 * 1024 * 1024


class Goldens:
    """A folder of references.

    Args:
        folder: The folder; it need not be there.
        update: The command that records anew what is in it.
    """

    def __init__(self, folder: Path, update: str = UPDATE) -> None:
        self.folder = folder
        self._update = update

    def path(self, key: str) -> Path:
        """Where a key's file lies."""
        return self.folder / f"{key}{_SUFFIX}"

    def present(self) -> tuple[str, ...]:
        """All keys that have a file, sorted."""
        found = self.folder.glob(f"*/*/*{_SUFFIX}")
        return tuple(sorted(file.relative_to(self.folder).as_posix().removesuffix(_SUFFIX) for file in found))

    def informed(self, job: Job) -> Job:
        """The job with what is recorded of the arms that are held against it."""
        keys = dict.fromkeys(reference.check.reference for reference in job.references)
        return replace(job, goldens=tuple(self.read(key) for key in keys)) if keys else job

    def read(self, key: str) -> Golden:
        """What lies under a key. Never raises: what can't be used says why."""
        path = self.path(key)
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            return missing(key, self._update)
        except OSError as failure:
            problem = f"{path} can't be read: {failure.strerror}"
            return Golden(key, None, "E-reference-unreadable", problem, self._update)
        try:
            return Golden(key, _record(data), update=self._update)
        except _Unusable as why:
            return Golden(key, None, why.slug, f"{path} {why}", self._update)

    def require_writable(self) -> None:
        """Make sure that something can be recorded, before anything is measured for it.

        Raises:
            BadInput: ``E-reference-unwritable``.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as failure:
            raise _unwritable(self.folder, failure) from failure
        if not os.access(self.folder, os.W_OK):
            raise _unwritable(self.folder, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))

    def write(self, key: str, record: Record) -> Path:
        """Record something, in place of what lies under the key.

        Raises:
            BadInput: ``E-reference-unwritable``.
        """
        path = self.path(key)
        lines = [json.dumps(line, sort_keys=True) for line in _lines(record)]
        text = "".join(f"{line}\n" for line in lines)
        last = json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest()})
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with appearing(path) as temporary:
                temporary.write_text(f"{text}{last}\n", encoding="utf-8")
        except OSError as failure:
            raise _unwritable(path, failure) from failure
        return path


def _unwritable(path: Path, failure: OSError) -> BadInput:
    message = f"{path} can't be written: {failure.strerror}"
    return BadInput("E-reference-unwritable", message, hint="choose another folder: --references")


class _Unusable(Exception):  # noqa: N818 - reads as what it is at the raise
    """Why a file is no reference."""

    def __init__(self, slug: str, why: str) -> None:
        super().__init__(why)
        self.slug = slug


def _lines(record: Record) -> Iterator[dict[str, Any]]:
    yield {
        "format": FORMAT,
        "schema": SCHEMA,
        "when": record.when,
        "harness": record.harness,
        "arm": encode(record.arm),
        "asked": encode(record.asked),
        "node": encode(record.node),
        "run": encode(replace(record.run, outputs=())),
    }
    for output in record.run.outputs:
        yield encode(output)


def _record(data: bytes) -> Record:
    if len(data) > _MAX_BYTES:
        raise _Unusable("E-reference-damaged", f"has more than {_MAX_BYTES} bytes")
    first, *others = data.splitlines(keepends=True) or [b""]
    head = _object(first)
    if head.get("format") != FORMAT:
        raise _Unusable("E-reference-damaged", "does not begin as a reference does")
    schema = head.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        raise _Unusable("E-reference-newer", f"has schema {schema}, this version reads up to {SCHEMA}: update it")
    _check_digest(data, others)
    try:
        run = decode(ProcessRun, head["run"])
        outputs = tuple(decode(Output, _object(line)) for line in others[:-1])
        return Record(
            decode(Arm, head["arm"]),
            decode(Asked, head["asked"]),
            replace(run, outputs=outputs),
            decode(NodeFacts, head["node"]),
            str(head["when"]),
            str(head["harness"]),
        )
    except (KeyError, TypeError, ValueError) as wrong:
        raise _Unusable("E-reference-damaged", f"lacks a part, or has one of another type: {wrong!r:.200}") from wrong


def _check_digest(data: bytes, others: Sequence[bytes]) -> None:
    last = _object(others[-1]) if others else {}
    found = hashlib.sha256(data[: len(data) - len(others[-1])]).hexdigest() if others else ""
    if last.get("sha256") != found:
        raise _Unusable("E-reference-damaged", "was cut short or changed by hand: its digest is not that of its lines")


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _Unusable("E-reference-damaged", "has a line that is no JSON object")
    return found
