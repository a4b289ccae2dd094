"""`kiebitz events`: list the events of games as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kiebitz.cli.listings import EVENTS
from kiebitz.cli.multi_session import list_sessions, these
from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.messages import player_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.session import sessions_argument
from kiebitz.cli.plugins import warn_about_missing
from kiebitz.cli.terminal.table import Form, output_options
from kiebitz.services.sessions import is_several
from kiebitz.services.standard_streams import is_stderr_terminal, warn
from kiebitz.storage.read.players import check_player, known_players
from kiebitz.storage.session.session import Event, Session

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


@click.command()
@sessions_argument
@filter_option
@protocol_option
@player_option
@output_options
def events(sessions: tuple[str, ...], wanted: Filter | None, player: str | None, form: Form | None) -> None:
    """List the events of games as sentences, combined from the messages of all players.

    \b
    Example:
      kiebitz events game.db -Y 'game == 3'
      kiebitz events game.db --as alice
      kiebitz events 'game.db:*' other.pcap
    """
    if wanted is not None and wanted.asks("player") and not wanted.asks("named") and is_stderr_terminal():
        warn('player is the acting player; named == "alice" matches all events that name alice')
    nothing = "no matching events" if wanted or player else f"no events in {these(sessions)}"
    is_one = not is_several(sessions)
    list_sessions(sessions, EVENTS, lambda session: _events(session, wanted, player, is_one), form, nothing)


def _events(session: Session, wanted: Filter | None, player: str | None, is_one: bool) -> Iterator[Event]:
    warn_about_missing(session.timeline)
    if player is not None and is_one:
        check_player(session.timeline, player)
    elif player is not None and player not in known_players(session.timeline):
        # Not every session need have the player.
        return iter(())
    return session.events(wanted, player)
