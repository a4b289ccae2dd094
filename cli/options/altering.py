"""The relay's options that alter messages in transit, read in command-line order.

`kiebitz relay --print-rules`: firewall rules that redirect traffic to a transparent relay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kiebitz.cli.options.catalog import complete_filter
from kiebitz.cli.options.records import Command, Option, RenamedOption, add_options, as_records
from kiebitz.cli.param_type import Parsed
from kiebitz.cli.terminal.console import show_lines
from kiebitz.proxy.relay.firewall_rules import Ports, Redirection, format_rules, generate_rules
from kiebitz.proxy.relay.modes import Mode, Reverse, Transparent
from kiebitz.services.decode_as import TRANSPORTS

if TYPE_CHECKING:
    from kiebitz.services.alteration.rules import Rule


_ORDER = "kiebitz.order"
"""Key of the option names in command-line order, in the context's metadata."""


class _HeldAtExit(click.Choice):  # type: ignore[type-arg]  # it is generic only since click 8.2
    """The values of --held-at-exit; `let-go` is the former name of `forward`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert("forward" if value == "let-go" else value, param, ctx)


class OrderedCommand(click.Command):
    """A command that records the order of its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Record the order, then parse as usual."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            ctx.meta[_ORDER] = [parameter.name for parameter in order]
        return super().parse_args(ctx, args)


class Altering(msgspec.Struct, frozen=True):
    """The options that alter messages."""

    change: Sequence[tuple[str, str]]
    drop: Sequence[str]
    duplicate: Sequence[str]
    delay: Sequence[tuple[str, str]]
    insert: Sequence[tuple[str, str]]
    hold: Sequence[str]
    impair: Sequence[str]
    scripts: Sequence[str]
    is_forced: bool
    held_at_exit: str


_NAMES = Altering.__struct_fields__[:-2]


def _rule_option(flag: str, help_text: str, change: str = "", **more: Any) -> Option:
    """Return an option for rules about matching messages; `change` is its second value, if it has one."""
    return click.option(
        flag,
        multiple=True,
        shell_complete=complete_filter,
        nargs=2 if change else 1,
        metavar=f"'FILTER [WHICH]' {change}".rstrip(),
        help=help_text,
        **more,
    )


def altering_options(command: Command) -> Command:
    """Add the options of `Altering` to a command, which receives them as `altering`; see `read_rules`."""
    return add_options(
        as_records(altering=Altering)(command),
        _rule_option(
            "--change",
            "Change fields of matching messages in transit, as in "
            "--change 'msg == \"ROLLED\" [2nd]' dice=2,1. WHICH is [2nd], [first 2], [every 3rd] or "
            "[20%, seed 7], counted per direction and stream. FILTER may use state.FIELD, "
            "the state of the table at that time. "
            "The options from here to -s may be repeated and apply in the given order.",
            "'FIELD=VALUE …'",
        ),
        _rule_option("--drop", "Drop matching messages."),
        _rule_option("--duplicate", "Forward matching messages twice.", cls=RenamedOption, former="--double"),
        _rule_option(
            "--delay",
            "Delay matching messages and all messages behind them; with '500ms, reorder' later "
            "messages overtake them.",
            "500ms[±100ms]",
        ),
        _rule_option(
            "--insert",
            "Insert a message after each matching one, on the same stream, in the same direction "
            "unless only the other side sends it.",
            "'NAME FIELD=VALUE …'",
        ),
        _rule_option(
            "--hold",
            "Hold matching messages until they are forwarded, edited or dropped in kiebitz watch or "
            "on the page of kiebitz serve.",
        ),
        click.option(
            "--impair",
            multiple=True,
            metavar="HOW",
            help="Simulate a poor network: 'loss 5%, delay 80ms±20ms, reorder 2%, double 1%, rate "
            "64kbit/s, cut 10%, reset 1%, seed 7'. Datagrams are lost, duplicated or reordered; byte "
            "streams are split into pieces or reset.",
        ),
        click.option(
            "-s",
            "scripts",
            multiple=True,
            metavar="HOOKS.PY",
            help="Let the functions in this file decide what happens to each message.",
        ),
        click.option(
            "--force", "is_forced", is_flag=True, help="Also send values that the grammar does not allow."
        ),
        click.option(
            "--held-at-exit",
            cls=RenamedOption,
            former="--at-end",
            type=_HeldAtExit(["forward", "drop"]),
            default="forward",
            show_default=True,
            help="What to do on exit with messages that are still held.",
        ),
    )


