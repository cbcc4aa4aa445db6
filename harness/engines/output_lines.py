"""Outputs as children are asked for them and tell them; what is not consistent in itself is no output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.domain.failure import Failure, FailureKind
from harness.domain.outputs import Gaps, Output, Ranks, Source, Variation, Varied
from harness.domain.workload import OutputProfile


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
    if not isinstance(ranks, dict):
        raise TypeError("ranks: not an object")
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
    # Brings numpy, which plans and collections do without.
    from harness.engines.output_checks import check_output  # noqa: PLC0415

    check_output(output)
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
    if output.source is Source.EMBEDDED and not (output.prefill and output.greedy):
        wrong.append("no distributions")
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
