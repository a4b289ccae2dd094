"""Firewall rules that redirect traffic to a transparent relay, and their removal, for users to run.

This module only generates text: Kiebitz never changes the firewall. Packets of other machines arrive at a
network interface. Packets of programs on this machine (interface `lo`) are marked on output and come in again
through `lo`. Packets with the relay's own mark are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kiebitz.dissectors.model import Transport
from kiebitz.proxy.relay.endpoints import UNSPECIFIED_ADDRESSES, endpoint_text
from kiebitz.proxy.relay.modes import Transparent
from kiebitz.proxy.relay.transparent import OWN_MARK

_TRANSPORTS: tuple[Transport, ...] = ("tcp", "udp")
_LOOPBACK = {4: "127.0.0.1", 6: "::1"}
_MARKS = 0x4B0000
"""Packets for the relay on port P get this mark plus P; the routing table has the same number."""


class Ports(msgspec.Struct, frozen=True):
    """A range of game server ports, `first` to `last`; a `transport` of None means TCP and UDP."""

    first: int
    last: int
    transport: Transport | None = None

    def text(self, mark: str) -> str:
        """Return the single port, or the first and last port joined by `mark`."""
        return str(self.first) if self.first == self.last else f"{self.first}{mark}{self.last}"


class FirewallRules(msgspec.Struct, frozen=True):
    """One alternative: shell commands that redirect traffic to the relay and undo that, and a note."""

    title: str
    commands: list[str]
    undo: list[str]
    note: str | None = None


class Redirection(msgspec.Struct, frozen=True):
    """Traffic to redirect to `mode`: packets arriving at `interfaces` for servers on `ports`."""

    mode: Transparent
    interfaces: tuple[str, ...]
    ports: tuple[Ports, ...]
    keep_source: bool

    @property
    def port(self) -> int:
        """The relay's listening port."""
        return self.mode.listen_port

    @property
    def mark(self) -> str:
        """The firewall mark of packets for the relay, in hexadecimal."""
        return hex(_MARKS + self.port)

    @property
    def addresses(self) -> dict[int, str]:
        """The relay's listening addresses by IP version."""
        host = self.mode.listen_host
        if host is None:
            return _LOOPBACK
        version = 6 if ":" in host else 4
        return {version: _LOOPBACK[version] if host in UNSPECIFIED_ADDRESSES else host}

    @property
    def external_interfaces(self) -> list[str]:
        """The interfaces at which packets of other machines arrive."""
        return [name for name in self.interfaces if name != "lo"]

    @property
    def is_local_included(self) -> bool:
        """True if traffic of programs on this machine is to be redirected."""
        return "lo" in self.interfaces

    def ports_of(self, transport: Transport) -> list[Ports]:
        """Return the server ports of a transport."""
        return [ports for ports in self.ports if ports.transport in (None, transport)]


def generate_rules(redirection: Redirection) -> list[FirewallRules]:
    """Return the alternatives: TPROXY, and REDIRECT where it suffices.

    REDIRECT needs no privileges, but works only for TCP, only if servers need not see the clients' addresses,
    and only if the relay listens on an address that redirected packets reach.
    """
    found = [_tproxy_by_nft(redirection), _tproxy_by_iptables(redirection)]
    is_reachable = redirection.mode.listen_host is not None or not redirection.external_interfaces
    if redirection.ports_of("tcp") and is_reachable and not redirection.keep_source:
        found += [_redirect_by_nft(redirection), _redirect_by_iptables(redirection)]
    return found


def format_rules(alternatives: Iterable[FirewallRules]) -> str:
    """Format the alternatives as sections of a shell script, each under its title."""
    lines = ["# Use one of these alternatives. Run it as root: Kiebitz itself changes nothing."]
    for alternative in alternatives:
        note = [f"# {alternative.note}"] if alternative.note is not None else []
        lines += [
            "",
            f"# {alternative.title}",
            *note,
            *alternative.commands,
            "",
            f"# {alternative.title}: undo",
            *alternative.undo,
        ]
    return "\n".join(lines)


