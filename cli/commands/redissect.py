"""`kiebitz redissect`: dissect the recorded bytes of a database again."""

from __future__ import annotations

import click

from kiebitz.cli.options.decode_as import decode_as_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.model import port_of
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.faults import infrequent_gc
from kiebitz.services.recording.note import refuse_if_unfinished
from kiebitz.services.sessions import is_database, split_number
from kiebitz.services.standard_streams import warn
from kiebitz.storage.database.opening import recover
from kiebitz.storage.database.schema import StorageError


@click.command()
@click.argument("database", metavar="DB", type=click.Path())
@decode_as_option
@protocol_option
def redissect(database: str, decode_as: tuple[str, ...]) -> None:
    """Dissect the recorded bytes of a database, or of one session (DB:N), again.

    Use it for a database written by an older Kiebitz, and for ports whose protocol was not recognised.

    \b
    Example:
      kiebitz redissect game.db
      kiebitz redissect game.db:2 -d udp.port==4711,maexchen
    """
    # They load slowly, and help does without.
    from kiebitz.cli.terminal.screen import progress_bar
    from kiebitz.storage.derived.redissect import redissect as redissect_database

    forced = parse_decode_as(decode_as)
    path, number = split_number(database)
    if not is_database(path):
        raise StorageError(f"{path}: not a session database; import it with kiebitz import")
    recover(path)
    if number is not None:
        # Raises an error that lists the sessions if this one does not exist.
        open_session(database).connection.close()
    # A later recovery would find another database than the recorder left.
    refuse_if_unfinished(path)
    with infrequent_gc(), progress_bar(database) as on_progress:
        lost = redissect_database(path, number, forced, on_progress)
    for transport, server, protocol in lost:
        port = port_of(server)
        if (transport, port) not in forced:
            remedy = f"to decode it as {protocol}: -d {transport}.port=={port},{protocol}"
            if dissector_of(protocol) is None:
                remedy = not_installed(protocol)
            warn(f"{server} was decoded as {protocol} before and is not recognised now; {remedy}")
