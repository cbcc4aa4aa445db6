"""``fleet lock``, ``hold`` and ``release``: take this host for a command, or for the job of a CI runner."""

from __future__ import annotations

import os
import shlex
from typing import NoReturn

import click

from harness import settings
from harness.domain.errors import BadInput
from harness.execution.host_hold import is_held, is_ours, keep, release, take_host

_WAIT = click.option(
    "--wait", "wait_s", type=click.FloatRange(min=0), default=0.0, show_default=True, help="Seconds to wait for it."
)


@click.command(context_settings={"ignore_unknown_options": True})
@_WAIT
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def lock(wait_s: float, command: tuple[str, ...]) -> None:
    """Take this host, become COMMAND, and have the host until it ends, however it does.

    No measurement of another one begins here meanwhile, be it a shard's or a cluster's; those that COMMAND makes do.

    Exit codes: those of COMMAND; 2 no such command, 3 the host is taken.
    """
    _become(command, wait_s)


@click.command()
@_WAIT
@click.option(
    "--for", "owner", type=click.IntRange(min=1), required=True, metavar="PID", help="Until this process ends."
)
def hold(wait_s: float, owner: int) -> None:
    """Take this host until another process ends: for a CI runner's hook, that ends before its job begins.

    What is printed is a line for the environment of who measures under it, e.g. for "$GITHUB_ENV".

    Exit codes: 0 it is held, 2 no such process, 3 the host is taken.
    """
    try:
        os.close(os.pidfd_open(owner))
    except OSError as error:
        message = f"process {owner} can't be watched: {error.strerror or error}"
        raise BadInput("E-no-process", message, hint='in a hook, its parent is the job: --for "$PPID"') from error
    if _is_under_one():
        token = settings.host_hold()
    else:
        purpose = f"the job of process {owner}"
        taken = take_host(wait_s, purpose)
        keep(taken, owner, purpose)
        token = taken.token
    click.echo(f"{settings.HOST_HOLD}={token}")


@click.command("release")
def release_() -> None:
    """End the hold that this process is under, before its owner ends.

    Exit codes: 0 it is no longer held by it, 2 this is under no hold, 3 it can't be ended.
    """
    click.echo("released" if release() else "nothing to release: the hold has ended by itself")


def _is_under_one() -> bool:
    return is_ours() and is_held()


def _become(command: tuple[str, ...], wait_s: float) -> NoReturn:
    environment = dict(os.environ)
    if not _is_under_one():
        taken = take_host(wait_s, shlex.join(command))
        os.set_inheritable(taken.descriptor, True)
        environment |= taken.environment
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - what the user asks for
    except OSError as error:
        message = f"it can't be started: {error.strerror or error}"
        raise BadInput("E-no-command", message, where=command[0]) from error
