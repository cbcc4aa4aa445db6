"""Builds made of recipes: once per source, recipe and platform, in the node's cache.

A build is compiled in the place where it stays, since programs remember where their libraries lie; what the recipe does
not keep is removed at the end. ``made.json`` is written last: what has it is whole, anything else is begun anew.
"""

from __future__ import annotations

import json
import os
import platform as machine
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.builds.calls import Call, Run
from harness.builds.cmake_cache import CACHE_FILE, compiled_in
from harness.builds.provenance import FILE, AppliedPatch, Provenance, provenance_of
from harness.builds.recipe_file import filled, is_url
from harness.builds.recognising import missing_libraries, missing_text
from harness.builds.sources import FULL_COMMIT, SourceTree, source_tree
from harness.domain.build import Build, Fork, Recipe
from harness.domain.canonical import digest, fields_of
from harness.domain.errors import BadInput
from harness.domain.halting import ShouldStop, never
from harness.domain.node import NodeFacts
from harness.engines.bench import BenchEngine
from harness.models.storage import cache_root, disk_errors, make_folder, read_json, write_json
from harness.models.turns import turn

LOCK_SECONDS = 6 * 3600.0
RESOLVED_HOURS = 12.0
"""How long a node takes a moving revision for what it was: jobs of one run must not build different commits."""
FAILED_HOURS = 1.0
"""How long a node remembers that a recipe failed: every job of a run would try it again."""
_TAIL_LINES = 12
_TAIL_CHARACTERS = 1500


@dataclass(frozen=True)
class Bench:
    """What recipes are made with.

    Attributes:
        run: Runs the commands.
        node: Facts of this node.
        jobs: What ``{jobs}`` stands for.
        report: Told what is begun.
        progress: Told each line that the commands print.
        cache: Root of the cache; `cache_root()` when None.
        should_stop: Ends the waiting for another process; of commands, ``run`` sees to it.
    """

    run: Run
    node: NodeFacts
    jobs: int = 0
    report: Callable[[str], None] = lambda _: None
    progress: Callable[[str], None] = lambda _: None
    cache: Path | None = None
    should_stop: ShouldStop = never

    @property
    def root(self) -> Path:
        """Where recipes have their things."""
        return (self.cache or cache_root()) / "builds"

    @property
    def platform(self) -> str:
        """What code compiled here depends on, as a word."""
        node = self.node
        gpus = sorted({f"{gpu.vendor}-{gpu.arch or gpu.name}" for gpu in node.gpus})
        libc = "-".join(filter(None, machine.libc_ver()))
        isa = digest(list(node.isa))
        return "+".join(filter(None, [node.os, node.machine, libc, f"isa-{isa[:8]}", *gpus])).replace(" ", "-")


def made_build(
    build: Build, bench: Bench, *, again: bool = False, accept: Callable[[Path], None] = lambda _: None
) -> Path:
    """The build folder of a recipe, made first where the cache has none.

    Args:
        build: A build with a recipe.
        bench: What it is made with.
        again: Look for newer commits, and try what failed a short while ago.
        accept: Told where the build will lie once its source is known, before it is compiled; may refuse by an error.

    Raises:
        BadInput: ``E-build-failed`` with the end of the log and its place; what `source_tree` raises.
        Infrastructure: ``E-git-failed``, ``E-cache-busy``, faults of the disk.
    """
    recipe = _recipe(build)
    known = None if again else known_place(recipe, bench)
    if known is not None:
        if provenance_of(known) is not None:
            return known / "build"
        _raise_recent_failure(known)
    return _made(recipe, build.fork, bench, accept)


def known_place(recipe: Recipe, bench: Bench) -> Path | None:
    """Where a recipe was made last on this node; ``None`` where its source may have changed since.

    Args:
        recipe: The recipe.
        bench: Says cache and platform.
    """
    memory = read_json(_memory(recipe, bench)) or {}
    words = recipe.merge_base or ((recipe.revision,) if recipe.revision else ())
    fixed = bool(words) and all(map(FULL_COMMIT.fullmatch, words))
    moving = bool(words) or is_url(recipe.repository)
    hours = (time.time() - float(memory.get("when", 0.0))) / 3600
    if not memory or not (fixed or (moving and 0 <= hours < RESOLVED_HOURS)):
        return None
    return bench.root / "made" / str(memory.get("place", ""))


