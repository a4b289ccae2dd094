"""The options of the page's server, shared by `kiebitz serve` and all recording commands with `--serve`."""

from __future__ import annotations

from collections.abc import Sequence

import click
import msgspec

from kiebitz.cli.options.records import Command, add_options, as_records

_FLAGS = {"opens": "--open", "player_links": "--player-links", "is_read_only": "--read-only"}
"""Flags by parameter name, which is also the field of `Serving`."""


_DELAY = "--spectator-delay"
_KEYS = "--keys"
_MAX_DELAY_S = 3600


class Serving(msgspec.Struct, frozen=True):
    """The settings of the page's server, other than its address."""

    opens: bool = False
    player_links: bool = False
    is_read_only: bool = False
    delay_s: float | None = None
    keys: str | None = None

    def words(self) -> list[str]:
        """Return the settings as options of `kiebitz serve`."""
        delay = [] if self.delay_s is None else [_DELAY, f"{self.delay_s:g}"]
        keys = [] if self.keys is None else [_KEYS, self.keys]
        return [*(flag for name, flag in _FLAGS.items() if getattr(self, name)), *delay, *keys]


def serving_options(command: Command, more_names: Sequence[str] = ()) -> Command:
    """Add the options to a command, which receives them as `serving`.

    `more_names` are further names of the spectators' delay.
    """
    return add_options(
        as_records(serving=Serving)(command),
        click.option("--open", "opens", is_flag=True, help="Open the page in a browser."),
        click.option(
            "--player-links",
            is_flag=True,
            help="Print a link for each player that shows only what that player could observe.",
        ),
        click.option(
            "--read-only",
            "is_read_only",
            is_flag=True,
            help="Allow no actions on messages held by relay --hold, and no files to be opened on the page.",
        ),
        click.option(
            *more_names,
            _DELAY,
            "delay_s",
            type=click.FloatRange(0, _MAX_DELAY_S, min_open=True),
            metavar="SECONDS",
            help="Show live games to spectators, who have the public view, this much later, so that players"
            " gain nothing from the projector.",
        ),
        click.option(
            _KEYS,
            "keys",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="Keep the keys of the links in this file, so that they are valid after a restart, too.",
        ),
    )


def check_serving(serving: Serving, is_served: bool) -> None:
    """Raise UsageError if there are settings for a server that does not run."""
    words = serving.words()
    if words and not is_served:
        raise click.UsageError(f"{words[0]} requires --serve")
