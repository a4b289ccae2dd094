"""Listings on terminals of several widths: what a row is found again by is whole, and no line is too long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, ODD, TINY, kiebitz
from session_factory import Conversation, record
from strength import a_few, every
from terminals import OnTerminal

from kiebitz.services.evidence.cells import cell_len

CATAN = str(CAPTURES / "catan-niedlichepixel-game2-3p.pcap.gz")
WIDTHS = [60, 80, 100, 160]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("terminal") / "game.db")
    assert kiebitz("import", TINY, ODD, CATAN, "-w", path).status == 0
    return path


def shown(columns: int, *arguments: str) -> tuple[list[str], list[list[str]]]:
    """Return the titles of a listing on a terminal, and its rows, in words."""
    with OnTerminal(*arguments, columns=columns) as command:
        assert command.ended() == 0
    lines = [line for line in command.lines if not line.startswith("kiebitz: ")]
    assert max(map(cell_len, lines)) <= columns
    titles = lines[0]
    assert "…" not in titles
    return titles.split(), [line.split() for line in lines[1:]]


def port(address: str) -> str:
    return address[address.rindex(":") :]


def whole(row: dict[str, Any], key: str, said: list[str]) -> bool:
    value = row[key]
    if value is None:
        return True
    if isinstance(value, float):
        return f"{value:.6f}" in said or f"{value:.3f}" in said
    if key == "client" and row.get("player") is not None:
        return row["player"] in said
    if key in ("client", "server"):
        return any(word.endswith(port(value)) for word in said)
    return str(value) in said


@pytest.mark.parametrize("columns", a_few(WIDTHS, [80]))
@pytest.mark.parametrize(
    ("command", "number", "filter_", "keys"),
    a_few(
        [
            ("sessions", 0, "", ["id"]),
            ("streams", 1, "", ["number", "opened", "closed", "client", "server"]),
            ("streams", 3, "", ["number", "opened", "closed", "client", "server"]),
            ("games", 1, "", ["number", "started", "ended"]),
            ("games", 3, "", ["number", "started", "ended"]),
            ("messages", 1, "", ["number", "time", "stream", "dir", "client"]),
            ("messages", 3, "time > 60.7 && time < 60.81", ["number", "time", "stream", "dir", "client"]),
            ("events", 1, "", ["number", "time", "game"]),
            ("events", 3, "time > 60.7 && time < 60.81", ["number", "time", "game"]),
        ],
        lambda row: row[0] in ("sessions", "games") and row[1] != 1,
    ),
)
@pytest.mark.full
def test_search_columns_of_a_row_are_complete(
    database: str, columns: int, command: str, number: int, filter_: str, keys: list[str]
) -> None:
    session = f"{database}:{number}" if number else database
    arguments = (command, session, *(("-Y", filter_) if filter_ else ()))
    rows = kiebitz(*arguments, "--json").json
    _, listed = shown(columns, *arguments)
    assert len(listed) == len(rows) > 0
    for row, said in zip(rows, listed, strict=True):
        for key in keys:
            assert whole(row, key, said), (key, row[key], said)


@pytest.mark.full
@pytest.mark.parametrize("columns", every(4, WIDTHS))
def test_the_right_part_is_dropped_if_space_is_short(database: str, columns: int) -> None:
    session = f"{database}:3"
    titles, rows = shown(columns, "messages", session, "-Y", 'msg == "Bauen"')
    assert titles == ["#", "time", "stream", "dir", "who", "name", "fields"]
    # The gloss is in the column that takes the remaining width.
    assert {row[5] for row in rows} == {"Bauen"}
    assert {row[6] for row in rows} == {"builds"}
    assert any(row[-1].endswith("…") for row in rows) == (columns < 160)


@pytest.mark.full
def test_a_column_that_has_no_room_is_reported(database: str) -> None:
    with OnTerminal("streams", f"{database}:1", columns=60) as command:
        assert command.ended() == 0
    assert command.lines[0] == "kiebitz: 60 columns are too narrow to show messages, bytes"
    with OnTerminal("streams", f"{database}:1", columns=100) as command:
        assert command.ended() == 0
    assert not command.lines[0].startswith("kiebitz")


def test_a_long_address_keeps_its_port(tmp_path: Path) -> None:
    talk = Conversation(client="[2001:db8:1234:5678:9abc:def0:1234:5678]:51234")
    session = record(tmp_path / "v6.db", talk.says(b"ROLL;tok").items)
    _, rows = shown(60, "messages", session)
    assert rows[0][4].startswith("…")
    assert rows[0][4].endswith(":51234")


@pytest.mark.full
def test_later_rows_may_need_more_room(tmp_path: Path) -> None:
    talk = Conversation()
    for number in range(1200):
        talk.says(b"REGISTER;" + b"x" * (number // 100))
    session = record(tmp_path / "many.db", talk.items)
    _, rows = shown(60, "messages", session)
    assert [row[0] for row in rows] == [str(number) for number in range(1, 1201)]
