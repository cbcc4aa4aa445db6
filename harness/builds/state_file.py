"""Small files of this user that several commands change: read and checked, changed under a lock in one step."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from harness import bounded, settings
from harness.domain.errors import BadInput, Infrastructure
from harness.models.storage import disk_errors, make_folder, write_json

_LOCK_WAIT_S = 30.0

Content = TypeVar("Content", bound=BaseModel)


def config_folder() -> Path:
    """``MOE_CONFIG_DIR``, else ``moe-harness`` in ``XDG_CONFIG_HOME`` or ``~/.config``.

    Raises:
        BadInput: ``E-bad-setting``.
    """
    if chosen := settings.config_dir():
        return chosen
    base = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG rule: a relative path there is to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "moe-harness"


@dataclass(frozen=True)
class StateFile(Generic[Content]):
    """One such file.

    Attributes:
        path: Where it lies.
        kind: What is in it; without the file, the kind's defaults are.
        word: Its word in slugs: ``E-WORD-unreadable``, ``E-WORD-busy``.
    """

    path: Path
    kind: type[Content]
    word: str

    def read(self) -> Content:
        """What is in it.

        Raises:
            BadInput: ``E-WORD-unreadable`` where it is no such file.
            Infrastructure: ``E-WORD-unreadable`` where the system does not let us.
        """
        try:
            text = bounded.read_text(self.path, bounded.MOST_KEPT_BYTES)
        except FileNotFoundError:
            return self.kind()
        except (OSError, UnicodeDecodeError) as failure:
            raise Infrastructure(f"E-{self.word}-unreadable", f"{failure}", where=f"{self.path}") from failure
        try:
            return self.kind.model_validate_json(text)
        except ValidationError as invalid:
            first = invalid.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            message = f"no file of the {self.word}: {f'{place}: ' if place else ''}{first['msg']}"
            hint = "mend it or move it away; a newer version of the harness may have written it"
            raise BadInput(f"E-{self.word}-unreadable", message, hint=hint, where=f"{self.path}") from invalid

    def change(self, change: Callable[[Content], Content]) -> Content:
        """Change it under its lock, whole or not at all.

        Args:
            change: From what is in it to what shall be.

        Raises:
            BadInput: As `read`, and what ``change`` raises.
            Infrastructure: ``E-WORD-busy`` where somebody holds the lock; faults of the disk.
        """
        make_folder(self.path.parent)
        try:
            with FileLock(f"{self.path}.lock", timeout=_LOCK_WAIT_S):
                changed = change(self.read())
                with disk_errors(self.path):
                    write_json(self.path, json.loads(changed.model_dump_json(exclude_defaults=True)))
                return changed
        except Timeout:
            message = f"another process held the lock for {_LOCK_WAIT_S:.0f} s"
            raise Infrastructure(f"E-{self.word}-busy", message, where=f"{self.path}.lock") from None
