"""TCP streams as tshark follows them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from command import ROOT

from kiebitz.dissectors.model import Chunk, Direction, Gap, Item, Stream

CAPTURES = ROOT / "captures"
NAMES = sorted(
    path.name for path in CAPTURES.iterdir() if re.search(r"\.pcap(ng)?(\.gz)?$", path.name) is not None
)
Talk = tuple[tuple[str, bytes], tuple[str, bytes]]
"""Both ends of a connection with what each has sent, in order of the ends."""
_HOLE = re.compile(rb"\[(\d+) bytes missing in capture file\]\0\Z")


def talks(items: Iterable[Item]) -> list[Talk]:
    """Return the data of each stream, with gaps in tshark's notation."""
    said: dict[Stream, dict[Direction, bytearray]] = {}
    for item in items:
        both = said.setdefault(item.stream, {"c2s": bytearray(), "s2c": bytearray()})
        if isinstance(item, Chunk):
            both[item.direction] += item.data
        elif isinstance(item, Gap) and item.length is not None:
            hole = both[item.direction]
            # What was given up in two steps is one hole to tshark.
            before = _HOLE.search(hole)
            length = item.length
            if before is not None:
                length += int(before[1])
                del hole[before.start() :]
            hole += b"[%d bytes missing in capture file]\0" % length
    found = []
    for stream, both in said.items():
        if both["c2s"] or both["s2c"]:
            found.append(_talk(stream.client, bytes(both["c2s"]), stream.server, bytes(both["s2c"])))
    return sorted(found)


def followed(path: Path) -> list[Talk]:
    """Return the same from tshark."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    command = [tshark, "-r", str(path), "-o", "tcp.desegment_tcp_streams:FALSE"]
    numbers = _output([*command, "-Y", "tcp", "-T", "fields", "-e", "tcp.stream"]).split()
    streams = max((int(number) for number in numbers), default=-1) + 1
    requests = [part for number in range(streams) for part in ("-z", f"follow,tcp,raw,{number}")]
    found = []
    for text in _output([*command, "-q", *requests]).split("Follow: tcp,raw\n")[1:]:
        lines = text.splitlines()
        first, second = lines[1].removeprefix("Node 0: "), lines[2].removeprefix("Node 1: ")
        here = bytearray()
        there = bytearray()
        for line in lines[3:]:
            if not line.startswith("="):
                (there if line.startswith("\t") else here).extend(bytes.fromhex(line))
        if here or there:
            found.append(_talk(first, bytes(here), second, bytes(there)))
    return sorted(found)


def _talk(first: str, here: bytes, second: str, there: bytes) -> Talk:
    low, high = sorted(((first, here), (second, there)))
    return low, high


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout
