"""What can go wrong with a server, each by its name."""

from __future__ import annotations

from harness.engines.embedded.errors import EXIT_DECODE, EXIT_LOAD, EmbeddedError


class ServerDied(EmbeddedError):  # noqa: N818 - reads as what it is at the raise
    """``E-server-died``: the server ended by itself.

    Args:
        doing: What it was asked for.
        returncode: As of ``subprocess``: its exit code, or minus the signal.
    """

    def __init__(self, doing: str, returncode: int) -> None:
        how = f"exit code {returncode}" if returncode >= 0 else f"signal {-returncode}"
        super().__init__("E-server-died", f"the server ended with {how} {doing}", exit_code=EXIT_LOAD)
        self.facts["server_exit"] = returncode


def never_ready(waited_s: float, last: str) -> EmbeddedError:
    """The deadline came before the server said that it was ready."""
    message = f"the server was not ready after {waited_s:.0f} s ({last}); policy.timeout_s is the limit of a process"
    return EmbeddedError("E-server-not-ready", message, exit_code=EXIT_LOAD)


def too_slow(doing: str, why: str) -> EmbeddedError:
    """The deadline came in the middle of an answer."""
    return EmbeddedError("E-answer-timeout", f"the server was not done in time {doing}: {why}", exit_code=EXIT_DECODE)


def foreign_server(found: str) -> EmbeddedError:
    """Somebody else answers on the port."""
    return EmbeddedError("E-server-foreign", f"the server that answers is not the one that was started: {found}")


def error_answer(doing: str, status: int, said: str) -> EmbeddedError:
    """The server refused or failed. Whose fault it is, the status tells."""
    lower = said.lower()
    # ik_llama.cpp's server takes the fault upon itself.
    if "exceeds the available context" in lower or (status < 500 and "context" in lower):  # noqa: PLR2004 - see below
        return EmbeddedError("E-prompt-too-long", f"the server refused the prompt {doing}: {said}")
    code = EXIT_DECODE if status >= 500 else EXIT_LOAD  # noqa: PLR2004 - HTTP's server errors
    return EmbeddedError(
        "E-answer-error", f"the server answered with an error {doing}: {status} {said}", exit_code=code
    )


def cut_prompt(doing: str, kept: int, asked: int) -> EmbeddedError:
    """The server answered the rest of a prompt: ik_llama.cpp's takes out what does not fit, without a word."""
    what = f"the server cut the prompt of {asked} tokens to {kept} {doing}: its context holds no more"
    return EmbeddedError("E-prompt-too-long", f"{what}; shorten the prompt or its answer, or take a model with more")


def truncated(doing: str, why: str) -> EmbeddedError:
    """An answer that breaks off while the server lives on."""
    return EmbeddedError("E-stream-truncated", f"the answer broke off {doing}: {why}", exit_code=EXIT_DECODE)


def wrong_answer(doing: str, what: str) -> EmbeddedError:
    """An answer to something else than was asked."""
    return EmbeddedError("E-answer-mismatch", f"not what was asked {doing}: {what}", exit_code=EXIT_DECODE)


def no_logprobs(doing: str, what: str) -> EmbeddedError:
    """The probabilities that were asked for are not in the answer."""
    message = f"no log-probabilities {doing}: {what}; start nothing between harness and server that takes them out"
    return EmbeddedError("E-logprobs-missing", message, exit_code=EXIT_DECODE)
