"""`kiebitz serve`: serve the table as a web page, live or recorded."""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import click

from kiebitz.cli.options.companions import HOST, PORT
from kiebitz.cli.options.protocol_files import files_to_reload, protocol_option, reload_option
from kiebitz.cli.options.serving import Serving, serving_options
from kiebitz.cli.options.session import open_stored_session, sessions_argument
from kiebitz.dissectors.registry import using_copies
from kiebitz.proxy.system.deferred_signals import signals_handled
from kiebitz.services.sessions import all_sessions, is_changed_by_files, is_database, split_number
from kiebitz.services.standard_streams import warn

if TYPE_CHECKING:
    from kiebitz.cli.web.reader import ServedSession


@click.command()
@sessions_argument
@protocol_option
@click.option("--host", default=HOST, show_default=True, metavar="ADDR", help="Listen on this address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Listen on this port; 0 selects a free one.",
)
# relay has another --delay.
@partial(serving_options, more_names=["--delay"])
@reload_option
def serve(
    sessions: tuple[str, ...],
    host: str,
    port: int,
    serving: Serving,
    reloads: bool,
) -> None:
    """Serve the table as a web page: for a class, on a projector or on tablets.

    A session that is being recorded is followed. Several sessions have a home page, which lists them with the
    live ones first; DB:* is all sessions of a database, and a folder all databases (*.db) in it, also those
    that appear later. The page needs no key on this machine; on other addresses, every request needs the key
    in the printed link.

    \b
    Example:
      kiebitz serve game.db --open
      kiebitz serve recordings/ --host 0.0.0.0
      kiebitz serve game.db --host 0.0.0.0 --player-links
      kiebitz serve lesson.pcap -P uno.toml --reload
    """
    paths = [one for one in sessions if os.path.isdir(one)]
    if reloads and paths:
        raise click.UsageError(f"--reload needs sessions, and {paths[0]} is a folder: name its databases")
    # Slow to import.
    from kiebitz.cli.web.run import open_listener, run
    from kiebitz.cli.web.session_folders import SessionFolders

    if reloads and serving.delay_s is not None:
        raise click.UsageError(
            "--reload is for recorded sessions, and --delay for live ones: give one of them"
        )
    folders = SessionFolders(paths) if paths else None
    named = list(all_sessions([one for one in sessions if one not in paths]))
    count = len(named)
    if folders is not None:
        named += [f"{path}:{number}" for path, number in folders.look()]
    files = files_to_reload(reloads, named)

    with ExitStack() as stack:
        # To remove temporary files.
        stack.enter_context(signals_handled(signal.SIGTERM))
        # Listen before loading, to report a port in use at once.
        listener = stack.enter_context(open_listener(host, port))
        served = [
            _served(stack, number, session, is_found=number > count)
            for number, session in enumerate(named, 1)
        ]
        run(served, listener, host, serving, files=files, sources=named, folders=folders)
    # Only a signal ends the server.
    raise click.Abort


def _served(stack: ExitStack, number: int, session: str, is_found: bool) -> ServedSession:
    """Open a session of a database; import a capture into a temporary one, which the stack removes.

    A session that the protocol files given may change is dissected into a temporary database, too.
    """
    from kiebitz.cli.web.reader import ServedSession

    path, _ = split_number(session)
    served = ServedSession(number, path, 0, os.path.basename(path), is_found=is_found)
    with using_copies(served.copies):
        if path != "-" and is_database(path):
            timeline = open_stored_session(session)
            stored = f"{path}:{timeline.session.id}"
            served.name, served.session_id = os.path.basename(stored), timeline.session.id
            if is_changed_by_files(timeline):
                from kiebitz.services.reloading import dissect_into

                served.path = _temporary_database(stack)
                served.session_id = dissect_into(stored, served.path).session_id
        else:
            from kiebitz.cli.terminal.screen import loading
            from kiebitz.services.importing.packets import import_capture

            served.path = _temporary_database(stack)
            with loading(path) as on_progress:
                recording, served.lacks = import_capture(path, served.path, {}, on_progress)
            if served.lacks is not None:
                warn(f"{path}: {served.lacks}")
            served.session_id = recording.recorder.session_id
    return served


def _temporary_database(stack: ExitStack) -> str:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kiebitz-"))
    return os.path.join(folder, "capture.db")
