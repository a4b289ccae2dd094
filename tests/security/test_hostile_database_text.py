"""Hostile texts in any column of a database neither control a terminal nor forge a line, in any command.

A command may also reject such a database with an error.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import click
import msgspec
import pytest
from command import kiebitz
from damaged_databases import FORGED, SPOTS, Kind, Spot, damage, spots_of
from hostile_text import CAPTURES_OF, CODES, is_harmless, on_a_terminal
from imported_databases import copy_of_database
from strength import a_few, times
from tables import tried_commands

from kiebitz.cli.main import COMMANDS
from kiebitz.cli.main import kiebitz as group
from kiebitz.cli.options.session import open_session

VARIANTS: dict[str, list[list[str]]] = {}
for _name, *_words in tried_commands("test_hostile_database_text"):
    VARIANTS.setdefault(_name, []).append(_words)
# The page as a file is in test_served_damage.py, as it takes its time.
"""Command that shows a session -> what follows that; FILE is a new file, SOUND the database as it was."""

NO_SESSION = {
    *(
        "corpus",
        "help",
        "relay",
        "sniff",
        "import",
        "collect",
        "probe",
        "interop",
        "class",
        "protocols",
        "draft",
        "addon-path",
        "completion",
    )
}
"""Commands that show none, or others than a session; they are tested where they are."""

WITH_KEYS = {"watch"}

SERVERS = {"serve"}

ELSEWHERE = {
    **{
        ("sessions", option): "in test_housekeeping.py: what was there is not shown"
        for option in ("--rename", "--note", "--delete", "--yes")
    },
    **{(name, "-P"): "in tests/cli/test_protocol_files.py: a database has copies" for name in VARIANTS},
    ("follow", "--raw"): "the bytes as they are, as asked for, and refused on a terminal",
    ("replay", "--serve"): "in test_hostile_terminals.py, as it waits for clients",
    ("replay", "--max-size"): "in test_room.py: what it says has no text of a session's",
    ("replay", "--step"): "asks for keys, and shows the same",
    ("export", "--site"): "in test_static_site.py: a session in it is a file, which is only copied",
    ("export", "--as"): "goes with html alone, in test_served_damage.py",
}
"""Options that are in no variant, with the reason."""


NARROW, WIDE = "80", "1000"
"""Columns of a terminal; where it is wide, nothing is wrapped."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for protocol, capture in CAPTURES_OF.items():
        path = made[protocol] = tmp_path_factory.mktemp(protocol) / "game.db"
        copy_of_database(capture, path)
        timeline = open_session(str(path))
        with closing(timeline.connection) as reader:
            (table,) = reader.execute("SELECT table_id FROM events").fetchone()
            state = msgspec.json.encode(timeline.state_at(table, 3)).decode()
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE sessions SET note = 'played at noon'")
            connection.execute("UPDATE diagnostics SET severity = 'error', expected = 'less'")
            for action, length in (("change", "length"), ("drop", "0")):
                connection.execute(
                    "INSERT INTO alterations SELECT NULL, stream_id, direction, ts_ns, 0, offset, "
                    f"{length}, '{action}', '--{action}', ts_ns, name, fields, x'41' FROM messages LIMIT 2"
                )
            connection.execute("INSERT INTO taps VALUES (1, 1, 'lab', 'a1', 3, -5, 1, 1)")
            connection.execute("INSERT INTO tapped SELECT id, 1, id FROM streams")
            connection.execute(
                "INSERT INTO snapshots SELECT table_id, seq, ts_ns, ? FROM events"
                " WHERE table_id = ? AND seq = 3",
                (state, table),
            )
        connection.close()
    return made


def runs(sound: Path, folder: Path, spots: list[Spot], columns: str | None, share: int = 1) -> None:
    """Spoil a database, and check each command's output, on a terminal if that has `columns`.

    Of each command's variants, one in `share` is run.
    """
    line = re.compile(rf"^{'' if columns == NARROW else ' *'}{FORGED}", re.MULTILINE)
    for name, variants in VARIANTS.items():
        for number, variant in enumerate(variants[::share]):
            if name == "redissect" or not number:
                path = str(folder / f"{name}{number}.db")
                shutil.copy(sound, path)
                damage(path, spots)
            places = {"FILE": str(folder / f"{name}{number}"), "SOUND": str(sound)}
            arguments = [name, path, *(places.get(word, word) for word in variant)]
            done = kiebitz(*arguments) if columns is None else on_a_terminal(*arguments)
            assert done.status in (0, 1, 2, 3), arguments
            assert done.status == 0 or done.out + done.err, arguments
            for text in (CODES.sub("", done.out) if columns else done.out, done.err):
                assert is_harmless(text), arguments
                assert not line.search(text), arguments
                assert "Traceback" not in text


@pytest.fixture
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    width: str | None = request.param
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", width or NARROW)
    return width


@pytest.mark.full
@pytest.mark.parametrize(
    "columns", a_few([None, WIDE], [None], lambda width: "wide" if width else "pipe"), indirect=True
)
@pytest.mark.parametrize("spot", a_few(SPOTS, SPOTS[20:21], ".".join))
def test_no_column_does_anything(
    spot: Spot, columns: str | None, sound: dict[str, Path], tmp_path: Path
) -> None:
    runs(sound["maexchen"], tmp_path, [spot], columns, times(1, 4))


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "columns"),
    a_few(
        [(kind, columns) for columns in (None, NARROW, WIDE) for kind in ("names", "values")],
        [("values", None), ("names", NARROW)],
    ),
    indirect=["columns"],
)
def test_all_columns_together_do_nothing(
    kind: str, columns: str | None, sound: dict[str, Path], tmp_path: Path
) -> None:
    runs(sound["maexchen"], tmp_path, [spot for spot in SPOTS if spot.kind in ("text", kind)], columns)


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("kind", "protocol", "columns"),
    a_few(
        [
            (kind, protocol, columns)
            for protocol in CAPTURES_OF
            for columns in (None, NARROW, WIDE)
            for kind in ("names", "values")
        ],
        [
            ("values", "schafkopf", NARROW),
            ("names", "catan", WIDE),
            ("names", "okey", None),
            ("values", "cgml", NARROW),
        ],
    ),
    indirect=["columns"],
)
def test_hostile_game_texts_are_inert(
    kind: Kind, protocol: str, columns: str | None, sound: dict[str, Path], tmp_path: Path
) -> None:
    runs(sound[protocol], tmp_path, spots_of(kind), columns, times(1, 3))


# Nothing is forgotten.


def test_each_command_that_shows_a_session_is_run() -> None:
    names = {name for section in COMMANDS.values() for name in section}
    assert names == VARIANTS.keys() | NO_SESSION | WITH_KEYS | SERVERS


@pytest.mark.parametrize("name", VARIANTS)
def test_each_option_is_given(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    given = {word for variant in VARIANTS[name] for word in variant}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert given & {*parameter.opts} or (name, parameter.opts[0]) in ELSEWHERE, parameter.opts


def test_the_texts_are_there_to_be_shown(sound: dict[str, Path]) -> None:
    connection = sqlite3.connect(sound["maexchen"])
    for spot in SPOTS:
        query = f"SELECT count({spot.column}) FROM {spot.table}"
        assert connection.execute(query).fetchone()[0], spot
    connection.close()
