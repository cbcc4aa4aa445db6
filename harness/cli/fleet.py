"""``moe-harness fleet``: start and join a Ray cluster that measures, see what is in it, and what would spoil it."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from harness.cli.doing import Doing
from harness.cli.fleet_hold import hold, lock, release_
from harness.cli.paper import plain_table, stdout_console
from harness.domain.errors import EXIT_FINDING, BadInput
from harness.domain.node import GIB
from harness.execution.cluster_token import environment_with, token_file
from harness.execution.executors import ray_environment
from harness.execution.node import probe_node
from harness.execution.offers import SLOT, declared_labels, said_resources
from harness.fleet.checks import Finding, Level, findings
from harness.fleet.command import DEFAULT_PORT, LOOPBACK, NodeStart, is_loopback
from harness.fleet.host_state import host_state
from harness.fleet.nodes_here import end, nodes_here
from harness.fleet.offering import Offer, free_disk, offer_of
from harness.fleet.ports import own_address_towards, require_free
from harness.fleet.secret import kept_token, made_token, token_from
from harness.fleet.starting import NONCE, become, start_detached
from harness.fleet.topology import gpu_links
from harness.reporting.clean import one_line

_PIPE_WIDTH = 160
_LONGEST_TOKEN = 1 << 16
_FORMAT = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
_GPUS = click.option("--gpus", metavar="N,N", help="Offer these GPUs alone, by their numbers; '' for none.")
_RAM = click.option("--ram-gib", type=click.IntRange(min=1), help="Offer less main memory than there is.")
_LABELS = click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label of your own; repeatable.")
_FOREGROUND = click.option(
    "--foreground", is_flag=True, help="Become Ray's process, for a service manager, instead of starting it aside."
)
_TEMP = click.option("--temp-dir", default="", metavar="DIR", help="Where Ray keeps sockets and logs [/tmp/ray].")


@click.group()
def fleet() -> None:
    """Start or join a Ray cluster with what benchmarks need, and look after it.

    Exit codes: 0 fine, 1 the finding (doctor has warnings, status has nodes that can't be used), 2 bad input,
    3 infrastructure, 130 Ctrl-C.
    """


@fleet.command()
@click.option(
    "--listen",
    default=LOOPBACK,
    show_default=True,
    metavar="ADDRESS",
    help="This host's own address in the network of the fleet. By default nothing beyond this host can join.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, show_default=True, help="Port of the head."
)
@click.option("--no-slot", is_flag=True, help="Measure nothing on this host.")
@_GPUS
@_RAM
@_LABELS
@_TEMP
@_FOREGROUND
def up(  # noqa: PLR0917 - click passes by name
    listen: str,
    port: int,
    no_slot: bool,
    gpus: str | None,
    ram_gib: int | None,
    labels: tuple[str, ...],
    temp_dir: str,
    foreground: bool,
) -> None:
    """Start the head of a cluster on this host, which is a node of it too.

    Its token is made in a file of mode 600; whoever joins needs it.
    """
    _require_no_head()
    offer = _offer(gpus, ram_gib, labels, slot=not no_slot)
    token = made_token()
    node = replace(_node(offer, temp_dir), own_address=listen, port=port)
    if not is_loopback(listen):
        _warn_of_listening(listen)
    require_free(listen, port)
    _start(node, token, foreground=foreground)
    click.echo(f"head: {node.address}")
    click.echo(f"offers: {one_line(said_resources(offer.resources))}")
    click.echo(f"token: {token}")
    if is_loopback(listen):
        click.echo("it listens on this host alone: --listen ADDRESS lets others join")
    else:
        click.echo(f"join from another host: moe-harness fleet join {node.address} --token-file FILE")
    click.echo(f"measure: pytest -m moe --ray-address={node.address}")


@fleet.command()
@click.argument("address")
@click.option(
    "--token-file", type=click.Path(path_type=Path), help="A copy of the head's token, mode 600; '-': standard input."
)
@click.option("--own-address", default="", metavar="ADDRESS", help="Where this node listens [by the way to the head].")
@_GPUS
@_RAM
@_LABELS
@_TEMP
@_FOREGROUND
def join(  # noqa: PLR0917 - click passes by name
    address: str,
    token_file: Path | None,
    own_address: str,
    gpus: str | None,
    ram_gib: int | None,
    labels: tuple[str, ...],
    temp_dir: str,
    foreground: bool,
) -> None:
    """Make this host a node of the cluster whose head is at ADDRESS (HOST:PORT).

    The token is kept for later; it is never an argument and never in a log.
    """
    offer = _offer(gpus, ram_gib, labels, slot=True)
    token = _token(token_file)
    host = _joinable(address, token)
    if own_address:
        require_free(own_address)
    node = replace(_node(offer, temp_dir), own_address=own_address or own_address_towards(host), head=address)
    _start(node, token, foreground=foreground)
    click.echo(f"joined: {address}")
    click.echo(f"offers: {one_line(said_resources(offer.resources))}")


@fleet.command()
@click.option("--address", default="", metavar="HOST:PORT", help="The head's [that of the node on this host].")
@_FORMAT
@click.pass_context
def status(context: click.Context, address: str, form: str) -> None:
    """Say which nodes the cluster has, what was found on each, and which can't be used."""
    chosen = address or _address_here()
    os.environ.update(ray_environment(chosen))
    module = importlib.import_module("harness.fleet.status")  # it imports Ray, which takes most of a second
    found = module.fleet_status(chosen)
    if form == "json":
        click.echo(json.dumps(asdict(found), indent=2))
    else:
        _print_status(found)
    ready = [node for node in found.nodes if node.state == module.READY]
    context.exit(EXIT_FINDING if not ready or any(node.state == module.UNUSABLE for node in found.nodes) else 0)


@fleet.command()
@_FORMAT
@click.pass_context
def doctor(context: click.Context, form: str) -> None:
    """Say what would spoil measurements on this host, why, and what to do. Nothing is changed.

    Exit codes: 0 nothing would, 1 something would.
    """
    found = findings(host_state())
    if form == "json":
        click.echo(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        _print_findings(found)
    context.exit(EXIT_FINDING if any(finding.level is Level.WARNING for finding in found) else 0)


@fleet.command()
def down() -> None:
    """End every node that was started on this host by this user; a running measurement has half a minute to end."""
    here = nodes_here()
    with Doing() as doing:
        for node in reversed(here):
            doing.tell(f"ending the node of {node.address}")
            end(node)
    of = ", ".join(dict.fromkeys(node.address for node in here))
    click.echo(f"ended: {len(here)} node{'s' if len(here) != 1 else ''}{f' ({of})' if of else ''}")


def _require_no_head() -> None:
    """Two clusters of one host would both offer all that it has.

    Raises:
        BadInput: ``E-fleet-head-here``.
    """
    head = next((node for node in nodes_here() if node.head), None)
    if head is not None:
        hint = "use that one, or end it first: moe-harness fleet down"
        raise BadInput("E-fleet-head-here", "a head of yours runs on this host", hint=hint, where=head.address)


# ---- starting --------------------------------------------------------------------------------------------------------


def _offer(gpus: str | None, ram_gib: int | None, labels: Sequence[str], *, slot: bool) -> Offer:
    offer = offer_of(
        probe_node(),
        declared_labels(labels),
        gpus=_numbers(gpus),
        ram_gib=ram_gib,
        disk_bytes=free_disk(),
        links=gpu_links(),
    )
    if slot:
        return offer
    return replace(offer, resources={name: amount for name, amount in offer.resources.items() if name != SLOT})


def _numbers(gpus: str | None) -> tuple[int, ...] | None:
    if gpus is None:
        return None
    words = [word.strip() for word in gpus.split(",")] if gpus.strip() else []
    if not all(word.isdecimal() and word.isascii() for word in words) or len(set(words)) < len(words):
        raise BadInput("E-fleet-gpus", f"expected numbers of GPUs such as 0,1, found '{gpus}'", where="--gpus")
    return tuple(sorted(map(int, words)))


def _node(offer: Offer, temp_dir: str) -> NodeStart:
    if temp_dir and not Path(temp_dir).is_absolute():
        raise BadInput("E-fleet-temp-dir", f"expected an absolute path, found '{temp_dir}'", where="--temp-dir")
    return NodeStart(
        LOOPBACK,
        gpus=len(offer.facts.gpus),
        visible=offer.visible,
        resources=offer.resources,
        labels=offer.labels,
        temp_dir=temp_dir,
    )


def _start(node: NodeStart, token: Path, *, foreground: bool) -> None:
    variables = environment_with(token)
    if foreground:
        become(node, variables)
    os.environ.update({**ray_environment(node.address), **variables})
    knows = importlib.import_module("harness.execution.ray_join").knows_node
    with Doing() as doing:
        doing.tell(f"starting Ray for {node.address}")
        start_detached(node, variables, lambda address, value: bool(knows(address, NONCE, value)))


def _warn_of_listening(listen: str) -> None:
    click.echo(
        f"moe-harness: warning: Ray listens on all interfaces of this host then, not on {one_line(listen)} alone; who "
        "reaches its ports and has the token runs code as this user: keep them behind a firewall",
        err=True,
    )


def _token(given: Path | None) -> Path:
    if given is None:
        return token_file()
    if str(given) == "-":
        return kept_token(sys.stdin.read(_LONGEST_TOKEN), "standard input")
    return token_from(given)


def _joinable(address: str, token: Path) -> str:
    """The head's host, once it answers, takes the token and has our versions."""
    os.environ.update({**ray_environment(address), **environment_with(token)})
    module: Any = importlib.import_module("harness.execution.ray_join")
    host, _ = module.host_and_port(address, "fleet join")
    if is_loopback(str(host)) or host == "localhost":
        hint = "start the head with `moe-harness fleet up --listen ADDRESS`, and join that"
        message = "a head that listens on its own host alone can't be joined by Ray"
        raise BadInput("E-fleet-loopback", message, hint=hint, where=address)
    module.require_cluster(address, "fleet join")
    return str(host)


def _address_here() -> str:
    here = nodes_here()
    if not here:
        hint = "name its head with --address HOST:PORT, or start one: moe-harness fleet up"
        raise BadInput("E-fleet-none", "no node of a cluster was started on this host", hint=hint, where="fleet status")
    return here[0].address


fleet.add_command(lock)
fleet.add_command(hold)
fleet.add_command(release_)


# ---- telling ---------------------------------------------------------------------------------------------------------


def _print_status(found: Any) -> None:
    table = plain_table("node", "host", "state", "processor", "cores", "RAM GiB", "GPUs", "offers")
    for node in found.nodes:
        facts = node.facts
        gpus = ", ".join(f"{gpu.name} {gpu.vram_bytes / GIB:.0f} GiB" for gpu in facts.gpus) if facts else ""
        probed = (facts.cpu_model, str(facts.cores), f"{facts.usable_ram_bytes / GIB:.0f}") if facts else ("", "", "")
        offers = said_resources({name: node.resources[name] for name in node.resources if name in _TOLD})
        table.add_row(*(Text(one_line(cell)) for cell in (node.id[:8], node.host, node.state, *probed, gpus, offers)))
    stdout_console(_PIPE_WIDTH).print(table)
    for node in found.nodes:
        if node.reason:
            click.echo(one_line(f"{node.id[:8]} {node.host}: {node.reason}"))
    click.echo(f"{found.address}: {found.slots} slots, {found.free_slots} of them free")


_TOLD = frozenset({SLOT, "ram_gib", "vram_gib", "disk_gib", "GPU"})


def _print_findings(found: Sequence[Finding]) -> None:
    table = plain_table("check", "", "found")
    for finding in found:
        style = "yellow" if finding.level is Level.WARNING else ""
        table.add_row(finding.check, Text(finding.level.value, style=style), Text(one_line(finding.found)))
    stdout_console(_PIPE_WIDTH).print(table)
    warnings = [finding for finding in found if finding.level is Level.WARNING]
    for finding in warnings:
        click.echo(one_line(f"{finding.check}: {finding.why}. What to do: {finding.todo}"))
    told = (
        f"{len(warnings)} would spoil measurements here" if warnings else "nothing found that spoils measurements here"
    )
    click.echo(told)
