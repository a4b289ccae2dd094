"""Small inputs that expand to large ones: memory and time are bounded, and the limits are reported.

A capture may have any size, also compressed a thousandfold, and a thousand million packets take their time: a
progress bar shows the position, and Ctrl-C keeps what was read. Memory is bounded, and impossible values end
the reading.

Files: where a command writes, who may read what it wrote, and that no name from the network is a path.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import os
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from altered_captures import replaced
from altered_sessions import recorded
from command import ODD, TINY, kiebitz
from conversation_files import blocks
from fuzz_targets import watched
from session_factory import record
from snapshots import DATA, as_bytes
from strength import a_few, every, times
from zstd_data import zstd_compressed

from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Ids, Stream
from kiebitz.dissectors.registry import BUILT_IN, dissector_of
from kiebitz.proxy.capture.files import CaptureError, open_capture

PEAK_BYTES = 128 << 20

PIECE = 1400
DEPTH = times(100_000, quick=10_000)
DIGITS = times(1_000_000, quick=100_000)

BOMBS: dict[str, tuple[str, Any, bytes]] = {
    "many attributes": (
        *("cgml", "s2c"),
        b"<disconnect " + b" ".join(b'a%d="1"' % n for n in range(DEPTH // 2)) + b"></disconnect>\r\n\r\n",
    ),
    "many scores": ("maexchen", "s2c", b"SCORE;" + b",".join(b"%d:1" % n for n in range(9_000))),
}
for _block in blocks(DATA / "bombs.txt").values():
    _protocol, _direction, _text = _block.text.split(" ", 2)
    _text = _text.replace("DEPTH", str(DEPTH)).replace("DIGITS", str(DIGITS))
    BOMBS[_block.title] = _protocol, _direction, as_bytes(_text)
"""Protocol, direction and bytes of one message."""

SHOWN = [
    *("nested arrays", "a long number", "a file fetched", "many attributes"),
    *("nested quotation marks", "a long turn", "a long round"),
]
"""The bombs that `make test` shows."""


def pieces(name: str) -> list[Chunk]:
    protocol, direction, data = BOMBS[name]
    dissector = dissector_of(protocol)
    assert dissector is not None
    stream = Stream(1, dissector.transport, "127.0.0.1:5", "127.0.0.1:4000", 1)
    size = PIECE if dissector.transport == "tcp" else len(data)
    return [Chunk(stream, direction, 1, at, data[at : at + size]) for at in range(0, len(data), size)]


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", every(7, BOMBS))
def test_a_message_costs_little(name: str) -> None:
    chunks = pieces(name)
    dissector = dissector_of(BOMBS[name][0])
    assert dissector is not None
    inspector = Inspector(BUILT_IN, Ids(), {(dissector.transport, 4000): dissector})
    with watched():
        tracemalloc.start()
        try:
            for chunk in chunks:
                inspector.feed(chunk)
            inspector.finish()
            found = inspector.drain()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sum(message.length for message in found.messages) == len(BOMBS[name][2])
    assert peak < PEAK_BYTES


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", a_few(BOMBS, SHOWN))
def test_its_recording_can_be_shown(name: str, tmp_path: Path) -> None:
    port = f"{'udp' if BOMBS[name][0] == 'maexchen' else 'tcp'}.port==4000,{BOMBS[name][0]}"
    database = record(tmp_path / "bomb.db", pieces(name))
    assert kiebitz("redissect", database, "-d", port).status == 0
    for command in (["messages"], ["events", "--json"], ["check"], ["state"], ["export", "-T", "jsonl"]):
        with watched():
            done = kiebitz(command[0], database, *command[1:])
        assert done.status in (0, 3), done.err
        assert "etc/passwd" not in done.out or name == "a file fetched"
        assert "root:" not in done.out


# Compressed captures.

PCAP = Path(TINY).read_bytes()


def empty_packets() -> bytes:
    return PCAP[:24] + bytes(16) * 300_000


@pytest.mark.full
def test_zeros_are_no_packets() -> None:
    """10 GB of them in 10 MB end at once: no program writes a packet that was no byte long."""
    for data in (empty_packets(), gzip.compress(empty_packets()), zstd_compressed(empty_packets())):
        capture = open_capture(io.BytesIO(data))
        assert sum(1 for _ in capture) <= 100_000
        assert capture.truncated is not None
        assert "packets of no bytes" in capture.truncated


@pytest.mark.full
@pytest.mark.parametrize("compress", a_few([gzip.compress, zstd_compressed], [zstd_compressed]))
def test_a_sound_capture_may_be_compressed_a_thousandfold(compress: type[bytes]) -> None:
    count = times(100_000, 20_000)
    length = 16 + int.from_bytes(PCAP[32:36], "little")
    packed = compress(PCAP[:24] + PCAP[24 : 24 + length] * count)
    assert len(packed) < count * length / 100
    tracemalloc.start()
    try:
        capture = open_capture(io.BytesIO(packed))
        assert sum(1 for _ in capture) == count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < PEAK_BYTES
    assert capture.truncated is None


@pytest.mark.parametrize("compress", a_few([gzip.compress, zstd_compressed], [gzip.compress]))
def test_members_without_content_are_passed_over(compress: type[bytes]) -> None:
    with watched():
        capture = open_capture(io.BytesIO(compress(b"") * 50_000 + compress(PCAP)))
        assert sum(1 for _ in capture) == 69


def test_doubly_compressed_data_is_no_capture() -> None:
    with pytest.raises(CaptureError, match="the gzip content of the stream is not a capture"):
        open_capture(io.BytesIO(gzip.compress(gzip.compress(PCAP))))


def test_a_window_of_two_gigabytes_is_not_made() -> None:
    # RFC 8878, 3.1.1.1: no content size, and a window of 2 to the power of 31.
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([21 << 3]) + (len(PCAP) << 3 | 1).to_bytes(3, "little") + PCAP
    with pytest.raises(CaptureError, match="the zstd data is damaged"):
        list(itertools.islice(open_capture(io.BytesIO(frame)), 1))


NAMES = (
    "../../escaped",
    "/tmp/escaped-by-kiebitz",
    "a/../../escaped",
    "..",
    "~/escaped",
    "nul\0byte",
    "COM1",
)


@pytest.fixture(params=every(3, [0o000, 0o022, 0o077], "umask {:03o}".format))
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


WRITING = [
    ["import", TINY, "-w", "game.db"],
    *(
        ["export", "game.db", "-T", form, "-o", f"game.{form}"]
        for form in ("pcapng", "jsonl", "csv", "parquet")
    ),
    ["state", "game.db", "--svg", "state.svg"],
    ["replay", "game.db", "--speed", "100000", "--svg", "replay.svg"],
    ["redissect", "game.db"],
    ["import", ODD, "-w", "game.db"],
]


@pytest.mark.full
@pytest.mark.usefixtures("umask")
def test_written_files_are_private(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        for command in WRITING:
            done = kiebitz(*command)
            assert done.status == 0, done.err
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert files.keys() >= {"game.db", "game.pcapng", "game.parquet", "state.svg", "replay.svg"}
    assert set(files.values()) == {0o600}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", every(3, NAMES))
def test_no_name_from_the_network_is_a_path(name: str, tmp_path: Path) -> None:
    known = recorded("maexchen-head-tiny.pcap")
    folder = tmp_path / "some" / "folder"
    folder.mkdir(parents=True)
    known.with_said(replaced(f"alice={name}", f"bob={name}.db")([*known.said])).write(folder / "game.db")
    with contextlib.chdir(folder):
        for command in WRITING[1:-1]:
            assert kiebitz(*command).status == 0
        for command in (["events", "game.db"], ["diff", "game.db", TINY], ["check", "game.db"]):
            assert kiebitz(*command).status in (0, 3)
    named = {command[-1] for command in WRITING[1:-2]} | {"game.db"}
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    # SQLite's files next to an open database.
    found -= {f"some/folder/game.db-{kind}" for kind in ("wal", "shm")}
    assert found == {f"some/folder/{name}" for name in named}
    assert not Path("/tmp/escaped-by-kiebitz").exists()
