"""JUnit (xunit2) from verdicts. A projection: the same verdicts give the same bytes.

Report viewers read name, classname, time and the message of a result, and no properties: so the message's line carries
the figures, and the class name the model, the node class and the GPU. Properties hold the same for programs.
"""
# mypy: allow-untyped-calls
# (junitparser says that it is typed, but half of its methods have no annotations)

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import junitparser
from junitparser import xunit2
from junitparser.junitparser import FinalResult

from harness.domain.canonical import id_part
from harness.domain.errors import Infrastructure
from harness.domain.verdict import Effect, Verdict
from harness.domain.words import Pitfall, Status
from harness.reporting.clean import capped, one_line

MAX_DETAIL_BYTES = 64 * 1024
"""Of the long text of a case, its own output included."""
_MAX_MESSAGE_BYTES = 2000
_MAX_VALUE_BYTES = 4000
_LEVELS = 4
"""Of a class name, before the hardware."""
_CORES = re.compile(r" \(\d+ cores?\)$")
_MARKETING = re.compile(r"\((?:R|TM|C)\)|\bCPU\b|\bProcessor\b|\b\d+-Core\b|@.*$", re.IGNORECASE)
_ID = re.compile(r"(?P<kind>[^/]+)/(?P<model>[^/]+)/.+@(?P<node_class>[^@]+)")
_SKIPPED = frozenset({Status.INCONCLUSIVE, Status.UNSUPPORTED, Status.NOT_APPLICABLE, Status.NOT_JUDGED})

ContentKeys = Mapping[str, Mapping[str, str]]


def make_junit(name: str, verdicts: Sequence[Verdict], content_keys: ContentKeys | None = None) -> xunit2.JUnitXml:
    """Make the document of one matrix.

    Args:
        name: The matrix's name, which becomes the suite's.
        verdicts: One per case.
        content_keys: What really ran, by case id and arm label.
    """
    suite = xunit2.TestSuite(one_line(name))
    suite.extend([_testcase(verdict, (content_keys or {}).get(verdict.case, {})) for verdict in verdicts])
    document = xunit2.JUnitXml()
    document.append(suite)
    document.update_statistics()
    return document


def write_junit(document: junitparser.JUnitXml, path: Path) -> None:
    """Write a document whole or not at all, with the statistics that it has.

    Raises:
        Infrastructure: If the file cannot be written.
    """
    write_whole(path, b'<?xml version="1.0" encoding="utf-8"?>\n' + _body(document) + b"\n")


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file in one step, so that a reader never sees half of it.

    Raises:
        Infrastructure: If it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as undo:
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
                undo.callback(Path(file.name).unlink)
                file.write(content)
                os.fchmod(file.fileno(), 0o644)
            Path(file.name).replace(path)
            undo.pop_all()
    except OSError as error:
        message = f"the report could not be written: {error.strerror or error}"
        raise Infrastructure("E-report-write", message, where=f"{path}") from error


def classname(case_id: str, node: str = "") -> str:
    """``moe.KIND.MODEL.CLASS.GPU`` of a case id; dots inside a part become underscores, for a dot makes a level.

    Args:
        case_id: The case's id.
        node: Where it ran, as verdicts say it: its GPUs, or its CPU. The level is left out where that is not known.
    """
    found = _ID.fullmatch(case_id)
    parts = (*(found.groups() if found else (case_id,)), *([hardware_class(node)] if one_line(node) else []))
    return ".".join(["moe", *(one_line(part).replace(".", "_") for part in parts)])


def unplaced(class_name: str) -> str:
    """A class name of ours without the level that says on which hardware it ran; others as they are."""
    levels = class_name.split(".")
    return ".".join(levels[:_LEVELS]) if levels[0] == "moe" else class_name


def hardware_class(node: str) -> str:
    """A node's GPUs, or its CPU, as one word: ``nvidia-h200``, ``2x-nvidia-h200``, ``amd-epyc-9654``."""
    return id_part(_MARKETING.sub(" ", _CORES.sub("", one_line(node))))


def _body(document: junitparser.JUnitXml) -> bytes:
    body = document.tostring()
    raw = body if isinstance(body, bytes) else body.encode()
    return re.sub(rb"\A<\?xml[^>]*\?>\s*", b"", raw)


