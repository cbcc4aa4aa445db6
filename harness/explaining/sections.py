"""What is explained, cut into sections of a screen: lines, and tables. How they look is the reader's business."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.domain.verdict import Estimate
from harness.explaining.arm_states import Row
from harness.explaining.depth import DepthFit, Figure
from harness.explaining.grouping import Group, Grouped
from harness.explaining.night import Night
from harness.explaining.one_case import Block, CaseExplained, Undecided
from harness.judging.wording import estimate_text, speed_text
from harness.reporting.plain_words import between, change, count

_MOST_ROWS = 8
_MOST_BLOCKS = 12
_MOST_LINES = 12
_MOST_CASES = 3
_MOST_ALONE = 8
_PAIR = ("baseline", "candidate")
_DIFFERS = "≠"
"""Before a fact in which arms differ."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section.

    Attributes:
        title: Its heading.
        lines: Sentences.
        headings: Of the table below them; empty: there is none.
        rows: Of the table.
        text: What is shown as it is written: logs, differences of outputs.
    """

    title: str
    lines: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    text: str = ""


def case_sections(found: CaseExplained, *, everything: bool) -> list[Section]:
    """One case; without ``everything`` as much as a screen holds, the arms' facts where they differ."""
    return [section for section in _case(found, everything=everything) if section.lines or section.rows or section.text]


def night_sections(night: Night, *, everything: bool) -> list[Section]:
    """A night's groups; without ``everything`` some cases of each."""
    sections = [Section(f"matrix {night.matrix}", (night.counts,))]
    if night.reds:
        sections += _groups("failed", night.failed, night, everything=everything)
    if night.errors:
        told = ", ".join(f"{number} {slug}" for slug, number in night.errors)
        sections.append(Section("errors", (told,)))
        sections += _groups("erred", night.erred, night, everything=everything)
    if not night.reds and not night.errors:
        sections.append(Section("nothing is red", ("no case failed or erred",)))
    if night.undecided:
        shown = night.undecided if everything else night.undecided[:_MOST_CASES]
        left = len(night.undecided) - len(shown)
        title = f"{len(night.undecided)} inconclusive: explain CASE says what would decide it"
        sections.append(Section(title, (*shown, *([f"{left} more: --all"] if left else []))))
    return sections


# ---- one case --------------------------------------------------------------------------------------------------------


def _case(found: CaseExplained, *, everything: bool) -> Iterator[Section]:
    verdict = found.verdict
    yield Section(f"{verdict.status}: {verdict.case}", tuple(_head(found)))
    yield _blocks(found, everything=everything)
    if found.undecided:
        yield Section("what would decide it", tuple(_undecided(found.undecided)))
    if found.depth:
        yield _depth(found.depth, _names(found.arms))
    declared = [row for row in found.declared if everything or row.differs]
    yield _arms("declared", found.arms, declared, everything=everything)
    content = [row for row in found.content if everything or row.differs]
    yield _arms("what really ran", found.arms, content, everything=everything)
    states = [row for row in found.states if everything or row.differs or row.basic]
    yield _arms("machine and processes, median (smallest to largest)", found.arms, states, everything=everything)
    loads = [row for row in found.loads if everything or row.differs]
    yield _arms("how the model was loaded", found.arms, loads, everything=everything)
    if everything or not loads:
        yield Section("told of loading", text=_cut(verdict.load, everything=everything))
    yield Section(
        "difference of outputs",
        (verdict.scope,) if verdict.scope else (),
        text=_cut(verdict.detail, everything=everything),
    )
    yield Section("log of what failed", text=_cut(found.log, everything=everything, end=True))


