"""One connection to a NATS server, and the JetStream stream of a place.

A connection that is lost is not mended; its user makes a new one. So all that was on its way is known to be
lost, and is sent again in its order. nats-py is imported here alone, and only when this is used.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kiebitz.proxy.taps.nats_url import Place, read_seed
from kiebitz.proxy.taps.wire_format import TapError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js.client import JetStreamContext

DUPLICATES_S = 120
"""So long JetStream remembers the id of a message, and takes no second one with it."""

KEEP_S = 7 * 24 * 3600
"""So long it keeps what was published, unless its administrator has made the stream otherwise."""

ANSWER_S = 5.0
"""So long an answer of the server is waited for."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONNECT_S = 2
_ADVICE = {
    9: "set the clock of this machine or of the server",
    10: "renew it, or set the clock of this machine",
    **dict.fromkeys(
        (18, 19, 20, 21), "SSL_CERT_FILE in the environment names a file with the authorities that are"
    ),
    **dict.fromkeys((62, 64), "name the server as its certificate does"),
}
"""Advice by OpenSSL's number for a reason not to trust a certificate."""

_WANTS_CERTIFICATE = ("ALERT_BAD_CERTIFICATE", "CERTIFICATE_REQUIRED")
"""In OpenSSL's reason where a server misses a client's certificate, with TLS 1.2 and 1.3."""

_LONGEST_CLAUSE = 200
"""Letters of a server's own words that are repeated."""

_NOT_NATS = (AttributeError, LookupError, TypeError, ValueError, asyncio.LimitOverrunError)
_BROKEN_OFF = ("connection lost", "connection closed")

_PING_EVERY_S = 2
_LEAST_PAYLOAD = 1 << 20
_NO_ANSWER = "it does not answer"
BROKEN_OFF = "the connection has broken off"


class Link:
    """A connection to the server of `place`, from `open` to `close`. Raises TapError."""

    def __init__(self, place: Place, credentials: Path | None) -> None:
        self._place = place
        self._credentials = credentials
        self._said: Exception | None = None
        self._client: Client | None = None

    async def open(self) -> JetStreamContext:
        """Connect. Raises TapError with a clause that says why that cannot be."""
        for name in ("nats", "asyncio"):
            # Errors are raised; a log would write a server's words to the terminal as they came.
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        from nats.aio.client import Client
        from nats.errors import Error

        tls = ssl.create_default_context() if self._place.is_tls else None

        def refuse_without_tls() -> None:
            if tls is not None and not tls.session_stats()["connect_good"]:
                raise TapError("it offers no TLS, which tls:// asks for")

        class CarefulClient(Client):
            # nats-py goes on without TLS where a server says that it has none, and anybody on the way can say
            # so. Then who we are would be proved to them.
            def _connect_command(self) -> bytes:
                refuse_without_tls()
                return super()._connect_command()

        client = self._client = CarefulClient()
        seed = read_seed(self._credentials) if self._credentials is not None else None
        try:
            await asyncio.wait_for(
                client.connect(
                    self._place.server,
                    error_cb=self._hear,
                    allow_reconnect=False,
                    # Two tries at once; later ones are made with a new connection.
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    connect_timeout=_CONNECT_S,
                    ping_interval=_PING_EVERY_S,
                    tls=tls,
                    user_credentials=None if seed or not self._credentials else str(self._credentials),
                    nkeys_seed_str=seed,
                ),
                ANSWER_S,
            )
        except (TimeoutError, Error, OSError, ValueError) as error:
            raise self.failure(error) from error
        # Another nats-py may not ask the method above.
        refuse_without_tls()
        if client.max_payload < _LEAST_PAYLOAD:
            raise TapError(
                f"it takes messages of at most {client.max_payload} bytes: have it take 1MB (max_payload)"
            )
        return client.jetstream(timeout=ANSWER_S)

    @property
    def is_open(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return self._client is not None and self._client.is_connected

    async def close(self) -> None:
        """Give it up, whatever state it is in."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                await asyncio.wait_for(client.close(), 1.0)

    def failure(self, error: Exception) -> TapError:
        """What an error of nats-py, of the system or of waiting means, as a clause."""
        if isinstance(error, TapError):
            return error
        return TapError(self._clause(self._said or error))

    def _clause(self, error: Exception) -> str:
        from nats.errors import UnexpectedEOF
        from nats.js.errors import APIError, ServiceUnavailableError

        text = str(error).removeprefix("nats: ").strip("'")[:_LONGEST_CLAUSE]
        if isinstance(error, asyncio.TimeoutError):
            return _NO_ANSWER
        if isinstance(error, ssl.SSLCertVerificationError):
            return _distrust(error)
        if isinstance(error, ssl.SSLError):
            return _refused(error)
        if (number := re.search(r"\[Errno (\d+)\]", text)) is not None:
            # asyncio puts addresses into the text, and several errors into one.
            return os.strerror(int(number[1]))
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        if text.lower() == "authorization violation":
            if self._credentials is None:
                return "it lets nobody in without credentials: give --nats-creds FILE"
            return f"it does not accept the credentials in {self._credentials}"
        if isinstance(error, ServiceUnavailableError):
            return error.description or "it has no JetStream: start nats-server with -js"
        if isinstance(error, APIError) and error.description:
            return error.description
        if isinstance(error, UnexpectedEOF | ConnectionError) or text.lower() in _BROKEN_OFF:
            return BROKEN_OFF
        if isinstance(error, _NOT_NATS) or "info message" in text.lower():
            # nats-py reads an answer without a check of its form.
            return "it is no NATS server: name another host or port"
        return text or _NO_ANSWER

    async def _hear(self, error: Exception) -> None:
        # What a server has against a message comes apart from any answer to it.
        self._said = error


def _distrust(error: ssl.SSLCertVerificationError) -> str:
    advice = _ADVICE.get(error.verify_code)
    told = f"its certificate is not trusted: {error.verify_message.rstrip('.')}"
    return told if advice is None else f"{told} ({advice})"


def _refused(error: ssl.SSLError) -> str:
    if any(word in str(error.reason) for word in _WANTS_CERTIFICATE):
        return "it asks for a certificate of the client, which taps do not have: have it accept --nats-creds"
    return f"TLS with it fails: {str(error.reason).lower().replace('_', ' ')}"


async def make_stream(jetstream: JetStreamContext, place: Place) -> int:
    """See that there is a stream for what is published at `place`; when it was made, in ns since 1970.

    One that is there is left as it is. Raises errors of nats-py.
    """
    from nats.js.api import DiscardPolicy, StreamConfig
    from nats.js.errors import NotFoundError

    try:
        info = await jetstream.stream_info(place.stream)
    except NotFoundError:
        info = await jetstream.add_stream(
            StreamConfig(
                name=place.stream,
                description="what Kiebitz's taps have recorded",
                subjects=[f"{place.subject}.*"],
                # A full one refuses what comes, and taps keep it; else it would lose what nobody has read.
                discard=DiscardPolicy.NEW,
                max_age=KEEP_S,
                duplicate_window=DUPLICATES_S,
            )
        )
    return 0 if info.created is None else in_ns(info.created)


def in_ns(moment: datetime) -> int:
    """A moment as nanoseconds since 1970 UTC; nats-py has microseconds."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