def _testcase(verdict: Verdict, content_keys: Mapping[str, str]) -> xunit2.TestCase:
    case = xunit2.TestCase(
        one_line(verdict.case), classname(verdict.case, verdict.node), round(max(0.0, verdict.seconds), 3)
    )
    properties = junitparser.Properties()
    for name, value in _properties(verdict, content_keys):
        properties.add_property(
            junitparser.Property(one_line(capped(name, _MAX_VALUE_BYTES)), one_line(capped(value, _MAX_VALUE_BYTES)))
        )
    case.append(properties)
    result = _result(verdict)
    if result is not None:
        case.append(result)
    else:
        # What passed has no message of its own: its figures are what it printed.
        word = "warning: " if verdict.pitfall is Pitfall.GONE else ""
        case.append(junitparser.SystemOut(f"{word}{one_line(capped(verdict.reason, _MAX_MESSAGE_BYTES))}"))
    return case


def _result(verdict: Verdict) -> FinalResult | None:
    message = one_line(capped(verdict.reason, _MAX_MESSAGE_BYTES)) or str(verdict.status)  # an empty one is left out
    kind = one_line(verdict.slug) or str(verdict.throughput or verdict.equivalence or verdict.status)
    result: FinalResult
    if verdict.status in _SKIPPED:
        word = str(verdict.status)
        result = junitparser.Skipped(message if message.startswith(word) else f"{word}: {message}", kind)
    elif verdict.status is Status.FAIL:
        result = junitparser.Failure(message, kind)
    elif verdict.status is Status.PASS:
        return None
    else:  # an outcome that is not known to be good is an error, never a pass
        result = junitparser.Error(message, kind)
    result.text = capped("\n".join(_long_text(verdict)), MAX_DETAIL_BYTES)
    return result


def _long_text(verdict: Verdict) -> Iterator[str]:
    yield verdict.reason
    if verdict.contrast:
        yield f"contrast: {verdict.contrast}"
    if verdict.expected:
        yield f"expected: {verdict.expected}"
    if verdict.slug:
        yield f"error: {verdict.slug}"
    if verdict.synthetic:
        yield "model: synthetic weights, speeds are approximate"
    if verdict.scope:
        yield f"outputs {verdict.scope}"
    if verdict.load:
        yield f"loaded: {verdict.load}"
    if verdict.detail:
        yield ""
        yield verdict.detail


def _properties(verdict: Verdict, content_keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield "status", verdict.status
    for name, word in (
        ("throughput", verdict.throughput),
        ("equivalence", verdict.equivalence),
        ("pitfall", verdict.pitfall),
        ("contrast", verdict.contrast),
    ):
        if word:
            yield name, word
    yield from _estimate_properties(verdict)
    yield from ((f"effect[{effect.name}]", _effect_text(effect)) for effect in verdict.effects)
    for arm in verdict.arms:
        name, figure = ("tps", arm.tps) if arm.ms is None else ("ms", arm.ms)
        yield f"{name}[{arm.label}]", f"{figure:.6g}"
        if arm.spread is not None:
            yield f"spread[{arm.label}]", f"{arm.spread:.4g}"
    for label, key in content_keys.items():
        yield f"content_key[{label}]", key
    for name in ("reason", "expected", "node", "scope", "load"):
        if text := getattr(verdict, name):
            yield name, text
    yield from ((name, "true") for name in ("synthetic", "inert") if getattr(verdict, name))
    yield from (("try", text) for text in verdict.tries)


def _effect_text(effect: Effect) -> str:
    """``WORD RATIO [LOW, HIGH]``; no word where nothing is judged."""
    ratio = effect.ratio
    figures = f"{ratio.value:.6g} [{ratio.low:.6g}, {ratio.high:.6g}]" if ratio else "unknown"
    return f"{effect.throughput} {figures}" if effect.throughput else figures


def _estimate_properties(verdict: Verdict) -> Iterator[tuple[str, str]]:
    estimate = verdict.estimate
    if estimate is None:
        return
    yield "estimate", f"{estimate.value:.6g}"
    yield "low", f"{estimate.low:.6g}"
    yield "high", f"{estimate.high:.6g}"
    yield "n", str(estimate.n)
    yield "unit", estimate.unit
    if estimate.p is not None:
        yield "p", f"{estimate.p:.3g}"
    if estimate.assumed is not None:
        yield "assumed", f"{estimate.assumed:.3g}"
