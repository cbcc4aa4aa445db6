"""Source trees of recipes: checked out of git or copied, patched strictly, and identified by a hash of every file.

A repository is fetched into a mirror of the cache and each tree is a clone of its own: what the user has checked out is
neither used nor changed, and the sources still know their commit, which both forks compile in.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.builds.calls import Call, Ended, Run
from harness.builds.recipe_file import is_url
from harness.domain.build import Patch, Recipe
from harness.domain.errors import BadInput, Infrastructure
from harness.domain.suggest import did_you_mean
from harness.models.turns import turn

_FETCH_S = 3600.0
_LOCK_SECONDS = 3600.0
_GIT_S = 600.0
_HEAD = "refs/moe/HEAD"
_REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", "+refs/remotes/*:refs/remotes/*")
_PULL = re.compile(r"(?:refs/)?(pull/\d+/(?:head|merge))")
FULL_COMMIT = re.compile(r"[0-9a-f]{40}")
"""A revision that always means the same."""
_NEUTRAL = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
"""Line endings, whitespace and hooks of this user's settings would make another tree."""
_ALWAYS = {"GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
_FOR_THE_NETWORK = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSH_AUTH_SOCK")
_WITHOUT_HOOKS = ("git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")
_REDUCED_CONTEXT = "-C1"
"""What ``patch`` with its fuzz factor of two does: two of three lines of context need not agree."""
_SHOWN_LINES = 4
_FAILED_AT = re.compile(r"^error: patch failed: (.+:\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A source tree that is ready to be built.

    Attributes:
        folder: Where it lies.
        commit: The commit under it; empty for a plain folder.
        tree: Hash of every file as it is, patches applied.
        changed: Whether that is something else than the commit.
        offsets: What git said of patches whose lines had moved.
    """

    folder: Path
    commit: str
    tree: str
    changed: bool
    offsets: tuple[str, ...]


def source_tree(recipe: Recipe, folder: Path, cache: Path, run: Run, report: Callable[[str], None]) -> SourceTree:
    """Put a recipe's source tree into a folder.

    Args:
        recipe: The recipe.
        folder: Where to; it is not there yet.
        cache: Folder of the mirrors.
        run: Runs git.
        report: Told what is going on.

    Raises:
        BadInput: ``E-source-missing``, ``E-unknown-revision``, ``E-no-merge-base``, ``E-patch-fuzz``,
            ``E-patch-rejected``.
        Infrastructure: ``E-git-failed``, ``E-cache-busy``, faults of the disk.
    """
    return _Checkout(recipe, folder, cache, run, report).made()


class _Checkout:
    """Makes one source tree."""

    def __init__(self, recipe: Recipe, folder: Path, cache: Path, run: Run, report: Callable[[str], None]) -> None:
        self._recipe = recipe
        self._folder = folder
        self._cache = cache
        self._run = run
        self._report = report

    def made(self) -> SourceTree:
        repository = self._recipe.repository
        asks_for_revision = bool(self._recipe.revision or self._recipe.merge_base)
        if not is_url(repository) and not Path(repository).is_dir():
            message = f"there is no repository or folder {repository}"
            raise BadInput("E-source-missing", message, where=self._recipe.name)
        if is_url(repository) or self._is_repository():
            commit = self._cloned()
            if not is_url(repository) and not asks_for_revision:
                self._overlay()
        elif asks_for_revision:
            message = f"{repository} is no git repository, so it has no revisions"
            raise BadInput("E-source-missing", message, where=self._recipe.name)
        else:
            commit = ""
            shutil.copytree(repository, self._folder, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            self._git("init", "--quiet")
        offsets = tuple(offset for patch in self._recipe.patches for offset in self._patched(patch))
        tree = self._tree_hash()
        before = self._git("rev-parse", f"{commit}^{{tree}}").stdout.strip() if commit else ""
        return SourceTree(self._folder, commit, tree, tree != before, offsets)

    # ---- repositories ------------------------------------------------------------------------------------------------

    def _is_repository(self) -> bool:
        """Whether the folder itself is one with a commit, and not only below one."""
        path = self._recipe.repository
        told = self._call("-C", path, "rev-parse", "--show-cdup", "--is-bare-repository", "HEAD")
        return told.ok and told.stdout.split()[0] in ("false", "true")

    def _cloned(self) -> str:
        """Clone the wanted commit into the folder."""
        repository = self._recipe.repository
        name = hashlib.sha256(repository.encode()).hexdigest()[:16]
        mirror = self._cache / f"{name}.git"
        waiting = f"waiting for another process that fetches {repository}"
        with turn(mirror, lambda: self._report(waiting), _LOCK_SECONDS):
            if not (mirror / "HEAD").is_file():
                shutil.rmtree(mirror, ignore_errors=True)
                self._must("init", "--quiet", "--bare", str(mirror))
            commit = self._commit(mirror)
            self._git("init", "--quiet")
            self._share_objects(mirror)
        self._git("checkout", "--quiet", "--detach", commit)
        return commit

    def _share_objects(self, mirror: Path) -> None:
        """What ``git clone --shared`` does, also where the history is cut and for commits that no branch has."""
        own = self._folder / ".git"
        (own / "objects" / "info" / "alternates").write_text(f"{mirror / 'objects'}\n", encoding="utf-8")
        if (mirror / "shallow").exists():
            shutil.copy(mirror / "shallow", own / "shallow")

    def _commit(self, mirror: Path) -> str:
        """The commit to build; what is known by its full hash is not fetched again."""
        words = self._recipe.merge_base or (self._recipe.revision or "HEAD",)
        if not all(FULL_COMMIT.fullmatch(word) and self._resolved(mirror, word) for word in words):
            self._report(f"fetching {self._recipe.repository}")
            self._fetch(mirror, words)
        commits = [self._resolved(mirror, word) or self._unknown(mirror, word) for word in words]
        if len(commits) == 1:
            return commits[0]
        base = self._call(f"--git-dir={mirror}", "merge-base", *commits)
        if not base.ok:
            message = f"{' and '.join(words)} have no commit in common"
            cut = (mirror / "shallow").exists()
            hint = "the repository has no whole history: git fetch --unshallow" if cut else ""
            raise BadInput("E-no-merge-base", message, hint=hint, where=self._recipe.name)
        return base.stdout.split()[0]

    def _fetch(self, mirror: Path, words: tuple[str, ...]) -> None:
        """Branches, tags, what the repository has checked out, and pull requests that are asked for by name."""
        pulls = [f"+refs/{found.group(1)}:refs/{found.group(1)}" for word in words if (found := _PULL.fullmatch(word))]
        commits = [word for word in words if FULL_COMMIT.fullmatch(word)]
        quietly = ("fetch", "--quiet", "--force", "--no-tags", "--no-write-fetch-head")
        # CI checks out the last commit alone; without that word git leaves the refs of such a repository out.
        fetch = (f"--git-dir={mirror}", *quietly, "--prune", "--update-shallow")
        source = self._recipe.repository
        heads = [f"+HEAD:{_HEAD}"] if "HEAD" in words else []
        self._must(*fetch, source, *_REFS, *heads, *pulls, own_settings=True)
        for commit in commits:
            if not self._resolved(mirror, commit):  # one that no branch has; not every server gives it
                self._call(*fetch, source, commit, timeout_s=_FETCH_S, own_settings=True)

    def _resolved(self, mirror: Path, word: str) -> str:
        name = _HEAD if word == "HEAD" else word
        verify = ("rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}")
        told = self._call(f"--git-dir={mirror}", *verify)
        return told.stdout.strip() if told.ok else ""

    def _unknown(self, mirror: Path, word: str) -> str:
        listed = ("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", "refs/tags", "refs/remotes")
        known = self._call(f"--git-dir={mirror}", *listed).stdout.split()
        message = f"{self._recipe.repository} has no revision '{word}'"
        raise BadInput("E-unknown-revision", message, hint=did_you_mean(word, known), where=self._recipe.name)

    def _overlay(self) -> None:
        """Make the clone what the user's folder is now: changed, new and removed files, but not what git ignores."""
        origin = Path(self._recipe.repository)
        listed = self._must("-C", str(origin), "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
        for name in filter(None, listed.split("\0")):
            source, target = origin / name, self._folder / name
            if target.is_symlink() or target.is_file():
                target.unlink()
            if source.is_symlink() or source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)

    # ---- patches -----------------------------------------------------------------------------------------------------

    def _patched(self, patch: Patch) -> list[str]:
        """Apply a patch: every line of context must agree, wherever git finds it.

        Returns:
            What git said of hunks that it found at other lines.
        """
        file = self._folder.with_name(f"{self._folder.name}.patch")
        try:
            file.write_text(patch.text, encoding="utf-8", errors="surrogateescape", newline="")
            apply = ("-C", str(self._folder), "apply", "--verbose", "--whitespace=nowarn")
            done = self._call(*apply, str(file))
            if done.ok:
                return [f"{patch.name}: {line.strip()}" for line in done.stderr.splitlines() if "offset" in line]
            fuzzy = self._call(*apply, "--check", _REDUCED_CONTEXT, str(file)).ok
        finally:
            file.unlink(missing_ok=True)
        where = f"{self._recipe.name}: {patch.name}"
        if fuzzy:
            places = ", ".join(_FAILED_AT.findall(done.stderr)[:_SHOWN_LINES])
            message = f"the patch applies only with fuzz: lines around its changes are not what it says, at {places}"
            raise BadInput("E-patch-fuzz", message, hint="make it anew on the revision that is built", where=where)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ") and not line.endswith(":")]
        said = "; ".join(line.removeprefix("error: ") for line in errors[:_SHOWN_LINES]) or done.how
        hint = "make it anew on the revision that is built; patches are applied in the recipe's order"
        raise BadInput("E-patch-rejected", f"the patch does not apply: {said}", hint=hint, where=where)

    def _tree_hash(self) -> str:
        """Git's hash of all files, whatever its ignore files say; through an index of its own."""
        index = self._folder.with_name(f"{self._folder.name}.index")
        environment = {"GIT_INDEX_FILE": str(index)}
        try:
            self._must("-C", str(self._folder), "add", "--all", "--force", ".", environment=environment)
            written = self._must("-C", str(self._folder), "write-tree", environment=environment)
        finally:
            index.unlink(missing_ok=True)
        return written.stdout.strip()

    # ---- git ---------------------------------------------------------------------------------------------------------

    def _git(self, *arguments: str) -> Ended:
        """Git in the folder."""
        if arguments[0] == "init":
            self._folder.mkdir(parents=True, exist_ok=True)
        return self._must("-C", str(self._folder), *arguments)

    def _must(self, *arguments: str, environment: dict[str, str] | None = None, own_settings: bool = False) -> Ended:
        """Git that has to end well.

        Raises:
            Infrastructure: ``E-git-failed`` with what it said.
        """
        timeout_s = _FETCH_S if own_settings else _GIT_S
        done = self._call(*arguments, environment=environment, timeout_s=timeout_s, own_settings=own_settings)
        if not done.ok:
            verb = next((word for word in arguments if word.isalpha()), "git")
            said = " ".join(done.stderr.split()[-60:]) or "nothing"
            message = f"git {verb} ended with {done.how} and said: {said}"
            raise Infrastructure("E-git-failed", message, where=f"{self._recipe.name}: {self._recipe.repository}")
        return done

    def _call(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        timeout_s: float = _GIT_S,
        own_settings: bool = False,
    ) -> Ended:
        """Git without this user's settings; ``own_settings`` keeps them, where proxies and keys are needed."""
        mine = {name: os.environ[name] for name in _FOR_THE_NETWORK if name in os.environ}
        settings = {**_ALWAYS, **(mine if own_settings else _NEUTRAL), **(environment or {})}
        return self._run(Call((*_WITHOUT_HOOKS, *arguments), timeout_s, environment=settings))
