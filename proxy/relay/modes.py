"""The relay's modes, as given with `-m`: where to listen and where to forward.

    reverse:udp://HOST:PORT@[ADDR:]PORT     to one game server
    reverse:tcp://HOST:PORT@[ADDR:]PORT
    transparent@[ADDR:]PORT                 to the original destination of redirected clients; Linux
    reverse:ws://HOST[:PORT]@[ADDR:]PORT    the same as reverse:tcp, by default to port 80
    reverse:tls://HOST:PORT@[ADDR:]PORT     the remaining modes use mitmproxy
    reverse:wss://HOST[:PORT]@[ADDR:]PORT   the same as reverse:tls, by default to port 443
    socks5[@[ADDR:]PORT]
    wireguard[:KEYFILE][@[ADDR:]PORT]
    local[:NAME|PID]
    transparent                             on systems other than Linux

HOST:PORT is the game server. Clients connect to ADDR:PORT; the default address is the loopback, so that other
machines can reach the relay only if the user asks for it. IPv6 addresses are written in brackets.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Literal

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Transport

_EXAMPLE = "as in reverse:udp://127.0.0.1:9000@9001 or reverse:udp://[::1]:9000@[::1]:9001"
_SCHEMES: dict[str, tuple[Transport | Literal["tls"], int | None]] = {
    "udp": ("udp", None),
    "tcp": ("tcp", None),
    "tls": ("tls", None),
    "ws": ("tcp", 80),
    "wss": ("tls", 443),
}
"""Transport of each scheme, and the usual port of its servers."""

_ENDPOINT = re.compile(
    r"(?:(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<name>[^\[\]:@/\s]+)):)?(?P<port>[0-9]+)", re.A
)
_LOOPBACK = "127.0.0.1"
_MITMPROXY_PORTS = {"socks5": 1080, "wireguard": 51820, "transparent": 8080}
"""mitmproxy's default listening ports by mode."""


class SettingError(KiebitzError):
    """mitmproxy has no such option, or rejects its value; the text says what is wrong."""


class Reverse(msgspec.Struct, frozen=True):
    """A reverse mode: relays `transport` from `listen_host:listen_port` to `host:port`.

    Hosts are names or addresses without brackets. With a `listen_port` of 0 the system chooses the port.
    """

    transport: Transport
    host: str
    port: int
    listen_host: str
    listen_port: int

    def __str__(self) -> str:
        server = endpoint(self.host, self.port)
        return f"reverse:{self.transport}://{server}@{endpoint(self.listen_host, self.listen_port)}"


class Transparent(msgspec.Struct, frozen=True):
    """A transparent mode: relays redirected TCP and UDP to the original destination.

    The system redirects to `listen_port`. `listen_host` is an address without brackets; None means the
    loopback addresses of IPv4 and IPv6.
    """

    listen_host: str | None
    listen_port: int

    def __str__(self) -> str:
        if self.listen_host is None:
            return f"transparent@{self.listen_port}"
        return f"transparent@{endpoint(self.listen_host, self.listen_port)}"


class Mitmproxy(msgspec.Struct, frozen=True):
    """A mode of mitmproxy; `kind` is its name with parameters in mitmproxy's notation, as in `local:firefox`.

    `listen_host` has no brackets; it and the port are None in modes that do not listen (`local`).
    """

    kind: str
    listen_host: str | None = None
    listen_port: int | None = None

    def __str__(self) -> str:
        if self.listen_host is None or self.listen_port is None:
            return self.kind
        return f"{self.kind}@{endpoint(self.listen_host, self.listen_port)}"


Mode = Reverse | Transparent | Mitmproxy


def parse_mode(spec: str) -> Mode:
    """Parse one mode. Raises ValueError with a sentence that says what is wrong and shows an example."""
    head, at, listening = spec.rpartition("@")
    kind, _, rest = (head if at else spec).partition(":")
    if kind == "reverse" and spec.startswith("reverse:"):
        return _reverse(spec)
    if kind == "transparent" and at:
        if rest:
            raise ValueError(f"'{spec}': @ must follow transparent directly, as in transparent@9001.")
        return Transparent(*_endpoint(spec, "listening address", listening, "as in transparent@9001"))
    if kind == "local" and not at:
        return Mitmproxy(spec)
    if kind in _MITMPROXY_PORTS and (kind == "wireguard" or not rest):
        if not at:
            return Mitmproxy(spec, _LOOPBACK, _MITMPROXY_PORTS[kind])
        host, port = _endpoint(spec, "listening address", listening, f"as in {kind}@{_MITMPROXY_PORTS[kind]}")
        return Mitmproxy(head, host or _LOOPBACK, port)
    raise ValueError(
        f"'{spec}' is not a mode: use 'reverse:', {_EXAMPLE}; or transparent@PORT, socks5, "
        "wireguard or local."
    )


def _reverse(spec: str) -> Mode:
    rest = spec.removeprefix("reverse:")
    scheme = next((name for name in _SCHEMES if rest.startswith(f"{name}://")), None)
    if scheme is None:
        understood = ", ".join(f"{name}://" for name in _SCHEMES)
        raise ValueError(f"'{spec}': 'reverse:' must be followed by {understood}, {_EXAMPLE}.")
    transport, usual = _SCHEMES[scheme]
    server, at, listening = rest.removeprefix(f"{scheme}://").rpartition("@")
    if not at:
        raise ValueError(f"'{spec}' has no listening address: add '@PORT' or '@ADDR:PORT', {_EXAMPLE}.")
    if usual is not None and re.search(r":[0-9]+\Z", server) is None:
        server = f"{server}:{usual}"
    host, port = _endpoint(spec, "server", server)
    if host is None or port == 0:
        raise ValueError(f"'{spec}': the server must be HOST:PORT, {_EXAMPLE}.")
    listen_host, listen_port = _endpoint(spec, "listening address", listening)
    if transport == "tls":
        return Mitmproxy(f"reverse:tls://{endpoint(host, port)}", listen_host or _LOOPBACK, listen_port)
    return Reverse(transport, host, port, listen_host or _LOOPBACK, listen_port)


def parse_endpoint(text: str) -> tuple[str | None, int]:
    """Parse HOST:PORT or PORT; the host may be None. Raises ValueError that says what is wrong."""
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not an address; an IPv6 address needs brackets")
    port = int(match["port"]) if len(match["port"]) <= 5 else 65_536
    if port > 65_535:
        raise ValueError(f"{match['port']} is not a port; the highest one is 65535")
    return match["v6"] or match["name"], port


def is_this_machine(host: str) -> bool:
    """Return True if a host is certainly this machine: `localhost` or a loopback address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def endpoint(host: str, port: int) -> str:
    """Return `host:port`, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _endpoint(spec: str, what: str, text: str, example: str = _EXAMPLE) -> tuple[str | None, int]:
    try:
        return parse_endpoint(text)
    except ValueError as error:
        wrong = str(error).replace("is not an address", f"is not a {what}")
        raise ValueError(f"'{spec}': {wrong}, {example}.") from error
