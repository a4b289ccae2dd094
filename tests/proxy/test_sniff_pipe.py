"""`kiebitz sniff -i -`: a capture through a pipe, live or as a whole, from all kinds of writers."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from command import CAPTURES, ROOT, TINY, kiebitz
from maexchen_programs import NAMES, Server, play, players_of
from packet_reordering import packets_of
from processes_and_rows import KIEBITZ, PATIENCE_S, rows, story, until
from tcp_segments import handshake, sent, write_pcap

from kiebitz.proxy.capture.files import CaptureError
from kiebitz.proxy.capture.live import CapturePipe

HEAD = 24
"""Bytes before the first packet of a pcap file."""

TABLES = ("streams", "chunks", "messages", "diagnostics", "tables", "games", "events", "snapshots")


def split(data: bytes) -> list[bytes]:
    """Return the head of a little-endian pcap file and each of its packets."""
    parts = [data[:HEAD]]
    at = HEAD
    while at < len(data):
        end = at + 16 + struct.unpack_from("<I", data, at + 8)[0]
        parts.append(data[at:end])
        at = end
    return parts


TINY_PARTS = split(Path(TINY).read_bytes())


@contextmanager
def sniffing(database: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the command, with a pipe into it; whatever the test does, it ends."""
    process = subprocess.Popen(
        [*KIEBITZ, "sniff", "-i", "-", "-w", str(database), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def written(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Close the pipe; exit status, standard output and standard error."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out.decode(), err.decode()


def stored(database: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])
    except sqlite3.OperationalError:
        # It is not made yet.
        return 0


def until_stored(database: Path, chunks: int) -> None:
    until(lambda: stored(database) == chunks, f"{chunks} chunks are stored")


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [
        "maexchen-head-odd.pcap",
        "schafkopf-1.3-badcard.pcap",
        "maexchen-two-servers-restart.pcapng",
        "catan-yaks-lobby.pcap.gz",
        "okey-head-malformed.pcap.gz",
        "cgml-tiny.pcap.gz",
    ],
)
def test_a_capture_through_a_pipe_gives_the_rows_of_an_import(tmp_path: Path, name: str) -> None:
    piped, imported = tmp_path / "piped.db", tmp_path / "imported.db"
    command = f"cat '{CAPTURES / name}' | '{sys.executable}' -m kiebitz sniff -i - -q -w '{piped}'"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0
    assert kiebitz("import", str(CAPTURES / name), "-w", str(imported)).status == 0
    for table in TABLES:
        assert rows(piped, f"SELECT * FROM {table}") == rows(imported, f"SELECT * FROM {table}")
    times = "SELECT started_ns, ended_ns FROM sessions"
    assert rows(piped, times) == rows(imported, times)
    assert rows(piped, "SELECT kind, source FROM sessions") == [("sniff", "-")]
    packets = len(packets_of(CAPTURES / name))
    assert done.stderr.splitlines()[1].startswith(f"{packets} packets, ")
    assert done.stdout == ""


def test_each_packet_is_shown_and_stored_before_the_next_one_comes(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with sniffing(database) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        written(process, TINY_PARTS[0])
        assert process.stderr.readline() == b"reading a capture from standard input\n"
        written(process, TINY_PARTS[1])
        until_stored(database, 1)
        shown = b""
        for number, part in enumerate(TINY_PARTS[2:20], 2):
            # In two pieces, of which the first is an incomplete packet.
            written(process, part[:20])
            written(process, part[20:])
            until_stored(database, number)
        while b"joins" not in shown:
            shown += os.read(process.stdout.fileno(), 65_536)
        # The first line's time is since the packets began, however long ago that was.
        assert float(shown.split()[0]) < 60
        status, _, err = ended(process)
    assert (status, err.startswith("19 packets, ")) == (0, True)


@pytest.mark.full
def test_packets_come_out_of_a_compressed_pipe_as_they_are_flushed(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    packer = zlib.compressobj(wbits=31)
    with sniffing(database) as process:
        for number, part in enumerate(TINY_PARTS[:4]):
            written(process, packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH))
            until_stored(database, number)
        written(process, packer.flush())
        status, _, err = ended(process)
    assert (status, err.splitlines()[1].partition(",")[0]) == (0, "3 packets")


NO_CAPTURE = [
    (b"", "standard input is empty: there is no capture in it"),
    (b"tcpdump: no suitable device", "standard input is not a capture: it starts with 'tcpdump: no suit"),
    (TINY_PARTS[0][:20], "standard input cannot be read: its header is broken or incomplete"),
]
BROKEN_OFF = (
    r"68 packets, .*\nkiebitz: standard input: the capture ends inside packet 69 at byte .*"
    "; all before that was kept"
)


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "data", "is_closed", "says", "chunks"),
    [
        # Options, what is written, whether the pipe ends then; what is reported, and what is stored.
        ("-c 7", b"".join(TINY_PARTS), False, "7 packets, .*", 7),
        # The second packet is never whole, which is not the capture's fault.
        ("-a duration:2", b"".join(TINY_PARTS[:2]) + TINY_PARTS[2][:20], False, "1 packets, .*", 1),
        ("", b"".join(TINY_PARTS)[:-3], True, BROKEN_OFF, 68),
    ],
    ids=["so many packets", "so many seconds", "a capture that breaks off"],
)
def test_a_sniff_ends(
    tmp_path: Path, options: str, data: bytes, is_closed: bool, says: str, chunks: int
) -> None:
    database = tmp_path / "game.db"
    with sniffing(database, "-q", *options.split()) as process:
        written(process, data)
        if not is_closed:
            process.wait(PATIENCE_S)
            with pytest.raises(BrokenPipeError):
                written(process, TINY_PARTS[1])
        status, _, err = ended(process)
    assert status == 0
    assert re.fullmatch(f"reading a capture from standard input\n{says}\n", err)
    assert rows(database, "SELECT count(*), ended_ns IS NULL FROM chunks, sessions") == [(chunks, 0)]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("data", "complaint"), NO_CAPTURE)