def _made(recipe: Recipe, fork: Fork, bench: Bench, accept: Callable[[Path], None]) -> Path:
    """Check the source out, and compile it where nobody has compiled the same."""
    checkout = make_folder(bench.root / "work") / f"{recipe.name}-{secrets.token_hex(6)}"
    try:
        with disk_errors(checkout):
            source = source_tree(recipe, checkout, bench.root / "repositories", bench.run, bench.report)
        key = digest([source.tree, source.commit, recipe.identity, bench.platform])
        place = bench.root / "made" / f"{recipe.name}-{key}"
        accept(place / "build")
        with disk_errors(place):
            write_json(_with_folder(_memory(recipe, bench)), {"place": place.name, "when": time.time()})
        waiting = f"waiting for another process that makes {place.name}"
        with turn(place, lambda: bench.report(waiting), LOCK_SECONDS, bench.should_stop):
            if not (place / FILE).is_file():
                _Making(recipe, fork, bench, source, place).run()
    finally:
        shutil.rmtree(checkout, ignore_errors=True)
    return place / "build"


class _Making:
    """Makes one build, holding its lock."""

    def __init__(self, recipe: Recipe, fork: Fork, bench: Bench, source: SourceTree, place: Path) -> None:
        self._recipe = recipe
        self._fork = fork
        self._bench = bench
        self._source = source
        self._place = place
        self._log = log_of(place)
        self._values = {
            "source": str(place / "source"),
            "build": str(place / "build"),
            "jobs": str(bench.jobs or len(os.sched_getaffinity(0))),
        }

    def run(self) -> None:
        begun = time.monotonic()
        shutil.rmtree(self._place, ignore_errors=True)
        _failure_note(self._place).unlink(missing_ok=True)
        finished = False
        try:
            with disk_errors(self._place):
                self._prepare()
                for vector in (*self._recipe.configure, *self._recipe.build):
                    self._step(filled(vector, self._values))
                told = compiled_in(self._place / "build")
                places = _libraries_in(self._place / "build")
                self._keep_outputs()
                self._require_whole(places)
                shutil.rmtree(self._place / "source")
                write_json(self._place / FILE, self._provenance(told, time.monotonic() - begun))
            finished = True
        except BadInput as failed:
            write_json(_failure_note(self._place), {"when": time.time(), "error": failed.as_json()})
            raise
        except BaseException:
            self._log.unlink(missing_ok=True)
            raise
        finally:
            if not finished:
                self._bench.report("removing what was begun")
                shutil.rmtree(self._place, ignore_errors=True)

    def _prepare(self) -> None:
        (self._place / "build").mkdir(parents=True)
        self._source.folder.replace(self._place / "source")
        self._log.parent.mkdir(parents=True, exist_ok=True)
        head = [f"recipe {self._recipe.name}", f"commit {self._source.commit or 'none'}", f"tree {self._source.tree}"]
        self._log.write_text("\n".join([*head, *self._source.offsets, ""]), encoding="utf-8")

    def _step(self, argv: tuple[str, ...]) -> None:
        """Run one command; what it says goes to the log, its progress while it runs, its complaints after it.

        Raises:
            BadInput: ``E-build-failed``.
        """
        self._bench.report(" ".join(argv))
        folder, variables = self._place / "build", dict(self._recipe.environment)
        self._append(f"$ {' '.join(argv)}\n")
        try:
            ended = self._bench.run(Call(argv, self._recipe.timeout_s, folder, variables, self._printed))
        except BadInput as refused:
            self._append(f"{refused}\n")
            raise self._failed(f"{argv[0]} can't be run: {refused.message}") from refused
        if ended.stderr:
            self._append(ended.stderr)
        if not ended.ok:
            raise self._failed(f"{argv[0]} ended with {ended.how}; {_tail(ended.stdout, ended.stderr)}")

    def _keep_outputs(self) -> None:
        """Remove all of the build folder that the recipe does not keep."""
        folder = self._place / "build"
        kept = {folder / CACHE_FILE}
        for pattern in self._recipe.outputs:
            found = list(folder.glob(pattern))
            if not found:
                raise self._failed(f"nothing in the build folder matches the output '{pattern}'")
            for each in found:
                kept |= {each, *(each.rglob("*") if each.is_dir() and not each.is_symlink() else ())}
        needed = kept | {parent for each in kept for parent in each.parents}
        for each in sorted(folder.rglob("*"), reverse=True):
            if each not in needed:
                each.rmdir() if each.is_dir() and not each.is_symlink() else each.unlink()

    def _require_whole(self, places: Mapping[str, str]) -> None:
        """A build without its program, or with a program that misses a library, is none.

        Args:
            places: Where in the build folder libraries lay, by name, before all but the outputs was removed.

        Raises:
            BadInput: ``E-build-failed``.
        """
        build = Build(self._recipe.name, self._fork, path=str(self._place / "build"))
        try:
            program = Path(BenchEngine(build).locate()[0])
        except BadInput as absent:
            raise self._failed(f"the recipe's outputs have no program: {absent.message}") from absent
        missing = missing_libraries(program, self._bench.run)
        if missing:
            names = dict.fromkeys(name for of_program in missing.values() for name in of_program)
            todo = "; ".join(_whence(name, places.get(name, "")) for name in names)
            raise self._failed(f"{missing_text(missing)}: {todo}")

    def _provenance(self, told: dict[str, str], seconds: float) -> dict[str, object]:
        recipe, source = self._recipe, self._source
        found = Provenance(
            recipe=recipe.name,
            fork=self._fork,
            repository=recipe.repository,
            wanted=recipe.merge_base or ((recipe.revision,) if recipe.revision else ()),
            commit=source.commit,
            changed=source.changed,
            tree=source.tree,
            patches=tuple(AppliedPatch(name=patch.name, sha256=patch.sha256) for patch in recipe.patches),
            offsets=source.offsets,
            commands=(*recipe.configure, *recipe.build),
            platform=self._bench.platform,
            reported=told.get("commit", ""),
            number=told.get("number", ""),
            compiler=told.get("compiler", ""),
            made=datetime.now(UTC),
            seconds=round(seconds, 1),
        )
        content: dict[str, object] = json.loads(found.model_dump_json())
        return content

    def _printed(self, line: str) -> None:
        self._append(f"{line}\n")
        self._bench.progress(f"{self._recipe.name}: {line}")

    def _append(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(text if text.endswith("\n") else f"{text}\n")

    def _failed(self, message: str) -> BadInput:
        hint = f"the whole log is {self._log}"
        return BadInput("E-build-failed", f"the recipe '{self._recipe.name}' failed: {message}", hint=hint)


def _libraries_in(folder: Path) -> dict[str, str]:
    """Where shared libraries lie, by name: paths seen from the folder; the one nearest to it of several."""
    found = sorted(folder.rglob("*.so*"), key=lambda file: (len(file.parts), file), reverse=True)
    return {file.name: str(file.relative_to(folder)) for file in found if file.is_file()}


def _whence(name: str, place: str) -> str:
    """Where a missing library is to come from."""
    if not place:
        return f"{name} is not in the build folder: build its target too, or install it"
    folder, pattern = str(Path(place).parent), "*.so" if name.endswith(".so") else "*.so*"
    kept = pattern if folder == "." else f"{folder}/{pattern}"
    return f"the build made {name} as {place}: add '{kept}' to outputs"


def log_of(place: Path) -> Path:
    """Where the log of a build lies, whether it was made or failed.

    Args:
        place: The build's place in the cache: the folder that has ``made.json``.
    """
    return place.parent.parent / "logs" / f"{place.name}.log"


def _raise_recent_failure(place: Path) -> None:
    """Raise what a recipe failed with a short while ago, if it did."""
    note = read_json(_failure_note(place)) or {}
    error = note.get("error")
    if isinstance(error, dict) and 0 <= (time.time() - float(note.get("when", 0.0))) / 3600 < FAILED_HOURS:
        raise BadInput(error["slug"], error["message"], hint=error["hint"], where=error["where"])


def _failure_note(place: Path) -> Path:
    return place.with_name(f"{place.name}.failed.json")


def _memory(recipe: Recipe, bench: Bench) -> Path:
    """Where it is remembered what a recipe came to on this platform."""
    asked = {**fields_of(recipe), "patches": [patch.sha256 for patch in recipe.patches], "timeout_s": 0}
    return bench.root / "resolved" / f"{digest([asked, bench.platform])}.json"


def _with_folder(path: Path) -> Path:
    make_folder(path.parent)
    return path


def _recipe(build: Build) -> Recipe:
    assert build.recipe is not None  # noqa: S101 - who asks has looked
    return build.recipe


def _tail(stdout: str, stderr: str) -> str:
    lines = [line for line in (stdout + "\n" + stderr).splitlines() if line.strip()]
    return "\n".join(["its last lines:", *lines[-_TAIL_LINES:]])[-_TAIL_CHARACTERS:] if lines else "it printed nothing"
