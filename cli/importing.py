"""From captured packets to a recorded session: the same way for a file, a pipe and a live interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING

from cli.decode_as import server_ports
from dissectors.dissector import recognise
from dissectors.inspector import DecodeAs
from dissectors.records import Direction, Findings, Item
from dissectors.registry import DISSECTORS
from proxy.conversations import UdpConversations
from proxy.packets import PacketDecoder, RawPacket
from storage.recorder import Recorder
from storage.schema import MEMORY

if TYPE_CHECKING:
    import sqlite3

_BATCH = 2000
"""Packets between two looks at the progress."""


class PacketRecording:
    """Records the game traffic of captured packets into one session."""

    def __init__(self, recorder: Recorder, forced: DecodeAs) -> None:
        self.recorder = recorder
        self.packets = 0
        self.decoder = PacketDecoder()
        self._conversations = UdpConversations(recorder.stream_ids, _orient, server_ports(forced))
        self._items: list[Item] = []
        self._latest_ns = 0

    def take(self, packets: Iterable[RawPacket]) -> None:
        """Record packets (time in ns, link type, bytes, length on the wire)."""
        decode = self.decoder.decode
        feed = self._conversations.feed
        items = self._items
        for ts_ns, linktype, data, wirelen in packets:
            self.packets += 1
            datagram = decode(linktype, data, wirelen, ts_ns)
            if datagram is not None:
                feed(datagram, ts_ns, items)
                self._latest_ns = ts_ns
        self._record()

    def expire(self, now_ns: int) -> None:
        """End the streams that are silent for long; for a live source, where nothing else tells the time."""
        self._conversations.expire(now_ns, self._items)
        self._record()

    def close(self) -> Findings:
        """End all streams and the session. Raises StorageError."""
        self.decoder.close()
        self._conversations.close(self._latest_ns, self._items)
        self._record()
        return self.recorder.close()

    def _record(self) -> None:
        self.recorder.record(self._items)
        self._items.clear()


def _orient(payload: bytes, source: str, destination: str) -> Direction | None:
    """Which way a datagram of an unknown pair goes, where only one protocol can have sent it."""
    for _, direction, likeness in recognise(DISSECTORS, "udp", payload):
        if likeness == "certain":
            return direction
    return None


def import_capture(
    source: str, database: str, forced: DecodeAs, on_progress: Callable[[int, int | None], None]
) -> tuple[PacketRecording, str | None]:
    """Record a capture file as a session of its own; `on_progress` is told bytes read, and of how many.

    Gives the recording, closed, and what is missing at the end of a file that is cut short. An interruption
    leaves what has been read as a whole session. Raises CaptureError and StorageError.
    """
    # Reading captures takes scapy, which takes its time to load; a sniff loads it elsewhere.
    from proxy.capture_files import open_capture

    with open_capture(source) as capture:
        recorder = Recorder(database, "import", source, decode_as=forced)
        recording = PacketRecording(recorder, forced)
        packets = iter(capture)
        try:
            while True:
                before = recording.packets
                recording.take(islice(packets, _BATCH))
                if recording.packets == before:
                    break
                if recorder.full:
                    recorder.commit()
                on_progress(capture.position, capture.size)
        except KeyboardInterrupt:
            recording.close()
            raise
        except BaseException:
            recorder.release()
            raise
        recording.close()
        return recording, capture.truncated


def open_capture_in_memory(source: str) -> tuple[sqlite3.Connection, str | None]:
    """A capture file as a database in memory with one session, and what is missing at its end."""
    recording, truncated = import_capture(source, MEMORY, {}, lambda _done, _all: None)
    return recording.recorder.connection, truncated
