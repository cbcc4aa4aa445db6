"""A git repository of the stand-in project, patches of it, recipes for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

PROJECT = Path(__file__).parent / "project"
ONLY_WHAT_IS_MEASURED = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}

FASTER = """--- a/llama.c
+++ b/llama.c
@@ -3,7 +3,7 @@
 int tokens_per_second(void) {
     /* first line of context */
     /* second line of context */
-    int speed = 100;
+    int speed = 400;
     /* third line of context */
     /* fourth line of context */
     return speed;
"""
FUZZY = FASTER.replace(" int tokens_per_second(void) {", " int tokens_per_second(int seconds) {")
"""Its outermost line of context is not what the file has: ``patch`` would apply it and only warn."""
ALIEN = FASTER.replace("int speed = 100;", "int speed = 99;")
"""The line that it takes away is not there."""


_COPIED = '["cp", "-r", "{source}", "{build}/sources"], ["mkdir", "bin"]'
_PROGRAM = '["cp", "{source}/fake-bench.sh", "bin/llama-bench"]'


def git(folder: Path, *arguments: str) -> str:
    """Git in a folder, with nobody's settings."""
    done = subprocess.run(
        ["git", *arguments],  # noqa: S607 - whichever git the recipes get
        cwd=folder,
        env={**os.environ, **ONLY_WHAT_IS_MEASURED},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def commit(folder: Path, message: str) -> str:
    """Commit everything."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def new_repository(folder: Path) -> str:
    """The stand-in project as a repository with one commit on ``main``."""
    shutil.copytree(PROJECT, folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    return commit(folder, "begin")


def change_speed(folder: Path, speed: int) -> None:
    """Make the stand-in as fast as that."""
    file = folder / "llama.c"
    line = next(line for line in file.read_text().splitlines() if "int speed" in line)
    file.write_text(file.read_text().replace(line, f"    int speed = {speed};"))


def write_recipe(
    folder: Path, repository: Path | str, *extra: str, compiled: bool = True, name: str = "standin"
) -> Path:
    """A recipe of the stand-in; one that compiles nothing only copies what would come out."""
    if compiled:
        commands = [
            'configure = ["cmake", "-S", "{source}", "-B", "{build}", "-DCMAKE_BUILD_TYPE=Release"]',
            'build = ["cmake", "--build", "{build}", "-j", "{jobs}"]',
            'outputs = ["bin", "src/*.so", "ggml/src/*.so", "examples/mtmd/*.so"]',
        ]
    else:
        commands = [
            f"build = [{_COPIED}, {_PROGRAM}]",
            'outputs = ["bin", "sources"]',
        ]
    said = {line.split(" = ")[0] for line in extra}
    kept = [line for line in commands if line.split(" = ")[0] not in said]
    head = [f'name = "{name}"', 'fork = "ik_llama.cpp"', f"repository = {json.dumps(str(repository))}"]
    file = folder / f"{name}.toml"
    file.write_text("\n".join([*head, *extra, *kept]) + "\n")
    return file


def script_project(folder: Path) -> str:
    """The project with a script as its program: recipes of it take no compiler's time."""
    first = new_repository(folder)
    script = folder / "fake-bench.sh"
    script.write_text("#!/bin/sh\nprintf '  -rtr <0|1>\\n  -pg <pp,tg>\\n'\n")
    script.chmod(0o755)
    commit(folder, "a program without compiling")
    return first


def without_library(folder: Path, name: str) -> None:
    """A real program in a folder, whose ``libmtmd.so`` is gone."""
    (folder / "mtmd.c").write_text("int images(void) { return 0; }\n")
    (folder / "main.c").write_text("int images(void);\nint main(void) { return images(); }\n")
    for argv in (["-shared", "-o", "libmtmd.so", "mtmd.c"], ["-o", name, "main.c", "libmtmd.so"]):
        subprocess.run(["cc", *argv], cwd=folder, check=True)  # noqa: S607 - whichever compiler there is
    for file in ("mtmd.c", "main.c", "libmtmd.so"):
        (folder / file).unlink()
