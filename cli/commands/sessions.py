"""`kiebitz sessions`: list, rename, annotate or delete the sessions of a database."""

from __future__ import annotations

import os
from contextlib import closing

import click

from kiebitz.cli.configuration.file import configuration
from kiebitz.cli.listings import SESSIONS
from kiebitz.cli.options.recording import SESSION_NAME, UTF8
from kiebitz.cli.options.session import open_database
from kiebitz.cli.terminal.console import confirmed, has_keyboard
from kiebitz.cli.terminal.table import Form, batches, hiding, output_options, show
from kiebitz.services.sessions import is_database, session_of
from kiebitz.storage.database.opening import recover
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.timeline import counted_sessions


@click.command()
@click.argument("database", metavar="[DB]", type=click.Path(), default=lambda: configuration().database)
@click.option("--rename", "renamed", type=(int, SESSION_NAME), metavar="N NAME", help="Rename session N.")
@click.option(
    "--note",
    "noted",
    type=(int, UTF8),
    metavar="N TEXT",
    help="Set the note of session N; '' removes it.",
)
@click.option(
    "--delete",
    "deleted",
    type=int,
    metavar="N",
    multiple=True,
    help="Permanently delete session N and its recording. May be repeated.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@output_options
def sessions(
    database: str,
    renamed: tuple[int, str] | None,
    noted: tuple[int, str] | None,
    deleted: tuple[int, ...],
    yes: bool,
    form: Form | None,
) -> None:
    """List the sessions of a database, or rename, annotate or delete them.

    The default DB is kiebitz.db, or the one in the configuration file.

    Deleting rewrites the file without any trace of the session. The other sessions keep their numbers.

    \b
    Example:
      kiebitz sessions game.db
      kiebitz sessions game.db --rename 2 final.pcap --note 2 'carl cheats in round 7'
      kiebitz sessions game.db --delete 3
    """
    if yes and not deleted:
        raise click.UsageError("--yes requires --delete")
    if renamed is None and noted is None and not deleted:
        _list(database, form)
        return
    if form is not None:
        raise click.UsageError(f"--{form} lists sessions: it excludes --rename, --note and --delete")
    # Slow to import; a listing does without.
    from kiebitz.services.recording.note import refuse_if_unfinished
    from kiebitz.storage.recording import maintenance

    if not os.path.exists(database) or not is_database(database):
        raise StorageError(f"{database}: not a database")
    refuse_if_unfinished(database)
    recover(database)
    given = [*(one[0] for one in (renamed, noted) if one is not None), *deleted]
    with closing(open_database(database)) as connection:
        found = {number: session_of(connection, database, number)[0].session for number in given}
    if deleted and not yes:
        names = ", ".join(f"{number} ({found[number].name})" for number in dict.fromkeys(deleted))
        if not has_keyboard():
            raise click.UsageError("cannot ask for confirmation without a terminal: add --yes")
        if not confirmed(f"Permanently delete from {database}: {names}?"):
            raise click.Abort
    if renamed is not None:
        maintenance.update(database, renamed[0], {"name": renamed[1]})
    if noted is not None:
        maintenance.update(database, noted[0], {"note": noted[1] or None})
    if deleted:
        maintenance.delete(database, deleted)


def _list(database: str, form: Form | None) -> None:
    found = counted_sessions(open_database(database))
    # A table has these columns only if there is anything in them.
    empty = {key for key in ("note", "lacks") if all(getattr(row, key) is None for row in found)}
    columns = hiding(SESSIONS, lambda column: column.key in empty)
    show(columns, batches(found), form, "no sessions in this database")
