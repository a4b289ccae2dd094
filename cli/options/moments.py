"""The options that name a moment or a game of a session, for `state` and `replay`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kiebitz.cli.completion.session import complete_game, complete_moment, complete_player
from kiebitz.cli.options.parsed import Parsed
from kiebitz.storage.read.seek import parse_position

game_option = click.option(
    "--game", "number", type=int, metavar="N", shell_complete=complete_game, help="This game only."
)

player_option = click.option(
    "--as",
    "player",
    metavar="PLAYER",
    shell_complete=complete_player,
    help="Only what this player could know.",
)


def moment_option(flag: str, parameter: str, help_text: str) -> Callable[[Any], Any]:
    """An option that takes a moment, None if it is not given."""
    return click.option(
        flag,
        parameter,
        type=Parsed("moment", parse_position),
        metavar="MOMENT",
        shell_complete=complete_moment,
        help=help_text,
    )
