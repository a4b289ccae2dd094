"""The flows of a mitmproxy, as the addon journals them: what is a stream, and what it holds."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from mitmproxy.tcp import TCPFlow, TCPMessage
from mitmproxy.test.tflow import ttcpflow, tudpflow
from mitmproxy.udp import UDPFlow, UDPMessage

from kiebitz.dissectors.model import Chunk, End, Fault, Item
from kiebitz.proxy.journal.reader import JournalReader
from kiebitz.proxy.journal.writer import MAX_PAYLOAD, JournalWriter
from kiebitz.proxy.mitmproxy.streams import FlowJournal, StreamJournal


class Journaled:
    """An addon that journals into a folder, and what the journal holds once it is closed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer = JournalWriter(folder, on_trouble=print)
        self.notices: list[tuple[str, str]] = []
        self.streams = StreamJournal(self._writer, lambda code, text: self.notices.append((code, text)))
        self.addon = FlowJournal(self.streams)

    def items(self) -> list[Item]:
        self._writer.close()
        reader = JournalReader(self._folder)
        items = [item for batch in iter(reader.read, []) for item in batch]
        reader.close()
        return items


@pytest.fixture
def journaled(tmp_path: Path) -> Journaled:
    return Journaled(tmp_path)


def tcp_flow(server: tuple[str, int] | None = ("198.51.100.7", 9000)) -> TCPFlow:
    flow = ttcpflow(messages=False)
    flow.client_conn.peername = ("2001:db8::1", 40_000)
    flow.server_conn.peername = server
    flow.server_conn.address = ("game.example", 9000)
    flow.messages = []
    flow.live = True
    return flow


def udp_flow() -> UDPFlow:
    flow = tudpflow(messages=False)
    flow.messages = []
    flow.live = True
    return flow


def say_tcp(journaled: Journaled, flow: TCPFlow, from_client: bool, data: bytes) -> None:
    flow.messages.append(TCPMessage(from_client, data))
    journaled.addon.tcp_message(flow)


def test_a_flow_is_a_stream(journaled: Journaled) -> None:
    flow = tcp_flow()
    for from_client, data in ((False, b"who?"), (True, b"me"), (False, b"welcome"), (True, b"bye")):
        say_tcp(journaled, flow, from_client, data)
    journaled.addon.tcp_end(flow)
    items = journaled.items()
    assert [(item.direction, item.offset, item.data) for item in items if isinstance(item, Chunk)] == [
        ("s2c", 0, b"who?"),
        ("c2s", 0, b"me"),
        ("s2c", 4, b"welcome"),
        ("c2s", 2, b"bye"),
    ]
    assert {(item.stream.transport, item.stream.client, item.stream.server) for item in items} == {
        ("tcp", "[2001:db8::1]:40000", "198.51.100.7:9000")
    }
    assert [item.reason for item in items if isinstance(item, End)] == ["closed"]
    assert len(flow.messages) == 4


def test_data_longer_than_a_record_is_split(journaled: Journaled) -> None:
    data = bytes(range(256)) * (2 * MAX_PAYLOAD // 256) + b"and more"
    say_tcp(journaled, tcp_flow(), True, data)
    journaled.streams.end_all(5)
    *chunks, end = journaled.items()
    assert [(chunk.offset, len(chunk.data)) for chunk in chunks if isinstance(chunk, Chunk)] == [
        (0, MAX_PAYLOAD),
        (MAX_PAYLOAD, MAX_PAYLOAD),
        (2 * MAX_PAYLOAD, 8),
    ]
    assert b"".join(chunk.data for chunk in chunks if isinstance(chunk, Chunk)) == data
    assert isinstance(end, End)
    assert (end.ts_ns, end.reason) == (5, "end")


def test_an_empty_datagram_is_one_and_an_empty_piece_is_none(journaled: Journaled) -> None:
    datagrams = udp_flow()
    datagrams.messages.append(UDPMessage(True, b""))
    journaled.addon.udp_message(datagrams)
    journaled.addon.udp_end(datagrams)
    emptied = tcp_flow()
    say_tcp(journaled, emptied, True, b"")
    say_tcp(journaled, emptied, True, b"x")
    items = journaled.items()
    assert [(item.stream.transport, item.data) for item in items if isinstance(item, Chunk)] == [
        ("udp", b""),
        ("tcp", b"x"),
    ]
    assert [item.reason for item in items if isinstance(item, End)] == ["idle"]


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (
            f"[Errno {errno.ECONNREFUSED}] Connect call failed ('198.51.100.7', 9000)",
            "refused",
            "no program listens on that port",
        ),
        (
            f"Multiple exceptions: [Errno {errno.EHOSTUNREACH}] no, [Errno 2] no",
            "host-unreachable",
            "cannot be reached",
        ),
        (f"[Errno {errno.ENOSPC}] No space left on device", "network", "No space left on device"),
        ("Something new.", "network", "Something new. The"),
        (None, "network", "no reason was given"),
    ],
)
def test_a_server_that_cannot_be_reached(
    journaled: Journaled, error: str | None, code: str, says: str
) -> None:
    flow = tcp_flow()
    flow.server_conn.error = error
    journaled.addon.tcp_error(flow)
    fault, end = journaled.items()
    assert isinstance(fault, Fault)
    assert isinstance(end, End)
    assert (fault.code, end.reason) == (code, "refused")
    ((told_code, told),) = journaled.notices
    assert told_code == code
    assert told.startswith("tcp [2001:db8::1]:40000 to game.example:9000: ")
    assert says in told


def test_a_server_known_by_name_only_is_reported_and_not_journaled(journaled: Journaled) -> None:
    flow = tcp_flow(server=None)
    journaled.addon.tcp_error(flow)
    say_tcp(journaled, flow, True, b"said to nobody knows whom")
    assert journaled.items() == []
    assert len(journaled.notices) == 1


def test_a_flow_that_is_read_from_a_file_is_not_journaled(journaled: Journaled) -> None:
    flow = tcp_flow()
    flow.live = False
    say_tcp(journaled, flow, True, b"long ago")
    journaled.addon.tcp_end(flow)
    journaled.addon.tcp_error(flow)
    assert journaled.items() == []
    assert journaled.notices == []


def test_a_flow_that_breaks_off_was_reset(journaled: Journaled) -> None:
    flow = tcp_flow()
    say_tcp(journaled, flow, True, b"x")
    journaled.addon.tcp_error(flow)
    assert [item.reason for item in journaled.items() if isinstance(item, End)] == ["reset"]
    assert journaled.notices == []


def test_after_the_end_nothing_is_journaled(journaled: Journaled) -> None:
    flow, other = tcp_flow(), tcp_flow()
    say_tcp(journaled, flow, True, b"x")
    journaled.streams.end_all(5)
    say_tcp(journaled, flow, True, b"late")
    journaled.addon.tcp_end(flow)
    journaled.addon.tcp_error(other)
    chunk, end = journaled.items()
    assert isinstance(chunk, Chunk)
    assert isinstance(end, End)
    assert journaled.notices == []
