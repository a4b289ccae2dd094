"""Machines of the tests' own: network namespaces for a client, a gateway and a server, and what runs there.

    client ── players0 [gateway] servers0 ── server        over IPv4 and IPv6, addresses for documentation

Nothing leaves them: they are joined to each other and to nothing else. It takes root and iproute2.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from command import kiebitz

CLIENT = {4: "198.51.100.2", 6: "2001:db8:1::2"}
GATEWAY_INSIDE = {4: "198.51.100.1", 6: "2001:db8:1::1"}
GATEWAY = {4: "203.0.113.1", 6: "2001:db8:2::1"}
"""The client's address at the server."""
SERVER = {4: "203.0.113.2", 6: "2001:db8:2::2"}

_PREFIX = {4: 24, 6: 64}
_CLONE_NEWNET = 0x40000000
_numbers = count(1)


class Network(NamedTuple):
    """Three machines, by the names of their namespaces."""

    client: str
    gateway: str
    server: str


def skip_unless_possible(*tools: str) -> None:
    """Skip the test without the right to make namespaces, or if a tool is not installed."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for tool in ("ip", *tools):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


@contextmanager
def network() -> Iterator[Network]:
    """Yield three machines in a row. Each forgets all its rules with its namespace."""
    number = f"{os.getpid()}-{next(_numbers)}"
    made = Network(*(f"kiebitz-{number}-{name}" for name in Network._fields))
    try:
        for name in made:
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _join(made.client, "eth0", CLIENT, made.gateway, "players0", GATEWAY_INSIDE)
        _join(made.gateway, "servers0", GATEWAY, made.server, "eth0", SERVER)
        for version in (4, 6):
            _ip("-n", made.client, "route", "add", "default", "via", GATEWAY_INSIDE[version])
            _ip("-n", made.server, "route", "add", "default", "via", GATEWAY[version])
        _set(made.gateway, "ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv4/conf/all/rp_filter")
        # As strict as a machine can be about where packets come from.
        _set(made.client, "ipv4/conf/all/rp_filter")
        yield made
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _join(
    one: str, device: str, addresses: dict[int, str], other: str, there: str, their_addresses: dict[int, str]
) -> None:
    _ip("-n", one, "link", "add", device, "type", "veth", "peer", "name", there, "netns", other)
    for namespace, name, own in ((one, device, addresses), (other, there, their_addresses)):
        for version, address in own.items():
            # The address is ours alone, so no search is needed.
            flags = ["nodad"] if version == 6 else []
            _ip("-n", namespace, "address", "add", f"{address}/{_PREFIX[version]}", "dev", name, *flags)
        _ip("-n", namespace, "link", "set", name, "up")


def _set(namespace: str, *settings: str) -> None:
    with inside(namespace):
        for setting in settings:
            Path("/proc/sys/net", setting).write_text("1")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


def at(namespace: str, *command: str) -> list[str]:
    """Return a command that runs on one of the machines."""
    return ["ip", "netns", "exec", namespace, *command]


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Sockets that this thread opens in the block are on that machine, and stay there."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{namespace}") as there:
        _enter(libc, there.fileno())
        try:
            yield
        finally:
            _enter(libc, home.fileno())


def _enter(libc: ctypes.CDLL, descriptor: int) -> None:
    if libc.setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


PORT = 9001


def printed_rules(*options: str) -> dict[str, str]:
    """Return the pieces of shell script that --print-rules prints, by their titles."""
    pieces = kiebitz("relay", "--print-rules", *options).out.split("\n\n# ")[1:]
    return {title: script for title, _, script in (piece.partition("\n") for piece in pieces)}


def firewall(machine: str) -> str:
    """Return all rules of a machine, and how it finds its way."""
    commands = ("nft list ruleset", "ip -4 rule", "ip -6 rule", "ip -4 route show table all")
    return "".join(
        subprocess.run(at(machine, *command.split()), capture_output=True, text=True, check=True).stdout
        for command in commands
    )


@contextmanager
def redirecting(machine: str, way: str, *options: str, spoilt: tuple[str, str] = ("", "")) -> Iterator[None]:
    """Yield the printed rules hold on a machine; afterwards their undoing leaves nothing of them."""
    scripts = printed_rules(*options)
    subprocess.run(at(machine, "sh", "-e", "-c", scripts[way].replace(*spoilt)), check=True)
    try:
        yield
    finally:
        subprocess.run(at(machine, "sh", "-e", "-c", scripts[f"{way}: undo"].replace(*spoilt)), check=True)
        left = firewall(machine)
        assert "kiebitz" not in left
        assert str(PORT) not in left
        assert "fwmark" not in left


def may_capture() -> bool:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except (AttributeError, OSError):
        return False
    return True


needs_rights = pytest.mark.skipif(
    not may_capture(), reason="capturing needs Linux and the right to it (CAP_NET_RAW)"
)
needs_libpcap = pytest.mark.skipif(
    ctypes.util.find_library("pcap") is None, reason="a capture filter needs libpcap, which is not installed"
)
