"""The engine of a build's own ``llama-server``, for both forks.

It answers the requests of prompt profiles, which are timed, and prompts whose outputs are compared.
"""

from __future__ import annotations

from pathlib import Path

from harness.domain.build import Fork
from harness.domain.failure import Failure, FailureKind
from harness.domain.workload import Metric, OutputProfile, Prompt, PromptProfile
from harness.engines.bench_argv import threads_of
from harness.engines.child import child_command
from harness.engines.embedded_engine import profile_request
from harness.engines.embedded_events import Events, child_failure, identity, load_seconds, read_events
from harness.engines.engine import Command, Exit, Order, Report
from harness.engines.load_log import told_load
from harness.engines.output_lines import asked_outputs, outputs_request
from harness.engines.own_program import OwnProgram, Program
from harness.engines.parse import first_failure
from harness.engines.profile_rows import profile_rows
from harness.engines.programs import with_libraries
from harness.engines.server_flags import server_argv, unsayable

NAME = "llama-server"
SERVER = Program(
    name=NAME,
    listed=frozenset({"--host", "--port"}),
    missing="E-server-missing",
    hint="prompt profiles are answered by it: compile with the target llama-server, or leave profiles out",
    wrong="E-not-llama-server",
)
_CHILD = "harness.engines.served"
_RESERVE_S, _RESERVED, _AT_MOST = 5.0, 0.05, 0.5
"""Of a process's limit so much, in seconds and as a share, is left for saying what was waited for; at most so large a
share."""
_CELL_STEP = 256
_SPECIAL_TOKENS = 8
_SWITCHED_OFF = {
    Fork.LLAMA_CPP: (("--no-ui",), ("--cache-ram", "0"), ("-fit", "off")),
    Fork.IK_LLAMA_CPP: (("--webui", "none"), ("-cram", "0")),
}
"""Switched off beside the flags, newest spellings: pages, caches of prompts, placement that changes by itself."""
_OLDER = {"--no-ui": ("--no-webui",)}


class ServedEngine(OwnProgram):
    """Measures with ``llama-server``.

    Args:
        build: A build given by path.
        help_text: What its server's ``--help`` printed, where that was read.
    """

    program = SERVER

    def refusal(self, order: Order) -> str:
        """Why a server cannot do it: plain workloads, two first requests, flags that it cannot be told."""
        if order.plain:
            return f"llama-server times no {order.plain[0].name}: llama-bench does"
        if not order.of_profiles and order.outputs is None:
            return "there is no request to answer"
        cold = [load.name for load in order.of_profiles if load.metric is Metric.COLD]
        if len(cold) > 1:
            return f"{' and '.join(cold)}: only one request is the first of a process"
        return unsayable(self._build.fork, order.arm.flags, self._options, NAME)

    def command(self, order: Order) -> Command:
        """A child of ours, told on standard input which server to start and what to ask it.

        Args:
            order: One that ``refusal`` has nothing against.

        Raises:
            BadInput: If the build is not there or not executable.
        """
        executable = self._executable()
        request = {
            "fork": str(self._build.fork),
            "argv": self._argv(executable, order),
            "environment": with_libraries(executable, dict(order.arm.environment)),
            "model": str(order.model),
            "deadline_s": deadline_s(order.timeout_s),
            "repetitions": order.repetitions,
            "profiles": [profile_request(order, profile) for profile in order.profiles],
            "outputs": outputs_request(order.outputs) if order.outputs else None,
        }
        return child_command(_CHILD, request)

    def read(self, order: Order, ended: Exit) -> Report:
        """Rows, self-description and failure of one child; never raises."""
        events = read_events(ended.stdout)
        answered = profile_rows(order, events.answers)
        rows = tuple(answered.rows[load.name] for load in order.of_profiles if load.name in answered.rows)
        outputs, misshapen = asked_outputs(order.outputs, events.outputs)
        problems = [*answered.problems, *misshapen, *unfinished(events)]
        return Report(
            rows=rows,
            outputs=outputs,
            load_s=load_seconds(events),
            engine={**identity(events), **answered.prompts},
            failure=first_failure(child_failure(ended, events), problems, order.workloads, rows, ended.stderr),
            load=told_load(order, ended),
        )

    def asking_why(self, order: Order, ended: Exit) -> Command | None:  # noqa: ARG002 - the protocol's signature
        """Nothing to ask: the server logs while it starts, and the child says what it waited for."""
        return None

    def _argv(self, executable: Path, order: Order) -> list[str]:
        threads = str(threads_of(order))
        cells = max([*map(_cells, order.profiles), *_cells_of_outputs(order.outputs)])
        return [
            *(str(executable), "-m", str(order.model), "-c", str(cells), "-np", "1", "-t", threads, "-tb", threads),
            *(word for said in _SWITCHED_OFF[self._build.fork] for word in self._known(said)),
            *server_argv(self._build.fork, order.arm.flags, self._options),
        ]

    def _known(self, said: tuple[str, ...]) -> tuple[str, ...]:
        """An argument as this build spells it; nothing where it has nothing of the kind."""
        ways = [said, *([_OLDER[said[0]]] if said[0] in _OLDER else [])]
        return next((way for way in ways if self._options is None or way[0] in self._options), ())


def deadline_s(timeout_s: float) -> float:
    """How long the child waits before it says for what, and is not killed without a word."""
    return timeout_s - min(max(_RESERVE_S, _RESERVED * timeout_s), _AT_MOST * timeout_s)


def _cells(profile: PromptProfile) -> int:
    """Context cells that a request needs at most: no tokenizer makes more tokens than bytes, but for special ones."""
    return _room(profile.prompt_tokens, profile.text, profile.n_predict)


def _cells_of_outputs(profile: OutputProfile | None) -> list[int]:
    """The same of each prompt whose outputs are compared, followed by what is generated or by its answer."""
    return (
        [_room(prompt.tokens, prompt.text, _most_after(profile, prompt)) for prompt in profile.prompts]
        if profile
        else []
    )


def _most_after(profile: OutputProfile, prompt: Prompt) -> int:
    return max(profile.n_predict, min(profile.forced, len(prompt.answer.encode())) + 1)


def _room(tokens: int, text: str, after: int) -> int:
    prompt = tokens or len(text.encode()) + _SPECIAL_TOKENS
    return -(-(prompt + after + _SPECIAL_TOKENS) // _CELL_STEP) * _CELL_STEP


def unfinished(events: Events) -> list[Failure]:
    """What is wrong with a child that neither failed nor said that it was done."""
    if events.done and not events.unreadable:
        return []
    said = f"{events.unreadable} unreadable line(s)" if events.unreadable else "the child did not say that it was done"
    return [Failure(FailureKind.UNPARSABLE, said, "E-incomplete-output")]