def test_a_file_that_is_no_capture_leaves_no_session(tmp_path: Path, data: bytes, complaint: str) -> None:
    with sniffing(tmp_path / "game.db") as process:
        written(process, data)
        status, out, err = ended(process)
    assert (status, out) == (1, "")
    assert err.startswith(f"kiebitz: {complaint}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
@pytest.mark.parametrize("options", [["-a", "duration:1"], []])
def test_a_pipe_through_which_nothing_comes(tmp_path: Path, options: list[str]) -> None:
    with sniffing(tmp_path / "game.db", *options) as process:
        if not options:
            # The command is there to take a signal once it reads.
            written(process, b"\xd4")
            until(lambda: unread(process) == 0, "all is read")
            process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 1
        assert process.stderr is not None
        assert process.stderr.read().startswith(b"kiebitz: no capture received from standard input: ")
    assert list(tmp_path.iterdir()) == []


def unread(process: subprocess.Popen[bytes]) -> int:
    import fcntl
    import termios

    assert process.stdin is not None
    answer = fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0\0\0\0")
    return int(struct.unpack("i", answer)[0])


@pytest.mark.full
def test_a_terminal_is_no_pipe(tmp_path: Path) -> None:
    controller, terminal = os.openpty()
    done = subprocess.run(
        [*KIEBITZ, "sniff", "-i", "-", "-w", str(tmp_path / "game.db")],
        stdin=terminal,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=ROOT,
    )
    os.close(controller)
    os.close(terminal)
    assert done.returncode == 1
    assert done.stderr.startswith("kiebitz: standard input is a terminal: pipe a capture into it")
    assert list(tmp_path.iterdir()) == []


# Like tcpdump, this buffers packets until it is stopped.
WRITER = """
import signal, sys, time
head, first, rest, end = (bytes.fromhex(part) for part in sys.argv[1:])
def last(*_):
    time.sleep(0.3)
    sys.stdout.buffer.write(rest)
    sys.stdout.buffer.flush()
    if end:
        sys.exit()
signal.signal(signal.SIGINT, last)
sys.stdout.buffer.write(head + first)
sys.stdout.buffer.flush()
while True:
    time.sleep(1)
"""


@pytest.mark.full
@pytest.mark.parametrize("writer_ends", [True, False])
def test_ctrl_c_ends_both_and_pending_data_is_recorded(tmp_path: Path, writer_ends: bool) -> None:
    database = tmp_path / "game.db"
    head, first, *rest = TINY_PARTS
    parts = (head, first, b"".join(rest), b"x" if writer_ends else b"")
    reading, writing = os.pipe()
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, *(part.hex() for part in parts)],
        stdout=writing,
        process_group=0,
    )
    # One process group, as a shell makes it of a pipe.
    sniffer = subprocess.Popen(
        [*KIEBITZ, "sniff", "-i", "-", "-q", "-w", str(database)],
        stdin=reading,
        stderr=subprocess.PIPE,
        process_group=writer.pid,
        cwd=ROOT,
    )
    os.close(reading)
    os.close(writing)
    try:
        until_stored(database, 1)
        os.killpg(writer.pid, signal.SIGINT)
        _, err = sniffer.communicate(timeout=PATIENCE_S)
    finally:
        os.killpg(writer.pid, signal.SIGKILL)
        writer.wait()
    assert sniffer.returncode == 0
    assert err.decode().splitlines()[1].startswith("69 packets, ")
    assert len(err.splitlines()) == 2
    assert rows(database, "SELECT count(*), max(ended_ns) IS NULL FROM sessions") == [(1, 0)]