def _routing(redirection: Redirection) -> tuple[list[str], list[str]]:
    """Return commands that deliver marked packets locally, and commands that undo this."""
    number = _MARKS + redirection.port
    commands, undo = [], []
    for version in redirection.addresses:
        rule = f"fwmark {redirection.mark} lookup {number}"
        commands += [
            f"ip -{version} rule add {rule}",
            f"ip -{version} route add local default dev lo table {number}",
        ]
        undo += [f"ip -{version} rule del {rule}", f"ip -{version} route flush table {number}"]
    return commands, undo


def _unmarked(condition: str) -> str:
    return f"An unprivileged relay sets no mark: run it as a user of its own, and use {condition} instead."


# nftables


def _tproxy_by_nft(redirection: Redirection) -> FirewallRules:
    outside = [f'iifname "{name}"' for name in redirection.external_interfaces]
    inside = [f'iifname "lo" meta mark {redirection.mark}'] if redirection.is_local_included else []
    incoming = ["type filter hook prerouting priority mangle; policy accept;"]
    for version, address in redirection.addresses.items():
        to = f"tproxy ip{'6' if version == 6 else ''} to {endpoint_text((address, redirection.port))}"
        incoming += [
            f"{where} meta nfproto ipv{version} {ports} {to} meta mark set {redirection.mark} accept"
            for where in outside + inside
            for ports in _nft_ports(redirection, "dport")
        ]
    chains = {"incoming": incoming}
    if redirection.is_local_included:
        chains["outgoing"] = [
            "type route hook output priority mangle; policy accept;",
            *(
                f"meta mark != {OWN_MARK:#x} {ports} meta mark set {redirection.mark}"
                for ports in _nft_ports(redirection, "dport")
            ),
        ]
    if redirection.keep_source and outside:
        # The servers' answers to clients must reach the relay, too.
        incoming.append(f"socket transparent 1 meta mark set {redirection.mark} accept")
        # Connection tracking cannot tell the relay's two connections apart and would see one broken
        # connection.
        for chain, hook, option, which in (
            ("untracked_in", "prerouting", "iifname", "dport"),
            ("untracked_out", "output", "oifname", "sport"),
        ):
            chains[chain] = [
                f"type filter hook {hook} priority raw; policy accept;",
                *(
                    f'{option} "{name}" {ports} notrack'
                    for name in redirection.external_interfaces
                    for ports in _nft_ports(redirection, which)
                ),
            ]
    commands, undo = _routing(redirection)
    return FirewallRules(
        "TPROXY by nftables", [_nft_table(redirection, chains), *commands], [_nft_undo(redirection), *undo]
    )


def _redirect_by_nft(redirection: Redirection) -> FirewallRules:
    # A rule for both IP versions would redirect clients of one version to an address without a listener.
    versions = (
        [""]
        if len(redirection.addresses) == 2
        else [f"meta nfproto ipv{one} " for one in redirection.addresses]
    )
    to = [
        f"{version}{ports} redirect to :{redirection.port}"
        for version in versions
        for ports in _nft_ports(redirection, "dport", ["tcp"])
    ]
    chains = {}
    if redirection.external_interfaces:
        chains["incoming"] = [
            "type nat hook prerouting priority dstnat; policy accept;",
            *(f'iifname "{name}" {rule}' for name in redirection.external_interfaces for rule in to),
        ]
    if redirection.is_local_included:
        chains["outgoing"] = [
            "type nat hook output priority -100; policy accept;",
            *(f"meta mark != {OWN_MARK:#x} {rule}" for rule in to),
        ]
    note = _unmarked("meta skuid != USER") if redirection.is_local_included else None
    return FirewallRules(
        "REDIRECT by nftables", [_nft_table(redirection, chains)], [_nft_undo(redirection)], note
    )


