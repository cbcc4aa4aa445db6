"""What stands around the rows of ``llama-sweep-bench`` and ``llama-batched-bench``: batches, build, model.

The rows say nothing of it. A line above a table has the batches and threads; the log of loading, where somebody kept
it, has the model, and llama.cpp's the build.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.domain.build import Fork
from harness.engines.imported.quantities import quantity
from harness.engines.imported.sweep_row import Program

_HEADER = re.compile(r"^(?P<who>\w{1,60}): (?P<said>n_kv_max = \d{1,9}(?:, [a-z_]{1,40} = -?\d{1,9})+)\s*$", re.ASCII)
_BUILD = re.compile(r"^(?:\w{1,40}: )?build(?::| =) (?P<number>\d{1,9}) \((?P<commit>[0-9a-f]{6,40})\)", re.ASCII)
_MODEL = re.compile(
    r"^(?:llm_load_print_meta|print_info): (?P<what>arch|model type|model ftype|file type|model params|model size"
    r"|file size)\s*= (?P<value>\S[^\n]{0,80})$"
)
_LOADING = re.compile(r"^llama_model_loader: loaded meta data with ")
_WRITTEN = {
    "arch": "arch",
    "model type": "type",
    "model ftype": "quant",
    "file type": "quant",
    "model params": "params",
    "model size": "size",
    "file size": "size",
}
_QUANTITY = re.compile(r"[\d.]{1,12} (?:KiB|MiB|GiB|TiB|K|M|B|T)\b", re.ASCII)
_SHARED = "is_pp_shared"
SETTINGS = frozenset(
    {"n_kv_max", "n_batch", "n_ubatch", "flash_attn", "n_gpu_layers", "n_threads", "n_threads_batch", "is_tg_separate"}
)
"""Fields of either program that say how it was measured."""


class Around:
    """Goes through the lines of a text, and knows at each what was said before it."""

    def __init__(self) -> None:
        self._header: dict[str, int] = {}
        self._who = ""
        self._build: dict[str, Any] = {}
        self._model: dict[str, str] = {}

    def line(self, line: str) -> bool:
        """Read a line; whether it says anything of this."""
        if header := _HEADER.match(line):
            self._who = header["who"]
            self._header = {
                name: int(value) for name, value in (part.split(" = ") for part in header["said"].split(", "))
            }
        elif build := _BUILD.match(line):
            self._build = {"build_commit": build["commit"], "build_number": int(build["number"])}
        elif _LOADING.match(line):
            self._model = {}
        elif model := _MODEL.match(line):
            self._model[_WRITTEN[model["what"]]] = model["value"].strip()
        else:
            return False
        return True

    def taken_header(self) -> tuple[dict[str, int], str]:
        """The line above a table and who wrote it: of this table and of no other."""
        taken, who = self._header, self._who
        self._header, self._who = {}, ""
        return taken, who

    def known(self) -> dict[str, Any]:
        """Build and model by the names that they have in rows of ``llama-bench``."""
        label = [self._model.get(part, "") for part in ("arch", "type", "quant")]
        named = {"model_type": " ".join(label)} if all(label) else {}
        sizes = {"model_size": "size", "model_n_params": "params"}
        found = {name: _QUANTITY.match(self._model.get(part, "")) for name, part in sizes.items()}
        return {**self._build, **named, **{name: quantity(text[0]) for name, text in found.items() if text}}


def shared_prompt(header: Mapping[str, int]) -> bool | None:
    """Whether all sequences had one prompt, as the line above a table says; ``None``: it does not."""
    return bool(header[_SHARED]) if _SHARED in header else None


def settings_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields among them that say how it was measured."""
    return {name: value for name, value in said.items() if name in SETTINGS}


def fork_of(program: Program, said: Mapping[str, Any], who: str = "", *, json: bool = False) -> Fork | None:
    """The fork, where a field tells it.

    llama.cpp alone has JSONL of batched rows, and sequences one after another; the sweep is ik_llama.cpp's, but a
    branch of llama.cpp that people use has it too: only its memory columns tell.
    """
    if program is Program.SWEEP:
        return Fork.IK_LLAMA_CPP if said.keys() & {"rss hwm", "rss_hwm_mib"} else None
    mainline = json or "is_tg_separate" in said or who not in ("", "main")
    return Fork.LLAMA_CPP if mainline else None
