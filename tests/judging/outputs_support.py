"""Outputs with distributions, made of numpy logits with a planted amount of noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from judging_support import BASELINE, CANDIDATE

from harness.domain.outputs import Gaps, Output, Ranks, Variation, Varied
from harness.domain.tolerance import ContrastClass
from harness.domain.workload import OutputProfile, Prompt
from harness.judging.outputs import judge_outputs
from harness.judging.outputs_allowed import allowed_of
from harness.judging.outputs_verdict import OutputsVerdict
from harness.judging.quants import FINE, Limits, Quant
from harness.judging.tolerances import Allowed, floor_of
from harness.ranking import Table, gaps, pack

VOCABULARY, TOP = 400, 20
PREFILL, FORCED, GREEDY = 64, 16, 16
NAMES = tuple(f"p{number}" for number in range(16))
WIDE = OutputProfile("wide", tuple(Prompt(name, f"Question {name}?", "An answer.") for name in NAMES), GREEDY, PREFILL)
F16 = replace(
    allowed_of(BASELINE, CANDIDATE, None, (), None),
    floor=floor_of(Quant.FULL, ContrastClass.FLAGS),
    widest=floor_of(Quant.FULL, ContrastClass.BACKEND),
)
"""What is tolerated of 16-bit weights, whatever the arms are called."""

Logits = np.ndarray


def logits_of(name: str, positions: int = PREFILL + FORCED + GREEDY) -> Logits:
    """A prompt's logits; standard deviation 3.5 as of a trained model."""
    seed = sum(map(ord, name)) * 1009 + int(name[1:] or 0)
    return np.random.default_rng(seed).normal(0.0, 3.5, (positions, VOCABULARY))


def table_of(logits: Logits, top: int = TOP) -> Table:
    shifted = logits - logits.max(1, keepdims=True)
    values = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    ids = np.argsort(-values, axis=1, kind="stable")[:, :top]
    return Table(ids.astype(np.int32), np.take_along_axis(values, ids, 1).astype(np.float32))


def ranks_of(logits: Logits, top: int = TOP) -> Ranks:
    return pack(table_of(logits, top))


def output_of(name: str, logits: Logits, **changes: object) -> Output:
    """An answer whose greedy tokens are what its logits say."""
    prefill, forced, greedy = np.split(logits, [PREFILL, PREFILL + FORCED])
    tokens = tuple(int(token) for token in greedy.argmax(1))
    made = Output(
        prompt=name,
        prompt_tokens=tuple(range(PREFILL + 6)),
        tokens=tokens,
        margins=tuple(float(margin) for margin in table_of(greedy).margins),
        text="".join(f" w{token}" for token in tokens),
        logits_sha256=str(hash(logits.tobytes())),
        finite=True,
        forced_tokens=tuple(range(FORCED)),
        prefill=ranks_of(prefill),
        forced=ranks_of(forced),
        greedy=ranks_of(greedy),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@cache
def answers_of(noise: float = 0.0, seed: int = 7, names: tuple[str, ...] = NAMES) -> tuple[Output, ...]:
    """All prompts answered, with normal noise of this size on every logit."""
    rng = np.random.default_rng(seed)
    return tuple(
        output_of(
            name, logits_of(name) + (rng.normal(0.0, noise, (PREFILL + FORCED + GREEDY, VOCABULARY)) if noise else 0)
        )
        for name in names
    )


def varied_of(name: str, noise: float, seed: int = 11) -> tuple[Varied, ...]:
    """What an arm does to itself with this much noise."""
    rng = np.random.default_rng(seed)
    prefill, forced = (
        gaps(table_of(part), table_of(part + rng.normal(0.0, noise, part.shape)))
        for part in np.split(logits_of(name), [PREFILL, PREFILL + FORCED])[:2]
    )
    return (Varied(Variation.BATCH, prefill, forced),)


def with_varied(outputs: Sequence[Output], noise: float) -> tuple[Output, ...]:
    return tuple(replace(each, varied=varied_of(each.prompt, noise)) for each in outputs)


def with_gaps(output: Output, prefill: Gaps, forced: Gaps) -> Output:
    return replace(output, varied=(Varied(Variation.BATCH, prefill, forced),))


def judged(
    candidate: Sequence[Output],
    baseline: Sequence[Output] = (),
    *,
    limits: Limits = FINE,
    allowed: Allowed = F16,
    profile: OutputProfile = WIDE,
) -> OutputsVerdict:
    return judge_outputs(baseline or answers_of(), candidate, profile, limits, allowed)
