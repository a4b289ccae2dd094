"""The URL of taps and collectors, `nats://HOST:PORT/SUBJECT`, with tap names and credentials.

Without TLS or credentials only this machine itself is allowed: otherwise anyone on the network path could
read the players' messages, and anyone could publish.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from pathlib import Path

import msgspec

from kiebitz.proxy.relay.modes import endpoint, is_this_machine, parse_endpoint
from kiebitz.proxy.taps.wire_format import TapError

_PORT = 4222
_EXAMPLE = "as in nats://127.0.0.1:4222/class"
_URL = re.compile(r"(?P<scheme>nats|tls)://(?P<host>[^/\s]+)/(?P<subject>[^/\s]+)", re.A)
_SUBJECT = re.compile(r"[A-Za-z0-9-]{1,64}(\.[A-Za-z0-9-]{1,64}){0,7}", re.A)
_NAME = re.compile(r"[A-Za-z0-9-]{1,64}", re.A)
_MOST_CREDENTIALS = 64 << 10
_CREDENTIALS = re.compile(
    r"BEGIN NATS USER JWT-*\s+[\w-]+\.[\w-]+\.[\w-]+\s.*BEGIN USER NKEY SEED-*\s+SU[A-Z2-7]{56}\s",
    re.A | re.S,
)
_SEED = re.compile(r"SU[A-Z2-7]{56}", re.A)


class NatsUrl(msgspec.Struct, frozen=True):
    """A subject on a NATS server; `host` is a name or an address, without brackets."""

    host: str
    port: int
    subject: str
    is_tls: bool

    def __str__(self) -> str:
        return f"{self.server}/{self.subject}"

    @property
    def server(self) -> str:
        """The server's URL in NATS's notation."""
        return f"{'tls' if self.is_tls else 'nats'}://{endpoint(self.host, self.port)}"

    @property
    def stream(self) -> str:
        """The name of the JetStream stream that keeps all messages published to the subject."""
        return f"kiebitz-{self.subject.replace('.', '_')}"

    @property
    def is_local(self) -> bool:
        """True if the server is on this machine."""
        return is_this_machine(self.host)


def parse_nats_url(text: str) -> NatsUrl:
    """Parse a URL. Raises ValueError with a sentence that says what is wrong."""
    match = _URL.fullmatch(text)
    if match is None:
        if "@" in text or "?" in text:
            raise ValueError(_NO_SECRETS)
        raise ValueError(f"'{text}' is not a server and subject: write nats://HOST:PORT/SUBJECT, {_EXAMPLE}")
    if "@" in match["host"] or "?" in match["subject"]:
        raise ValueError(_NO_SECRETS)
    given = match["host"]
    has_port = re.search(r"(^|[^:\]]|\]):[0-9]+$", given) is not None and (
        given.count(":") == 1 or given.startswith("[")
    )
    try:
        host, port = parse_endpoint(given if has_port else f"{given}:{_PORT}")
    except ValueError as error:
        raise ValueError(f"'{text}': {error}, {_EXAMPLE}") from error
    if host is None or port == 0:
        raise ValueError(f"'{text}' names no server, {_EXAMPLE}")
    if _SUBJECT.fullmatch(match["subject"]) is None:
        raise ValueError(
            f"'{match['subject']}' is not a subject: use words of letters, digits and hyphens, with dots "
            f"between them, {_EXAMPLE}"
        )
    return NatsUrl(host, port, match["subject"], match["scheme"] == "tls")


_NO_SECRETS = (
    "the address must not contain a password, which all users of this machine could read (ps): "
    "give a file with --nats-creds, or name it in NATS_CREDS"
)


def check_protected(url: NatsUrl, credentials: Path | None) -> None:
    """Raise TapError if the server is remote, and neither TLS nor credentials protect the connection."""
    if not (url.is_tls or credentials is not None or url.is_local):
        raise TapError(
            f"{url} is on another machine, and neither TLS nor credentials protect the connection: "
            "write tls:// instead of nats://, or give --nats-creds FILE"
        )


def check_tap_name(name: str) -> str:
    """Return a valid tap name. Raises ValueError with a sentence otherwise."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"'{name}' is not a tap name: use 1 to 64 letters, digits and hyphens")
    return name


def default_tap_name() -> str:
    """Return the default tap name: the machine's name with unsafe characters replaced."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname().partition(".")[0]).strip("-")
    return name[:64] or "tap"


def read_seed(credentials: Path) -> str | None:
    """Return the NKEY seed in a credentials file; None if the file also has a JWT, as `nsc` writes it.

    Raises TapError.
    """
    try:
        # Do not block on a pipe; the file is read again for each connection.
        with open(os.open(credentials, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is a pipe or a device: name a file")
            text = file.read(_MOST_CREDENTIALS).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise TapError(f"{credentials}: the credentials cannot be read: {reason}") from error
    if _SEED.fullmatch(text.strip()) is not None:
        return text.strip()
    if _CREDENTIALS.search(text) is not None:
        return None
    raise TapError(f"{credentials}: these are not NATS credentials: neither a JWT and a seed, nor a seed")
