"""A hostile stand-in with everything that it could want laid out before it, for tests of the sandbox."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from requiring import missing

from harness.domain.build import Build, Fork
from harness.execution.sandbox import sandbox_here

HOSTILE = Path(__file__).parent.parent / "standin" / "hostile_bench.sh"
HELP = Path(__file__).parent.parent / "standin" / "llama_bench.py"


def require_sandbox_here() -> None:
    """Skip a test where bubblewrap does not work."""
    found = sandbox_here()
    if found.tool is None:
        missing("sandbox", found.reason)


@dataclass
class Booty:
    """What there is to get.

    Attributes:
        build: The hostile build.
        model: The model.
        lives: The name of what it leaves behind.
        listener: On the host's loopback.
        victim: A process of the same user, in place of the harness.
        files: Files that must stay as they are.
    """

    build: Build
    model: Path
    lives: str
    listener: socket.socket
    victim: subprocess.Popen[bytes]
    files: tuple[Path, ...]

    @property
    def program(self) -> Path:
        return Path(self.build.path)

    def contents(self) -> dict[str, bytes]:
        """What lies in the files, and which files lie beside the program."""
        found = {path.name: path.read_bytes() for path in self.files}
        return found | {"beside": b" ".join(sorted(path.name.encode() for path in self.program.parent.iterdir()))}

    def calls(self) -> int:
        """How many reached the listener since the last time."""
        self.listener.settimeout(0.1)
        number = 0
        while True:
            try:
                self.listener.accept()[0].close()
            except TimeoutError:
                return number
            number += 1

    def left(self) -> list[psutil.Process]:
        """What it left behind and is alive."""
        return [
            process
            for process in psutil.process_iter(["cmdline", "status"])
            if self.lives in (process.info["cmdline"] or [])[:1] and process.info["status"] != psutil.STATUS_ZOMBIE
        ]


@contextmanager
def laid_out(folder: Path, *, trusted: bool, flood: bool = False, model_of: Path | None = None) -> Iterator[Booty]:
    """Lay it out; ``model_of``: a real model, for a copy of it."""
    home, place = folder / "home", folder / "build"
    (home / ".ssh").mkdir(parents=True)
    place.mkdir()
    token, journal, key, model = home / "token", folder / "journal.jsonl", home / ".ssh" / "id", folder / "m.gguf"
    for file in (token, journal, key, model):
        file.write_text(f"of {file.name}\n")
    if model_of is not None:
        shutil.copyfile(model_of, model)
    token.chmod(0o600)
    key.chmod(0o600)
    shutil.copy(HOSTILE, place / "llama-bench")
    told = subprocess.run([sys.executable, HELP, "--help"], capture_output=True, check=True).stdout
    (place / "help").write_bytes(told)
    (place / "rows").write_text(json.dumps([_row(model, 32, 0), _row(model, 0, 4)]))
    word = f"victim-{os.getpid()}-{folder.name}"
    lives = f"left-{os.getpid()}-{folder.name}"
    victim = subprocess.Popen(["/bin/bash", "-c", f"exec -a {word} sleep 600"])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        plan = {
            "TOKEN": token,
            "JOURNAL": journal,
            "KEY": key,
            "MODEL": model,
            "HOST_HOME": home,
            "PORT": listener.getsockname()[1],
            "VICTIM": victim.pid,
            "VICTIM_WORD": word,
            "LIVES": lives,
            "FLOOD": "yes" if flood else "",
        }
        (place / "plan").write_text("".join(f"{name}='{value}'\n" for name, value in plan.items()))
        build = Build("hostile", Fork.IK_LLAMA_CPP, path=str(place / "llama-bench"), trusted=trusted)
        booty = Booty(build, model, lives, listener, victim, (token, journal, key, model))
        try:
            yield booty
        finally:
            for process in booty.left():
                process.kill()
            victim.kill()
            victim.wait()


def _row(model: Path, n_prompt: int, n_gen: int) -> dict[str, object]:
    return {
        "model_filename": str(model),
        "n_threads": 1,
        "n_prompt": n_prompt,
        "n_gen": n_gen,
        "samples_ns": [1_000_000, 1_000_000, 1_000_000],
    }
