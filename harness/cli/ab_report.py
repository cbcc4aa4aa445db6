"""How an ``ab`` ended: in plain words, as a table, as Markdown, as data."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.cli.ab_view import head
from harness.cli.contrast_table import STYLES, Line, contrast_table, judged_line
from harness.domain.arm import Arm
from harness.domain.stopping import JobEnd
from harness.domain.verdict import Estimate, Verdict
from harness.domain.words import Throughput
from harness.judging.disturbance import disturbance_text
from harness.judging.voids import voids_text
from harness.judging.wording import LEVEL, assumption_text, interval_name, node_text, speed_text
from harness.reporting.clean import one_line
from harness.reporting.last_words import last_words
from harness.reporting.markdown import code, fenced
from harness.reporting.plain_words import between, change, clock_text, count, signed, signed_between
from harness.reporting.summary import differences, indented, indented_detail, loads
from harness.running.ab_advice import Advice, minutes_for_all
from harness.running.ab_board import QUAD_PROCESSES
from harness.running.ab_run import AbResult

_ENDS = {
    JobEnd.DECIDED: "everything is decided",
    JobEnd.BUDGET: "the budget has no room for another quad",
    JobEnd.SCHEDULE: "the rule's last quad is measured",
    JobEnd.OUTPUTS: "the outputs are wrong, and the speed of wrong outputs is not measured",
}

_BUILD_WORDS = {"package_version": "version", "build_number": "build", "build_commit": "commit"}
"""What engines say of their build, and how a page says it."""


def print_result(console: Console, result: AbResult, *, headed: bool = True) -> None:
    """The table, a line for each workload, what they rest on and what they do not show.

    Args:
        console: Where to; its width decides the table's columns.
        result: What there is to tell.
        headed: Whether what was compared is to be told first.
    """
    for line in head(result.plan) if headed else ():
        console.print(line, soft_wrap=True)
    console.print()
    console.print(contrast_table(_lines(result), console))
    console.print()
    for workload, verdict in result.verdicts.items():
        style = STYLES.get(verdict.throughput or Throughput.INCONCLUSIVE, "yellow")
        told = verdict_words(result, workload)
        console.print(Text.assemble((f"{workload}: ", "bold"), (told, style)), soft_wrap=True)
    for told in [
        *_logs(result),
        *_next_run(result),
        *_together(result),
        *_outputs(result),
        *_rests_on(result),
        *_circumstances(result),
        *_does_not_show(result),
    ]:
        console.print(Text(told), soft_wrap=True)
    for verdict in differences(_outputs_verdicts(result)):
        console.print(Text(f"difference:\n{indented_detail(verdict)}"), soft_wrap=True)
    for verdict in loads(list(result.verdicts.values())):
        console.print(Text(f"loaded:\n{indented(verdict.load)}"), soft_wrap=True)
    console.print(Text(f"journal: {result.reports}", style="dim"), soft_wrap=True)


def markdown(result: AbResult) -> str:
    """The same for a page. Names and sentences stand in code: builds, flags and reasons are not ours."""
    old, new = map(code, result.plan.arms.names)
    rows = [
        f"| workload | {old} t/s | {new} t/s | change | interval | quads | verdict |",
        "|---|---:|---:|---:|---:|---:|---|",
        *("| " + " | ".join(_markdown_cells(line)) + " |" for line in _lines(result)),
    ]
    told = [f"{workload}: {verdict_words(result, workload)}" for workload in result.verdicts]
    rest = [
        *_logs(result),
        *_next_run(result),
        *_together(result),
        *_outputs(result),
        *_rests_on(result),
        *_circumstances(result),
    ]
    below = [f"- {code(line)}" for line in [*told, *rest, *_does_not_show(result)]]
    for verdict in differences(_outputs_verdicts(result)):
        below += ["", *fenced(verdict.detail)]
    for verdict in loads(list(result.verdicts.values())):
        below += ["", "Loaded:", "", *fenced(verdict.load)]
    return "\n".join([*_markdown_head(result), "", *rows, "", *below]) + "\n"


def _markdown_head(result: AbResult) -> list[str]:
    """What was compared, on what, by which limits, and which builds they were."""
    lines = [line.plain for line in head(result.plan)]
    for index, name in enumerate(result.plan.arms.names):
        known = _identity(result, index)
        said = [f"{word} {known['engine'][key]}" for key, word in _BUILD_WORDS.items() if known["engine"].get(key)]
        told = [*said, *([f"content {known['content_key']}"] if known["content_key"] else [])]
        lines += [f"{name}: {', '.join(told)}"] if told else []
    return [f"- {code(line)}" for line in lines]


def as_json(result: AbResult) -> dict[str, Any]:
    """As data: the builds, and a list of the rows that ``compare`` prints."""
    plan = result.plan
    policy = plan.plan.policy
    return {
        "builds": [_identity(result, index) for index in range(len(plan.arms.arms))],
        "factor": list(plan.arms.difference.factors),
        "model": {"name": plan.model.name, "card": plan.model.card, "quant": plan.model.quant, "path": plan.model.path},
        "synthetic": plan.synthetic,
        "margins": plan.margins,
        "alpha": policy.alpha,
        "node": node_text(result.board.node.node) if result.board.node else None,
        "minutes": {"budget": plan.minutes, "used": round(result.board.seconds / 60, 3)},
        "processes": len(result.board.runs),
        "end": _end_word(result),
        "results": [_row(workload, verdict) for workload, verdict in result.verdicts.items()],
        "outputs": _outputs_json(result.outputs),
        "notes": list(plan.notes),
        "reports": str(result.reports),
    }


# ---- words -----------------------------------------------------------------------------------------------------------


def verdict_words(result: AbResult, workload: str) -> str:
    """What is true of one workload, in a sentence."""
    old, new = (one_line(name) for name in result.plan.arms.names)
    verdict = result.verdicts[workload]
    ratio = verdict.estimate
    if verdict.throughput is None or ratio is None:
        return _reason(verdict)
    rests = f"{interval_name(ratio)} {between(ratio.low, ratio.high)}, {_measured(result, ratio)}"
    match verdict.throughput:
        case Throughput.REGRESSED | Throughput.IMPROVED:
            return f"{new} is {change(ratio.value)}, certain ({rests})"
        case Throughput.EQUIVALENT:
            within = f"{100 * result.plan.margins[workload]:g} %"
            return f"{new} is as fast as {old} within {within}, at 95 % ({change(ratio.value)}; {rests})"
        case _:
            return _undecided_words(result, workload, ratio, new)


def _logs(result: AbResult) -> list[str]:
    """How the logs of what failed end, each once: the workloads of a process share its end."""
    return [*dict.fromkeys(filter(None, map(last_words, result.verdicts.values())))]


def _measured(result: AbResult, ratio: Estimate) -> str:
    """Quads, and the processes that they took with the burn-ins before them."""
    burn_ins = sum(not run.step.scored for run in result.board.runs)
    return f"{count(ratio.n, 'quad')}, {burn_ins + QUAD_PROCESSES * ratio.n} processes"


def _undecided_words(result: AbResult, workload: str, ratio: Estimate, new: str) -> str:
    told = f"not decided: {_undecided_figures(ratio, new)} ({_measured(result, ratio)})"
    found = result.advice.get(workload)
    return f"{told}; {_advice_words(found)}" if found else told


def _undecided_figures(ratio: Estimate, new: str) -> str:
    """What fits; of one or two quads, which do not show how far quads scatter, what would."""
    figures, fitting = change(ratio.value), between(ratio.low, ratio.high)
    if ratio.assumed is None:
        return f"{new} looks {figures}, but {fitting} all fit"
    return f"{new} was {figures}; nobody knows yet how far quads scatter, {assumption_text(ratio)} {fitting} all fit"


def _advice_words(found: Advice) -> str:
    if found.quad_sd is None:
        return f"it takes {found.quads} quads at least to say how many would decide it"
    scatter = f"quads scatter by {100 * found.quad_sd:.1f} %"
    if found.quads is None:
        return f"{scatter}, too far for this margin: quiet the machine, or widen --margin"
    return f"{scatter}, about {found.quads} quads in all would likely decide it"


def _next_run(result: AbResult) -> list[str]:
    """One budget for all that is undecided; none where the one that was given would have done and was not used."""
    budget = result.plan.minutes
    needed = minutes_for_all(result.advice.values())
    if needed is None or (result.stopped and needed <= budget):
        return []
    named = ", ".join(name for name, found in result.advice.items() if found.minutes is not None)
    minutes = max(needed, math.floor(budget) + 1)
    return [f"next: --minutes {minutes} has room for the quads that {named} would need; a new run starts from nothing"]


def _together(result: AbResult) -> list[str]:
    """Gains and losses beside each other are not a wash."""
    by_word = {
        word: [_brief(*each) for each in result.verdicts.items() if each[1].throughput is word]
        for word in (Throughput.IMPROVED, Throughput.REGRESSED)
    }
    if not all(by_word.values()):
        return []
    gains, losses = (", ".join(told) for told in by_word.values())
    return [f"mixed: {gains}; {losses}. That is no wash: one does not make up for the other"]


def _brief(workload: str, verdict: Verdict) -> str:
    return f"{workload} {change(verdict.estimate.value)}" if verdict.estimate else workload


def _outputs_verdicts(result: AbResult) -> list[Verdict]:
    return [result.outputs] if result.outputs else []


def _outputs(result: AbResult) -> list[str]:
    return [f"outputs: {_reason(verdict)}" for verdict in _outputs_verdicts(result)]


def _reason(verdict: Verdict) -> str:
    """A verdict's reason without the place, which is told once for all."""
    return one_line(verdict.reason.rsplit(f" on {verdict.node} @", 1)[0]).removesuffix(",")