def _head(found: CaseExplained) -> Iterator[str]:
    verdict = found.verdict
    yield verdict.reason
    estimate = verdict.estimate
    if estimate:
        yield estimate_text(estimate) + (f": {_in_words(estimate)}" if estimate.unit == "ratio" else "")
    if verdict.expected:
        yield f"expected: {verdict.expected}"
    if verdict.contrast:
        yield f"contrast: {verdict.contrast}"
    if len(found.arms) > 1:
        yield from (f"{name}: {label}" for name, label in zip(_names(found.arms), found.arms, strict=True))
    if found.node:
        yield f"node: {found.node}"
    yield f"machine: {found.busy or 'nothing of note beside the engine'}" if found.states else "nothing was measured"
    if found.void:
        yield f"void: {found.void}"
    if found.end and not found.undecided:
        yield f"job: {found.end}"
    if verdict.synthetic:
        yield "weights are random: speeds are approximate, content says nothing"


def _names(arms: Sequence[str]) -> Sequence[str]:
    """What columns are called: labels of arms are longer than columns are wide."""
    if len(arms) == len(_PAIR):
        return _PAIR
    return arms if len(arms) == 1 else [f"arm {number}" for number in range(1, len(arms) + 1)]


def _in_words(estimate: Estimate) -> str:
    return f"{change(estimate.value)}, {between(estimate.low, estimate.high)}"


def _blocks(found: CaseExplained, *, everything: bool) -> Section:
    blocks = found.blocks
    unit = "quad" if any(block.ratio is not None for block in blocks) else "block"
    shown = blocks if everything else blocks[:_MOST_BLOCKS]
    left = len(blocks) - len(shown)
    counted = sum(block.use == "counted" for block in blocks)
    lines: tuple[str, ...] = (f"{counted} of {count(len(blocks), unit)} counted, in order of time",) if blocks else ()
    lines += (f"{left} more: --all",) if left else ()
    headings = (unit, "ratio", *(f"{name} t/s" for name in _names(found.arms)), "") if shown else ()
    return Section(f"{unit}s", lines, headings, tuple(_block(block) for block in shown))


def _block(block: Block) -> tuple[str, ...]:
    ratio = "" if block.ratio is None else f"{block.ratio:.3f}"
    speeds = (" ".join(map(speed_text, speeds)) for speeds in block.speeds)
    return (str(block.number), ratio, *speeds, block.use)


def _undecided(found: Undecided) -> Iterator[str]:
    yield from filter(None, [found.needed, found.ended])
    source = "nobody knows how quads scatter here; " if found.assumed else ""
    if not found.quads:
        yield "no whole quad is there"
        return
    yield (
        f"{source}at a scatter of {100 * found.quad_sd:.1f} % {count(found.quads, 'quad')} "
        f"{_finds(found.quads, found.smallest)}, four times as many {_finds(2, found.smallest_of_four_times)}"
    )


def _finds(number: int, smallest: float | None) -> str:
    verb = "find" if number > 1 else "finds"
    return f"{verb} {'no loss' if smallest is None else f'a loss of {100 * smallest:g} %'} with 95 %"


def _depth(fit: DepthFit, names: Sequence[str]) -> Section:
    rows: list[tuple[str, ...]] = [
        (name, _ms(line.at_zero), _ms(line.per_thousand), f"{100 * line.misses:.1f} %")
        for name, line in zip(names, fit.lines, strict=True)
    ]
    if fit.change:
        rows.append(("candidate - baseline", *(_ms(figure, sign=True) for figure in fit.change), ""))
    depths = ", ".join(map(str, fit.depths))
    return Section(
        f"time of {fit.workload} as a + b x depth (depths {depths}; 99 % intervals)",
        (fit.reading,),
        ("arm", "a, ms", "b, ms per 1000 tokens", "misses by at most"),
        tuple(rows),
    )


def _ms(figure: Figure, *, sign: bool = False) -> str:
    form = "{:+.4g}" if sign else "{:.4g}"
    value = form.format(figure.value)
    if figure.low is None or figure.high is None:
        return value
    return f"{value} [{form.format(figure.low)}, {form.format(figure.high)}]"


