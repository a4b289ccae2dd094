"""Benchmark of queries on a session of a million messages.

A long capture is imported first. Each query then runs inside this process, on a new connection each time as
in
a command, and as the whole command, whose start costs more than most answers. The first time is reported
separately from the median of all.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from repeating import MAEXCHEN, repeat
from report import Report, new_table
from running import KIEBITZ, import_into, run

from kiebitz.dissectors.filters import compile_filter
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.read.conditions import field_catalog, sql_condition
from kiebitz.storage.read.message_queries import messages
from kiebitz.storage.read.seek import game_at, parse_position, tables_at
from kiebitz.storage.read.timeline import Timeline, sessions

MESSAGES = 1_000_000

COMMON = 'msg == "PLAYER ROLLS"'
"""The commonest of all messages: every sixth."""

USUAL = 'msg == "ROLL"'
RARE = 'msg == "ROUND CANCELED"'
INSIDE = 'maexchen.dice == "2,1"'
"""A query without a promised time: no index has the name, so each message is read."""


Ask = Callable[[Timeline], int]
"""Function for this process that returns the number of rows."""


class Question(NamedTuple):
    """A query, and the command if there is one; `target` is in ms, None where nothing is promised."""

    title: str
    target: float | None
    ask: Ask
    command: tuple[str, ...] | None = None


def state_at(moment: str) -> Question:
    place = parse_position(moment)
    command = ("state", "--at", moment, "--json")
    return Question(f"state at {moment}", 50, lambda timeline: len(tables_at(timeline, place)), command)


def state_of(game: int) -> Question:
    def ask(timeline: Timeline) -> int:
        return len(game_at(timeline, game, parse_position("end")).state)

    return Question(f"state of game {game}", 50, ask, ("state", "--game", str(game), "--json"))


def filtered(text: str, target: float | None) -> Question:
    def ask(timeline: Timeline) -> int:
        return sum(1 for _ in messages(timeline, *conditions(timeline, text)))

    return Question(text, target, ask, ("messages", "-Y", text, "--nl"))


def counted(text: str) -> Question:
    def ask(timeline: Timeline) -> int:
        condition, parameters = conditions(timeline, text)
        query = f"SELECT count(*) FROM messages AS m WHERE {condition}"
        return int(timeline.connection.execute(query, parameters).fetchone()[0])

    return Question(f"count of {text}", None, ask)


def conditions(timeline: Timeline, text: str) -> tuple[str, Sequence[Any]]:
    return sql_condition(timeline, compile_filter(text, field_catalog()), "messages")


def questions(repetitions: int, games: int) -> list[Question]:
    # In the midst of a repetition: between two of them no round is on.
    middle, late = (number * MAEXCHEN.shift_s + 20 for number in (repetitions // 2, repetitions - 1))
    return [
        *map(state_at, ("20s", f"{middle}s", f"{late}s", "end")),
        state_of(games // 2),
        *(filtered(text, 500) for text in (RARE, USUAL, COMMON)),
        filtered(INSIDE, None),
        counted(COMMON),
    ]


def latest(connection: sqlite3.Connection) -> Timeline:
    return Timeline(connection, sessions(connection)[-1])


def asked_inside(database: Path, question: Question, rounds: int) -> tuple[list[float], int]:
    """Ask again and again; the times in ms, and how many rows the answer has."""
    times: list[float] = []
    rows = 0
    for _ in range(rounds):
        with closing(open_existing(str(database))) as connection:
            begin = time.perf_counter()
            rows = question.ask(latest(connection))
            times.append((time.perf_counter() - begin) * 1e3)
    return times, rows


def asked_outside(database: Path, command: tuple[str, ...], rounds: int) -> float:
    """Run the command again and again; the median of its times in ms."""
    name, *rest = command
    return statistics.median(run([*KIEBITZ, name, str(database), *rest]).wall * 1e3 for _ in range(rounds))


def answered(report: Report, rounds: int) -> None:
    """Ask everything of a session of at least `MESSAGES` messages."""
    repetitions = -(-MESSAGES // MAEXCHEN.messages)
    with tempfile.TemporaryDirectory() as folder:
        capture, database = Path(folder) / "long.pcap", Path(folder) / "long.db"
        packets = repeat(capture, repetitions, MAEXCHEN)
        import_into(database, capture)
        capture.unlink()
        with closing(open_existing(str(database))) as connection:
            games = len(latest(connection).games())
        title = f"Questions to {packets:,} messages ({database.stat().st_size / 1e6:.0f} MB)"
        result = new_table(title, "rows|first ms|median ms|aim ms|whole command ms", "question")
        for question in questions(repetitions, games):
            times, rows = asked_inside(database, question, rounds)
            command = question.command
            median = statistics.median(times)
            result.add_row(
                question.title,
                f"{rows:,}",
                f"{times[0]:,.1f}",
                f"{median:,.1f}",
                f"{question.target:,.0f}" if question.target is not None else "–",
                f"{asked_outside(database, command, rounds):,.0f}" if command is not None else "–",
            )
            if question.target is not None:
                title = f"{packets:,} messages, {question.title}: ms"
                report.limit(title, median, question.target, ",.1f")
        report.show(result)
