"""One child from request to last line: a run of the program for each prompt, its file of logits read and removed.

The program needs a text of two contexts and saves the second half of each, so a prompt's text is repeated until it is
long enough, and the first context of it is what is looked at. Its tokens are what the output says was asked.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from harness.domain.outputs import Source
from harness.engines.embedded.channel import Channel
from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded.output_plan import OutputsPlan, Prompt
from harness.ranking import Table, pack

from .logits_file import LogitsFile
from .program import save_logits
from .request import Request

_STEP, _LARGEST = 64, 4096
"""Contexts are multiples of the one and at most the other."""
_BYTES_A_TOKEN = 4
_ENOUGH = 8
"""So many bytes are a token at most, to begin with; where they are not, the program says how many tokens there are."""
_TRIES = 4
_SPARE = 1.3


def run(request: Request, channel: Channel) -> None:
    """Do what a request asks and write a line for each prompt.

    Raises:
        EmbeddedError: Whatever ends the child early; lines written before it stand.
    """
    deadline = time.monotonic() + request.deadline_s
    channel.emit("hello", {})
    with TemporaryDirectory(prefix="moe-logits-") as folder:
        for prompt in request.outputs.prompts:
            channel.emit("output", _output(request, prompt, Path(folder), deadline))
    channel.emit("done", {})


def context_for(plan: OutputsPlan, prompt: Prompt) -> int:
    """Tokens of a context: about as many as the prompt has, and twice the positions that are wanted."""
    tokens = prompt.tokens or len(prompt.text.encode()) // _BYTES_A_TOKEN
    wanted = max(tokens, 2 * plan.positions + 2)
    return min(-(-wanted // _STEP) * _STEP, _LARGEST)


def _output(request: Request, prompt: Prompt, folder: Path, deadline: float) -> dict[str, object]:
    if not prompt.text:
        return _line(prompt, (), None)  # the program has no text to evaluate: nothing is known of this prompt
    plan = request.outputs
    saved = _saved(request, prompt, folder, deadline)
    tables = list(saved.tables(0, plan.top, plan.positions))
    table = Table(np.concatenate([each.ids for each in tables]), np.concatenate([each.logprobs for each in tables]))
    tokens = saved.tokens(0)
    saved.path.unlink()
    return _line(prompt, tokens, table)


def _line(prompt: Prompt, tokens: tuple[int, ...], table: Table | None) -> dict[str, object]:
    ranks = pack(table) if table is not None else None
    prefill = {"positions": ranks.positions, "top": ranks.top, "packed": ranks.packed} if ranks else None
    return {
        "prompt": prompt.name,
        "tokens": tokens,
        "greedy": [],
        "margins": None,
        "text": "",
        "logits_sha256": "",
        "finite": table is None or bool(np.isfinite(table.logprobs).all()),
        "source": Source.PERPLEXITY,
        "ranks": {"prefill": prefill},
    }


def _saved(request: Request, prompt: Prompt, folder: Path, deadline: float) -> LogitsFile:
    context = context_for(request.outputs, prompt)
    length = 2 * context * _ENOUGH
    text, file = folder / "text", folder / "logits"
    doing = f"at prompt {prompt.name}"
    for _ in range(_TRIES):
        encoded = prompt.text.encode()
        text.write_bytes(encoded * -(-length // len(encoded)))
        batch = str(min(request.batch, context))
        sizes = ("-c", str(context), "-b", batch, "--chunks", "1")
        argv = (*request.argv, *sizes, "-f", str(text), "--save-all-logits", str(file))
        saved = save_logits(argv, request.environment, file, max(0.001, deadline - time.monotonic()), doing)
        if isinstance(saved, LogitsFile):
            return saved
        length = int(length * _SPARE * max(2.0, 2 * context / max(saved.tokens, 1)))
    raise EmbeddedError("E-prompt-empty", f"{doing}: its text has too few tokens however often it is repeated")
