"""A stand-in for what a server generates: a model of 256 bytes, and both forks' answers written from their sources.

Marked as such; never shipped. The logits follow from the context alone. Token 0 ends a text. The probabilities are
computed as ``get_token_probabilities`` of either fork does it (read in llama.cpp b11434 and ik_llama.cpp 8337e4cd, in
32-bit floats): ik_llama.cpp adds what its list leaves out to the sum twice, and changes the logits themselves by a
request's ``logit_bias``, where llama.cpp changes copies.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

VOCABULARY = 256
END = 0
Logits = NDArray[np.float32]


def logits_after(context: list[int]) -> Logits:
    """The logits of a context: spread by 3, as those of a trained model are."""
    seed = int.from_bytes(hashlib.sha256(bytes(context)).digest()[:8], "little")
    return np.random.default_rng(seed).normal(0.0, 3.0, VOCABULARY).astype(np.float32)


def mainline_answer(body: dict[str, Any]) -> dict[str, Any]:
    """The answer of llama.cpp's ``/completion``."""
    tokens, entries = _generated(body, body["n_probs"], of_ik=False)
    answer: dict[str, Any] = {
        "content": bytes(tokens).decode("utf-8", "replace"),
        "tokens": tokens if body.get("return_tokens") else [],
        "tokens_evaluated": len(body["prompt"]),
        "tokens_predicted": len(tokens),
        "stop_type": "eos" if tokens[-1] == END else "limit",
        "truncated": False,
        "timings": {"cache_n": 0, "prompt_n": len(body["prompt"]), "predicted_n": len(tokens)},
    }
    return {**answer, "completion_probabilities": entries} if entries else answer


def ik_answer(body: dict[str, Any], *, doubled: bool = True) -> dict[str, Any]:
    """The answer of ik_llama.cpp's ``/v1/completions``: it always says that it stopped, and names no hidden token.

    Args:
        body: The request.
        doubled: As 8337e4cd: the tail is counted twice; otherwise as it would be once mended.
    """
    tokens, entries = _generated(body, body["logprobs"], of_ik=True, doubled=doubled)
    text = bytes(tokens).decode("utf-8", "replace")
    logprobs = {"content": entries} if entries else None
    return {
        "choices": [{"text": text, "index": 0, "logprobs": logprobs, "finish_reason": "stop"}],
        "object": "text_completion",
        "usage": {"completion_tokens": len(tokens), "prompt_tokens": len(body["prompt"])},
        "timings": {"prompt_n": len(body["prompt"]), "predicted_n": len(tokens)},
    }


def _generated(
    body: dict[str, Any], top: int, *, of_ik: bool, doubled: bool = False
) -> tuple[list[int], list[dict[str, Any]]]:
    tokens: list[int] = []
    entries = []
    while len(tokens) < body["n_predict"] and (not tokens or tokens[-1] != END):
        raw = logits_after([*body["prompt"], *tokens])
        biased = raw.copy()
        for token, bias in body.get("logit_bias", []):
            biased[token] += np.float32(bias)
        chosen = int(biased.argmax())
        tokens.append(chosen)
        if _is_whole(bytes(tokens)):
            ranked = _ranked(biased if of_ik else raw, min(top, VOCABULARY), doubled=doubled)
            own = next((entry["logprob"] for entry in ranked if entry["id"] == chosen), -np.finfo(np.float32).max)
            entries.append({"id": chosen, "token": "", "bytes": [chosen], "logprob": own, "top_logprobs": ranked})
    return tokens, entries


def _ranked(logits: Logits, top: int, *, doubled: bool) -> list[dict[str, Any]]:
    order = np.argsort(-logits, kind="stable")
    weights = np.exp(logits[order] - logits[order[0]])
    total = weights.sum() + (weights[top:].sum() if doubled else np.float32(0))
    shares = weights[:top] * (np.float32(1) / total)
    with np.errstate(divide="ignore"):
        logs = np.where(shares == 0, -np.finfo(np.float32).max, np.log(shares))
    return [
        {"id": int(token), "token": "", "bytes": [int(token)], "logprob": float(value)}
        for token, value in zip(order[:top], logs, strict=True)
    ]


def _is_whole(text: bytes) -> bool:
    """Whether no character is begun at the end, as ``validate_utf8`` of both forks looks at the last bytes only."""
    for back in range(1, min(4, len(text)) + 1):
        byte = text[-back]
        if byte & 0xC0 == 0xC0:
            needed = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
            return back >= needed
    return True
