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
from ipaddress import IPv4Address
from pathlib import Path

from report import Report, new_table
from running import KIEBITZ, run
from session_factory import START_NS, Conversation, record

from kiebitz.dissectors.model import Item
from kiebitz.services.protocol_files import add_protocol_files

LINEAR = 2.6
"""Highest growth from 2n to 4n that counts as linear."""

LEAST_S = 0.3
"""CPU time in seconds at 4n below which the growth says nothing."""

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

Line = tuple[int, str]
"""A connection, and a message as in `session_factory.Conversation.talk`, or the connection's end."""


def connections(number: int) -> Iterator[Line]:
    """Yield the messages of `number` players, each with a connection that stays."""
    for player in range(number):
        yield from _joins(player, f"p{player}")
        yield player, f"< ROLLED p{player} 3␊"


def players(number: int) -> Iterator[Line]:
    """Yield the messages of `number` players that come and go."""
    for connection, line in connections(number):
        yield connection, line
        if line.startswith("< ROLLED"):
            yield connection, "end"


def games(number: int) -> Iterator[Line]:
    """Yield the messages of `number` games."""
    yield from _joins(0, "p0")
    for _ in range(number):
        yield from ((0, "< START␊"), (0, "< ROLLED p0 3␊"), (0, "< END␊"))


def events(number: int) -> Iterator[Line]:
    """Yield the messages of one game with `number` rolls."""
    yield from _joins(0, "p0")
    yield 0, "< START␊"
    for turn in range(number):
        yield 0, f"< ROLLED p0 {turn % 6 + 1}␊"


def _joins(connection: int, name: str) -> Iterator[Line]:
    yield connection, f"> JOIN {name}␊"
    yield connection, f"< JOINED {name}␊"


def _record(database: Path, lines: Iterable[Line], has_tables: bool = False) -> None:
    """Record messages; with `has_tables` each connection has a server of its own."""
    talks: dict[int, Conversation] = {}
    items: list[Item] = []
    for number, (connection, line) in enumerate(lines):
        now_ns = START_NS + number * 1_000_000
        if connection not in talks:
            client, server = (IPv4Address(first << 24 | connection) for first in (127, 10))
            address = f"{server if has_tables else '127.0.0.1'}:{PORT}"
            talks[connection] = Conversation(f"{client}:40000", address, len(talks) + 1, now_ns)
            talks[connection].stream.transport = "tcp"
        items += talks[connection].waits_until(now_ns).talk(line).items
        talks[connection].items.clear()
    record(database, items)


def _sessions(database: Path, number: int) -> None:
    """Record one session, and copy its rows `number` times."""
    _record(database, games(2))
    with closing(sqlite3.connect(database)) as connection, connection:
        (session,) = connection.execute("SELECT * FROM sessions")
        connection.executemany(
            f"INSERT INTO sessions VALUES ({','.join('?' * len(session))})",
            ((copy, *session[1:]) for copy in range(2, number + 1)),
        )


AXES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "connections": (lambda path, number: _record(path, connections(number)), 1_000),
    "players": (lambda path, number: _record(path, players(number)), 1_000),
    "tables": (lambda path, number: _record(path, connections(number), True), 200),
    "games": (lambda path, number: _record(path, games(number)), 1_000),
    "events": (lambda path, number: _record(path, events(number)), 2_000),
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
        for axis in AXES:
            _measure_axis(report, folder, axis, start, rounds)


def _measure_axis(report: Report, folder: Path, axis: str, start: float, rounds: int) -> None:
    make, least = AXES[axis]
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
    title = f"Growth of the CPU time from 2n to 4n {axis}, at most ({worst[1]})"
    report.limit(title, worst[0], LINEAR, ".1f")
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
