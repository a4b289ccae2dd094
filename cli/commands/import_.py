"""`kiebitz import`: import capture files into a database, each as a session."""

from __future__ import annotations

import os
import shlex
from contextlib import AbstractContextManager, closing, nullcontext
from signal import SIGHUP, SIGTERM
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from kiebitz.cli.options.anonymizing import (
    anonymize_option,
    check_mapping_file,
    mapping_file_option,
    writing_mapping,
)
from kiebitz.cli.options.decode_as import decode_as_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.recording import RecordingRoom, database_option, max_size_option
from kiebitz.cli.status import FAILED
from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.proxy.capture.files import CaptureError
from kiebitz.proxy.system.deferred_signals import signals_handled
from kiebitz.services.anonymizing import pseudonyms_if
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.faults import infrequent_gc
from kiebitz.services.importing.losses import print_losses
from kiebitz.services.importing.packets import import_capture
from kiebitz.services.progress import OnProgress
from kiebitz.services.recording.note import refuse_if_unfinished
from kiebitz.services.recording.summary import summary
from kiebitz.services.sessions import is_database
from kiebitz.services.standard_streams import is_stderr_terminal, print_error_line, warn
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.disk_space import check_reserve

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@database_option
@max_size_option
@decode_as_option
@protocol_option
@anonymize_option
@mapping_file_option
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1, 2),
    help="Import large captures in 1 process or 2. Two take less time and more CPU time.  "
    "[default: 2; 1 if Kiebitz is compiled]",
)
def import_(
    files: tuple[str, ...],
    database: str,
    max_size: int | None,
    decode_as: tuple[str, ...],
    is_anonymized: bool,
    mapping_file: str | None,
    jobs: int | None,
) -> None:
    """Import capture files into a database, each as a session.

    Accepts pcap and pcapng, also as .gz or .zst, and - for standard input. From another database, the
    recorded bytes are imported. A folder left by a killed relay is recovered into the database it was
    recorded into, or the one given with -w.

    With --anonymize, no personal data gets into the database.

    \b
    Example:
      kiebitz import captures/maexchen-head-tiny.pcap -w game.db
      tcpdump -w - udp port 9000 | kiebitz import - -w game.db
    """
    check_mapping_file(is_anonymized, mapping_file)
    if mapping_file is not None and any(map(os.path.isdir, files)):
        raise click.UsageError("--mapping-file requires a capture or a database, not a relay's folder")
    forced = parse_decode_as(decode_as)
    stand_ins = pseudonyms_if(is_anonymized)
    room, failed = RecordingRoom(max_size), False
    with writing_mapping(mapping_file, stand_ins), signals_handled(SIGTERM, SIGHUP):
        for file in files:
            try:
                if os.path.isdir(file):
                    # Loaded only if needed.
                    from kiebitz.services.recording.resume import resume_recording

                    given = click.get_current_context().get_parameter_source("database")
                    elsewhere = database if given is ParameterSource.COMMANDLINE else None
                    failed |= not resume_recording(file, elsewhere, is_anonymized=is_anonymized)
                    continue
                check_reserve(database)
                if os.path.isfile(file) and is_database(file):
                    _import_database(file, database, forced, room, stand_ins)
                    continue
                with _loading(file) as on_progress:
                    recording, _ = import_capture(
                        file, database, forced, on_progress, room.is_full, stand_ins, jobs
                    )
            except CaptureError as error:
                warn(str(error))
                failed = True
                continue
            print_error_line(f"{file}: {recording.packets} packets, {summary(recording.recorder)}")
            print_losses(file, recording.losses)
            _warn_about_copy(file, database, recording.recorder.session_id)
            room.exit_if_full()
    if failed:
        raise click.exceptions.Exit(FAILED)


def _loading(file: str) -> AbstractContextManager[OnProgress]:
    """Show a progress bar on a terminal. Rich, which draws it, takes a tenth of a short import to load."""
    if not is_stderr_terminal():
        return nullcontext(lambda done, total: None)
    from kiebitz.cli.terminal.screen import loading

    return loading(file)


def _import_database(
    source: str, database: str, forced: DecodeAs, room: RecordingRoom, stand_ins: Pseudonyms | None
) -> None:
    """Import the sessions of another database from their bytes. Raises StorageError."""
    # Not needed for captures.
    from kiebitz.cli.terminal.screen import counting
    from kiebitz.storage.database.opening import open_existing
    from kiebitz.storage.derived.derived_session import copy_session

    if os.path.exists(database) and os.path.samefile(source, database):
        raise StorageError(f"{source}: cannot import a database into itself; give another one with -w")
    refuse_if_unfinished(database)
    with closing(open_existing(source)) as connection:
        for session in sessions(connection):
            name = f"{source}:{session.id}"
            with infrequent_gc(), counting(name, "chunks") as on_progress:
                recorder = copy_session(
                    Timeline(connection, session), database, forced, on_progress, room.is_full, stand_ins
                )
            print_error_line(f"{name}: {summary(recorder)}")
            _warn_about_copy(name, database, recorder.session_id)
            room.exit_if_full()


def _warn_about_copy(name: str, database: str, session: int) -> None:
    """Warn if another session of the database has the same traffic. Raises StorageError."""
    if session == 1:
        return
    # Not needed for the first session.
    from kiebitz.storage.database.opening import open_existing
    from kiebitz.storage.read.recorded_bytes import find_duplicate_session

    with closing(open_existing(database)) as connection:
        copy = find_duplicate_session(connection, session)
    if copy is not None:
        warn(
            f"{name}: {database} already has this traffic as session {copy};"
            f" kiebitz sessions {shlex.quote(database)} --delete {session} removes it again"
        )
