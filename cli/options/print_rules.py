"""`kiebitz relay --print-rules`: firewall rules that redirect traffic to a transparent relay."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click
import msgspec

from kiebitz.cli.param_type import ParamType
from kiebitz.cli.terminal.console import show_lines
from kiebitz.proxy.relay.firewall_rules import Ports, Redirection, format_rules, generate_rules
from kiebitz.proxy.relay.modes import Mode, Transparent
from kiebitz.services.decode_as import TRANSPORTS

_HIGHEST = 65_535
_PORTS = re.compile(r"(?:(tcp|udp)/)?([0-9]{1,5})(?:-([0-9]{1,5}))?", re.A)
_INTERFACE = re.compile(r"[\w.@:+-]{1,15}", re.A)
"""Names without characters that a shell interprets, as the rules are a shell script."""


class PortsType(ParamType[Ports]):
    """Parser of `9000`, `udp/9000` and `7001-7003`."""

    name = "ports"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Ports:
        match = _PORTS.fullmatch(value)
        first, last = (int(match[2]), int(match[3] or match[2])) if match else (0, 0)
        if match is None or not 0 < first <= last <= _HIGHEST:
            self.fail(f"'{value}' is not of the form 9000, udp/9000 or 7001-7003", param, ctx)
        return Ports(first, last, TRANSPORTS.get(match[1] or ""))


class InterfaceType(ParamType[str]):
    """Parser of a network interface's name; the interface need not exist yet."""

    name = "interface"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _INTERFACE.fullmatch(value):
            self.fail(f"'{value}' is not the name of an interface, such as wlan0 or lo", param, ctx)
        return value


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
