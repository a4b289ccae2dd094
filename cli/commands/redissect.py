"""`kiebitz redissect`: reads the recorded bytes of a database anew."""

from __future__ import annotations

import click

from kiebitz.cli.options.decode_as import decode_as_option
from kiebitz.cli.options.session import open_session
from kiebitz.cli.terminal.screen import progress_bar
from kiebitz.dissectors.model import port_of
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.gc_tuning import infrequent_gc
from kiebitz.services.recording.unfinished import refuse_if_unfinished
from kiebitz.services.sessions import is_database, split_number
from kiebitz.services.standard_streams import warn
from kiebitz.storage.database.opening import recover
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.derived.redissect import redissect as redissect_database


@click.command()
@click.argument("database", metavar="DB", type=click.Path())
@decode_as_option
def redissect(database: str, decode_as: tuple[str, ...]) -> None:
    """Make everything but the recorded bytes anew, in all sessions of a database or in one (DB:N).

    This is for a database that an older Kiebitz has written, and for ports whose protocol was not recognised.

    \b
    Example:
      kiebitz redissect game.db
      kiebitz redissect game.db:2 -d udp.port==4711,maexchen
    """
    forced = parse_decode_as(decode_as)
    path, number = split_number(database)
    if not is_database(path):
        raise StorageError(f"{path}: this is no session database; import it with kiebitz import")
    recover(path)
    if number is not None:
        # Says which sessions there are if there is no such one.
        open_session(database).connection.close()
    # What a recovery resumes would not be what the recorder has left.
    refuse_if_unfinished(path)
    with infrequent_gc(), progress_bar(database) as on_progress:
        lost = redissect_database(path, number, forced, on_progress)
    for transport, server, protocol in lost:
        port = port_of(server)
        if (transport, port) not in forced:
            warn(
                f"{server} was read as {protocol} before and is not recognised now;"
                f" if it is {protocol}, say so: -d {transport}.port=={port},{protocol}"
            )
