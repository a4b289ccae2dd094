"""The relay's modes: what to listen on and where to pass it on, as written after `-m`.

    reverse:udp://HOST:PORT@[ADDR:]PORT
    reverse:tcp://HOST:PORT@[ADDR:]PORT

HOST:PORT is the game server. ADDR:PORT is where the clients come; without ADDR that is 127.0.0.1, so that
nobody else's machine can reach the relay unless the user says so. IPv6 addresses stand in brackets.
"""

from __future__ import annotations

import re

import msgspec

from dissectors.records import Transport

_EXAMPLE = "as in reverse:udp://127.0.0.1:9000@9001 or reverse:udp://[::1]:9000@[::1]:9001"
_TRANSPORTS: tuple[Transport, ...] = ("udp", "tcp")
_ENDPOINT = re.compile(
    r"(?:(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<name>[^\[\]:@/\s]+)):)?(?P<port>[0-9]+)", re.A
)


class Mode(msgspec.Struct, frozen=True):
    """Relay `transport` from `listen_host:listen_port` to `host:port`.

    Hosts are names or addresses, without brackets. A `listen_port` of 0 leaves the choice to the system.
    """

    transport: Transport
    host: str
    port: int
    listen_host: str
    listen_port: int


def parse_mode(spec: str) -> Mode:
    """Read one mode; raises ValueError with a sentence that says what is wrong and shows an example."""
    kind, colon, rest = spec.partition(":")
    if kind != "reverse" or not colon:
        raise ValueError(f"'{spec}' is no mode: it begins with 'reverse:', {_EXAMPLE}.")
    transport = next((name for name in _TRANSPORTS if rest.startswith(f"{name}://")), None)
    if transport is None:
        understood = ", ".join(f"{name}://" for name in _TRANSPORTS)
        raise ValueError(f"'{spec}': after 'reverse:' the relay understands {understood}, {_EXAMPLE}.")
    server, at, listening = rest.removeprefix(f"{transport}://").rpartition("@")
    if not at:
        raise ValueError(f"'{spec}' does not say where to listen: add '@PORT' or '@ADDR:PORT', {_EXAMPLE}.")
    host, port = _endpoint(spec, "server", server)
    if host is None or port == 0:
        raise ValueError(f"'{spec}': the server is written HOST:PORT, {_EXAMPLE}.")
    listen_host, listen_port = _endpoint(spec, "listening address", listening)
    return Mode(transport, host, port, listen_host or "127.0.0.1", listen_port)


def parse_endpoint(text: str) -> tuple[str | None, int]:
    """Read HOST:PORT or PORT; without a host that is None. Raises ValueError with what is wrong."""
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is no address; an IPv6 address stands in brackets")
    port = int(match["port"]) if len(match["port"]) <= 5 else 65_536
    if port > 65_535:
        raise ValueError(f"{match['port']} is no port; ports end at 65535")
    return match["v6"] or match["name"], port


def _endpoint(spec: str, what: str, text: str) -> tuple[str | None, int]:
    try:
        return parse_endpoint(text)
    except ValueError as error:
        wrong = str(error).replace("is no address", f"is no {what}")
        raise ValueError(f"'{spec}': {wrong}, {_EXAMPLE}.") from error
