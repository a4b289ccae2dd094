"""A connection to a NATS server, and the JetStream stream of a URL.

A lost connection is not restored; its user opens a new one. So all messages in transit are known to be lost,
and are sent again in order. nats-py is imported only here, and only when it is used.

The collector's side: all published messages, in JetStream's order, from any position on.

They are read with an ephemeral JetStream consumer, which ends with the connection; the collector keeps the
position. So any number of collectors read independently, and each reads everything.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kiebitz.proxy.taps.nats_url import NatsUrl, read_seed
from kiebitz.proxy.taps.wire_format import TapError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js.client import JetStreamContext


DUPLICATES_S = 120
"""Time for which JetStream remembers the id of a message, and rejects a second one with it."""

KEEP_S = 7 * 24 * 3600
"""Retention time of published messages, unless an administrator has configured the stream otherwise."""

ANSWER_S = 5.0
"""Timeout for the server's answers."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONNECT_S = 2
_ADVICE = {
    9: "set the clock of this machine or of the server",
    10: "renew it, or set the clock of this machine",
    **dict.fromkeys(
        (18, 19, 20, 21), "set SSL_CERT_FILE in the environment to a file with trusted authorities"
    ),
    **dict.fromkeys((62, 64), "use the name in the server's certificate"),
}
"""Advice by OpenSSL's error number for an untrusted certificate."""

_WANTS_CERTIFICATE = ("ALERT_BAD_CERTIFICATE", "CERTIFICATE_REQUIRED")
"""Parts of OpenSSL's reason if a server requires a client certificate, with TLS 1.2 and 1.3."""

_LONGEST_CLAUSE = 200
"""Maximum number of characters quoted from a server's message."""

_NOT_NATS = (AttributeError, LookupError, TypeError, ValueError, asyncio.LimitOverrunError)
_LOST = (errno.EPIPE, errno.ECONNRESET, errno.ECONNABORTED)
_BROKEN_OFF = ("connection lost", "connection closed")

_PING_EVERY_S = 2
_LEAST_PAYLOAD = 1 << 20
_NO_ANSWER = "it does not answer"
CONNECTION_LOST = "the connection was lost"


