"""The tap's side: batches are published to JetStream in order, each until it is acknowledged."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kiebitz.dissectors.model import Chunk, Item
from kiebitz.proxy.system.clock import now_ns
from kiebitz.proxy.taps.jetstream import ANSWER_S, NatsConnection, ensure_stream
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.proxy.taps.wire_format import (
    FULL_BATCH,
    MAX_ITEMS,
    VERSION,
    Batch,
    Record,
    RunEndRecord,
    StreamRecord,
    TapError,
    encode,
    to_record,
)

if TYPE_CHECKING:
    from nats.js.client import JetStreamContext

_CLOCK_SAMPLES = 5
"""Number of messages without items at the start of a connection that measure the clock; the fastest one
counts.
"""

_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 2.0
"""First and longest pause between two attempts to reach the server."""


class PublishAbandoned(Exception):
    """The server is unreachable, and there is no more time to wait for it."""


class Publisher:
    """Publishes what the tap `name` has recorded.

    Args:
        url: Where to publish.
        credentials: Credentials file, if any.
        name: Name of the tap.
        on_notice: Callback with sentences about failures and recoveries.
        backlog_path: Where unpublished items are kept, for messages.
        may_wait: Returns True if an unreachable server is to be tried again, given the time of the failure.
    """

    def __init__(
        self,
        url: NatsUrl,
        credentials: Path | None,
        name: str,
        *,
        on_notice: Callable[[str], None],
        backlog_path: str,
        may_wait: Callable[[float], bool],
    ) -> None:
        self._url = url
        self._credentials = credentials
        self._name = name
        self._on_notice = on_notice
        self._backlog_path = backlog_path
        self._may_wait = may_wait
        self._link: NatsConnection | None = None
        self._jetstream: JetStreamContext | None = None
        self._lost_since: float | None = None
        self._wait_s = _FIRST_WAIT_S

    async def publish(self, batches: Iterable[Batch]) -> None:
        """Publish batches of one run and return when all are acknowledged. Raises PublishAbandoned."""
        left = deque(batches)
        while left:
            link = self._link or NatsConnection(self._url, self._credentials)
            try:
                if self._jetstream is None or not link.is_open:
                    self._link = link
                    self._jetstream = await link.open()
                    await self._send_time(self._jetstream, left[0])
                await self._send(self._jetstream, left)
            except Exception as error:
                # nats-py raises whatever its parts raise; after any error the connection is unusable.
                await self.close()
                await self._pause(link.failure(error))

    async def close(self) -> None:
        """Close the connection."""
        link, self._link, self._jetstream = self._link, None, None
        if link is not None:
            await link.close()

    async def _send(self, jetstream: JetStreamContext, left: deque[Batch]) -> None:
        """Publish all batches, and remove the acknowledged ones, up to the first that is not."""
        answers = []
        for batch in left:
            identity = f"{batch.tap}.{batch.run}.{batch.first}-{batch.first + len(batch.items)}"
            # A batch without items only reports the time, and is never a duplicate.
            headers = {"Nats-Msg-Id": identity} if batch.items else None
            now = msgspec.structs.replace(batch, sent_ns=now_ns())
            answers.append(
                await jetstream.publish_async(
                    f"{self._url.subject}.{self._name}", encode(now), headers=headers
                )
            )
        async with asyncio.timeout(ANSWER_S):
            acknowledged = await asyncio.gather(*answers, return_exceptions=True)
        for answer in acknowledged:
            if isinstance(answer, BaseException):
                raise answer
            left.popleft()
            if self._lost_since is not None:
                self._on_notice(f"kiebitz: {self._url} is reachable again, and the backlog is published")
            self._lost_since = None
            self._wait_s = _FIRST_WAIT_S

    async def _send_time(self, jetstream: JetStreamContext, batch: Batch) -> None:
        """Let readers measure this machine's clock, and create the stream if needed."""
        from nats.js.errors import NoStreamResponseError

        for _ in range(_CLOCK_SAMPLES):
            empty = msgspec.structs.replace(batch, sent_ns=now_ns(), until_ns=0, streams=[], items=[])
            try:
                await jetstream.publish(f"{self._url.subject}.{self._name}", encode(empty))
            except NoStreamResponseError:
                await ensure_stream(jetstream, self._url)

    async def _pause(self, reason: TapError) -> None:
        now = time.monotonic()
        if self._lost_since is None:
            self._lost_since = now
            self._on_notice(
                f"kiebitz: cannot publish to {self._url}: {reason}; recorded traffic is kept in "
                f"{self._backlog_path}"
            )
        if not self._may_wait(self._lost_since):
            raise PublishAbandoned
        await asyncio.sleep(self._wait_s)
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)


class BatchBuilder:
    """Builds batches from the items of one run, numbered from `first`."""

    def __init__(self, tap: str, run: str, first: int) -> None:
        self._tap = tap
        self._run = run
        self._next = first

    def batches(self, items: Iterable[Item], until_ns: int = 0) -> Iterator[Batch]:
        """Yield the batches of items; a stream's `id` is its number in the run.

        The last batch completes all that was recorded by `until_ns`; 0 if unknown.
        """
        records: list[Record] = []
        streams: dict[int, StreamRecord] = {}
        size = 0
        for item in items:
            if size >= FULL_BATCH or len(records) == MAX_ITEMS:
                yield self._batch(records, streams)
                records, streams, size = [], {}, 0
            stream = item.stream
            if stream.id not in streams:
                streams[stream.id] = StreamRecord(
                    stream.id, stream.transport, stream.client, stream.server, max(0, stream.opened_ns)
                )
            record = to_record(item, stream.id)
            records.append(record)
            # All items but unaltered bytes are rare, and may be long.
            size += len(item.data) if isinstance(item, Chunk) else len(msgspec.msgpack.encode(record))
        yield self._batch(records, streams, until_ns)

    def end_of_run(self, ts_ns: int) -> Batch:
        """Return the last batch of the run."""
        return self._batch([RunEndRecord(ts_ns)], {})

    def _batch(self, records: list[Record], streams: dict[int, StreamRecord], until_ns: int = 0) -> Batch:
        batch = Batch(VERSION, self._tap, self._run, self._next, 0, until_ns, [*streams.values()], records)
        self._next += len(records)
        return batch
