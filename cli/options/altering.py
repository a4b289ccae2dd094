"""The relay's options that alter messages as they pass: read in the order in which they were given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kiebitz.cli.options.catalog import completed
from kiebitz.proxy.relay.modes import Mode, Reverse

if TYPE_CHECKING:
    from kiebitz.services.alteration.impairment import Impairment
    from kiebitz.services.alteration.rules import Rule

_ORDER = "kiebitz.order"
"""Where a command notes the names of the options that were given, one after the other."""

_F = TypeVar("_F", bound=Callable[..., object])

_NAMES = ("change", "drop", "double", "delay", "insert", "hold", "impair", "scripts")


class OrderedCommand(click.Command):
    """A command that knows in which order its options were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the order, then do what each command does."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            ctx.meta[_ORDER] = [parameter.name for parameter in order]
        return super().parse_args(ctx, args)


def altering_options(command: _F) -> _F:
    """Add all of them to a command, which gets their values by name; see `read_rules`."""
    about = "FILTER [WHICH]"
    for option in reversed(
        (
            click.option(
                "--change",
                multiple=True,
                shell_complete=completed,
                nargs=2,
                metavar=f"'{about}' 'FIELD=VALUE …'",
                help="Give the fields of these messages other values as they pass, as in "
                "--change 'msg == \"ROLLED\" [2nd]' dice=2,1. WHICH is [2nd], [first 2], [every 3rd] or "
                "[20%, seed 7], counted for each direction of each stream. FILTER may ask for state.FIELD, "
                "the table by then. The options from here to -s may be repeated; their order counts.",
            ),
            click.option(
                "--drop",
                multiple=True,
                shell_complete=completed,
                metavar=f"'{about}'",
                help="Do not pass these messages on.",
            ),
            click.option(
                "--double",
                multiple=True,
                shell_complete=completed,
                metavar=f"'{about}'",
                help="Pass these messages on twice.",
            ),
            click.option(
                "--delay",
                multiple=True,
                shell_complete=completed,
                nargs=2,
                metavar=f"'{about}' 500ms[±100ms]",
                help="Let these messages wait, and those behind them with them; with '500ms, reorder' those "
                "behind them do not.",
            ),
            click.option(
                "--insert",
                multiple=True,
                shell_complete=completed,
                nargs=2,
                metavar=f"'{about}' 'NAME FIELD=VALUE …'",
                help="Put in another message behind each of these, on the same stream and going the same "
                "way, unless only the other side has such messages.",
            ),
            click.option(
                "--hold",
                multiple=True,
                shell_complete=completed,
                metavar=f"'{about}'",
                help="Let these messages wait until somebody lets them go, edits or drops them in kiebitz "
                "watch or on the page of kiebitz serve.",
            ),
            click.option(
                "--impair",
                multiple=True,
                metavar="HOW",
                help="Let everything pass as through a bad network: 'loss 5%, delay 80ms±20ms, reorder 2%, "
                "double 1%, rate 64kbit/s, cut 10%, reset 1%, seed 7'. Datagrams are lost, come twice or "
                "behind the next one; byte streams are cut into pieces or reset.",
            ),
            click.option(
                "-s",
                "scripts",
                multiple=True,
                metavar="HOOKS.PY",
                help="Let the functions of this file say what becomes of each message.",
            ),
            click.option(
                "--force", "is_forced", is_flag=True, help="Send values that the grammar does not allow, too."
            ),
            click.option(
                "--at-end",
                type=click.Choice(["let-go", "drop"]),
                default="let-go",
                show_default=True,
                help="What becomes of messages that are held when Kiebitz ends.",
            ),
        )
    ):
        command = option(command)
    return command


def read_rules(ctx: click.Context, modes: Sequence[Mode]) -> list[Rule]:
    """What the options say, in their order. Raises click.UsageError, RuleError and FilterError."""
    given: Mapping[str, Any] = ctx.params
    is_forced = bool(given["is_forced"])
    if not any(given[name] for name in _NAMES):
        for option, is_given in (("--force", is_forced), ("--at-end", given["at_end"] == "drop")):
            if is_given:
                raise click.UsageError(f"{option} goes with an option that alters messages")
        return []
    # The filter language takes its time to load, and most relays alter nothing.
    from kiebitz.services.alteration.impairment import ImpairmentError, parse_impairment
    from kiebitz.services.alteration.rules import (
        Impair,
        RuleError,
        Script,
        change,
        delay,
        double,
        drop,
        hold,
        insert,
        option_text,
    )

    def impair(how: str) -> Rule:
        try:
            rule = Impair(text=option_text("--impair", how), impairment=parse_impairment(how))
        except ImpairmentError as error:
            raise RuleError(f"--impair: {error}") from error
        _refuse_in_vain(rule.impairment, modes)
        return rule

    readers: Mapping[str, Callable[[Any], Rule]] = {
        "change": lambda values: change(*values, is_forced=is_forced),
        "drop": drop,
        "double": double,
        "delay": lambda values: delay(*values),
        "insert": lambda values: insert(*values, is_forced=is_forced),
        "hold": hold,
        "impair": impair,
        "scripts": lambda path: Script(text=option_text("-s", path), path=path),
    }
    waiting: dict[str, Iterator[Any]] = {name: iter(given[name]) for name in _NAMES}
    return [readers[name](next(waiting[name])) for name in ctx.meta[_ORDER] if name in readers]


def _refuse_in_vain(how: Impairment, modes: Sequence[Mode]) -> None:
    """Raise click.UsageError where something that is asked for can never happen."""
    transports = {mode.transport if isinstance(mode, Reverse) else None for mode in modes}
    if transports in ({"udp"}, {"tcp"}):
        (transport,) = transports
        names = how.only_for(str(transport))
        if names:
            other = "TCP" if transport == "udp" else "UDP"
            raise click.UsageError(
                f"--impair: {names[0]} is nothing for {str(transport).upper()}, but for {other}"
            )