class NatsConnection:
    """A connection to the server of `url`, from `open` to `close`. Raises TapError."""

    def __init__(self, url: NatsUrl, credentials: Path | None) -> None:
        self._url = url
        self._credentials = credentials
        self._server_error: Exception | None = None
        self._client: Client | None = None

    async def open(self) -> JetStreamContext:
        """Connect. Raises TapError with a clause that gives the reason of a failure."""
        for name in ("nats", "asyncio"):
            # Errors are raised; a log would write a server's unescaped text to the terminal.
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        from nats.aio.client import Client
        from nats.errors import Error

        tls = ssl.create_default_context() if self._url.is_tls else None

        def refuse_without_tls() -> None:
            if tls is not None and not tls.session_stats()["connect_good"]:
                raise TapError("it offers no TLS, which tls:// requires")

        class CarefulClient(Client):
            # nats-py continues without TLS if the server claims to have none, as any attacker on the path
            # can. That would reveal our credentials.
            def _connect_command(self) -> bytes:
                refuse_without_tls()
                return super()._connect_command()

        client = self._client = CarefulClient()
        seed = read_seed(self._credentials) if self._credentials is not None else None
        try:
            async with asyncio.timeout(ANSWER_S):
                await client.connect(
                    self._url.server,
                    error_cb=self._on_error,
                    allow_reconnect=False,
                    # Two immediate attempts; later ones use a new connection.
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    connect_timeout=_CONNECT_S,
                    ping_interval=_PING_EVERY_S,
                    tls=tls,
                    user_credentials=None if seed or not self._credentials else str(self._credentials),
                    nkeys_seed_str=seed,
                )
        except (TimeoutError, Error, OSError, ValueError) as error:
            raise self.failure(error) from error
        # Other versions of nats-py may not call the method above.
        refuse_without_tls()
        if client.max_payload < _LEAST_PAYLOAD:
            raise TapError(
                f"it accepts messages of at most {client.max_payload} bytes: set its max_payload to 1MB"
            )
        return client.jetstream(timeout=ANSWER_S)

    @property
    def is_open(self) -> bool:
        """True if the connection is up as far as known."""
        return self._client is not None and self._client.is_connected

    async def close(self) -> None:
        """Close the connection in any state."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                async with asyncio.timeout(1.0):
                    await client.close()

    def failure(self, error: Exception) -> TapError:
        """Return an error of nats-py, of the system or a timeout as a clause for the user."""
        if isinstance(error, TapError):
            return error
        return TapError(self._clause(self._server_error or error))

    def _clause(self, error: Exception) -> str:
        from nats.errors import UnexpectedEOF
        from nats.js.errors import APIError, ServiceUnavailableError

        text = str(error).removeprefix("nats: ").strip("'")[:_LONGEST_CLAUSE]
        if isinstance(error, asyncio.TimeoutError):
            return _NO_ANSWER
        if isinstance(error, ssl.SSLCertVerificationError):
            return _certificate_error(error)
        if isinstance(error, ssl.SSLError):
            return _tls_error(error)
        if (number := re.search(r"\[Errno (\d+)\]", text)) is not None:
            # asyncio adds addresses to the text, and combines several errors.
            return _system_error(int(number[1]))
        if isinstance(error, OSError) and error.errno:
            return _system_error(error.errno)
        if text.lower() == "authorization violation":
            if self._credentials is None:
                return "it requires credentials: give --nats-creds FILE"
            return f"it does not accept the credentials in {self._credentials}"
        if isinstance(error, ServiceUnavailableError):
            return error.description or "it has no JetStream: start nats-server with -js"
        if isinstance(error, APIError) and error.description:
            return error.description
        if isinstance(error, UnexpectedEOF | ConnectionError) or text.lower() in _BROKEN_OFF:
            return CONNECTION_LOST
        if isinstance(error, _NOT_NATS) or "info message" in text.lower():
            # nats-py parses the server's greeting without validation.
            return "it is not a NATS server: check host and port"
        return text or _NO_ANSWER

    async def _on_error(self, error: Exception) -> None:
        # A server reports errors about a message separately from any answer to it.
        self._server_error = error


def _system_error(number: int) -> str:
    # How the loss of a connection is noticed depends on timing: one text for all.
    return CONNECTION_LOST if number in _LOST else os.strerror(number)


def _certificate_error(error: ssl.SSLCertVerificationError) -> str:
    advice = _ADVICE.get(error.verify_code)
    text = f"its certificate is not trusted: {error.verify_message.rstrip('.')}"
    return text if advice is None else f"{text} ({advice})"


def _tls_error(error: ssl.SSLError) -> str:
    if any(word in str(error.reason) for word in _WANTS_CERTIFICATE):
        return "it requires a client certificate, which taps do not have: let it accept --nats-creds instead"
    return f"TLS with it fails: {str(error.reason).lower().replace('_', ' ')}"


async def ensure_stream(jetstream: JetStreamContext, url: NatsUrl) -> int:
    """Create the stream for `url` unless it exists; return its creation time in ns since 1970.

    An existing stream is not changed. Raises errors of nats-py.
    """
    from nats.js.api import DiscardPolicy, StreamConfig
    from nats.js.errors import NotFoundError

    try:
        info = await jetstream.stream_info(url.stream)
    except NotFoundError:
        info = await jetstream.add_stream(
            StreamConfig(
                name=url.stream,
                description="items recorded by Kiebitz's taps",
                subjects=[f"{url.subject}.*"],
                # A full stream rejects new messages, which taps keep; otherwise it would drop unread ones.
                discard=DiscardPolicy.NEW,
                max_age=KEEP_S,
                duplicate_window=DUPLICATES_S,
            )
        )
    return 0 if info.created is None else to_ns(info.created)


def to_ns(moment: datetime) -> int:
    """Return a time as nanoseconds since 1970 UTC; nats-py has microseconds."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


