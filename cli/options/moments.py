"""Options that select a moment, a game or a player of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kiebitz.cli.completion.session import complete_game, complete_moment, complete_player
from kiebitz.cli.param_type import Parsed
from kiebitz.dissectors.model import PUBLIC
from kiebitz.storage.read.seek import parse_position

game_option = click.option(
    "--game", "number", type=int, metavar="N", shell_complete=complete_game, help="Only this game."
)

player_option = click.option(
    "--as",
    "player",
    metavar="PLAYER",
    shell_complete=complete_player,
    help=f"Show only what this player could observe; {PUBLIC}: what all at the table may know.",
)


def moment_option(flag: str, parameter: str, help_text: str) -> Callable[[Any], Any]:
    """Return an option for a moment; None if it is not given."""
    return click.option(
        flag,
        parameter,
        type=Parsed("moment", parse_position),
        metavar="MOMENT",
        shell_complete=complete_moment,
        help=help_text,
    )
