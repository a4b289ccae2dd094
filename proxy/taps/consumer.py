"""The collector's side: all published messages, in JetStream's order, from any position on.

They are read with an ephemeral JetStream consumer, which ends with the connection; the collector keeps the
position. So any number of collectors read independently, and each reads everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kiebitz.proxy.taps.jetstream import CONNECTION_LOST, NatsConnection, ensure_stream, to_ns
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.proxy.taps.wire_format import TapError

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
                self._report_silence()
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

    def _report_silence(self) -> None:
        """Report once that no message ever arrived: active taps send five a second, so check the subject."""
        if self._after.sequence == 0 and not self._has_reported:
            self._has_reported = True
            self._on_notice(f"no tap has published yet; start one with --publish {self._url}")