_FETCH_COUNT = 32
"""Maximum number of messages in transit, of at most 1 MiB each, which bounds memory."""

_FETCH_S = 1.0
_FORGET_S = 60.0
_LONGEST_WAIT_S = 2.0


class MessagePosition(NamedTuple):
    """The position of a message: when its stream was created (ns since 1970), and its sequence number."""

    origin_ns: int
    sequence: int


START_POSITION = MessagePosition(0, 0)


class ReceivedMessage(NamedTuple):
    """A message published by the tap `name`.

    `stored_ns` is when JetStream stored it, by the server's clock; `behind` is the number of messages stored
    after it.
    """

    position: MessagePosition
    name: str
    data: bytes
    stored_ns: int
    behind: int


class Consumer:
    """A reader of all messages at `url` after a position; `on_notice` gets sentences about failures."""

    def __init__(
        self, url: NatsUrl, credentials: Path | None, after: MessagePosition, on_notice: Callable[[str], None]
    ) -> None:
        self._url = url
        self._credentials = credentials
        self._after = after
        self._on_notice = on_notice
        self._is_lost = False
        self._has_reported = False

    async def run(self, arrived: asyncio.Queue[list[ReceivedMessage]]) -> None:
        """Put messages into a bounded queue until cancelled."""
        wait_s = 0.1
        while True:
            link = NatsConnection(self._url, self._credentials)
            try:
                await self._read(link, arrived)
            except Exception as error:
                # nats-py raises whatever its parts raise; every error leads to a new connection.
                reason = link.failure(error)
            else:
                reason = TapError(CONNECTION_LOST)
            finally:
                await link.close()
            if not self._is_lost:
                self._is_lost = True
                wait_s = 0.1
                self._on_notice(f"kiebitz: cannot read from {self._url}: {reason}; retrying")
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def _read(self, link: NatsConnection, arrived: asyncio.Queue[list[ReceivedMessage]]) -> None:
        """Read until the connection is lost. Raises errors of nats-py, and TapError."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        jetstream = await link.open()
        origin_ns = await ensure_stream(jetstream, self._url)
        if origin_ns != self._after.origin_ns:
            # The stream was recreated; messages of the previous one were read already, or are gone.
            self._after = MessagePosition(origin_ns, 0)
        consumer = await jetstream.add_consumer(
            self._url.stream,
            ConsumerConfig(
                ack_policy=AckPolicy.NONE,
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self._after.sequence + 1,
                filter_subject=f"{self._url.subject}.*",
                inactive_threshold=_FORGET_S,
                num_replicas=1,
                mem_storage=True,
            ),
        )
        subscription = await jetstream.pull_subscribe_bind(consumer.name, self._url.stream)
        if self._is_lost:
            self._is_lost = False
            self._on_notice(f"kiebitz: {self._url} is reachable again; nothing is missing")
        while link.is_open:
            try:
                messages = await subscription.fetch(_FETCH_COUNT, timeout=_FETCH_S)
            except TimeoutError:
                if self._after.sequence == 0 and not self._has_reported:
                    # No message has ever arrived. Active taps send five a second, so check the subject.
                    self._has_reported = True
                    self._on_notice(f"no tap has published yet; start one with --publish {self._url}")
                continue
            batch = []
            for message in messages:
                metadata = message.metadata
                position = MessagePosition(origin_ns, metadata.sequence.stream)
                if position > self._after:
                    self._after = position
                    name = message.subject.rpartition(".")[2]
                    batch.append(
                        ReceivedMessage(
                            position, name, message.data, to_ns(metadata.timestamp), metadata.num_pending
                        )
                    )
            await arrived.put(batch)
