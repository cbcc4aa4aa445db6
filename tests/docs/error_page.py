"""Write the reference of errors from the code: ``python tests/docs/error_page.py > docs/reference/errors.md``.

A slug's text is what stands beside it in the source: the message of the call that it is given to, its hint, and for
constants and tables the line of ``_BY_HAND``. What is filled in while it runs is shown as ``…``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "harness"
_SLUG = re.compile(r"E-[a-z0-9]+(?:-[a-z0-9]+)*")
_EXITS = {"BadInput": "2", "Infrastructure": "3"}
_PLACE_FIRST, _PLACE_AT = {"Problem", "ImportProblem"}, 1
"""Calls whose argument after the slug says where it was."""
_MOST_TEXTS = 3

_HEAD = """# Errors

Every error has a stable slug, the same in text, JSON, journal and JUnit, and says what happened, where (file and key,
case id, node), what was expected and what to do. *Ends with* is the exit code of a command that meets it; *case* is the
end of one case or one row, while the rest goes on ([how a case ends](outcomes.md#how-a-case-ends)). `…` is filled in.

| slug | ends with | it says | what to do |
|---|---|---|---|
"""


@dataclass
class Told:
    """What the source says about one slug."""

    ends: set[str] = field(default_factory=set)
    says: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_row(slug, told) for slug, told in sorted(told_of_slugs().items()))


def told_of_slugs() -> dict[str, Told]:
    """Every slug of the package and what the source says of it, by hand where the source has no sentence."""
    found: dict[str, Told] = defaultdict(Told)
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = list(_assigned(tree))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            nearest = {name: value for line, name, value in names if line <= call.lineno or name.isupper()}
            _read_call(call, nearest, found)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SLUG.fullmatch(node.value):
                found.setdefault(node.value, Told())
    for name in _NAMES:
        found[f"E-unknown-{name}"] = Told({"2"}, [f"no {name.replace('-', ' ')} has this name"], ["take the nearest"])
    for slug, (end, says, hint) in _BY_HAND.items():
        found[slug] = Told({end}, [says], [hint] if hint else [])
    return found


def _assigned(tree: ast.Module) -> Iterator[tuple[int, str, ast.expr]]:
    """What names stand for: the constants of the module, and sentences that are put together before a call."""
    assignments = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    for node in sorted(assignments, key=lambda node: node.lineno):
        yield from ((node.lineno, target.id, node.value) for target in node.targets if isinstance(target, ast.Name))


def _read_call(call: ast.Call, names: dict[str, ast.expr], found: dict[str, Told]) -> None:
    texts = [*call.args, *(word.value for word in call.keywords if word.arg not in {"hint", "where"})]
    slugs = {slug for argument in texts for slug in _slugs(argument, names)}
    if not slugs:
        return
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name in _PLACE_FIRST and len(texts) > _PLACE_AT:
        texts.pop(_PLACE_AT)
    says = [text for argument in texts for text in _sentences(argument, names)]
    hints = [text for word in call.keywords if word.arg == "hint" for text in _sentences(word.value, names)]
    for slug in slugs:
        told = found[slug]
        told.ends.add(_EXITS.get(name, "case"))
        told.says += [text for text in says[:1] if text not in told.says]
        told.hints += [text for text in hints[:1] if text not in told.hints]


def _slugs(node: ast.expr, names: dict[str, ast.expr]) -> Iterator[str]:
    for part in (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,):
        value = getattr(names.get(part.id) if isinstance(part, ast.Name) else part, "value", "")
        if isinstance(value, str) and _SLUG.fullmatch(value):
            yield value


def _sentences(node: ast.expr, names: dict[str, ast.expr]) -> Iterator[str]:
    """The text of an argument, if it is one that is written there."""
    text = _template(node, names)
    if text and " " in text and not _SLUG.fullmatch(text):
        yield " ".join(text.split())


def _template(node: ast.expr, names: dict[str, ast.expr]) -> str:
    match node:
        case ast.Constant(value=str(text)):
            parts = [text]
        case ast.JoinedStr(values=values):
            parts = [_template(part, names) for part in values]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [_template(left, names), _template(right, names)]
        case ast.IfExp(body=body):
            parts = [_template(body, names)]
        case ast.Name(id=name) if name in names:
            parts = [_template(names[name], {})]
        case _:
            parts = ["…"]
    return re.sub("…{2,}", "…", "".join(parts))


def _row(slug: str, told: Told) -> str:
    cells = (f"`{slug}`", ", ".join(sorted(told.ends)), _joined(told.says), _joined(told.hints))
    return "| " + " | ".join(cells) + " |\n"


def _joined(texts: list[str]) -> str:
    shown = "; *or* ".join(_cell(text) for text in texts[:_MOST_TEXTS])
    return shown + ("; …" if len(texts) > _MOST_TEXTS else "")


def _cell(text: str) -> str:
    """Markdown's signs are shown as they are, but for words in backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _escaped(text)
    return "".join(f"`{_in_code(part)}`" if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"([|*_<>\[\]\\`])", r"\\\1", text)


def _in_code(text: str) -> str:
    return text.replace("|", "\\|")


_NAMES = ("fork", "build", "model", "quant", "node-class", "flag", "workload", "contrast", "configuration", "placement")
"""What a matrix names, as `harness.planning.references` puts it into a slug."""
_BY_HAND = {
    "E-bad-setting": (
        "2",
        "an environment variable has a value that can't be used",
        "see its line in [settings](commands.md)",
    ),
    "E-cache-unusable": (
        "3",
        "the cache can't be made or written, in the system's words",
        "set `MOE_CACHE_DIR` to another folder",
    ),
    "E-cancelled": (
        "case",
        "the run was ended before the job began",
        "go on with `--moe-resume`",
    ),
    "E-card-json": (
        "2",
        "the card is no JSON, and where it stops being it",
        "mend it there",
    ),
    "E-decode-failed": (
        "case",
        "the engine said that a decode failed, and may have printed a speed all the same",
        "it is the engine's fault: read its log",
    ),
    "E-disk-full": (
        "3",
        "the disk of the cache is full",
        "free some space, or set `MOE_CACHE_DIR`",
    ),
    "E-fleet-label": (
        "2",
        "a `--label` is not KEY=VALUE, has other characters or a reserved name",
        "the message shows a good one",
    ),
    "E-gate-shards": (
        "case",
        "what `junit merge` noted: a shard that is missing or twice",
        "run what is missing again",
    ),
    "E-gguf-truncated": (
        "case",
        "the model's file ends too early, and where",
        "copy or make the file again",
    ),
    "E-github-forbidden": (
        "2",
        "GitHub answers 403",
        "the token may not do that: in a workflow, `permissions: issues: write`",
    ),
    "E-github-no-issues": (
        "2",
        "GitHub answers 410",
        "issues are switched off in the repository's settings",
    ),
    "E-github-not-found": (
        "2",
        "GitHub answers 404",
        "no such repository, or the token may not see it",
    ),
    "E-github-refused": (
        "2",
        "GitHub answers with another error, in its words",
        "a label needs a token that may write",
    ),
    "E-gpu-error": (
        "case",
        "a call of the GPU's library failed, in the engine's words",
        "look at the driver's log and `fleet doctor`",
    ),
    "E-history-address": (
        "2",
        "the database's address can't be read",
        "`history.sqlite` or `postgresql://user@host/name`",
    ),
    "E-history-denied": (
        "2",
        "the database's user has no right to it",
        "grant it, or give another user",
    ),
    "E-history-disk": (
        "3",
        "the disk of the database is full or fails",
        "free space; nothing was changed",
    ),
    "E-history-locked": (
        "3",
        "another process writes to the database",
        "try again; nothing was changed",
    ),
    "E-history-read-only": (
        "2",
        "the database takes no changes",
        "make it writable; nothing was changed",
    ),
    "E-history-unwritable": (
        "2",
        "the database's file can't be opened or made",
        "check its folder and rights",
    ),
    "E-inconclusive": (
        "case",
        "undecided, where the policy makes an error of it",
        "give more minutes, or a quieter machine",
    ),
    "E-internal": (
        "case",
        "a fault of ours inside an engine's process, with its traceback in the log",
        "report it",
    ),
    "E-matrix-invalid": (
        "2",
        "a key of the matrix, what was expected and what was found",
        "mend the key that is named",
    ),
    "E-model-does-not-fit": (
        "case",
        "the bytes that a case needs are more than any node has, by device",
        "a smaller model or context, or another node",
    ),
    "E-model-refused": (
        "case",
        "the engine did not load the model, in its words",
        "another build, or another file",
    ),
    "E-no-node": (
        "case",
        "no node of the cluster can take the job, and what the nearest lacks",
        "add a node, or change the class",
    ),
    "E-no-outputs": (
        "2",
        "outputs can't be compared with these builds, and why",
        "leave `--check-outputs` out",
    ),
    "E-no-permission": (
        "3",
        "the cache may not be written by this user",
        "give write permission, or set `MOE_CACHE_DIR`",
    ),
    "E-node-exhausted": (
        "case",
        "the node has no files, processes or memory left, in the system's words",
        "raise its limits",
    ),
    "E-not-a-bundle": (
        "2",
        "the file is no bundle, and why",
        "`moe-harness bundle` makes one",
    ),
    "E-not-llama-perplexity": (
        "case",
        "the program beside the build is another one",
        "compile with the target llama-perplexity",
    ),
    "E-not-llama-server": (
        "case",
        "the program beside the build is another one",
        "compile with the target llama-server",
    ),
    "E-nothing-kept": (
        "case",
        "after warm-up and discards no repetition is left",
        "ask for more repetitions",
    ),
    "E-os": (
        "2, 3",
        "the system refused a call, in its words",
        "see the file that is named",
    ),
    "E-output-shape": (
        "case",
        "outputs of a prompt do not have the shape that was asked for",
        "it is the engine's fault: read its log",
    ),
    "E-perplexity-missing": (
        "case",
        "the build has no llama-perplexity",
        "compile with the target llama-perplexity",
    ),
    "E-profile-unreadable": (
        "2",
        "the prompt of a profile can't be read",
        "check its path and rights",
    ),
    "E-prompts-invalid": (
        "2",
        "a set of prompts has a wrong key or value",
        "mend the key that is named",
    ),
    "E-prompts-unreadable": (
        "2",
        "a set of prompts can't be read",
        "check its path and rights",
    ),
    "E-ray": (
        "case",
        "Ray lost the job, in its words",
        "the job is tried again elsewhere; look at the node",
    ),
    "E-ray-out-of-memory": (
        "case",
        "Ray's memory monitor ended the worker",
        "a node with more memory; `fleet up` sets the monitor",
    ),
    "E-reference-model": (
        "case",
        "the golden reference is of another model file",
        "`moe-harness reference update`",
    ),
    "E-reference-tokenizer": (
        "case",
        "the golden reference is of another tokenizer",
        "`moe-harness reference update`",
    ),
    "E-server-missing": (
        "case",
        "the build has no llama-server",
        "compile with the target llama-server, or leave profiles out",
    ),
    "E-spreads-unwritable": (
        "3",
        "what is known of the machine's scatter can't be written",
        "let `MOE_SPREADS` name a file that can be",
    ),
    "E-unknown-prompts": (
        "2",
        "no set of prompts has this name, and the nearest",
        "take one that is named",
    ),
    "E-unsupported": (
        "2, case",
        "the build does not know a flag or can't do the workload, and why",
        "leave it out, or take another build",
    ),
    "E-unsupported-flag": (
        "2",
        "the build of this arm does not know the flag, and why",
        "say it with the build that has it",
    ),
    "E-unsupported-workload": (
        "2",
        "the build can't time this workload, and why",
        "leave it out, or give a build that can",
    ),
    "E-crash": (
        "case",
        "the process ended by a signal or an exit code, with the last line it said",
        "see its log in the journal; a candidate that crashes fails its case",
    ),
    "E-fleet-start": (
        "3",
        "Ray did not start, in its words",
        "all it said is in the file that is named",
    ),
    "E-github-down": (
        "3",
        "GitHub could not be reached, or was too busy",
        "run it again later: what is done already is not done twice",
    ),
    "E-github-unclear": (
        "3",
        "no answer came, and what was asked may have been done",
        "run it again later: what is open already is found",
    ),
    "E-gguf-corrupt": (
        "2",
        "what stands in the file can't be true of a sound one, and where",
        "make or fetch it again",
    ),
    "E-logits-file": (
        "case",
        "the file of logits that llama-perplexity wrote can't be read, and why",
        "it is the engine's fault: read its log",
    ),
    "E-quantize-timeout": (
        "3",
        "the quantization took longer than its limit",
        "see that the machine is free",
    ),
    "E-quantize-crashed": (
        "3",
        "the quantization ended by a signal, with the last it said",
        "see that memory is free",
    ),
    "E-request": (
        "case",
        "an order to an engine's process has a key that is not as it should be",
        "it is a fault of ours: report it",
    ),
    "E-flag-forced": (
        "case",
        "the build said that it did not do the flag that is contrasted, in its words",
        "contrast something that it does",
    ),
    "E-not-on-gpu": (
        "case",
        "the node has a GPU and ngl asks for it; by its log the build put nothing on it, or fewer layers",
        "see that driver and build fit: the log says why; or ask for ngl = 0",
    ),
    "E-wrong-output": (
        "case",
        "speed is not judged: the outputs are broken, different, or hold NaN or inf",
        "see the output check of the same arms",
    ),
    "E-out-of-memory": (
        "case",
        "the engine, the system or the GPU had no memory left, in its words",
        "a smaller model, context or batch",
    ),
    "E-node-lost": (
        "case",
        "the node died or was cut off while it measured",
        "the job is tried again elsewhere",
    ),
    "E-harness-fault": (
        "case",
        "a fault of ours in a job, with its traceback in the log",
        "report it; other jobs go on",
    ),
    "E-no-input": (
        "2",
        "the file can't be read, in the system's words",
        "check its path and rights",
    ),
    "E-gate-lost-line": (
        "case",
        "a line of the journal could not be used, and why",
        "",
    ),
    "E-gate-policy-syntax": (
        "2",
        "the policy is no TOML, and the line where it stops being it",
        "texts need quotes; booleans are true and false",
    ),
    "E-unknown-build-commit": (
        "2",
        "a condition asks for a commit, and that of a build is not known",
        "say it: `[builds.NAME.source] commit`",
    ),
    "E-unknown-build-number": (
        "2",
        "a condition asks for a build number, and that of a build is not known",
        "say it: `[builds.NAME.source] number`",
    ),
    "E-baselines-unreadable": (
        "2, 3",
        "what baselines mean can't be read, and which key",
        "mend it or move it away",
    ),
    "E-baselines-busy": (
        "3",
        "another process changes the baselines",
        "run it again",
    ),
    "E-catalogue-unreadable": (
        "2, 3",
        "the catalogue of builds can't be read, and which key",
        "mend it or move it away",
    ),
    "E-catalogue-busy": (
        "3",
        "another process changes the catalogue of builds",
        "run it again",
    ),
    "E-tolerances-unreadable": (
        "2, 3",
        "the calibrated tolerances can't be read, and which key",
        "mend it or move it away",
    ),
    "E-tolerances-busy": (
        "3",
        "another process changes the calibrated tolerances",
        "run it again",
    ),
}
"""Slug: what it ends with, what it says, what to do, where the source has it in no sentence beside the slug."""

if __name__ == "__main__":
    sys.stdout.write(page())
