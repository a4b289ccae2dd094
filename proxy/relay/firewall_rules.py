"""Firewall rules that lead traffic to a transparent relay, and what undoes them, for people to run.

Pure text: Kiebitz never changes the firewall. Where players are other machines, their packets come in by an
interface. Where they are programs of this machine (the interface `lo` stands for these), what they send is
marked on its way out and comes in again by `lo`. What bears the relay's own mark is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kiebitz.dissectors.model import Transport
from kiebitz.proxy.relay.endpoints import EVERYWHERE, endpoint_text
from kiebitz.proxy.relay.modes import Transparent
from kiebitz.proxy.relay.transparent import OWN_MARK

_TRANSPORTS: tuple[Transport, ...] = ("tcp", "udp")
_LOOPBACK = {4: "127.0.0.1", 6: "::1"}
_MARKS = 0x4B0000
"""What goes to the relay on port P is marked with this plus P, for a routing table of that number."""


class Ports(msgspec.Struct, frozen=True):
    """Ports of game servers, from `first` to `last`; of both transports where that is None."""

    first: int
    last: int
    transport: Transport | None = None

    def written(self, mark: str) -> str:
        """The one port, or first and last with a mark between them."""
        return str(self.first) if self.first == self.last else f"{self.first}{mark}{self.last}"


class Rules(msgspec.Struct, frozen=True):
    """One way: shell commands that lead traffic to the relay, and those that end it; a note for people."""

    title: str
    commands: list[str]
    undo: list[str]
    note: str | None = None


class Sought(msgspec.Struct, frozen=True):
    """What is to be led to `mode`: what comes in by `interfaces` for servers on `ports`."""

    mode: Transparent
    interfaces: tuple[str, ...]
    ports: tuple[Ports, ...]
    keep_source: bool

    @property
    def port(self) -> int:
        """Where the relay listens."""
        return self.mode.listen_port

    @property
    def mark(self) -> str:
        """What marks packets on their way to the relay."""
        return hex(_MARKS + self.port)

    @property
    def addresses(self) -> dict[int, str]:
        """Where the relay listens, by version of IP."""
        host = self.mode.listen_host
        if host is None:
            return _LOOPBACK
        version = 6 if ":" in host else 4
        return {version: _LOOPBACK[version] if host in EVERYWHERE else host}

    @property
    def outside(self) -> list[str]:
        """The interfaces by which other machines come."""
        return [name for name in self.interfaces if name != "lo"]

    @property
    def inside(self) -> bool:
        """Whether this machine's own programs are meant."""
        return "lo" in self.interfaces

    def of(self, transport: Transport) -> list[Ports]:
        """The servers' ports of a transport."""
        return [ports for ports in self.ports if ports.transport in (None, transport)]


def rules_for(sought: Sought) -> list[Rules]:
    """The ways to do it: TPROXY, and REDIRECT where that can do.

    REDIRECT is for TCP alone, if servers need not see the clients' addresses, and if the relay listens where
    redirected packets come. For that it needs no rights.
    """
    found = [_tproxy_by_nft(sought), _tproxy_by_iptables(sought)]
    reached = sought.mode.listen_host is not None or not sought.outside
    if sought.of("tcp") and reached and not sought.keep_source:
        found += [_redirect_by_nft(sought), _redirect_by_iptables(sought)]
    return found


def written(ways: Iterable[Rules]) -> str:
    """The ways one below the other, each a piece of a shell script under its title."""
    lines = ["# One of these ways is enough. Run it as root: Kiebitz itself changes nothing."]
    for way in ways:
        note = [f"# {way.note}"] if way.note is not None else []
        lines += ["", f"# {way.title}", *note, *way.commands, "", f"# {way.title}: undo", *way.undo]
    return "\n".join(lines)


def _routing(sought: Sought) -> tuple[list[str], list[str]]:
    """What makes marked packets this machine's own, and its undoing."""
    number = _MARKS + sought.port
    commands, undo = [], []
    for version in sought.addresses:
        rule = f"fwmark {sought.mark} lookup {number}"
        commands += [
            f"ip -{version} rule add {rule}",
            f"ip -{version} route add local default dev lo table {number}",
        ]
        undo += [f"ip -{version} rule del {rule}", f"ip -{version} route flush table {number}"]
    return commands, undo


def _unmarked(condition: str) -> str:
    return (
        f"A relay without rights sets no mark: run it as a user of its own, and put {condition} in its place."
    )


# nftables.


def _tproxy_by_nft(sought: Sought) -> Rules:
    outside = [f'iifname "{name}"' for name in sought.outside]
    inside = [f'iifname "lo" meta mark {sought.mark}'] if sought.inside else []
    incoming = ["type filter hook prerouting priority mangle; policy accept;"]
    for version, address in sought.addresses.items():
        to = f"tproxy ip{'6' if version == 6 else ''} to {endpoint_text((address, sought.port))}"
        incoming += [
            f"{where} meta nfproto ipv{version} {ports} {to} meta mark set {sought.mark} accept"
            for where in outside + inside
            for ports in _nft_ports(sought, "dport")
        ]
    chains = {"incoming": incoming}
    if sought.inside:
        chains["outgoing"] = [
            "type route hook output priority mangle; policy accept;",
            *(
                f"meta mark != {OWN_MARK:#x} {ports} meta mark set {sought.mark}"
                for ports in _nft_ports(sought, "dport")
            ),
        ]
    if sought.keep_source and outside:
        # What servers answer to clients is for the relay, too.
        incoming.append(f"socket transparent 1 meta mark set {sought.mark} accept")
        # The relay's two connections look the same to connection tracking, which would see one gone wrong.
        for chain, hook, way, which in (
            ("untracked_in", "prerouting", "iifname", "dport"),
            ("untracked_out", "output", "oifname", "sport"),
        ):
            chains[chain] = [
                f"type filter hook {hook} priority raw; policy accept;",
                *(
                    f'{way} "{name}" {ports} notrack'
                    for name in sought.outside
                    for ports in _nft_ports(sought, which)
                ),
            ]
    commands, undo = _routing(sought)
    return Rules("TPROXY by nftables", [_nft_table(sought, chains), *commands], [_nft_undo(sought), *undo])


