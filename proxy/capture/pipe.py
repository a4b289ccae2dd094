"""A capture that comes through a pipe while it is made: each packet as soon as it is there.

Reading a pipe blocks, also in the middle of a packet. So a thread reads, as it would read a file, and whoever
takes its packets waits no longer than he wants. What is read ahead is bounded: beyond that the pipe fills,
and its writer has to wait.
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
"""So many bytes of packets are read ahead; one more packet may be beyond that (16 MiB at the most)."""

_PACKET_COST = 256
"""What a packet takes besides its bytes."""

_MAX_NS = (1 << 63) - 1


class CapturePipe:
    """Receives the packets of a capture in any format that `open_capture` reads, until `close`.

    `source` is read by its descriptor, and stays open. Time goes by the packets' own clock: a capture that
    was made long ago may come through a pipe, too.
    """

    def __init__(self, source: io.BufferedIOBase) -> None:
        self.name = "standard input"
        self._bytes = _StoppableInput(source.fileno(), self.name)
        # All below is shared, and guarded by this.
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
        """Wait up to `timeout_s` for the head of the capture; whether it is there.

        Raises CaptureError if what came is no capture.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._capture is not None or self._over, timeout_s)
            if self._failure is not None:
                raise self._failure
            return self._capture is not None

    def read(self, timeout_s: float, limit: int = 1000) -> list[RawPacket]:
        """Wait up to `timeout_s` for a packet; give what has come by then, `limit` packets at most.

        An empty list means that there was none. Raises EOFError once the capture is over.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._packets or self._over, timeout_s):
                self._silent_ns += round(timeout_s * 1e9)
                return []
            if not self._packets:
                raise self._failure or EOFError("the capture is over")
            packets = [self._packets.popleft() for _ in range(min(limit, len(self._packets)))]
            self._waiting_bytes -= sum(map(_cost, packets))
            self._changed.notify_all()
        self._latest_ns = packets[-1][0]
        self._silent_ns = 0
        return packets

    def now_ns(self) -> int:
        """The time of the latest packet that `read` gave, and how long it has waited in vain since then.

        What its caller does meanwhile does not count: the next packet may be there for as long.
        """
        return min(self._latest_ns + self._silent_ns, _MAX_NS)

    @property
    def capture(self) -> CaptureFile | None:
        """The capture once it has begun; after the EOFError it knows what is missing in it."""
        return self._capture

    def close(self) -> None:
        """Read no more. What was read ahead is lost."""
        self._bytes.stop()
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join()
        self._bytes.close()

    def _read_ahead(self) -> None:
        """What the thread does."""
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
            # Whatever it is, it must reach whoever waits for packets.
            self._failure = error
        with self._changed:
            self._over = True
            self._changed.notify_all()


class _StoppableInput(io.BufferedIOBase):
    """The bytes that come through a descriptor, up to their end or until `stop`, from whichever thread."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self._descriptor = descriptor
        self._stopped, self._stopper = os.pipe()

    def read1(self, size: int = -1, /) -> bytes:
        ready, _, _ = select.select([self._descriptor, self._stopped], [], [])
        return b"" if self._stopped in ready else os.read(self._descriptor, size)

    def stop(self) -> None:
        """Let what waits in `read1` go: there is nothing more."""
        os.close(self._stopper)

    def close(self) -> None:
        """Let go of what `stop` needs, once nobody reads any more."""
        os.close(self._stopped)
        super().close()


def _cost(packet: RawPacket) -> int:
    return len(packet[2]) + _PACKET_COST