@pytest.mark.full
def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with sniffing(database, "-q") as process:
        written(process, b"".join(TINY_PARTS[:2]))
        until_stored(database, 1)
        # The pipe stays open: after the first, its end would be waited for.
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        again = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
        assert time.monotonic() - again < 1.5
    assert rows(database, "SELECT ended_ns IS NULL FROM sessions") == [(0,)]


@pytest.mark.full
def test_a_writer_that_is_killed_leaves_a_whole_session(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with sniffing(database, "-q") as process:
        assert process.stdin is not None
        writer = subprocess.Popen(["sh", "-c", f"cat '{TINY}'; exec sleep 60"], stdout=process.stdin)
        process.stdin.close()
        process.stdin = None
        until_stored(database, 69)
        # A stopped process may continue at any time.
        writer.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        assert process.poll() is None
        writer.kill()
        writer.wait()
        assert process.wait(PATIENCE_S) == 0
    assert rows(database, "SELECT ended_ns IS NULL FROM sessions") == [(0,)]


@pytest.mark.full
def test_a_hole_is_given_up_while_nothing_comes(tmp_path: Path) -> None:
    # Long ago; bytes 0 to 5 are missing, and the server has acknowledged them.
    hole = [*handshake(), sent(1, "c", "PA", b"hello", at=5), sent(2, "s", "A", ack=10)]
    write_pcap(tmp_path / "hole.pcap", hole)
    database = tmp_path / "game.db"
    with sniffing(database, "-q") as process:
        written(process, (tmp_path / "hole.pcap").read_bytes())
        until_stored(database, 2)
        assert ended(process)[0] == 0
    ((gap_ns, length),) = rows(database, "SELECT ts_ns, length FROM chunks WHERE data IS NULL")
    assert length == 5
    # By the packets' clock, on which 0.2 s and little more have passed.
    assert 0.2e9 < gap_ns < 2e9


@contextmanager
def piped() -> Iterator[tuple[CapturePipe, int]]:
    """Yield a CapturePipe, and where to write into it."""
    reading, writing = os.pipe()
    with open(reading, "rb") as source, CapturePipe(source) as pipe:
        try:
            yield pipe, writing
        finally:
            os.close(writing)


def test_time_goes_by_the_packets_and_by_waiting() -> None:
    first_ns, second_ns = (packet[0] for packet in packets_of(Path(TINY))[:2])
    with piped() as (pipe, writing):
        assert not pipe.has_begun(0)
        os.write(writing, b"".join(TINY_PARTS[:2]))
        assert pipe.has_begun(PATIENCE_S)
        assert [packet[0] for packet in pipe.read(PATIENCE_S)] == [first_ns]
        assert pipe.now_ns() == first_ns
        # What is done meanwhile does not count.
        time.sleep(0.1)
        assert pipe.now_ns() == first_ns
        assert pipe.read(0.01) == pipe.read(0.02) == []
        assert pipe.now_ns() == first_ns + 30_000_000
        os.write(writing, TINY_PARTS[2])
        assert [packet[0] for packet in pipe.read(PATIENCE_S)] == [second_ns]
        assert pipe.now_ns() == second_ns


def test_read_ahead_is_bounded() -> None:
    packet = struct.pack("<IIII", 1, 0, 60_000, 60_000) + bytes(60_000)
    with piped() as (pipe, writing):
        os.set_blocking(writing, False)
        os.write(writing, TINY_PARTS[0])
        total, rest, refused = 0, b"", 0
        while refused < 30 and total < 1 << 26:
            rest = rest or packet
            try:
                size = os.write(writing, rest)
            except BlockingIOError:
                refused += 1
                time.sleep(0.01)
                continue
            refused = 0
            total += size
            rest = rest[size:]
        assert 4 << 20 < total < 6 << 20
        # And continues once it is read.
        assert len(pipe.read(PATIENCE_S, limit=3)) == 3
        assert len(pipe.read(PATIENCE_S, limit=1000)) > 60


def test_closing_ends_the_thread_whatever_it_waits_for() -> None:
    threads = threading.active_count()
    with piped():
        assert threading.active_count() == threads + 1
    assert threading.active_count() == threads
    with piped() as (pipe, writing):
        os.write(writing, TINY_PARTS[0] + struct.pack("<IIII", 1, 0, 5, 5) + b"half")
        assert pipe.has_begun(PATIENCE_S)
    assert threading.active_count() == threads


def test_a_missing_capture_is_reported_to_a_waiting_reader() -> None:
    with piped() as (pipe, writing):
        os.write(writing, b"nonsense, and more than 16 bytes of it")
        with pytest.raises(CaptureError, match="standard input is not a capture"):
            pipe.has_begun(PATIENCE_S)


@pytest.mark.full
def test_a_live_game_that_tcpdump_captures(tmp_path: Path) -> None:
    tcpdump = shutil.which("tcpdump")
    if os.geteuid() != 0:
        pytest.skip("capturing needs root")
    if tcpdump is None:
        pytest.skip("tcpdump is not installed")
    server = Server(expected=len(NAMES), rounds=2)
    copy, database, told = tmp_path / "copy.pcap", tmp_path / "piped.db", tmp_path / "told"
    command = (
        f"'{tcpdump}' -U -i lo -B 65536 -w - udp port {server.port} | tee '{copy}'"
        f" | '{sys.executable}' -m kiebitz sniff -i - -w '{database}'"
    )
    with told.open("wb") as file:
        shell = subprocess.Popen(
            ["bash", "-c", command], stdout=file, stderr=file, cwd=ROOT, start_new_session=True
        )
    try:
        until(lambda: b"listening on" in (said := told.read_bytes()) and b"reading" in said, "it is there")
        players = players_of(server.port)
        play(server, players)
        logs = [server.log, *(player.log for player in players)]
        total = sum(len(datagrams) for log in logs for datagrams in log.sent.values())
        # tcpdump drops what it has not written yet.
        until(lambda: rows(database, "SELECT count(*) FROM messages") == [(total,)], "all is captured")
        os.killpg(shell.pid, signal.SIGINT)
        shell.wait(PATIENCE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    assert re.search(rf"(wins|lost)(?s:.*){total} packets, ", told.read_text())
    assert kiebitz("import", str(copy), "-w", str(tmp_path / "imported.db")).status == 0
    assert story(database) == story(tmp_path / "imported.db")
    assert len(story(database)["games"]) == 2
