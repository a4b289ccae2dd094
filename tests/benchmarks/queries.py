"""How fast questions about a session of a million messages are answered.

A long capture is imported first. Each question is then asked inside this process, on a connection of its own
every time as a command has it, and as the whole command, whose start costs more than most answers. The first
time is told apart from the median of all.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
from repeating import MAEXCHEN, repeat
from report import Report, new_table
from running import KIEBITZ, run

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
"""Not one of the promised: the name is in no index, so each message is read."""


class Question(msgspec.Struct, frozen=True):
    """Something to ask: how in this process, which gives the number of rows, and with which command if any.

    `target` is in ms, None where nothing is promised.
    """

    title: str
    target: float | None
    ask: Callable[[Timeline], int]
    command: tuple[str, ...] | None = None


def state_at(moment: str) -> Callable[[Timeline], int]:
    return lambda timeline: len(tables_at(timeline, parse_position(moment)))


def game(number: int) -> Callable[[Timeline], int]:
    def ask(timeline: Timeline) -> int:
        return len(game_at(timeline, number, parse_position("end")).state)

    return ask


def filtered(text: str) -> Callable[[Timeline], int]:
    def ask(timeline: Timeline) -> int:
        wanted = compile_filter(text, field_catalog())
        return sum(1 for _ in messages(timeline, *sql_condition(timeline, wanted, "messages")))

    return ask


def counted(text: str) -> Callable[[Timeline], int]:
    def ask(timeline: Timeline) -> int:
        wanted = compile_filter(text, field_catalog())
        condition, parameters = sql_condition(timeline, wanted, "messages")
        query = f"SELECT count(*) FROM messages AS m WHERE {condition}"
        number: int = timeline.connection.execute(query, parameters).fetchone()[0]
        return number

    return ask


def questions(repetitions: int, games: int) -> list[Question]:
    # In the midst of a repetition: between two of them no round is on.
    middle = f"{repetitions // 2 * MAEXCHEN.shift_s + 20}s"
    late = f"{(repetitions - 1) * MAEXCHEN.shift_s + 20}s"
    asked = [
        Question(f"state at {moment}", 50, state_at(moment), ("state", "--at", moment, "--json"))
        for moment in ("20s", middle, late, "end")
    ]
    number = games // 2
    asked.append(
        Question(f"state of game {number}", 50, game(number), ("state", "--game", str(number), "--json"))
    )
    asked += [
        Question(text, target, filtered(text), ("messages", "-Y", text, "--nl"))
        for text, target in ((RARE, 500), (USUAL, 500), (COMMON, 500), (INSIDE, None))
    ]
    asked.append(Question(f"count of {COMMON}", None, counted(COMMON)))
    return asked


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
        run([*KIEBITZ, "import", str(capture), "-w", str(database)])
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
                report.promise(
                    f"{packets:,} messages, {question.title}: ms",
                    f"{median:,.1f}",
                    "–",
                    "–",
                    f"≤ {question.target:,.0f}",
                    median <= question.target,
                )
        report.show(result)