def read_rules(altering: Altering, modes: Sequence[Mode]) -> list[Rule]:
    """Return the rules in command-line order. Raises click.UsageError, RuleError and FilterError."""
    is_forced = altering.is_forced
    if not any(getattr(altering, name) for name in _NAMES):
        for option, is_given in (("--force", is_forced), ("--held-at-exit", altering.held_at_exit == "drop")):
            if is_given:
                raise click.UsageError(f"{option} requires an option that alters messages")
        return []
    # The filter language is slow to import, and most relays alter nothing.
    from kiebitz.services.alteration.rule_values import parse_impairment
    from kiebitz.services.alteration.rules import (
        Impair,
        Script,
        change,
        delay,
        double,
        drop,
        hold,
        insert,
        naming,
        option_text,
    )

    def impair(how: str) -> Rule:
        with naming("--impair"):
            rule = Impair(text=option_text("--impair", how), impairment=parse_impairment(how))
        transports = {mode.transport if isinstance(mode, Reverse) else None for mode in modes}
        if transports in ({"udp"}, {"tcp"}):
            (transport,) = transports
            names = rule.impairment.only_for(str(transport))
            if names:
                other = "TCP" if transport == "udp" else "UDP"
                raise click.UsageError(
                    f"--impair: {names[0]} applies to {other}, not to {str(transport).upper()}"
                )
        return rule

    readers: Mapping[str, Callable[[Any], Rule]] = {
        "change": lambda values: change(*values, is_forced=is_forced),
        "drop": drop,
        "duplicate": double,
        "delay": lambda values: delay(*values),
        "insert": lambda values: insert(*values, is_forced=is_forced),
        "hold": hold,
        "impair": impair,
        "scripts": lambda path: Script(text=option_text("-s", path), path=path),
    }
    waiting: dict[str, Iterator[Any]] = {name: iter(getattr(altering, name)) for name in _NAMES}
    order = click.get_current_context().meta[_ORDER]
    return [readers[name](next(waiting[name])) for name in order if name in readers]


_HIGHEST = 65_535
_PORTS = re.compile(r"(?:(tcp|udp)/)?([0-9]{1,5})(?:-([0-9]{1,5}))?", re.A)
_INTERFACE = re.compile(r"[\w.@:+-]{1,15}", re.A)
"""Names without characters that a shell interprets, as the rules are a shell script."""


def _parse_ports(value: str) -> Ports:
    match = _PORTS.fullmatch(value)
    first, last = (int(match[2]), int(match[3] or match[2])) if match else (0, 0)
    if match is None or not 0 < first <= last <= _HIGHEST:
        raise ValueError(f"'{value}' is not of the form 9000, udp/9000 or 7001-7003")
    return Ports(first, last, TRANSPORTS.get(match[1] or ""))


def _parse_interface(value: str) -> str:
    if not _INTERFACE.fullmatch(value):
        raise ValueError(f"'{value}' is not the name of an interface, such as wlan0 or lo")
    return value


PORTS = Parsed("ports", _parse_ports)
"""Type of `9000`, `udp/9000` and `7001-7003`."""

INTERFACE = Parsed("interface", _parse_interface)
"""Type of a network interface's name; the interface need not exist yet."""


class RedirectedTraffic(msgspec.Struct, frozen=True):
    """The options of `--print-rules`: the traffic to redirect."""

    rules_only: bool
    interfaces: tuple[str, ...]
    ports: tuple[Ports, ...]

    def check_unused(self) -> None:
        """Raise click.UsageError for options without `--print-rules`."""
        if self.interfaces or self.ports:
            raise click.UsageError(f"{'-i' if self.interfaces else '--port'} requires --print-rules")


def print_rules(modes: Sequence[Mode], redirection: RedirectedTraffic, keep_source: bool) -> None:
    """Print the rules for each transparent mode. Raises click.UsageError."""
    transparent = [mode for mode in modes if isinstance(mode, Transparent)]
    if not transparent:
        raise click.UsageError("--print-rules requires a transparent mode: add -m transparent@9001")
    if not redirection.interfaces:
        raise click.UsageError(
            "--print-rules requires the players' interface: add -i wlan0, or -i lo for this machine"
        )
    if not redirection.ports:
        raise click.UsageError("--print-rules requires the servers' ports: add --port 9000, or udp/9000")
    for mode in transparent:
        if not mode.listen_port:
            raise click.UsageError(f"rules for {mode} require a fixed port")
        redirected = Redirection(mode, redirection.interfaces, redirection.ports, keep_source)
        show_lines(format_rules(generate_rules(redirected)).split("\n"))