def _redirect_by_nft(sought: Sought) -> Rules:
    # A table of both versions would lead clients of one to where nobody listens.
    versions = [""] if len(sought.addresses) == 2 else [f"meta nfproto ipv{one} " for one in sought.addresses]
    to = [
        f"{version}{ports} redirect to :{sought.port}"
        for version in versions
        for ports in _nft_ports(sought, "dport", ["tcp"])
    ]
    chains = {}
    if sought.outside:
        chains["incoming"] = [
            "type nat hook prerouting priority dstnat; policy accept;",
            *(f'iifname "{name}" {rule}' for name in sought.outside for rule in to),
        ]
    if sought.inside:
        chains["outgoing"] = [
            "type nat hook output priority -100; policy accept;",
            *(f"meta mark != {OWN_MARK:#x} {rule}" for rule in to),
        ]
    note = _unmarked("meta skuid != USER") if sought.inside else None
    return Rules("REDIRECT by nftables", [_nft_table(sought, chains)], [_nft_undo(sought)], note)


def _nft_ports(sought: Sought, which: str, transports: Sequence[Transport] = _TRANSPORTS) -> Iterator[str]:
    for transport in transports:
        if ports := sought.of(transport):
            yield f"{transport} {which} {{ {', '.join(each.written('-') for each in ports)} }}"


def _nft_table(sought: Sought, chains: dict[str, list[str]]) -> str:
    lines = ["nft -f - <<'END'", f"table inet kiebitz_{sought.port} {{"]
    for name, rules in chains.items():
        lines += [f"    chain {name} {{", *(f"        {rule}" for rule in rules), "    }"]
    return "\n".join([*lines, "}", "END"])


def _nft_undo(sought: Sought) -> str:
    return f"nft delete table inet kiebitz_{sought.port}"


# iptables.

_IPTABLES = {4: "iptables", 6: "ip6tables"}


def _tproxy_by_iptables(sought: Sought) -> Rules:
    outside = [f"-i {name}" for name in sought.outside]
    inside = [f"-i lo -m mark --mark {sought.mark}"] if sought.inside else []
    rules: list[tuple[int, str, str]] = []
    for version, address in sought.addresses.items():
        to = f"-j TPROXY --on-ip {address} --on-port {sought.port} --tproxy-mark {sought.mark}"
        rules += [
            (version, "mangle PREROUTING", f"{where} {ports} {to}")
            for where in outside + inside
            for ports in _iptables_ports(sought, "dport")
        ]
        mark = f"-j MARK --set-mark {sought.mark}"
        if sought.inside:
            rules += [
                (version, "mangle OUTPUT", f"-m mark ! --mark {OWN_MARK:#x} {ports} {mark}")
                for ports in _iptables_ports(sought, "dport")
            ]
        if sought.keep_source and outside:
            rules.append((version, "mangle PREROUTING", f"-m socket --transparent {mark}"))
            for hook, way, which in (("PREROUTING", "-i", "dport"), ("OUTPUT", "-o", "sport")):
                rules += [
                    (version, f"raw {hook}", f"{way} {name} {ports} -j CT --notrack")
                    for name in sought.outside
                    for ports in _iptables_ports(sought, which)
                ]
    commands, undo = _routing(sought)
    return Rules("TPROXY by iptables", _iptables("-A", rules) + commands, _iptables("-D", rules) + undo)


def _redirect_by_iptables(sought: Sought) -> Rules:
    to = f"-j REDIRECT --to-ports {sought.port}"
    rules: list[tuple[int, str, str]] = []
    for version in sought.addresses:
        for ports in _iptables_ports(sought, "dport", ["tcp"]):
            rules += [(version, "nat PREROUTING", f"-i {name} {ports} {to}") for name in sought.outside]
            if sought.inside:
                rules.append((version, "nat OUTPUT", f"-m mark ! --mark {OWN_MARK:#x} {ports} {to}"))
    note = _unmarked("-m owner ! --uid-owner USER") if sought.inside else None
    return Rules("REDIRECT by iptables", _iptables("-A", rules), _iptables("-D", rules), note)


def _iptables(verb: str, rules: Iterable[tuple[int, str, str]]) -> list[str]:
    """Commands that add or delete rules, of a version of IP, in a table's chain."""
    return [
        f"{_IPTABLES[version]} -t {where.replace(' ', f' {verb} ')} {rule}" for version, where, rule in rules
    ]


def _iptables_ports(
    sought: Sought, which: str, transports: Sequence[Transport] = _TRANSPORTS
) -> Iterator[str]:
    for transport in transports:
        for ports in sought.of(transport):
            yield f"-p {transport} --{which} {ports.written(':')}"
