"""Benchmark of growth: each command with n, 2n and 4n connections, players, tables, games, events, sessions.

The sessions are of a small protocol file. A figure is the CPU time in seconds without the command's start;
the growth is that of 4n by that of 2n: 2 if the command is linear, 4 if it is quadratic.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from report import Report, new_table
from running import KIEBITZ, run

from kiebitz.dissectors.model import Chunk, Direction, End, Item, Stream
from kiebitz.services.protocol_files import add_protocol_files
from kiebitz.storage.recording.recorder import Recorder

LINEAR = 2.6
"""Highest growth from 2n to 4n that counts as linear."""

LEAST_S = 0.3
"""CPU time in seconds at 4n below which the growth says nothing."""

START_NS = 1_700_000_000_000_000_000
PORT = 4740
PROTOCOL = f"""
protocol = "growing"
port = {PORT}
[messages]
JOIN = "c: name=player"
JOINED = "s*: name=player < JOIN"
START = "s*:"
ROLLED = "s*: name=player pips=1..6"
END = "s*:"
[identity]
login = "JOIN"
given = "JOINED"
[events]
started = {{ on = "START", say = "a game begins", opens = true }}
rolled = {{ on = "ROLLED", say = "{{name}} rolls {{pips}}", put = {{ "pips.{{name}}" = "pips" }} }}
ended = {{ on = "END", say = "the game ends", ends = true }}
"""

Line = tuple[int, Direction, str]
"""A connection, a direction and a message; an empty one ends the connection."""


def connections(number: int) -> Iterator[Line]:
    """Yield the messages of `number` players, each with a connection that stays."""
    for player in range(number):
        yield from _joins(player, f"p{player}")
        yield player, "s2c", f"ROLLED p{player} 3"


def players(number: int) -> Iterator[Line]:
    """Yield the messages of `number` players that come and go."""
    for line in connections(number):
        yield line
        if line[2].startswith("ROLLED"):
            yield line[0], "c2s", ""


def games(number: int) -> Iterator[Line]:
    """Yield the messages of `number` games."""
    yield from _joins(0, "p0")
    for _ in range(number):
        yield from ((0, "s2c", "START"), (0, "s2c", "ROLLED p0 3"), (0, "s2c", "END"))


def events(number: int) -> Iterator[Line]:
    """Yield the messages of one game with `number` rolls."""
    yield from _joins(0, "p0")
    yield 0, "s2c", "START"
    for turn in range(number):
        yield 0, "s2c", f"ROLLED p0 {turn % 6 + 1}"


def _joins(connection: int, name: str) -> Iterator[Line]:
    yield connection, "c2s", f"JOIN {name}"
    yield connection, "s2c", f"JOINED {name}"


def _items(lines: Iterable[Line], has_tables: bool = False) -> Iterator[Item]:
    """Yield the items of messages; with `has_tables` each connection has a server of its own."""
    streams: dict[int, Stream] = {}
    offsets: dict[tuple[int, Direction], int] = {}
    for number, (connection, direction, text) in enumerate(lines):
        now_ns = START_NS + number * 1_000_000
        server = f"10.{connection >> 16}.{connection >> 8 & 255}.{connection & 255}"
        stream = streams.get(connection)
        if stream is None:
            client = f"127.{connection >> 16}.{connection >> 8 & 255}.{connection & 255}:40000"
            address = f"{server if has_tables else '127.0.0.1'}:{PORT}"
            stream = streams[connection] = Stream(len(streams) + 1, "tcp", client, address, now_ns)
        if not text:
            yield End(stream, now_ns, "closed")
            continue
        data = f"{text}\n".encode()
        offset = offsets.get((connection, direction), 0)
        offsets[connection, direction] = offset + len(data)
        yield Chunk(stream, direction, now_ns, offset, data)


def _record(database: Path, items: Iterable[Item]) -> None:
    recorder = Recorder(str(database), "relay", "growing", started_ns=START_NS)
    for item in items:
        recorder.record((item,))
        if recorder.full:
            recorder.commit()
    recorder.close()


def _sessions(database: Path, number: int) -> None:
    """Record one session, and copy its rows `number` times."""
    _record(database, _items(games(2)))
    with closing(sqlite3.connect(database)) as connection, connection:
        (session,) = connection.execute("SELECT * FROM sessions")
        connection.executemany(
            f"INSERT INTO sessions VALUES ({','.join('?' * len(session))})",
            ((copy, *session[1:]) for copy in range(2, number + 1)),
        )


AXES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "connections": (lambda path, number: _record(path, _items(connections(number))), 1_000),
    "players": (lambda path, number: _record(path, _items(players(number))), 1_000),
    "tables": (lambda path, number: _record(path, _items(connections(number), True)), 200),
    "games": (lambda path, number: _record(path, _items(games(number))), 1_000),
    "events": (lambda path, number: _record(path, _items(events(number))), 2_000),
    "sessions": (_sessions, 80),
}
"""Axis -> function that records a database, and the least size."""

COMMANDS: dict[str, list[str]] = {
    "import": ["import", "{capture}", "-P", "{file}", "-w", "{new}"],
    "import of DB": ["import", "{database}", "-w", "{new}"],
    "redissect": ["redissect", "{copy}"],
    "draft": ["draft", "{capture}", "-o", "{new}"],
    "check": ["check", "{database}"],
    "stats": ["stats", "{database}"],
    "streams": ["streams", "{database}"],
    "games": ["games", "{database}"],
    "messages": ["messages", "{database}"],
    "show": ["show", "{database}", "#2"],
    "follow": ["follow", "{database}", "1"],
    "events": ["events", "{database}"],
    "events -Y": ["events", "{database}", "-Y", 'named == "p0"'],
    "events --as": ["events", "{database}", "--as", "p0"],
    "state": ["state", "{database}"],
    "state --as": ["state", "{database}", "--as", "p0"],
    "sequence": ["sequence", "{database}"],
    "diff": ["diff", "{database}", "{database}"],
    "whatif": ["whatif", "{database}", "--drop", "#2"],
    "export -T html": ["export", "{database}", "-T", "html", "-o", "{new}"],
    "export -T pcapng": ["export", "{database}", "-T", "pcapng", "-o", "{new}"],
    "export -T jsonl": ["export", "{database}", "-T", "jsonl", "-o", "{new}"],
    "export -T csv": ["export", "{database}", "-T", "csv", "-o", "{new}"],
}

OF_SESSIONS: dict[str, list[str]] = {
    "sessions": ["sessions", "{database}"],
    **{
        f"{listing} 'DB:*'": [listing, "{database}:*"]
        for listing in ("check", "streams", "games", "messages", "events")
    },
    "import of DB": ["import", "{database}", "-w", "{new}"],
    "redissect": ["redissect", "{copy}"],
}


def measured(report: Report, rounds: int) -> None:
    """Measure all commands on all axes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "growing.toml"
        file.write_text(PROTOCOL)
        add_protocol_files([file])
        start = min(run([*KIEBITZ, "sessions", "-h"]).cpu for _ in range(3))
        for axis, (make, least) in AXES.items():
            _measure_axis(report, folder, axis, make, least, start, rounds)


