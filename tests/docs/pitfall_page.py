"""Write the pitfall reference from their files: ``python tests/docs/pitfall_page.py > docs/reference/pitfalls.md``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from harness.pitfalls.catalogue import packaged_pitfalls
from harness.pitfalls.entry import Builds, Contrast, Found, Pitfall, Report, When
from harness.pitfalls.wording import described_conditions

_HEAD = """# Pitfalls

Documented traps of both forks, as data: `matrices/pitfalls/ID.toml`. A trap is a statement about a *contrast under a
condition*, never about a flag alone, and it has a range of builds: what was true of a build of last year can be *gone*.

* A matrix asks for one with `pitfall = "ID"` ([how](matrix.md#pitfall-a-documented-trap)): it is *present*, *gone* (the
  advice is out of date for this build), *not applicable* or *inconclusive*.
* `moe-harness run pitfalls/ID -m pitfall` asks for one on stand-ins, `moe-harness run pitfalls -m pitfall` for all.
* `moe-harness lint "llama-server ..."` warns of those that a command line has, and with `--verify` asks for them
  ([is my flag a trap?](../how-to/lint.md)).

Effects: *slower*; *inert*, the flag does nothing; *memory*, it needs more; *wrong-output*; *other-output*, not wrong,
but not equal; *fails*, the process ends; *misleading*, what is measured is something else. Types come in families: `k`
(`Q4_K`), `iq` (`IQ4_XS`), `ik` (`IQ4_K`, `IQ4_KS`), `legacy` (`Q8_0`), `repacked` (`Q4_K_R4`), `float`.

"""
_INDEX = """| pitfall | effect | builds | a run can ask for it |
|---|---|---|---|
"""


_OWN = """
## A file of your own

A matrix names it by its path, `pitfall = "mine.toml"`; its `id` is the file's name. Keys that are not listed are
errors. A flag's value is tested as it is written (`1`, `"q5_1"`), by a list of which one has to match, by `"*"`
(whatever is said), by a comparison (`">0"`), by `"!=x"` (anything else), or by a pattern that it holds
(`"~(^|;)ffn=CPU"`). The files in `matrices/pitfalls/` are examples.
"""
_TABLES = {
    "mine.toml": Pitfall,
    "[[builds]]": Builds,
    "[[found]]": Found,
    "[when]": When,
    "[contrast]": Contrast,
    "[[sources]]": Report,
}


def page() -> str:
    """The whole page."""
    entries = packaged_pitfalls().values()
    sections = "".join(f"\n{''.join(_section(entry))}" for entry in entries)
    return _HEAD + _INDEX + "".join(map(_row, entries)) + sections + _OWN + "".join(map(_keys, _TABLES))


def _row(pitfall: Pitfall) -> str:
    forks = " and ".join(pitfall.forks)
    asked = " and ".join(pitfall.contrast.workloads) if pitfall.contrast else "no"
    asked = "`lint --verify`" if pitfall.contrast and pitfall.unasked else asked
    return f"| [{pitfall.title}](#{pitfall.id}) | {pitfall.effect} | {forks} | {asked} |\n"


def _section(pitfall: Pitfall) -> Iterator[str]:
    yield f"## {pitfall.id}\n\n**{pitfall.title[0].upper()}{pitfall.title[1:]}** ({pitfall.effect}).\n{pitfall.why}\n\n"
    yield f"*Instead:* {pitfall.instead}.\n\n"
    yield "".join(f"* Builds: {builds.described}.\n" for builds in pitfall.builds)
    yield "".join(f"* Build {each.number} of {each.fork}: {each.verdict}. {each.said}.\n" for each in pitfall.found)
    yield "".join(f"* Only {condition}.\n" for condition in described_conditions(pitfall.when))
    traps = " or ".join(" with ".join(f"`{name}` {test}" for name, test in tests.items()) for tests in pitfall.trap)
    yield f"* On a command line: {traps or 'nothing shows it'}.\n"
    if pitfall.unasked:
        yield f"* No {'matrix' if pitfall.contrast else 'run'} asks for it: {pitfall.unasked}.\n"
    if pitfall.contrast:
        yield f"* {_contrast(pitfall.contrast)}.\n"
    for source in pitfall.sources:
        name = f"[{source.name}]({source.url})" if source.url else source.name
        yield f"* {name}: {source.said}.\n"


def _contrast(contrast: Contrast) -> str:
    sides = " v ".join(
        ", ".join(f"`{name} = {value}`" for name, value in contrast.side(which).items()) for which in ("safe", "trap")
    )
    setting = ", ".join(f"`{name} = {value}`" for name, value in contrast.setting.items())
    if contrast.ratio is None:
        return f"`lint --verify` compares {sides}: present where outputs are equal to the bit, and neither is faster"
    low, high = contrast.ratio
    return (
        f"A run compares {sides}{f', with {setting} where the matrix does not say them' if setting else ''},"
        f" on {' and '.join(contrast.workloads)}: {low:g} to {high:g} of the speed as reported"
    )


def _keys(name: str) -> str:
    """The keys of a table, by what its class says of them."""
    table = _TABLES[name]
    told = dict(re.findall(r"^ {8}(\w+): (.+(?:\n {12}.+)*)", table.__doc__ or "", re.MULTILINE))
    rows = [
        f"| `{key}` | {'yes' if field.is_required() else ''} | {' '.join(told[key].replace('``', '`').split())} |\n"
        for key, field in table.model_fields.items()
    ]
    return f"\n| key of `{name}` | required | meaning |\n|---|---|---|\n{''.join(rows)}"


if __name__ == "__main__":
    sys.stdout.write(page())
