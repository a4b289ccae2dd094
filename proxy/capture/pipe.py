"""A capture that is piped in while it is made: each packet is available as soon as it arrives.

Reading a pipe blocks, also in the middle of a packet. So a thread reads it like a file, and consumers wait
for packets only as long as they choose. Reading ahead is bounded: beyond that the pipe fills up, and its
writer waits.
"""

from __future__ import annotations

import io
import os
import select
import threading
from collections import deque

from kiebitz.proxy.capture.files import CaptureFile, open_capture
from kiebitz.proxy.capture.packets import RawPacket

_READ_AHEAD = 4 << 20
"""Maximum bytes of packets to read ahead, plus one packet (16 MiB at most)."""

_PACKET_COST = 256
"""Approximate memory of a packet in bytes, without its data."""

_MAX_NS = (1 << 63) - 1


class CapturePipe:
    """A receiver of a capture's packets, in any format that `open_capture` reads, until `close`.

    `source` is read by its descriptor, and stays open. Time follows the packets' own clock, as an old capture
    may be piped in, too.
    """

    def __init__(self, source: io.BufferedIOBase) -> None:
        self.name = "standard input"
        self._bytes = _StoppableInput(source.fileno(), self.name)
        # Guards all attributes below, which both threads use.
        self._changed = threading.Condition()
        self._capture: CaptureFile | None = None
        self._packets: deque[RawPacket] = deque()
        self._waiting_bytes = 0
        self._over = False
        self._failure: Exception | None = None
        self._latest_ns = 0
        self._silent_ns = 0
        self._thread = threading.Thread(target=self._read_ahead, name="capture pipe", daemon=True)
        self._thread.start()

    def __enter__(self) -> CapturePipe:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def has_begun(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` for the head of the capture; return True if it has arrived.

        Raises CaptureError if the input is no capture.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._capture is not None or self._over, timeout_s)
            if self._failure is not None:
                raise self._failure
            return self._capture is not None

    def read(self, timeout_s: float, limit: int = 1000) -> list[RawPacket]:
        """Wait up to `timeout_s` for a packet; return those available by then, at most `limit`.

        An empty list means that there was none. Raises EOFError once the capture has ended.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._packets or self._over, timeout_s):
                self._silent_ns += round(timeout_s * 1e9)
                return []
            if not self._packets:
                raise self._failure or EOFError("the capture has ended")
            packets = [self._packets.popleft() for _ in range(min(limit, len(self._packets)))]
            self._waiting_bytes -= sum(map(_cost, packets))
            self._changed.notify_all()
        self._latest_ns = packets[-1][0]
        self._silent_ns = 0
        return packets

    def now_ns(self) -> int:
        """Return the time of the latest packet that `read` returned, plus the time waited since.

        The caller's own processing time does not count: the next packet may already be waiting.
        """
        return min(self._latest_ns + self._silent_ns, _MAX_NS)

    @property
    def capture(self) -> CaptureFile | None:
        """The capture once it has begun; after the EOFError it knows what is missing in it."""
        return self._capture

    @property
    def dropped(self) -> int:
        """Number of packets that the capturing machine has dropped, as far as the capture tells."""
        return self._capture.dropped if self._capture is not None else 0

    def close(self) -> None:
        """Stop reading. Packets read ahead are lost."""
        self._bytes.stop()
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join()
        self._bytes.close()

    def _read_ahead(self) -> None:
        """Read packets in the thread."""
        try:
            with open_capture(self._bytes) as capture:
                with self._changed:
                    self._capture = capture
                    self._changed.notify_all()
                for packet in capture:
                    with self._changed:
                        self._changed.wait_for(lambda: self._waiting_bytes < _READ_AHEAD or self._over)
                        if self._over:
                            return
                        self._packets.append(packet)
                        self._waiting_bytes += _cost(packet)
                        self._changed.notify_all()
        except Exception as error:
            # Any error is raised again in the thread that waits for packets.
            self._failure = error
        with self._changed:
            self._over = True
            self._changed.notify_all()


class _StoppableInput(io.BufferedIOBase):
    """The bytes of a descriptor, up to their end or until `stop`, which any thread may call."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self._descriptor = descriptor
        self._stopped, self._stopper = os.pipe()

    def read1(self, size: int = -1, /) -> bytes:
        ready, _, _ = select.select([self._descriptor, self._stopped], [], [])
        return b"" if self._stopped in ready else os.read(self._descriptor, size)

    def stop(self) -> None:
        """End the input for a waiting `read1`."""
        os.close(self._stopper)

    def close(self) -> None:
        """Close the pipe behind `stop`, once no thread reads any more."""
        os.close(self._stopped)
        super().close()


def _cost(packet: RawPacket) -> int:
    return len(packet[2]) + _PACKET_COST
