from __future__ import annotations

import gzip
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command import CAPTURES, ODD, TINY, kiebitz
from imported_databases import database_of

from kiebitz.storage.database.schema import SESSION_CONDITIONS
from kiebitz.storage.recording.recorder import Recorder

OKEY = str(CAPTURES / "okey-seed-tiny.pcap.gz")

THREE = ("maexchen-head-tiny.pcap", "okey-seed-tiny.pcap.gz", "maexchen-head-odd.pcap")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "game.db"
    shutil.copyfile(database_of(THREE[0]), path)
    for name in THREE[1:]:
        assert kiebitz("import", str(CAPTURES / name), "-w", str(path)).status == 0
    return path


def listed(database: Path) -> list[tuple[int, str, str | None]]:
    rows = kiebitz("sessions", str(database), "--json").json
    return [(row["id"], row["name"], row["note"]) for row in rows]


@pytest.mark.full
def test_a_session_is_renamed_and_noted_upon(database: Path) -> None:
    done = kiebitz("sessions", str(database), "--rename", "2", "the final", "--note", "2", "\x1b[31mred ü")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert listed(database)[1] == (2, "the final", "\x1b[31mred ü")
    assert [note for _, _, note in listed(database)] == [None, "\x1b[31mred ü", None]
    shown = kiebitz("sessions", str(database)).out.splitlines()
    assert shown[0].endswith("errors  note")
    assert shown[2].startswith("2  the final")
    assert shown[2].endswith("\\x1b[31mred ü")
    assert kiebitz("sessions", str(database), "--note", "2", "").status == 0
    assert listed(database)[1] == (2, "the final", None)


@pytest.mark.full
def test_a_deleted_session_is_gone_and_the_others_stay(database: Path) -> None:
    assert kiebitz("sessions", str(database), "--rename", "1", "called so once").status == 0
    assert kiebitz("sessions", str(database), "--rename", "1", THREE[0]).status == 0
    others = {command: kiebitz(command, f"{database}:3", "--json").out for command in ("messages", "games")}
    with closing(sqlite3.connect(database)) as connection:
        of_session = f"SELECT data FROM chunks WHERE {SESSION_CONDITIONS['chunks']} AND length > 12"
        sent = [data for (data,) in connection.execute(of_session, (2,))]
    assert sent
    assert kiebitz("sessions", str(database), "--delete", "2", "--yes").status == 0
    assert [number for number, _, _ in listed(database)] == [1, 3]
    with closing(sqlite3.connect(database)) as connection:
        for table in SESSION_CONDITIONS:
            rows = connection.execute(f"SELECT count(*) FROM {table} WHERE {SESSION_CONDITIONS[table]}", (2,))
            assert rows.fetchone() == (0,)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    held = b"".join(path.read_bytes() for path in database.parent.iterdir())
    assert [data for data in sent if data in held] == []
    assert b"okey" not in held
    assert b"called so once" not in held
    for command, out in others.items():
        assert kiebitz(command, f"{database}:3", "--json").out == out
    assert kiebitz("diff", f"{database}:3", ODD).status == 0
    # No new activity, and a longer duration.
    assert kiebitz("redissect", str(database)).status == 0
    assert kiebitz("import", OKEY, "-w", str(database)).status == 0
    assert [number for number, _, _ in listed(database)] == [1, 3, 4]
    assert kiebitz("diff", f"{database}:4", OKEY).status == 0


@pytest.mark.full
def test_several_are_deleted_and_the_numbers_of_the_last_are_given_again(database: Path) -> None:
    assert kiebitz("sessions", str(database), "--delete", "3", "--delete", "1", "--yes").status == 0
    assert listed(database) == [(2, THREE[1], None)]
    assert kiebitz("import", TINY, "-w", str(database)).status == 0
    assert [number for number, _, _ in listed(database)] == [2, 3]
    assert kiebitz("messages", f"{database}:3").out == kiebitz("messages", TINY).out


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--delete", "2"], 2, "add --yes"),
        (["--delete", "9", "--yes"], 1, "there is no session 9; there are 1 to 3"),
        (["--rename", "9", "x"], 1, "there is no session 9"),
        (["--rename", "1", " "], 2, "the name is empty"),
        (["--rename", "1", "\udcff"], 2, "not UTF-8"),
        (["--yes"], 2, "--yes requires --delete"),
        (["--note", "1", "x", "--json"], 2, "--json lists sessions"),
    ],
    ids=lambda value: ascii(" ".join(value)) if isinstance(value, list) else None,
)
def test_impossible_actions_are_reported_and_change_nothing(
    arguments: list[str], status: int, sentence: str, database: Path
) -> None:
    before = database.read_bytes()
    done = kiebitz("sessions", str(database), *arguments)
    assert (done.status, done.out) == (status, "")
    assert sentence in done.err
    assert database.read_bytes() == before


def test_a_capture_and_nothing_have_no_sessions_to_keep_in_order(tmp_path: Path) -> None:
    for path in (TINY, str(tmp_path / "none.db")):
        done = kiebitz("sessions", path, "--note", "1", "x")
        assert "not a database" in done.err


@pytest.mark.full
def test_a_database_being_recorded_is_left_alone(database: Path) -> None:
    recorder = Recorder(str(database), "relay", "made up", started_ns=1)
    try:
        for arguments in (["--delete", "1", "--yes"], ["--note", "1", "x"], ["--rename", "1", "x"]):
            done = kiebitz("sessions", str(database), *arguments)
            assert done.status == 1
            assert "another kiebitz is recording into it" in done.err
    finally:
        recorder.release()


# The same traffic twice.


@pytest.mark.full
def test_a_capture_that_is_there_already_is_imported_and_reported(database: Path, tmp_path: Path) -> None:
    other = tmp_path / "another name.pcap.gz"
    other.write_bytes(gzip.compress(Path(TINY).read_bytes()))
    done = kiebitz("import", str(other), "-w", str(database))
    assert done.status == 0
    assert f"{other}: {database} already has this traffic as session 1;" in done.err
    assert f"kiebitz sessions {database} --delete 4" in done.err
    assert [number for number, _, _ in listed(database)] == [1, 2, 3, 4]
    # Also once it was redissected, and for its place in the database.
    assert kiebitz("redissect", str(database)).status == 0
    assert (
        "already has this traffic as session 1;"
        in kiebitz("import", str(database_of(THREE[0])), "-w", str(database)).err
    )


@pytest.mark.full
def test_other_traffic_is_not_taken_for_the_same(database: Path, tmp_path: Path) -> None:
    head = str(CAPTURES / "okey-head-tiny.pcap.gz")
    assert "already" not in kiebitz("import", head, "-w", str(database)).err
    # One byte of one datagram is another one.
    changed = tmp_path / "changed.pcap"
    changed.write_bytes(Path(TINY).read_bytes().replace(b"alice", b"alicf", 1))
    assert "already" not in kiebitz("import", str(changed), "-w", str(database)).err
