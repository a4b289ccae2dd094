"""The option -P, and databases that contain protocol files."""

from __future__ import annotations

import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest
from command import kiebitz
from dice_file import DICE, OTHER, SENTENCES, capture_game, record_game, write_file

import kiebitz as library
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.registry import dissector_of

pytestmark = pytest.mark.usefixtures("protocol_files_forgotten")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    return capture_game(tmp_path_factory.mktemp("capture"))


@pytest.fixture
def dice(tmp_path: Path) -> str:
    return write_file(tmp_path)


@pytest.fixture
def database(tmp_path: Path, capture: str, dice: str) -> str:
    path = str(tmp_path / "dice.db")
    assert kiebitz("import", capture, "-w", path, "-P", dice).status == 0
    return path


def sentences(*arguments: str) -> list[str]:
    done = kiebitz("events", *arguments, "-Y", "kind != 'connected'", "--json")
    assert done.status == 0, done.err
    return [event["event"] if "event" in event else event["sentence"] for event in done.json]


@pytest.mark.parametrize(
    ("content", "reason"),
    {
        "not there": (None, "No such file"),
        "too large": (b"#" * 300_000, "at most 256 KiB"),
        "not UTF-8": (b'title = "\xff"', "line 1 is not UTF-8"),
        "no TOML": (b"[", ":1:"),
    }.values(),
)
def test_an_unusable_file_is_reported(
    content: bytes | None, reason: str, tmp_path: Path, capture: str
) -> None:
    path = tmp_path / "bad.toml"
    if content is not None:
        path.write_bytes(content)
    done = kiebitz("events", capture, "-P", str(path))
    assert done.status == 2
    assert str(path) in done.err
    assert reason in done.err


# Databases.


def test_the_file_of_a_protocol_is_written(dice: str) -> None:
    assert kiebitz("protocols", "dice", "-P", dice, "-T", "toml").out == Path(dice).read_text()


@pytest.mark.parametrize("protocol", ["maexchen", "schafkopf", "catan", "okey", "cgml"])
def test_the_tables_of_a_built_in_protocol_are_written(protocol: str) -> None:
    written = tomllib.loads(kiebitz("protocols", protocol, "-T", "toml").out)
    dissector = dissector_of(protocol)
    assert dissector is not None
    assert {*written["messages"]} == {row.name for row in dissector.grammar.rows}
    assert [*written["events"]] == [*dissector.grammar.events]
    assert [*written["rules"]] == [*dissector.grammar.rules]


def test_a_given_file_precedes_the_copy_in_a_database(tmp_path: Path, database: str) -> None:
    other = write_file(tmp_path, OTHER, "other.toml")
    assert sentences(database, "-P", other)[2] == "alice throws a 5"
    # Reading changes nothing.
    assert sentences(database)[2] == "alice rolls 5"
    assert kiebitz("redissect", database, "-P", other).status == 0
    assert sentences(database)[2] == "alice throws a 5"
    with closing(sqlite3.connect(database)) as connection:
        ((name, text),) = connection.execute("SELECT name, text FROM protocol_files")
    assert (name, text) == ("dice", OTHER)


def test_a_session_recorded_without_the_file_is_dissected_with_it(tmp_path: Path, dice: str) -> None:
    path = record_game(tmp_path / "bytes.db")
    assert sentences(path) == []
    assert sentences(path, "-P", dice) == SENTENCES
    done = kiebitz("events", path, "-P", dice)
    assert "is dissected again" in done.err
    assert kiebitz("redissect", path, "-P", dice).status == 0
    done = kiebitz("events", path, "-P", dice)
    assert "again" not in done.err
    assert sentences(path) == SENTENCES


def test_a_renamed_protocol_replaces_its_draft(tmp_path: Path, database: str) -> None:
    renamed = write_file(tmp_path, DICE.replace('"dice"', '"pips"', 1), "renamed.toml")
    done = kiebitz("streams", database, "-P", renamed, "--json")
    assert {stream["protocol"] for stream in done.json} == {"pips"}
    assert kiebitz("redissect", database, "-P", renamed).status == 0
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT name FROM protocol_files").fetchall() == [("pips",)]


