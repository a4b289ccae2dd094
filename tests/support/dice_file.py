"""The protocol file of docs/protocol-files.md, and a game of its protocol over TCP."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from command import kiebitz

from kiebitz.dissectors.model import Chunk, Direction, End, Item, Stream
from kiebitz.storage.recording.recorder import Recorder

DICE = """\
protocol = "dice"
title = "Dice"
port = 4711
framing = "lines"
format = "words"

[types]
pips = "1..6"

[messages]
JOIN = "c: name=player"
JOINED = "s*: name=player < JOIN"
ROLL = "c:"
ROLLED = "s*: name=player pips=pips < ROLL"

[identity]
login = "JOIN"

[events]
joined = { on = "JOINED", say = "{name} joins", put = { "players.{name}.rolls" = 0 } }

[events.rolled]
on = "ROLLED"
say = "{name} rolls {pips}"
put = { "players.{name}.rolls" = "players.{name}.rolls + 1" }

[board]
scores = "players.{player}.rolls"
unit = "rolls"
"""

OTHER = DICE.replace("rolls {pips}", "throws a {pips}")
"""The same protocol with another sentence."""

TALK: tuple[tuple[str, Direction, bytes], ...] = (
    ("alice", "c2s", b"JOIN alice\n"),
    ("alice", "s2c", b"JOINED alice\n"),
    ("bob", "c2s", b"JOIN bob\n"),
    ("bob", "s2c", b"JOINED bob\n"),
    ("alice", "s2c", b"JOINED bob\n"),
    ("alice", "c2s", b"ROLL\n"),
    ("alice", "s2c", b"ROLLED alice 5\n"),
    ("bob", "s2c", b"ROLLED alice 5\n"),
    ("bob", "c2s", b"ROLL\n"),
    ("bob", "s2c", b"ROLLED bob 2\n"),
    ("alice", "s2c", b"ROLLED bob 2\n"),
)

SENTENCES = ["alice joins", "bob joins", "alice rolls 5", "bob rolls 2"]

_START_NS = 1_700_000_000_000_000_000
_SERVER = "127.0.0.1:4711"


def items() -> Iterator[Item]:
    """Yield the items of the game."""
    streams = {
        name: Stream(number, "tcp", f"127.0.0.1:{40000 + number}", _SERVER, _START_NS)
        for number, name in enumerate(("alice", "bob"), 1)
    }
    offsets: dict[tuple[str, Direction], int] = {}
    times = count(_START_NS, 1_000_000)
    for name, direction, data in TALK:
        offset = offsets.get((name, direction), 0)
        yield Chunk(streams[name], direction, next(times), offset, data)
        offsets[name, direction] = offset + len(data)
    for stream in streams.values():
        yield End(stream, next(times), "closed")


def record_game(path: Path) -> str:
    """Record the game without its protocol file, and return the database's path."""
    recorder = Recorder(str(path), "relay", "dice", started_ns=_START_NS)
    recorder.record(items())
    recorder.close()
    return str(path)


def capture_game(folder: Path) -> str:
    """Return the path of a capture of the game."""
    database = record_game(folder / "bytes.db")
    path = str(folder / "dice.pcapng")
    done = kiebitz("export", database, "-T", "pcapng", "-o", path)
    assert done.status == 0, done.err
    Path(database).unlink()
    return path


def write_file(folder: Path, text: str = DICE, name: str = "dice.toml") -> str:
    """Return the path of a protocol file."""
    path = folder / name
    path.write_text(text)
    return str(path)
