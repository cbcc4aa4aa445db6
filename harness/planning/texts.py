"""The texts of prompts: those that come with the package, and how any text file is read."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from harness.domain.errors import BadInput

MAX_TEXT_BYTES = 256 * 1024
"""The text stands in the journal once for each case; a count of tokens makes long prompts of short texts."""


def packaged_folder() -> Path:
    """The folder of prompts that comes with the package: inside it, or beside it in a checkout."""
    package = Path(str(resources.files("harness")))
    folders = (package / "_matrices" / "prompts", package.parent / "matrices" / "prompts")
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def read_text(path: Path, what: str, *, missing: str, unreadable: str) -> str:
    """The text of a file, without the white space around it.

    Args:
        path: The file.
        what: What the text is of, e.g. ``profile``, for errors.
        missing: Slug of the error where there is no such file.
        unreadable: Slug of the error where what it holds can be no prompt.

    Raises:
        BadInput: One of the two.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TEXT_BYTES + 1)
    except OSError as failure:
        message = f"the text of the {what} can't be read: {failure.strerror}: {path}"
        raise BadInput(missing, message, hint="paths are relative to the file that says them") from failure
    if len(data) > MAX_TEXT_BYTES:
        message = f"{path} is too long: a {what}'s text has at most {MAX_TEXT_BYTES} bytes"
        raise BadInput(unreadable, message, hint="a count of tokens repeats a short text")
    try:
        text = data.decode("utf-8").strip()
    except UnicodeDecodeError as failure:
        raise BadInput(unreadable, f"{path} is not text in UTF-8: byte {failure.start}") from failure
    if not text or "\0" in text:
        wrong = "holds a null character" if text else "is empty"
        raise BadInput(unreadable, f"the text of {path} {wrong}")
    return text
