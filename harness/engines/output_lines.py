"""Outputs as children are asked for them and tell them; what is not consistent in itself is no output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from harness.domain.failure import Failure, FailureKind
from harness.domain.outputs import Gaps, Output, Ranks, Source, Variation, Varied
from harness.domain.workload import OutputProfile
from harness.ranking import NO_TOKEN, Table, unpack, unpack_values

_ROUNDING = 1e-3
"""Nats by which a log-probability may be above 0, or above the one before it."""


def outputs_request(profile: OutputProfile) -> dict[str, Any]:
    """A profile as children take it."""
    prompts = [
        {"name": prompt.name, "text": prompt.text, "answer": prompt.answer, "tokens": prompt.tokens}
        for prompt in profile.prompts
    ]
    return {
        "prompts": prompts,
        "n_predict": profile.n_predict,
        "positions": profile.positions,
        "forced": profile.forced,
        "top": profile.top,
        "variations": [str(variation) for variation in profile.variations],
    }


def asked_outputs(asked: OutputProfile | None, outputs: Iterable[Output]) -> tuple[tuple[Output, ...], list[Failure]]:
    """Outputs that are what was asked for, each prompt once, and what is wrong with the others or missing.

    Args:
        asked: What was asked for, if anything.
        outputs: What came.
    """
    right: dict[str, Output] = {}
    problems: list[Failure] = []
    told = set()
    for output in outputs:
        second = f"a second output of prompt '{output.prompt}'" if output.prompt in told else ""
        problem = second or (shape_problem(asked, output) if asked else "an output that was not asked for")
        told.add(output.prompt)
        if problem:
            problems.append(Failure(FailureKind.UNPARSABLE, problem, "E-output-shape"))
        else:
            right[output.prompt] = output
    missing = [prompt.name for prompt in (asked.prompts if asked else ()) if prompt.name not in told]
    if missing:
        said = f"answers missing: {', '.join(missing)}"
        problems.append(Failure(FailureKind.UNPARSABLE, said, "E-outputs-missing"))
    return tuple(right.values()), problems


def read_output(line: Mapping[str, Any]) -> Output:
    """The output of a line.

    Args:
        line: The line's fields.

    Raises:
        KeyError, TypeError, ValueError, OverflowError: A part is missing, of the wrong type, damaged, or contradicts
            another one.
    """
    margins = line["margins"]
    known = margins is not None and None not in margins
    ranks, varied = line.get("ranks") or {}, line.get("varied") or ()
    output = Output(
        prompt=str(line["prompt"]),
        prompt_tokens=_ids(line["tokens"]),
        tokens=_ids(line["greedy"]),
        margins=tuple(float(margin) for margin in margins) if known else None,
        text=str(line["text"]),
        logits_sha256=str(line["logits_sha256"]),
        finite=line["finite"] is True,
        forced_tokens=_ids(line.get("forced", ())),
        prefill=_ranks(ranks.get("prefill")),
        forced=_ranks(ranks.get("forced")),
        greedy=_ranks(ranks.get("greedy")),
        varied=tuple(_varied(entry) for entry in varied),
        pieces=tuple((int(token), str(text)) for token, text in line.get("pieces", ())),
        forced_at=_ids(line.get("forced_at", ())),
        source=Source(line.get("source", Source.EMBEDDED)),
    )
    _check(output)
    return output


def shape_problem(profile: OutputProfile, output: Output) -> str:
    """In what an output is not what was asked for; empty where it is.

    Args:
        profile: What was asked.
        output: What came.
    """
    kept = min(profile.positions, len(output.prompt_tokens))
    generated = 0 if output.source is Source.PERPLEXITY else profile.n_predict
    if output.source is not Source.EMBEDDED and output.prefill:
        kept = min(kept, output.prefill.positions)
    problems = {
        "generated tokens": (len(output.tokens), generated),
        "prompt positions": (output.prefill.positions if output.prefill else kept, kept),
        "tokens kept": (_widest(output), min(_widest(output), profile.top)),
        "forced tokens": (len(output.forced_tokens), min(len(output.forced_tokens), profile.forced)),
    }
    wrong = [f"{got} {what}, expected {asked}" for what, (got, asked) in problems.items() if got != asked]
    if output.prompt not in {prompt.name for prompt in profile.prompts}:
        wrong.append("a prompt that was not asked for")
    return f"output of prompt '{output.prompt}': {'; '.join(wrong)}" if wrong else ""


def _widest(output: Output) -> int:
    return max((ranks.top for ranks in (output.prefill, output.greedy, output.forced) if ranks), default=0)


def _ids(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _ranks(fields: Mapping[str, Any] | None) -> Ranks | None:
    if fields is None:
        return None
    return Ranks(int(fields["positions"]), int(fields["top"]), str(fields["packed"]))


def _varied(fields: Mapping[str, Any]) -> Varied:
    return Varied(Variation(fields["variation"]), _gaps(fields["prefill"]), _gaps(fields["forced"]))


def _gaps(fields: Mapping[str, Any]) -> Gaps:
    return Gaps(str(fields["kld"]), tuple(float(margin) for margin in fields["flips"]))


def _check(output: Output) -> None:
    """Check each part against the others.

    Raises:
        ValueError: The first that does not fit.
    """
    _demand(not output.margins or len(output.margins) == len(output.tokens), "a margin for each generated token")
    positions = {
        "prefill": (output.prefill, range(1, len(output.prompt_tokens) + 1)),
        "greedy": (output.greedy, (len(output.tokens),)),
        "forced": (output.forced, (len(output.forced_at or output.forced_tokens),)),
    }
    _demand(list(output.forced_at) == sorted(set(output.forced_at)), "forced_at: each forced token once, in order")
    _demand(all(0 <= at < len(output.forced_tokens) for at in output.forced_at), "forced_at: tokens that are forced")
    for name, (ranks, fitting) in positions.items():
        if ranks is not None:
            _demand(ranks.positions in fitting, f"{name}: as many positions as tokens")
            _check_table(unpack(ranks), output)
    # A server's row at half a character is of an evaluation of its own, where rounding can turn a tie.
    if output.greedy is not None and output.source is not Source.SERVER:
        best = unpack(output.greedy).ids[:, 0]
        _demand(not output.finite or tuple(best.tolist()) == output.tokens, "greedy: the most probable tokens")
    for varied in output.varied:
        _check_gaps(varied.prefill, output.prefill)
        _check_gaps(varied.forced, output.forced)


def _check_table(table: Table, output: Output) -> None:
    ids, logprobs = table.ids, table.logprobs
    nowhere = (ids == NO_TOKEN).all(axis=1)
    _demand(not (output.finite and nowhere.any()), "a row that is not finite in an output that is")
    ids, logprobs = ids[~nowhere], logprobs[~nowhere]
    _demand(bool((ids >= 0).all() and np.isfinite(logprobs).all()), "token ids and finite log-probabilities")
    _demand(bool((logprobs <= _ROUNDING).all()), "log-probabilities of at most 0")
    _demand(bool((np.diff(logprobs, axis=1) <= _ROUNDING).all()), "the most probable tokens first")


def _check_gaps(gaps: Gaps, ranks: Ranks | None) -> None:
    divergences = unpack_values(gaps.kld)
    _demand(len(divergences) == (ranks.positions if ranks else 0), "varied: a divergence at each position")
    _demand(bool((divergences >= 0).all()), "varied: divergences of at least 0")
    _demand(_are_margins(gaps.flips, len(divergences)), "varied: margins of at least 0")


def _are_margins(flips: Sequence[float], positions: int) -> bool:
    return len(flips) <= positions and all(margin >= 0 for margin in flips)


def _demand(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(f"expected {what}")
