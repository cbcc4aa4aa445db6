"""``moe-harness builds``: the catalogue of builds, and builds made of recipes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.builds.baselines import SIGN, baselines, entry_of_word, keeping
from harness.builds.build_file import read_build_file
from harness.builds.catalogue import CatalogueEntry, add_build, catalogue_file, require_free, require_name
from harness.builds.declared import declared_build
from harness.builds.entry import BuildEntry
from harness.builds.making import Bench, log_of, made_build
from harness.builds.provenance import Provenance, commit_differs, provenance_of, short_commit
from harness.builds.recipe_file import read_recipe
from harness.builds.recognising import missing_text
from harness.cli.doing import Doing
from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.engines.embedded_engine import wheels
from harness.engines.registry import engine_for
from harness.execution.builds import check_build, local_build, missing_here, present_build, recognised, run_call
from harness.execution.inspecting import informed_engine, told_fork
from harness.execution.node import probe_node
from harness.models.hashing import file_sha256
from harness.reporting.clean import one_line
from harness.reporting.plain_words import clock_text

_FORMAT = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
_FORKS = click.Choice([str(fork) for fork in Fork])
_CMAKE_OPTION = re.compile(r"-D([A-Za-z]\w*)[:=]")
_FORKS_OWN = ("GGML_", "LLAMA_")
_NAME_WIDTH = 24


@click.group()
def builds() -> None:
    """Keep builds under names, make them of recipes, and say what they are."""


@builds.command()
@click.argument("name")
@click.option("--path", help="A llama-bench, or the folder that holds it.")
@click.option("--archive", help="A tar or zip archive: a file, file:// or https://; nodes fetch it by its digest.")
@click.option("--sha256", help="The archive's digest; of a file of this machine it is computed.")
@click.option("--wheel", help="An installed wheel.")
@click.option("--file", "file", type=click.Path(path_type=Path), help="A TOML file with the keys of [builds.X].")
@click.option(
    "--fork",
    type=_FORKS,
    help="Of archives, and of programs whose --help tells none.",
)
@click.option("--commit", help="The commit that it must be of; it is refused whenever it is of another.")
@click.option("--replace", is_flag=True, help="Take the place of another build of that name.")
@_FORMAT
def add(name: str, replace: bool, form: str, **said: Any) -> None:
    """Put a build into the catalogue as NAME, for matrices (catalogue = "NAME"), ab and baselines."""
    entry = _entry(name, **said)
    build = declared_build(name, entry)
    require_name(name)
    here = _checked_here(build)
    told = _told(here)
    _warn_of_missing(here)
    kept = add_build(name, entry, told, replace=replace)
    _show({"name": name, **_row(kept), "kept_by": _kept_by(name, entry)}, form)


@builds.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option("--name", help="Put what comes out into the catalogue under this name.")
@click.option("--replace", is_flag=True, help="Take the place of another build of that name.")
@click.option("--jobs", type=click.IntRange(min=1), help="What {jobs} stands for; without it the cores we have.")
@_FORMAT
def make(recipe: Path, name: str | None, replace: bool, jobs: int | None, form: str) -> None:
    """Make the build of RECIPE on this machine, once per source, recipe and platform, and print where it lies."""
    if name:
        require_name(name)
    fork, read = read_recipe(recipe)

    def accept(folder: Path) -> None:
        if name and not replace:
            require_free(name, str(folder))

    with Doing() as doing:
        bench = Bench(run_call, probe_node(), jobs or 0, doing.say, doing.tell)
        began = datetime.now(UTC)
        path = made_build(Build(read.name, fork, recipe=read), bench, again=True, accept=accept)
        made = _made_by_recipe(path)
        doing.say(
            f"made already at {made.made:%Y-%m-%d %H:%M} UTC"
            if made.made < began
            else f"made in {clock_text(made.seconds)}"
        )
    facts = {"path": str(path), "log": str(log_of(path.parent)), **made.model_dump(mode="json")}
    if commit_differs(made.commit, made.reported):
        click.echo(
            f"moe-harness: its programs report commit {made.reported}, the recipe's is {made.commit}: measurements"
            " will tell the former; see what puts it there, an option or the source itself",
            err=True,
        )
    if name:
        entry = BuildEntry.model_validate({"fork": str(fork), "path": str(path), "source": _source_of(made)})
        try:
            add_build(name, entry, _told(declared_build(name, entry)), replace=replace)
        except BadInput as taken:  # meanwhile, by somebody else
            hint = f"it is made and lies in {path}: moe-harness builds add NAME --path {path}"
            raise BadInput(taken.slug, taken.message, hint=hint, where=taken.where) from taken
        facts |= {"name": name, "kept_by": _kept_by(name, entry)}
    if form == "json":
        click.echo(json.dumps(facts, indent=2))
    else:
        click.echo(path)


@builds.command(name="list")
@_FORMAT
def list_(form: str) -> None:
    """List the builds of the catalogue."""
    branches = baselines()
    rows = [
        {
            "name": name,
            **_row(entry),
            "baseline_of": [
                branch
                for branch, changes in branches.items()
                if (changes[-1].build, changes[-1].entry.build) == (name, entry.build)
            ],
        }
        for name, entry in catalogue_file().read().builds.items()
    ]
    if form == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo(
            f"no builds in {catalogue_file().path}: moe-harness builds add NAME, or builds make RECIPE --name NAME"
        )
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "fork", "commit", "from", "baseline of", "added"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        commit = row["told"].get("commit", "")
        cells = [row["name"], row["fork"], short_commit(commit), row["origin"], ", ".join(row["baseline_of"])]
        table.add_row(*(Text(one_line(cell)) for cell in cells), f"{row['added'][:10]}")
    Console().print(table)


@builds.command()
@click.argument("build")
@click.option("--fork", type=_FORKS, help="Of a program whose --help tells none.")
@_FORMAT
def show(build: str, fork: str | None, form: str) -> None:
    """Say what BUILD is: a name of the catalogue, @BRANCH for a baseline, or the path of a llama-bench or its folder.

    Its programs are run with --help and --version; nothing is fetched or made.
    """
    if "/" in build or (not build.startswith(SIGN) and Path(build).exists()):
        found = Build(build, Fork(fork) if fork else _fork_of(build, build), path=str(Path(build).absolute()))
        facts: dict[str, Any] = {"name": build}
    else:
        name, entry = entry_of_word(build)
        found = declared_build(name, entry.build)
        facts = {"name": found.name, **_row(entry)}
        facts["build"] = entry.build.model_dump(mode="json", exclude_defaults=True)
    here = present_build(found)
    facts["here"] = "" if here else missing_here(found)
    if here is not None:
        check_build(here)
        facts["told"] = _told(here)
        facts["files"] = {str(path): file_sha256(path) for path in engine_for(here).locate()}
        facts["provenance"] = _provenance(here)
        facts["cmake"] = dict(recognised(here).options) if here.path else {}
    _show(facts, form)


# ---- entries ---------------------------------------------------------------------------------------------------------


def _entry(name: str, **said: Any) -> BuildEntry:
    """What the options say, as a matrix would.

    Raises:
        BadInput: ``E-build-invalid``, and what reading files raises.
    """
    origins = [origin for origin in ("path", "archive", "wheel", "file") if said[origin]]
    if len(origins) != 1:
        message = f"expected one of --path, --archive, --wheel and --file, found {' and '.join(origins) or 'none'}"
        raise BadInput("E-build-invalid", message, where=name)
    if said["file"]:
        table = read_build_file(said["file"])
    elif said["archive"]:
        table = {"fork": said["fork"], "variants": [_archive(said["archive"], said["sha256"])]}
    elif said["wheel"]:
        table = {"fork": said["fork"] or wheels().get(said["wheel"]), "wheel": said["wheel"]}
    else:
        path = str(Path(said["path"]).expanduser().absolute())
        table = {"fork": said["fork"] or str(_fork_of(name, path)), "path": path}
    if "catalogue" in table:
        message = "a build of the catalogue can't be another one's name"
        raise BadInput("E-build-invalid", message, hint="say what that one is", where=f"{name}: {said['file']}")
    if said["commit"]:
        table["source"] = {**table.get("source", {}), "commit": said["commit"]}
    try:
        return BuildEntry.model_validate({key: value for key, value in table.items() if value is not None})
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        hint = "say --fork" if said["archive"] and not said["fork"] else ""
        where = ": ".join(filter(None, [name, str(said["file"] or ""), place]))
        raise BadInput("E-build-invalid", message, hint=hint, where=where) from invalid


def _archive(word: str, sha256: str | None) -> dict[str, str]:
    if "://" in word:
        return {"url": word, **({"sha256": sha256} if sha256 else {})}
    path = Path(word).expanduser().absolute()
    if not path.is_file():
        raise BadInput("E-archive-missing", "there is no such archive", where=f"{path}")
    return {"url": path.as_uri(), "sha256": sha256 or file_sha256(path)}


def _fork_of(name: str, path: str) -> Fork:
    """The fork that a program tells.

    Raises:
        BadInput: ``E-fork-unknown``.
    """
    fork, text = told_fork(Build(name, Fork.LLAMA_CPP, path=str(Path(path).absolute())))
    if fork is None:
        message = f"its --help does not tell of which fork it is; it printed: {one_line(text)[-300:] or 'nothing'}"
        raise BadInput("E-fork-unknown", message, hint=f"say it: --fork {' or --fork '.join(Fork)}", where=name)
    return fork


def _checked_here(build: Build) -> Build:
    """The build as files of this machine where it has some for it, and not something else than is said."""
    try:
        here = local_build(build)
    except BadInput as bad:
        if bad.slug != "E-no-variant":
            raise
        return build  # for other machines
    informed_engine(here).locate()
    check_build(here)
    return here


def _warn_of_missing(build: Build) -> None:
    """Programs that can't be started here: no error, for other machines may have what they miss."""
    lacking = missing_text(recognised(build).missing) if build.path else ""
    if lacking:
        click.echo(f"moe-harness: {lacking}: without its libraries a program does not start here", err=True)