def _measure_axis(
    report: Report,
    folder: Path,
    axis: str,
    make: Callable[[Path, int], None],
    least: int,
    start: float,
    rounds: int,
) -> None:
    numbers = (least, 2 * least, 4 * least)
    headings = "|".join(f"{number:,} {axis}: s" for number in numbers)
    table = new_table(f"Growth with {axis}", f"{headings}|4n ÷ 2n", "kiebitz …")
    commands = OF_SESSIONS if axis == "sessions" else COMMANDS
    for number in numbers:
        database = folder / f"{axis}-{number}.db"
        make(database, number)
        if axis != "sessions":
            capture = str(database.with_suffix(".pcapng"))
            run([*KIEBITZ, "export", str(database), "-T", "pcapng", "-o", capture])
    worst = 0.0, "none"
    for title, command in commands.items():
        spent = [
            min(_cost(folder, f"{axis}-{number}", command) for _ in range(rounds)) - start
            for number in numbers
        ]
        growth = spent[2] / spent[1] if spent[2] >= LEAST_S else 0.0
        table.add_row(title, *(f"{one:.2f}" for one in spent), f"{growth:.1f}" if growth else "–")
        worst = max(worst, (growth, title))
    report.show(table)
    report.promise(
        f"Growth of the CPU time from 2n to 4n {axis}, at most ({worst[1]})",
        f"{worst[0]:.1f}",
        "–",
        "–",
        f"≤ {LINEAR}",
        worst[0] <= LINEAR,
    )
    for left in folder.glob(f"{axis}-*"):
        left.unlink()


def _cost(folder: Path, name: str, command: list[str]) -> float:
    """Return the CPU time in seconds of a command on a database."""
    database, new, copy = folder / f"{name}.db", folder / "new", folder / "copy.db"
    new.unlink(missing_ok=True)
    if "{copy}" in command:
        shutil.copy(database, copy)
    paths = {
        "database": str(database),
        "capture": str(database.with_suffix(".pcapng")),
        "file": str(folder / "growing.toml"),
        "new": str(new),
        "copy": str(copy),
    }
    return run([*KIEBITZ, *(part.format(**paths) for part in command)], well=(0, 1, 3)).cpu
