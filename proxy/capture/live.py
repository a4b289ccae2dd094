"""Live capture of packets: on a network interface through scapy's sockets, or piped in.

scapy opens the socket, compiles the filter and receives; received packets are not dissected. On Linux the
socket gets a larger buffer, reports packets dropped by the kernel, and delivers each packet of the loopback
interface once.

A capture that is piped in while it is made: each packet is available as soon as it arrives.

Reading a pipe blocks, also in the middle of a packet. So a thread reads it like a file, and consumers wait
for packets only as long as they choose. Reading ahead is bounded: beyond that the pipe fills up, and its
writer waits.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import io
import logging
import os
import select
import shlex
import socket
import struct
import sys
import threading
import time
from collections import deque
from typing import Any

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.proxy.capture.files import CaptureFile, open_capture
from kiebitz.proxy.capture.packets import RawPacket
from kiebitz.proxy.system.sudo import own_command, sudo_command

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
        return self._capture.reader.dropped if self._capture is not None else 0

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


# The largest IP packet, 65,535 bytes, after an Ethernet header with some VLAN tags.
_MAX_PACKET = 65_535 + 64
_RECEIVE_BUFFER = 16 << 20
_LINUX = sys.platform.startswith("linux")

# From linux/socket.h, linux/if_packet.h, and asm-generic/socket.h; the socket module has no names for them.
_SOL_PACKET = 263
_PACKET_STATISTICS = 6
_PACKET_IGNORE_OUTGOING = 23
_SO_RCVBUFFORCE = 33


class SniffError(KiebitzError):
    """Capturing is not possible. The text is a sentence for the user: what, where, and what to do."""


class MissingRights(SniffError):
    """The user may not capture; the excerpt has complete commands that may."""

    def __init__(self, interface: str) -> None:
        super().__init__(
            f"capturing on {interface} needs a right that this user does not have. Either command has it; "
            "the files stay yours:"
        )
        self._interface = interface

    def excerpt(self) -> list[str]:
        return [
            f"    {sudo_command()}",
            f"    {shlex.join(['sudo', 'tcpdump', '-i', self._interface, '-U', '-w', '-'])}"
            f" | {shlex.join([*own_command(), 'sniff', '-i', '-', '-w', 'game.db'])}",
        ]


class Sniffer:
    """A receiver of the packets on one interface, active from its creation until `close`.

    Args:
        interface: Name of the interface, such as `lo`.
        bpf_filter: Filter in libpcap's notation (pcap-filter(7)); None for all packets.
        receive_buffer: Size in bytes of the kernel's queue of captured packets.

    Raises:
        SniffError: capturing is not possible.
    """

    def __init__(
        self, interface: str, bpf_filter: str | None = None, receive_buffer: int = _RECEIVE_BUFFER
    ) -> None:
        self.name = interface
        self.capture = None
        """No capture file, as `CapturePipe` has."""
        self._dropped = 0
        self._linktypes: dict[Any, int] = {}
        _check_interface(interface)
        logging.getLogger("scapy").setLevel(logging.CRITICAL)
        # Imported here, as this takes 0.2 seconds that only captures need.
        import scapy.layers.inet6  # noqa: F401  # fills scapy's tables of link types; raw IP is in this one
        from scapy.config import conf
        from scapy.error import Scapy_Exception

        self._number_of = conf.l2types.layer2num
        if bpf_filter is not None:
            _check_filter(interface, bpf_filter)
        # On the loopback interface Linux shows each packet twice, outgoing and incoming. Of scapy's two
        # sockets the one that can also send leaves out the former.
        loopback = _LINUX and interface == "lo"
        open_socket = conf.L2socket if loopback else conf.L2listen
        try:
            self._socket = open_socket(iface=interface, filter=bpf_filter)
        except PermissionError as error:
            raise MissingRights(interface) from error
        except OSError as error:
            if error.errno == errno.ENETDOWN:
                raise SniffError(f"the network interface {interface} is down: bring it up first") from error
            raise SniffError(f"cannot capture on {interface}: {error.strerror or error}") from error
        except (Scapy_Exception, ValueError) as error:
            raise SniffError(f"cannot capture on {interface}: {error}") from error
        if _LINUX:
            self._prepare_linux(self._socket.ins, loopback, receive_buffer)

    def _prepare_linux(self, packets: socket.socket, loopback: bool, receive_buffer: int) -> None:
        packets.setblocking(False)
        if loopback:
            # Since Linux 4.20; before, scapy discards the outgoing copies one by one.
            with contextlib.suppress(OSError):
                packets.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        try:
            packets.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, receive_buffer)
        except PermissionError:
            # Only CAP_NET_ADMIN may exceed the system's limit; this goes up to it.
            packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        # Reading resets the counters: packets dropped while scapy set up the socket do not count.
        packets.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)

    def __enter__(self) -> Sniffer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def dropped(self) -> int:
        """Number of packets the kernel dropped because they were not read in time (0 if not on Linux)."""
        if _LINUX and not self._socket.closed:
            counters = self._socket.ins.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
            self._dropped += struct.unpack("II", counters)[1]
        return self._dropped

    def read(self, timeout_s: float, limit: int = 1000) -> list[RawPacket]:
        """Wait up to `timeout_s` for a packet; return those available by then, at most `limit`.

        An empty list means that there was none. Raises SniffError if the interface disappears.
        """
        packets: list[RawPacket] = []
        try:
            if not self._socket.select([self._socket], timeout_s):
                return packets
            # On other systems scapy's sockets block, so that only the first packet is sure to be there.
            for _ in range(limit if _LINUX else 1):
                layer, data, ts_s = self._socket.recv_raw(_MAX_PACKET)
                if data is None:
                    break
                # A float of seconds since 1970 is exact to 0.24 microseconds.
                ts_ns = round(ts_s * 1e6) * 1000 if ts_s else time.time_ns()
                packets.append((ts_ns, self._linktype(layer), data, len(data)))
        except BlockingIOError:
            pass
        except OSError as error:
            if not packets:
                reason = error.strerror or error
                raise SniffError(f"capturing on {self.name} was interrupted: {reason}") from error
        return packets

    def now_ns(self) -> int:
        """Return the current time of the clock that stamps packets."""
        return time.time_ns()

    def close(self) -> None:
        """Stop capturing. `dropped` keeps its last value."""
        self._dropped = self.dropped
        self._socket.close()

    def _linktype(self, layer: Any) -> int:
        number = self._linktypes.get(layer)
        if number is None:
            known = self._number_of.get(layer)
            if known is None:
                name = getattr(layer, "__name__", layer)
                raise SniffError(f"{self.name} delivers packets of an unsupported kind ({name})")
            number = self._linktypes[layer] = int(known)
        return number


def _check_interface(interface: str) -> None:
    names = [name for _, name in socket.if_nameindex()]
    if interface not in names:
        near = difflib.get_close_matches(interface, names, n=1, cutoff=0.5)
        suggestion = f"{did_you_mean(*near)} Available" if near else "available"
        raise SniffError(f"there is no network interface {interface}; {suggestion} are: {', '.join(names)}")


def _check_filter(interface: str, bpf_filter: str) -> None:
    """Compile a filter beforehand: only here can its own errors be distinguished from others."""
    from scapy.arch.common import compile_filter, free_filter
    from scapy.error import Scapy_Exception

    try:
        free_filter(compile_filter(bpf_filter, interface))
    except ImportError as error:
        raise SniffError(
            "a capture filter needs the library libpcap, which is not installed (Debian: libpcap0.8); "
            "without a filter it is not needed"
        ) from error
    except PermissionError as error:
        raise MissingRights(interface) from error
    except (Scapy_Exception, OSError) as error:
        # scapy's text ends with libpcap's message in parentheses; before 2.8, with a number instead.
        reason = str(error).rpartition(" expression ")[2].removeprefix(f"{bpf_filter!r} (").removesuffix(")")
        why = f": {reason}" if bpf_filter not in reason else ""
        raise SniffError(f"the capture filter {bpf_filter!r} is not valid{why}") from error