def _made_by_recipe(path: Path) -> Provenance:
    made = provenance_of(path)
    assert made is not None  # noqa: S101 - what is made has it, or it would not count as made
    return made


def _source_of(made: Provenance) -> dict[str, Any] | None:
    """What a made build is said to be from now on, so that it is refused once it is something else.

    Of one whose programs report another commit none is said: every measurement of it would be refused.
    """
    if not made.commit:
        return None
    patches = [{"file": patch.name, "sha256": patch.sha256} for patch in made.patches]
    commit = {} if commit_differs(made.commit, made.reported) else {"commit": made.commit}
    return {"repository": made.repository, **commit, "patches": patches}


def _kept_by(name: str, entry: BuildEntry) -> list[str]:
    """Branches that keep the build which had the name, told to who gave it to another one."""
    branches = list(keeping(name, entry))
    for branch in branches:
        click.echo(
            f"moe-harness: {SIGN}{branch} stays the build that was called {name} when it was set, until:"
            f" moe-harness baseline set {branch} {name}",
            err=True,
        )
    return branches


# ---- what is shown ---------------------------------------------------------------------------------------------------


def _told(build: Build) -> dict[str, str]:
    if build.path:
        return recognised(build).told()
    return {"wheel": build.wheel} if build.wheel else {}


