"""`kiebitz import`: capture files into a database, each a session."""

from __future__ import annotations

import sys
from functools import partial

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from cli.decode_as import decode_as_option, parse_decode_as
from cli.importing import import_capture, tell_losses
from cli.recording_options import RecordingRoom, database_option, max_size_option, summary
from proxy.capture_files import CaptureError
from storage.escaping import printable
from storage.room import spare


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@database_option
@max_size_option
@decode_as_option
def import_command(
    files: tuple[str, ...], database: str, max_size: int | None, decode_as: tuple[str, ...]
) -> None:
    """Read capture files into a database, each as a session of its own.

    pcap and pcapng are read, also in .gz and .zst; - is standard input.

    \b
    Example:
      kiebitz import captures/maexchen-head-tiny.pcap -w game.db
      tcpdump -w - udp port 9000 | kiebitz import - -w game.db
    """
    forced = parse_decode_as(decode_as)
    failed = False
    room = RecordingRoom(max_size)
    for file in files:
        spare(database)
        try:
            with _progress() as progress:
                show = partial(_show, progress, progress.add_task(escape(printable(file)), total=None))
                recording, truncated = import_capture(file, database, forced, show, room.is_full)
        except CaptureError as error:
            # One bad file does not keep the others out.
            click.echo(f"kiebitz: {printable(str(error))}", err=True)
            failed = True
            continue
        click.echo(f"{printable(file)}: {recording.packets} packets, {summary(recording.recorder)}", err=True)
        tell_losses(file, recording, truncated)
        room.tell_if_full()
    if failed:
        raise click.exceptions.Exit(1)


def _show(progress: Progress, bar: TaskID, done: int, size: int | None) -> None:
    progress.update(bar, completed=done, total=size)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