def _nft_ports(
    redirection: Redirection, which: str, transports: Sequence[Transport] = _TRANSPORTS
) -> Iterator[str]:
    for transport in transports:
        if ports := redirection.ports_of(transport):
            yield f"{transport} {which} {{ {', '.join(each.text('-') for each in ports)} }}"


def _nft_table(redirection: Redirection, chains: dict[str, list[str]]) -> str:
    lines = ["nft -f - <<'END'", f"table inet kiebitz_{redirection.port} {{"]
    for name, rules in chains.items():
        lines += [f"    chain {name} {{", *(f"        {rule}" for rule in rules), "    }"]
    return "\n".join([*lines, "}", "END"])


def _nft_undo(redirection: Redirection) -> str:
    return f"nft delete table inet kiebitz_{redirection.port}"


# iptables

_IPTABLES = {4: "iptables", 6: "ip6tables"}


def _tproxy_by_iptables(redirection: Redirection) -> FirewallRules:
    outside = [f"-i {name}" for name in redirection.external_interfaces]
    inside = [f"-i lo -m mark --mark {redirection.mark}"] if redirection.is_local_included else []
    rules: list[tuple[int, str, str]] = []
    for version, address in redirection.addresses.items():
        to = f"-j TPROXY --on-ip {address} --on-port {redirection.port} --tproxy-mark {redirection.mark}"
        rules += [
            (version, "mangle PREROUTING", f"{where} {ports} {to}")
            for where in outside + inside
            for ports in _iptables_ports(redirection, "dport")
        ]
        mark = f"-j MARK --set-mark {redirection.mark}"
        if redirection.is_local_included:
            rules += [
                (version, "mangle OUTPUT", f"-m mark ! --mark {OWN_MARK:#x} {ports} {mark}")
                for ports in _iptables_ports(redirection, "dport")
            ]
        if redirection.keep_source and outside:
            rules.append((version, "mangle PREROUTING", f"-m socket --transparent {mark}"))
            for hook, option, which in (("PREROUTING", "-i", "dport"), ("OUTPUT", "-o", "sport")):
                rules += [
                    (version, f"raw {hook}", f"{option} {name} {ports} -j CT --notrack")
                    for name in redirection.external_interfaces
                    for ports in _iptables_ports(redirection, which)
                ]
    commands, undo = _routing(redirection)
    return FirewallRules(
        "TPROXY by iptables", _iptables("-A", rules) + commands, _iptables("-D", rules) + undo
    )


def _redirect_by_iptables(redirection: Redirection) -> FirewallRules:
    to = f"-j REDIRECT --to-ports {redirection.port}"
    rules: list[tuple[int, str, str]] = []
    for version in redirection.addresses:
        for ports in _iptables_ports(redirection, "dport", ["tcp"]):
            rules += [
                (version, "nat PREROUTING", f"-i {name} {ports} {to}")
                for name in redirection.external_interfaces
            ]
            if redirection.is_local_included:
                rules.append((version, "nat OUTPUT", f"-m mark ! --mark {OWN_MARK:#x} {ports} {to}"))
    note = _unmarked("-m owner ! --uid-owner USER") if redirection.is_local_included else None
    return FirewallRules("REDIRECT by iptables", _iptables("-A", rules), _iptables("-D", rules), note)


def _iptables(verb: str, rules: Iterable[tuple[int, str, str]]) -> list[str]:
    """Return commands that add or delete rules, given as (IP version, table and chain, rule)."""
    return [
        f"{_IPTABLES[version]} -t {where.replace(' ', f' {verb} ')} {rule}" for version, where, rule in rules
    ]


def _iptables_ports(
    redirection: Redirection, which: str, transports: Sequence[Transport] = _TRANSPORTS
) -> Iterator[str]:
    for transport in transports:
        for ports in redirection.ports_of(transport):
            yield f"-p {transport} --{which} {ports.text(':')}"
