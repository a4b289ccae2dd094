"""`kiebitz import`: capture files into a database, each a session."""

from __future__ import annotations

from functools import partial

import click

from cli.console import tell, warn
from cli.decode_as import decode_as_option, parse_decode_as
from cli.importing import import_capture, tell_losses
from cli.recording_options import database_option, summary
from cli.screen import Progress, TaskID, loading
from proxy.capture_files import CaptureError


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@database_option
@decode_as_option
def import_command(files: tuple[str, ...], database: str, decode_as: tuple[str, ...]) -> None:
    """Read capture files into a database, each as a session of its own.

    pcap and pcapng are read, also in .gz and .zst; - is standard input.

    \b
    Example:
      kiebitz import captures/maexchen-head-tiny.pcap -w game.db
      tcpdump -w - udp port 9000 | kiebitz import - -w game.db
    """
    forced = parse_decode_as(decode_as)
    failed = False
    for file in files:
        try:
            with loading() as progress:
                show = partial(_show, progress, progress.add_task(file, total=None))
                recording, truncated = import_capture(file, database, forced, show)
        except CaptureError as error:
            # One bad file does not keep the others out.
            warn(str(error))
            failed = True
            continue
        tell(f"{file}: {recording.packets} packets, {summary(recording.recorder)}")
        tell_losses(file, recording, truncated)
    if failed:
        raise click.exceptions.Exit(1)


def _show(progress: Progress, bar: TaskID, done: int, size: int | None) -> None:
    progress.update(bar, completed=done, total=size)