def _arms(title: str, arms: Sequence[str], rows: Sequence[Row], *, everything: bool) -> Section:
    ordered = rows if everything else sorted(rows, key=lambda row: not row.differs)
    shown = ordered if everything else ordered[:_MOST_ROWS]
    left = len(ordered) - len(shown)
    marked = tuple((f"{_DIFFERS if row.differs else ' '} {row.name}", *map(_short, row.values)) for row in shown)
    return Section(title, (f"{left} more: --all",) if left else (), ("", *_names(arms)) if shown else (), marked)


def _short(text: str, most: int = 200) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _cut(text: str, *, everything: bool, end: bool = False) -> str:
    lines = text.splitlines()
    if everything or len(lines) <= _MOST_LINES:
        return text
    more = f"({len(lines) - _MOST_LINES} more lines: --all)"
    return "\n".join([more, *lines[-_MOST_LINES:]] if end else [*lines[:_MOST_LINES], more])


# ---- a night ---------------------------------------------------------------------------------------------------------


def _groups(word: str, grouped: Grouped, night: Night, *, everything: bool) -> Iterator[Section]:
    slug = _one_slug(grouped, night)
    if slug and not (grouped.groups and night.greens):
        cases = _all(grouped, night)
        yield Section(f"{word}: all {len(cases)}: {slug}", tuple(_some(cases, night, everything=everything)))
        return
    if slug:
        yield Section(f"{word}: all have {slug}", ("what they share beside it:",))
    for number, group in enumerate(grouped.groups, 1):
        title = f"{word}, {number}: {' and '.join(map(str, group.conditions))}"
        yield Section(title, tuple(_group(group, night, everything=everything)))
    if grouped.alone:
        share = f"{len(grouped.alone)} share nothing that passes do not have as well"
        title = "one stands alone" if len(grouped.alone) == 1 else share
        yield Section(f"{word}: {title}", tuple(_some(grouped.alone, night, everything=everything)))


def _one_slug(grouped: Grouped, night: Night) -> str:
    """The one word for what went wrong with all of them; empty where there are several, or a single case."""
    cases = _all(grouped, night)
    slugs = {night.slugs[case] for case in cases}
    return slugs.pop() if len(cases) > 1 and len(slugs) == 1 else ""


def _all(grouped: Grouped, night: Night) -> list[str]:
    found = {*grouped.alone, *(case for group in grouped.groups for case in group.reds)}
    return [case for case in night.reasons if case in found]


def _some(cases: Sequence[str], night: Night, *, everything: bool) -> list[str]:
    shown = cases if everything else cases[:_MOST_ALONE]
    left = len(cases) - len(shown)
    return [*_reasons(shown, night), *([f"{left} more: --all"] if left else [])]


def _reasons(cases: Sequence[str], night: Night) -> list[str]:
    """A line for each case, or the reason once where all have the same; then how their logs end, each end once."""
    ends = dict.fromkeys(night.logs[case] for case in cases if case in night.logs)
    reasons = {night.reasons[case] for case in cases}
    if len(cases) > 1 and len(reasons) == 1:
        return [_short(reasons.pop()), *cases, *ends]
    return [*(f"{case}: {_short(night.reasons[case])}" for case in cases), *ends]


def _group(group: Group, night: Night, *, everything: bool) -> Iterator[str]:
    yield (
        f"holds for {len(group.reds)} of {group.all_reds} reds and {len(group.greens)} of {group.all_greens} passes "
        f"(purity {100 * group.purity:.0f} %, coverage {100 * group.coverage:.0f} %)"
    )
    for condition in group.conditions:
        if condition.same:
            yield f"{condition} can't be told from: {', '.join(condition.same[: None if everything else _MOST_CASES])}"
    if group.may_be_chance:
        yield "no more than chance: so few reds share something in any night"
    shown = group.reds if everything else group.reds[:_MOST_CASES]
    yield from _reasons(shown, night)
    if len(shown) < len(group.reds):
        yield f"{len(group.reds) - len(shown)} more: --all"
    if group.greens:
        yield f"passed all the same: {', '.join(group.greens[: None if everything else _MOST_CASES])}"
