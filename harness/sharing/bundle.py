"""A bundle: one archive with what another person needs to run some cases again, the same bytes for the same journal."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import __version__
from harness.domain.arm import Arm
from harness.domain.errors import BadInput, Infrastructure
from harness.domain.model import Model
from harness.domain.verdict import Verdict
from harness.models.card import load_card, packaged_cards
from harness.reporting.journal import JOURNAL_NAME
from harness.reporting.markdown import code
from harness.reporting.state import JournalState
from harness.sharing.excerpt import excerpt
from harness.sharing.matrix_text import matrix_text
from harness.sharing.scrubbing import Scrubber, refuse_secrets

FORMAT = "moe-harness-bundle"
SCHEMA = 1
MANIFEST = "bundle.json"
README = "README.md"
MATRIX = "matrix.toml"
CARDS, MODELS, BUILDS = "cards", "models", "builds"
_MODE = 0o644
_PROGRAM_MODE = 0o755


@dataclass(frozen=True, slots=True)
class Extras:
    """What is packed beside the figures, because somebody asked for it.

    Attributes:
        weights: Model files that the matrix names by path.
        builds: Folders of builds that it names by path.
    """

    weights: bool = False
    builds: bool = False


@dataclass(frozen=True, slots=True)
class Packed:
    """What was packed.

    Attributes:
        path: The archive.
        files: Its files' names.
        needed: What whoever runs it has to bring along.
    """

    path: Path
    files: tuple[str, ...]
    needed: tuple[str, ...]


def pack(state: JournalState, cases: Sequence[str], out: Path, extras: Extras | None = None) -> Packed:
    """Pack cases.

    Args:
        state: The journal.
        cases: Ids of planned cases.
        out: The archive to write, ``.tar.gz``.
        extras: What is packed beside the figures.

    Raises:
        BadInput: ``E-bundle-secret``; ``E-bundle-missing``: what was asked for is not here any more.
        Infrastructure: ``E-bundle-write``.
    """
    wanted = extras or Extras()
    refuse_secrets(state, cases)
    arms = list({arm.identity: arm for case in cases for arm in state.planned[case].case.arms}.values())
    texts: dict[str, bytes] = {JOURNAL_NAME: excerpt(state, cases), **_cards(arms)}
    files = dict(_files(arms, wanted))
    needed = tuple(_needed(arms, state, files))
    if matrix := _matrix(state, cases):
        texts[MATRIX] = matrix.encode()
    texts[README] = "\n".join(_readme(state, cases, needed, has_matrix=MATRIX in texts)).encode()
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in texts.items()}
    digests |= {name: _digest(path) for name, path in files.items()}
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "harness": __version__,
        "versions": state.run.versions if state.run else {},
        "matrix": state.name,
        "cases": list(cases),
        "content_keys": {case: keys for case, keys in state.content_keys().items() if case in cases},
        "needed": list(needed),
        "files": dict(sorted(digests.items())),
    }
    texts[MANIFEST] = (json.dumps(manifest, indent=2, sort_keys=True) + "\n").encode()
    try:
        _write(out, texts, files)
    except OSError as error:
        message = f"the bundle could not be written: {error.strerror or error}"
        raise Infrastructure("E-bundle-write", message, where=f"{out}") from error
    return Packed(out, tuple(sorted([*texts, *files])), needed)


def card_file(name: str) -> str:
    """Where the card of a model lies in a bundle."""
    return f"{CARDS}/{name}.json"


def model_digest(state: JournalState, model: Model) -> str:
    """The digest of a model's first file: as declared, or as an engine that read it told; empty where nobody did."""
    if model.sha256:
        return model.sha256[0]
    for last in state.jobs.values():
        arms = last.job.arms if last.job else ()
        for run in last.runs:
            told = run.engine.get("model_sha256", "")
            if told and run.step.arm < len(arms) and arms[run.step.arm].model.name == model.name:
                return told
    return ""


# ---- what is packed --------------------------------------------------------------------------------------------------


def _cards(arms: Sequence[Arm]) -> dict[str, bytes]:
    """Cards that do not come with the package, by the models that need them."""
    packaged = set(packaged_cards())
    found = {}
    for model in {arm.model.name: arm.model for arm in arms}.values():
        if model.card and model.card not in packaged:
            load_card(model.card)  # refuses what is no card
            found[card_file(model.name)] = Path(model.card).read_bytes()
    return found


def _matrix(state: JournalState, cases: Sequence[str]) -> str:
    """Of the cases as a matrix; empty where they can only be run from the journal."""
    designs = [last.job.design for case in cases if (last := state.jobs.get(state.planned[case].job)) and last.job]
    if not designs:
        return ""
    return matrix_text(f"{state.name}-bundle", [state.planned[case].case for case in cases], designs[0], state.policy)