def _provenance(build: Build) -> dict[str, Any] | None:
    made = provenance_of(Path(build.path)) if build.path else None
    return made.model_dump(mode="json") if made else None


def _row(entry: CatalogueEntry) -> dict[str, Any]:
    build = entry.build
    origins = [build.wheel, build.path, build.recipe, *(v.path or v.url or v.wheel for v in build.variants)]
    return {
        "fork": str(build.fork or ""),
        "origin": ", ".join(filter(None, origins)),
        "added": entry.added.isoformat(timespec="seconds"),
        "told": entry.told,
    }


def _show(facts: Mapping[str, Any], form: str) -> None:
    if form == "json":
        click.echo(json.dumps(facts, indent=2))
        return
    console = Console()
    shown = {key: value for key, value in facts.items() if key not in ("build", "cmake")}
    for name, value in _lines({**shown, **_cmake_lines(facts)}):
        line = f"{name:<{_NAME_WIDTH}} {one_line(value)}"  # programs said it: no markup, no escapes
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _cmake_lines(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The options of CMake that somebody chose, as far as a recipe tells, and the few that say most; how many more."""
    options = facts.get("cmake") or {}
    commands = (facts.get("provenance") or {}).get("commands") or []
    said = {found[1] for word in chain.from_iterable(commands) if (found := _CMAKE_OPTION.match(word))}
    chosen = {name: value for name, value in options.items() if name in said or not name.startswith(_FORKS_OWN)}
    rest = len(options) - len(chosen)
    more = {"more": f"{rest} of the forks' own options: --format json"} if rest else {}
    return {"cmake": {**chosen, **more}} if options else {}


def _lines(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as lines; what is empty says nothing."""
    lines = []
    for name, value in facts.items():
        if isinstance(value, Mapping):
            lines += _lines(value, "" if name == "told" else f"{name} ")
        elif value not in ("", None, [], False):
            shown = value if isinstance(value, str) else json.dumps(value)
            lines.append((f"{prefix}{Path(name).name}", shown))
    return lines