def test_derived_databases_contain_the_file(tmp_path: Path, database: str) -> None:
    copy = str(tmp_path / "copy.db")
    assert kiebitz("import", database, "-w", copy).status == 0
    anonymous = str(tmp_path / "anonymous.db")
    assert kiebitz("import", database, "-w", anonymous, "--anonymize").status == 0
    Path(database).unlink()
    assert sentences(copy) == SENTENCES
    assert len(sentences(anonymous)) == len(SENTENCES)
    assert kiebitz("state", anonymous).status == 0


HOSTILE = {
    "no TOML": "[[[",
    "another protocol": DICE.replace('"dice"', '"maexchen"', 1),
    "nested": "x = " + "[" * 50_000,
}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=[*HOSTILE])
def test_a_hostile_text_in_a_database_is_one_warning(text: str, database: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE protocol_files SET text = ?", (text,))
    for command in ("events", "messages", "state", "check"):
        done = kiebitz(command, database)
        assert done.status == 0, done.err
        (line,) = done.err.splitlines()[:1]
        assert f"{database}: its protocol file dice cannot be used" in line
        assert done.err.count("cannot be used") == 1
    assert "rolled name=alice pips=5" in kiebitz("events", database).out


@pytest.mark.parametrize("value", [None, "", b"\xff\xfe", "x" * 300_000])
def test_a_value_that_is_no_text_is_ignored(value: object, database: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE protocol_files SET text = ?", (value,))
    done = kiebitz("events", database)
    assert done.status == 0
    assert "there is no protocol dice here" in done.err
    assert "rolled name=alice pips=5" in done.out


def test_a_text_that_is_not_utf8_is_one_warning(database: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE protocol_files SET text = CAST(x'ff5b' AS TEXT)")
    done = kiebitz("events", database)
    assert done.status == 0
    assert "cannot be used" in done.err


def test_a_copy_does_not_replace_a_built_in_protocol(database: str) -> None:
    text = DICE.replace('"dice"', '"maexchen"', 1)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO protocol_files VALUES ('maexchen', ?, '', 0)", (text,))
    assert kiebitz("protocols", "maexchen").out == kiebitz("protocols", "maexchen").out
    assert "alice rolls 5" in kiebitz("events", database).out


def test_a_view_in_place_of_the_table_is_refused(database: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("ALTER TABLE protocol_files RENAME TO other")
        connection.execute("CREATE VIEW protocol_files AS SELECT * FROM other")
    done = kiebitz("events", database)
    assert done.status == 1
    assert "its protocol_files is not a table" in done.err


# The configuration file, completion, the library.


def test_the_configuration_file_names_protocol_files(
    tmp_path: Path, capture: str, dice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('protocols = ["dice.toml"]\n')
    monkeypatch.setenv("KIEBITZ_CONFIG", str(config))
    monkeypatch.chdir("/")
    assert sentences(capture) == SENTENCES
    # An option precedes it.
    (tmp_path / "sub").mkdir()
    other = write_file(tmp_path / "sub", OTHER)
    assert sentences(capture, "-P", other)[2] == "alice throws a 5"


@pytest.mark.parametrize("value", ['"dice.toml"', "[1]", '[""]'])
def test_a_wrong_value_in_the_configuration_file_is_reported(
    value: str, tmp_path: Path, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "wrong.toml"
    config.write_text(f"protocols = {value}\n")
    monkeypatch.setenv("KIEBITZ_CONFIG", str(config))
    done = kiebitz("events", capture)
    assert done.status == 2
    assert "protocols must be a list of files" in done.err


def test_the_library_takes_paths_and_texts(capture: str, dice: str, database: str, tmp_path: Path) -> None:
    with library.open(capture, protocols=[dice]) as session:
        assert [event.sentence for event in session.events('kind == "rolled"')] == SENTENCES[2:]
    with library.open(capture, protocols=OTHER) as session:
        assert "throws" in next(iter(session.events('kind == "rolled"'))).sentence
    with library.open(database, protocols=[Path(write_file(tmp_path, OTHER, "other.toml"))]) as session:
        assert session.path is None
        assert "throws" in next(iter(session.events('kind == "rolled"'))).sentence
    with library.import_capture(capture, protocols=[DICE]) as session:
        assert "rolls" in next(iter(session.events('kind == "rolled"'))).sentence
    with pytest.raises(KiebitzError, match="differently"):
        library.open(capture, protocols=[DICE, OTHER])