def _files(arms: Sequence[Arm], extras: Extras) -> Iterator[tuple[str, Path]]:
    if extras.weights:
        for model in {arm.model.name: arm.model for arm in arms}.values():
            if model.path:
                yield f"{MODELS}/{model.name}/{model.file_name}", _here(Path(model.path), f"models.{model.name}")
    if extras.builds:
        for build in {arm.build.name: arm.build for arm in arms}.values():
            if build.path:
                place = _here(Path(build.path), f"builds.{build.name}")
                folder = place if place.is_dir() else place.parent
                for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                    yield f"{BUILDS}/{build.name}/{file.relative_to(folder).as_posix()}", file


def _here(path: Path, where: str) -> Path:
    if not path.exists():
        message = f"{path} is not there any more and can't be packed"
        raise BadInput("E-bundle-missing", message, hint="leave it out, or put it back", where=where)
    return path


def _needed(arms: Sequence[Arm], state: JournalState, files: Mapping[str, Path]) -> Iterator[str]:
    """What is not in the bundle and does not come by itself, in words with the option that takes it."""
    scrubber = Scrubber(last.host for last in state.jobs.values())
    for build in {arm.build.name: arm.build for arm in arms}.values():
        commit = f", commit {build.source.commit}" if build.source and build.source.commit else ""
        if build.path and not any(name.startswith(f"{BUILDS}/{build.name}/") for name in files):
            yield f"build {build.name} ({build.fork}{commit}): --build {build.name}=PATH"
        elif build.recipe and build.recipe.patches:
            patches = ", ".join(f"{patch.name} (sha256 {patch.sha256[:16]})" for patch in build.recipe.patches)
            yield f"build {build.name} ({build.fork}), made with {patches}: --build {build.name}=PATH"
        elif build.wheel:
            told = state.run.versions.get(build.wheel, "") if state.run else ""
            yield f"build {build.name}: the wheel {build.wheel}{f' {told}' if told else ''}, which pip installs"
    for model in {arm.model.name: arm.model for arm in arms}.values():
        if model.path and f"{MODELS}/{model.name}/{model.file_name}" not in files:
            digest = model_digest(state, model)
            told = scrubber.text(model.file_name) + (f", sha256 {digest}" if digest else "")
            yield f"model {model.name} ({told}): --model {model.name}=PATH"


def _readme(state: JournalState, cases: Sequence[str], needed: Sequence[str], *, has_matrix: bool) -> Iterator[str]:
    versions = state.run.versions if state.run else {}
    verdicts = {verdict.case: verdict for verdict in state.final_verdicts()}
    yield f"# {len(cases)} case{'s' * (len(cases) > 1)} of {code(state.name)}"
    yield ""
    yield f"Made by moe-harness {__version__}; measured by {code(versions.get('moe-harness', 'an unknown version'))}."
    yield "Run them again here, and set the results beside the original ones:"
    yield ""
    options = "".join(f" {line.rpartition(': ')[2]}" for line in needed if ": --" in line)
    yield from ("```console", f"$ moe-harness replay BUNDLE.tar.gz{options} --reports mine", "")
    yield from ("$ moe-harness compare BUNDLE.tar.gz mine", "```", "")
    if needed:
        yield "It takes, beside this bundle:"
        yield ""
        yield from (f"- {code(line)}" for line in needed)
        yield ""
    if has_matrix:
        yield f"{code(MATRIX)} asks the same, for whoever wants to change it."
        yield ""
    yield "| case | what was found |"
    yield "|---|---|"
    yield from (f"| {code(case)} | {code(_found(verdicts[case]))} |" for case in cases)
    yield ""


def _found(verdict: Verdict) -> str:
    """Without the reason's words of one machine: they are in the journal."""
    word = verdict.throughput or verdict.equivalence or ""
    estimate = verdict.estimate
    figure = f" {estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}] {estimate.unit}" if estimate else ""
    return f"{verdict.status} {word}{figure}".strip()


# ---- the archive -----------------------------------------------------------------------------------------------------


def _write(out: Path, texts: Mapping[str, bytes], files: Mapping[str, Path]) -> None:
    """Sorted names, no times, no owners: the same content gives the same bytes."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.part")
    part.unlink(missing_ok=True)  # a link that lies there is not written through
    try:
        with (
            part.open("xb") as raw,
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name in sorted([*texts, *files]):
                if name in texts:
                    tar.addfile(_member(name, len(texts[name]), _MODE), io.BytesIO(texts[name]))
                    continue
                with files[name].open("rb") as file:
                    mode = _PROGRAM_MODE if files[name].stat().st_mode & 0o100 else _MODE
                    tar.addfile(_member(name, files[name].stat().st_size, mode), file)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


def _member(name: str, size: int, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, mode, 0
    return member


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_manifest(found: Any) -> bool:
    """Whether a JSON value is the manifest of a bundle."""
    return isinstance(found, dict) and found.get("format") == FORMAT
