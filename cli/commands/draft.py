"""`kiebitz draft`: infer a first protocol file from traffic."""

from __future__ import annotations

import os
import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from kiebitz.cli.completion.session import SessionType
from kiebitz.services.importing.losses import print_losses
from kiebitz.services.output_files import STANDARD_OUTPUT, opened
from kiebitz.services.progress import OnProgress
from kiebitz.services.sessions import all_sessions
from kiebitz.services.standard_streams import print_error_line, warn
from kiebitz.services.wording import counted

if TYPE_CHECKING:
    from kiebitz.dissectors.drafting.draft import Draft


_BY_HAND = {
    "blocks of lines": 'Write packets of lines by hand: format = "lines", end, and a line for each field',
    "lines that belong": "Write these lines by hand, as in LIST = 's: n=integer names=[player\\n]*n'",
    "text without an end": 'Write the file by hand with framing = "send", or a header with the length',
}
"""Advice on writing by hand, by the beginning of the observation."""


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...", type=SessionType())
@click.option(
    "--server",
    "ports",
    multiple=True,
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Use only the traffic of the server at this port; repeatable.",
)
@click.option(
    "-o", "--output", type=click.Path(), metavar="FILE", help="Write the protocol file to this file."
)
@click.option("--force", is_flag=True, help="Write a draft that does not describe its own traffic, too.")
def draft(captures: tuple[str, ...], ports: tuple[int, ...], output: str | None, force: bool) -> None:
    """Infer a first protocol file from the traffic of an unknown protocol.

    The file describes messages, fields with types, answers, copies for all, heartbeats and players. Comments
    contain the evidence. It is a beginning: use it with -P, and edit it. Databases are read, too.

    A draft that dissects less than 99% of the messages or bytes from which it was made is not written; the
    exit status is then 1.

    \b
    Example:
      kiebitz draft uno.pcap -o uno.toml
      kiebitz draft monday.pcap tuesday.pcap --server 4711 > uno.toml
      kiebitz events uno.pcap -P uno.toml
    """
    # They load slowly, and help does without.
    from kiebitz.cli.terminal.screen import counting, loading
    from kiebitz.services.drafting import DraftError, draft_from, protocol_name, read_traffic, source_name

    if output not in (None, STANDARD_OUTPUT) and os.path.exists(str(output)):
        raise DraftError(f"{output} exists, and may have been edited: name another file, or delete it first")
    names = [*all_sessions(captures)]
    with ExitStack() as bars:

        def progress(name: str) -> OnProgress:
            bars.close()
            return bars.enter_context(loading(name))

        traffic = read_traffic(names, ports, progress)
    for name, loss in traffic.losses:
        print_losses(name, [loss])
    if traffic.is_cut:
        warn("there is more traffic than a draft is made from: the rest is ignored")
    with counting("draft", "steps") as on_progress:
        found = draft_from(traffic, ports, captures, protocol_name(output, captures), on_progress)
    if found.seen and not force:
        by_hand = next((f" {hint}." for seen, hint in _BY_HAND.items() if found.seen.startswith(seen)), "")
        raise DraftError(
            f"{source_name(captures)}: no draft is written: {found.contents.shortfall}. Seen: {found.seen}."
            f"{by_hand} --force writes it nevertheless"
        )
    with opened(output, captures[0]) as file:
        file.write(found.text.encode())
    _summarize(found, captures, output)


def _summarize(found: Draft, captures: tuple[str, ...], output: str | None) -> None:
    """Print coverage, doubts and the next command to stderr."""
    kinds = len({(row.direction, row.name) for row in found.rows})
    pairs = sum(len(row.answers) for row in found.rows)
    copies = sum(row.broadcast for row in found.rows)
    left = f", {counted(found.left_over, 'byte')} in no message" if found.left_over else ""
    print_error_line(
        f"{counted(found.messages, 'message')} of {counted(kinds, 'kind')}:"
        f" {found.described:.1%} fit the draft{left};"
        f" {counted(pairs, 'answer')}, {counted(copies, 'broadcast')}"
    )
    for warning in (*found.warnings, *filter(None, (found.contents.shortfall,))):
        warn(warning)
    if output not in (None, STANDARD_OUTPUT):
        print_error_line(f"Use it: kiebitz events {shlex.quote(captures[0])} -P {shlex.quote(str(output))}")
