"""Golden outputs: what an arm answered once, kept so that later runs can be held against it."""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.arm import Arm
from harness.domain.canonical import digest
from harness.domain.case import OutputCheck
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.workload import OutputProfile

MODEL, TOKENIZER, TENSORS = "model_sha256", "tokenizer_sha256", "tensor_types"
"""Under which names a process that answers prompts says in ``ProcessRun.engine`` of what file: digest of its content,
digest of its tokenizer, types of its tensors."""

UPDATE = "moe-harness reference update MATRIX"
"""The command that records, where the matrix is not known by name."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, without the texts: enough to tell whether something else is asked today, and what.

    Attributes:
        identity: Of the whole profile.
        lengths: Its counts, in words.
        prompts: Name and digest of each prompt.
    """

    identity: str
    lengths: str
    prompts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, profile: OutputProfile) -> Asked:
        """Of a profile."""
        counts = {"n_predict": profile.n_predict, "positions": profile.positions, "forced": profile.forced}
        said = [f"{name} = {count}" for name, count in {**counts, "top": profile.top}.items()]
        lengths = ", ".join([*said, f"variations = {'+'.join(profile.variations) or 'none'}"])
        digests = ((each.name, digest([each.text, each.answer, each.tokens])) for each in profile.prompts)
        return cls(profile.identity, lengths, tuple(digests))

    def differs_from(self, other: Asked) -> str:
        """What is not as it was, in words; empty where all is."""
        if self.identity == other.identity:
            return ""
        mine, theirs = dict(self.prompts), dict(other.prompts)
        changed = [name for name in theirs if name in mine and mine[name] != theirs[name]]
        told = [
            f"{word} {', '.join(names)}"
            for word, names in (
                ("prompts that changed:", changed),
                ("new prompts:", [name for name in theirs if name not in mine]),
                ("prompts that are gone:", [name for name in mine if name not in theirs]),
            )
            if names
        ]
        told += [f"{self.lengths} then, {other.lengths} now"] if self.lengths != other.lengths else []
        return "; ".join(told) or "the prompts stand in another order"


@dataclass(frozen=True, slots=True)
class Record:
    """One process that answered the prompts, with all that it takes to do so again.

    Attributes:
        arm: What ran.
        asked: What it was asked.
        run: The process: outputs, what the engine said of itself and of the model, threads.
        node: The machine.
        when: Time of the recording, ISO 8601, UTC.
        harness: Version of the harness.
    """

    arm: Arm
    asked: Asked
    run: ProcessRun
    node: NodeFacts
    when: str
    harness: str


@dataclass(frozen=True, slots=True)
class ArmReference:
    """An arm of a job that is held against recorded outputs.

    Attributes:
        arm: Its index in the job.
        check: The check, with the key of what is recorded.
    """

    arm: int
    check: OutputCheck


@dataclass(frozen=True, slots=True)
class Golden:
    """What lies in the folder of references under one key.

    Attributes:
        key: ``NAME/MODEL/ARM@CLASS``.
        record: What was recorded; ``None`` where that is missing or can't be used.
        slug: Why it can't be.
        problem: The same in words.
        update: The command that records it anew.
    """

    key: str
    record: Record | None
    slug: str = ""
    problem: str = ""
    update: str = UPDATE
