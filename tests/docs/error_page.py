"""Write the reference of errors from the code: ``python tests/docs/error_page.py > docs/reference/errors.md``.

A slug's text is what stands beside it in the source: the message of the call that it is given to, its hint, and for
constants and tables its entry in ``error_texts.toml``. What is filled in while it runs is shown as ``…``.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "harness"
BY_HAND = Path(__file__).with_name("error_texts.toml")
"""Texts of slugs beside which the source has no sentence."""
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
    for slug, told in tomllib.loads(BY_HAND.read_text(encoding="utf-8")).items():
        found[slug] = Told({told["ends"]}, [told["says"]], [told["todo"]] if "todo" in told else [])
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

if __name__ == "__main__":
    sys.stdout.write(page())