def _rests_on(result: AbResult) -> list[str]:
    board = result.board
    apart = sum(run.step.apart for run in board.runs)
    burn_ins = sum(not run.step.scored for run in board.runs) - apart
    answered = f", {apart} that answered prompts alone" if apart else ""
    processes = f"{count(len(board.runs), 'process')}, {burn_ins} of them burn-ins that are not judged{answered}"
    time = f"{clock_text(board.seconds)} of {clock_text(60 * result.plan.minutes)}"
    return [f"rests on: {processes}; {time}; {_ended(result)}"]


def _end_word(result: AbResult) -> str | None:
    if result.stopped:
        return "stopped"
    failed = result.nothing_compared and result.board.end is not JobEnd.OUTPUTS
    return "failed" if failed else result.board.end


def _ended(result: AbResult) -> str:
    """Why it went no further. The rule has nothing left to ask of workloads that can't be compared, either."""
    if result.stopped:
        return "you stopped it"
    if result.nothing_compared and result.board.end is not JobEnd.OUTPUTS:
        return "no speed could be compared"
    lost = result.not_compared if result.board.end is JobEnd.DECIDED else ()
    if lost:
        return f"all that could be compared is decided, {', '.join(lost)} could not"
    return _ENDS[result.board.end] if result.board.end else "it failed"


