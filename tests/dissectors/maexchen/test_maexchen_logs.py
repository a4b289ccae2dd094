"""Captures of dialects and restarts against the servers' own logs, event by event."""

from __future__ import annotations

import gzip
import json
from sqlite3 import Connection

import pytest
from imported_databases import database_of
from inspected_captures import CAPTURES
from maexchen_logs import Log, LoggedEvent, read_log

from kiebitz.cli.options.session import open_session

FORK = "maexchen-fork-pybots"
RESTART = "maexchen-two-servers-restart"


def recorded(capture: str) -> Connection:
    return open_session(database_of(capture)).connection


def log_of(name: str) -> Log:
    path = CAPTURES / f"{name}.server.log"
    if path.exists():
        return read_log(path.read_text().splitlines())
    return read_log(gzip.decompress((CAPTURES / f"{name}.server.log.gz").read_bytes()).decode().splitlines())


def seen(connection: Connection, port: int) -> Log:
    rows = connection.execute(
        "SELECT kind, data FROM events JOIN tables ON tables.id = table_id"
        " WHERE server LIKE ? ORDER BY events.id",
        (f"%:{port}",),
    )
    log = Log([], [], [])
    for kind, data in rows:
        if kind == "joined":
            log.joined.append((len(log.told), json.loads(data)["name"]))
        else:
            log.told.append(LoggedEvent(kind, json.dumps(json.loads(data), sort_keys=True)))
    late = connection.execute(
        "SELECT m.fields ->> 'token' FROM diagnostics AS d JOIN messages AS m ON m.id = d.message_id"
        " JOIN streams AS s ON s.id = m.stream_id WHERE code = 'late' AND server LIKE ? ORDER BY d.id",
        (f"%:{port}",),
    )
    log.late.extend(token for (token,) in late)
    return log


def wrong(connection: Connection, severity: str) -> list[tuple[str, str]]:
    query = "SELECT code, text FROM diagnostics WHERE severity = ? ORDER BY id"
    return connection.execute(query, (severity,)).fetchall()


def test_a_forks_server_and_its_bots_do_all_right() -> None:
    connection = recorded(f"{FORK}.pcap.gz")
    assert wrong(connection, "error") == []
    # The log's last question is never answered: the bot was ended.
    assert wrong(connection, "warning") == [("no-answer", "YOUR TURN was never answered")]


def test_a_forks_game_is_that_of_its_log() -> None:
    log = log_of(FORK)
    found = seen(recorded(f"{FORK}.pcap.gz"), 9100)
    assert found.told == log.told
    assert sorted(found.joined) == sorted(log.joined)
    gone = [json.loads(told.data)["name"] for told in found.told if told.kind == "unregistered"]
    assert gone == ["intelli", "TheShadow", "rational-python-bot"]


def test_a_server_that_is_restarted_is_not_to_blame() -> None:
    connection = recorded(f"{RESTART}.pcapng")
    assert wrong(connection, "error") == []
    assert {code for code, _ in wrong(connection, "warning")} == {"late"}
    assert [text for code, text in wrong(connection, "note") if code == "restarted"] == [
        "the server was restarted: its rounds and points begin again"
    ]


@pytest.mark.parametrize(("port", "logs"), [(9100, ("s1", "s1b")), (9200, ("s2",))])
def test_before_and_after_the_restart_all_is_as_in_the_logs(port: int, logs: tuple[str, ...]) -> None:
    parts = [log_of(f"{RESTART}.{name}") for name in logs]
    found = seen(recorded(f"{RESTART}.pcapng"), port)
    told = [event for part in parts for event in part.told]
    # The servers went on for a while after the capture.
    assert found.told == told[: len(found.told)]
    assert sorted(found.late) == sorted([token for part in parts for token in part.late][: len(found.late)])
    assert len(found.told) > 100
    assert len(found.late) > 40