def _circumstances(result: AbResult) -> list[str]:
    """What went on beside it."""
    told = {"void": voids_text(result.board.runs), "disturbed": disturbance_text(result.board.runs)}
    return [f"{word}: {text}" for word, text in told.items() if text]


def _does_not_show(result: AbResult) -> list[str]:
    node = f" ({node_text(result.board.node.node)})" if result.board.node else ""
    told = [f"one machine{node}, one session"]
    told += [f"of outputs, {each.scope.partition('; ')[2]}" for each in _outputs_verdicts(result) if each.scope]
    if result.plan.synthetic:
        told.append(
            "random weights: experts are used evenly, texts mean nothing, other quantizations and shapes differ"
        )
    return [f"does not show: {'; '.join(told)}"]


# ---- rows ------------------------------------------------------------------------------------------------------------


def _lines(result: AbResult) -> list[Line]:
    return [
        judged_line(workload, verdict, result.plan.margins[workload]) for workload, verdict in result.verdicts.items()
    ]


def _markdown_cells(line: Line) -> list[str]:
    ratio = line.ratio
    speeds = [speed_text(arm.tps) if arm else "" for arm in line.arms]
    figures = [signed(ratio.value), _interval_cell(ratio)] if ratio else ["", ""]
    return [code(line.workload), *speeds, *figures, str(line.quads or ""), line.word]


def _interval_cell(ratio: Estimate) -> str:
    return f"{signed_between(ratio.low, ratio.high)} ({assumption_text(ratio) or LEVEL})"


def _row(workload: str, verdict: Verdict) -> dict[str, Any]:
    ratio = verdict.estimate
    speeds = [*(arm.tps for arm in verdict.arms), None, None]
    return {
        "case": verdict.case,
        "workload": workload,
        "baseline": speeds[0],
        "candidate": speeds[1],
        "ratio": ratio.value if ratio else None,
        "low": ratio.low if ratio else None,
        "high": ratio.high if ratio else None,
        "p": ratio.p if ratio else None,
        "assumed_quad_sd": ratio.assumed if ratio else None,
        "n": ratio.n if ratio else 0,
        "verdict": str(verdict.throughput or Throughput.NOT_COMPARABLE),
        "status": str(verdict.status),
        "reason": verdict.reason,
    }


def _outputs_json(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {"status": str(verdict.status), "equivalence": verdict.equivalence, "reason": verdict.reason}


def _identity(result: AbResult, index: int) -> dict[str, Any]:
    arm: Arm = result.plan.arms.arms[index]
    ran = next((run for run in result.board.runs if run.step.arm == index and run.content_key), None)
    return {
        "name": arm.build.name,
        "arm": result.plan.arms.names[index],
        "fork": str(arm.build.fork),
        "wheel": arm.build.wheel,
        "path": arm.build.path,
        "flags": arm.flags.as_dict(),
        "content_key": ran.content_key if ran else "",
        "engine": ran.engine if ran else {},
    }
