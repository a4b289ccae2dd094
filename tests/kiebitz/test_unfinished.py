"""A recording whose relay and recorder were killed: every command reports it, and it can be recovered."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from command import TINY, kiebitz
from load_on_relays import (
    Load,
    cost,
    group,
    kill_under_load,
    leftover,
    recorded_numbers,
    wait_until_all_are_gone,
)
from networks import needs_libpcap, needs_rights
from processes_and_rows import KIEBITZ, free_port, rows, running, until
from recording_relays import recorded, relaying
from strength import a_few, every, times


@dataclass(frozen=True)
class Left:
    """Files of a killed relay in `folder`, with its load, and how many rows a recovery records."""

    folder: Path
    load: Load
    killed_at: float
    whole: int = 0

    @property
    def database(self) -> Path:
        return self.folder / "game.db"

    @property
    def spool(self) -> Path:
        return leftover(self.folder)

    @property
    def command(self) -> str:
        return f"kiebitz import {shlex.quote(str(self.spool))}"

    def copy(self, to: Path) -> Left:
        return replace(self, folder=Path(shutil.copytree(self.folder, to)))

    def recovered(self) -> subprocess.CompletedProcess[str]:
        """Run the command that recovers it."""
        words = [*KIEBITZ, *shlex.split(self.command)[1:]]
        done = subprocess.run(words, capture_output=True, text=True)
        assert "Traceback" not in done.stderr
        return done

    def assert_recovered(self) -> None:
        assert not list(self.folder.glob(".*-spool-*"))
        cost(self.load, self.killed_at, self.database)
        recorded = recorded_numbers(self.database, self.load.transport)
        assert sum(map(len, recorded.values())) == self.whole


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Left:
    folder = tmp_path_factory.mktemp("killed") / "game"
    folder.mkdir()
    left = Left(folder, *kill_under_load("udp", folder, 0.4, stopped_s=0.4))
    whole = left.copy(tmp_path_factory.mktemp("whole") / "game")
    assert whole.recovered().returncode == 0
    count = len(rows(whole.database, "SELECT id FROM chunks"))
    assert count > len(
        rows(left.copy(tmp_path_factory.mktemp("part") / "game").database, "SELECT id FROM chunks")
    )
    return replace(left, whole=count)


@pytest.fixture
def left(killed: Left, tmp_path: Path) -> Left:
    return killed.copy(tmp_path / "game")


READERS = ["sessions", "events", "messages", "check", "streams", "games", "stats", "state"]


@pytest.mark.full
def test_every_command_that_opens_the_database_reports_it(left: Left) -> None:
    readers = READERS[:: times(1, 3)]
    for command, sessions in [*((command, "") for command in readers), ("check", ":*")]:
        done = kiebitz(command, f"{left.database}{sessions}")
        told = [line for line in done.err.splitlines() if "is unfinished" in line]
        sentence = f"{left.database}: a recording into it is unfinished; {left.command} recovers it"
        assert (command, told) == (command, [f"kiebitz: {sentence}"])
    shutil.rmtree(left.spool)
    for command in readers:
        assert "is unfinished" not in kiebitz(command, str(left.database)).err


@pytest.mark.full
def test_the_command_that_is_named_recovers_it(left: Left) -> None:
    assert left.recovered().returncode == 0
    left.assert_recovered()
    assert rows(left.database, "SELECT count(*), ended_ns IS NULL FROM sessions") == [(1, 0)]
    assert "is unfinished" not in kiebitz("sessions", str(left.database)).err


@pytest.mark.full
def test_nothing_else_goes_into_the_database_before(left: Left) -> None:
    database = str(left.database)
    for command in (
        ["import", TINY, "-w", database],
        ["sessions", database, "--delete", "1", "--yes"],
        ["sessions", database, "--rename", "1", "other"],
        ["redissect", database],
    ):
        done = kiebitz(*command)
        assert (command, done.status) == (command, 1)
        assert left.command in done.err
    assert left.spool.exists()


@pytest.mark.full
def test_the_next_relay_recovers_it_first(left: Left) -> None:
    mode = f"reverse:udp://127.0.0.1:9@127.0.0.1:{free_port('udp')}"
    with running(*KIEBITZ, "relay", "-m", mode, "-w", str(left.database), "-q", ready="listening on"):
        pass
    left.assert_recovered()
    assert rows(left.database, "SELECT count(*), count(ended_ns) FROM sessions") == [(2, 2)]


@pytest.mark.full
@needs_rights
@needs_libpcap
def test_the_next_sniff_recovers_it_first(left: Left) -> None:
    # Of what others say on this machine it records nothing.
    short = ("sniff", "-i", "lo", "-f", "udp port 9", "-a", "duration:0.1", "-w")
    done = subprocess.run([*KIEBITZ, *short, str(left.database)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left.assert_recovered()


@pytest.mark.full
def test_database_and_folder_were_moved(left: Left, tmp_path: Path) -> None:
    left.folder.rename(tmp_path / "elsewhere")
    moved = replace(left, folder=tmp_path / "elsewhere")
    assert moved.command in kiebitz("sessions", str(moved.database)).err
    assert moved.recovered().returncode == 0
    moved.assert_recovered()


OF_RELAY = (
    "SELECT s.client, c.direction, c.offset FROM chunks AS c JOIN streams AS s ON s.id = c.stream_id"
    " WHERE c.data IS NOT NULL AND s.session_id IN (SELECT id FROM sessions WHERE kind = 'relay')"
)


def another_session(left: Left) -> str:
    away = left.folder.parent / "away"
    spool = left.spool
    spool.rename(away)
    assert kiebitz("import", TINY, "-w", str(left.database)).status == 0
    away.rename(spool)
    return "is not the last"


def gone(left: Left) -> str:
    for path in left.folder.glob("game.db*"):
        path.unlink()
    return "no such file"


def replaced(left: Left) -> str:
    gone(left)
    other = left.folder.parent / "other.db"
    assert kiebitz("import", TINY, "-w", str(other)).status == 0
    other.rename(left.database)
    return "is not the one that was recorded"


def anothers_session(left: Left) -> str:
    with closing(sqlite3.connect(left.database)) as connection, connection:
        connection.execute("UPDATE sessions SET started_ns = started_ns - 1, kind = 'import'")
    return "is not the one that was recorded"


@pytest.mark.full
@pytest.mark.parametrize("spoil", every(4, [replaced, another_session, gone, anothers_session]))
def test_a_session_that_cannot_be_resumed(spoil: Callable[[Left], str], left: Left) -> None:
    """The missing part becomes a session of its own."""
    why = spoil(left)
    done = left.recovered()
    assert done.returncode == 0, done.stderr
    assert why in done.stderr
    assert "becomes a session of its own" in done.stderr
    there = rows(left.database, OF_RELAY)
    assert len(there) == len(set(there)) == left.whole
    assert not list(left.folder.glob(".*-spool-*"))


@pytest.mark.full
def test_into_another_database(left: Left, tmp_path: Path) -> None:
    """It receives what the other one lacks."""
    had = len(rows(left.copy(tmp_path / "copy").database, "SELECT id FROM chunks"))
    other = tmp_path / "other.db"
    assert kiebitz("import", str(left.spool), "-w", str(other)).status == 0
    got = len(rows(other, "SELECT id FROM chunks WHERE data IS NOT NULL"))
    assert had + got == left.whole
    assert not list(left.folder.glob(".*-spool-*"))


@pytest.mark.full
def test_a_journal_without_its_note(left: Left, tmp_path: Path) -> None:
    (left.spool / "note.json").unlink()
    assert "is unfinished" not in kiebitz("sessions", str(left.database)).err
    done = kiebitz("import", str(left.spool))
    assert (done.status, "give the database with -w" in done.err) == (1, True)
    other = tmp_path / "other.db"
    assert kiebitz("import", str(left.spool), "-w", str(other)).status == 0
    assert sum(map(len, recorded_numbers(other, "udp").values())) == left.whole
    assert not list(left.folder.glob(".*-spool-*"))


@pytest.mark.parametrize("is_anonymized", [False, True])
@pytest.mark.full
def test_no_player_is_named_with_anonymization(is_anonymized: bool, left: Left, tmp_path: Path) -> None:
    listed = tmp_path / "listed"
    done = kiebitz("import", str(left.spool), "--anonymize", "--mapping-file", str(listed))
    assert (done.status, listed.exists()) == (2, False)
    wish = ["--anonymize"] if is_anonymized else []
    other = tmp_path / "other.db"
    assert kiebitz("import", str(left.spool), *wish, "-w", str(other)).status == 0
    names = rows(other, "SELECT name FROM sessions")
    assert (names == [("anonymized 1",)]) == is_anonymized
    digits = [
        data for (data,) in rows(other, "SELECT data FROM chunks WHERE data IS NOT NULL") if b"0" in data
    ]
    assert bool(digits) != is_anonymized


@pytest.mark.parametrize("is_resumed", a_few([True, False], [True]))
@pytest.mark.full
def test_a_recovery_that_is_killed_itself(is_resumed: bool, left: Left) -> None:
    if not is_resumed:
        another_session(left)
    spool = left.spool
    for after_s in (0.5, 0.6, 0.7):
        with group("import", str(spool)):
            time.sleep(after_s)
        if not spool.exists():
            break
        wait_until_all_are_gone(left.folder)
    # One that was killed last of all may leave an empty folder.
    if "is unfinished" in kiebitz("sessions", str(left.database)).err:
        assert kiebitz("import", str(spool)).status == 0
    there = rows(left.database, OF_RELAY)
    assert len(there) == len(set(there)) == left.whole


OPTIONS = [
    ("-b", "filesize:1000"),
    ("-b", "duration:0.4"),
    ("--anonymize",),
    ("--impair", "double 10%, seed 7"),
    ("-d", "udp.port==9,maexchen"),
]


def databases_in(folder: Path) -> list[Path]:
    """Return the databases with tables: a relay may be killed when it has only begun the next one."""
    tables = "SELECT 1 FROM sqlite_schema WHERE name = 'chunks'"
    found = (path for path in folder.iterdir() if path.suffix == ".db" and path.stat().st_size)
    return sorted(path for path in found if rows(path, tables))


@pytest.mark.full
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_with_options(options: tuple[str, ...], tmp_path: Path) -> None:
    """All data forwarded more than a moment before is in one of the databases, once."""
    load, killed_at = kill_under_load("udp", tmp_path, 1.2, *options, stopped_s=0.3)
    databases = databases_in(tmp_path)
    told = kiebitz("sessions", str(databases[-1])).err
    spool = leftover(tmp_path)
    assert f"kiebitz import {shlex.quote(str(spool))} recovers it" in told
    if kiebitz("import", str(spool)).status != 0:
        # SQLite was killed in the middle of something, which it takes back when it opens the file.
        for path in databases:
            rows(path, "SELECT 1")
        assert kiebitz("import", str(spool)).status == 0
    assert not spool.exists()
    found = []
    query = "SELECT s.transport, s.client, c.direction, c.offset, c.data FROM chunks AS c"
    query += " JOIN streams AS s ON s.id = c.stream_id WHERE c.data IS NOT NULL ORDER BY c.id"
    databases = databases_in(tmp_path)
    for path in databases:
        found += rows(path, query)
    if "--anonymize" in options:
        assert not any(character.isalnum() for *_, data in found for character in data.decode())
        assert rows(databases[0], "SELECT name FROM sessions") == [("anonymized 1",), ("anonymized 2",)]
    else:
        places = [place for *place, _ in found]
        assert len({tuple(place) for place in places}) == len(places)
    forwarded = [at for seen in load.seen.values() for times in seen.values() for at in times]
    assert sum(at <= killed_at - 0.2 - load.longest_stall_s for at in forwarded) <= len(found)


@pytest.mark.full
def test_a_recording_that_continues_is_left_alone(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    mode = f"reverse:udp://127.0.0.1:9@127.0.0.1:{free_port('udp')}"
    with running(*KIEBITZ, "relay", "-m", mode, "-w", str(database), "-q", ready="listening on"):
        spool = leftover(tmp_path)
        assert "is unfinished" not in kiebitz("sessions", str(database)).err
        done = kiebitz("import", str(spool))
        assert (done.status, "this recording is still running" in done.err) == (1, True)
        assert kiebitz("relay", "-m", mode, "-w", str(database), "-q").status == 1
        assert (spool / "journal" / "00000001.journal").exists()
    assert not spool.exists()


@pytest.mark.full
def test_only_the_relay_is_killed(tmp_path: Path) -> None:
    """The recorder stores the rest, and leaves nothing to be recovered."""
    database = tmp_path / "game.db"
    with relaying(database) as echo:
        for _ in range(20):
            echo.round_trip(b"REGISTER;alice")
        assert echo.relay.stderr is not None
        echo.relay.stderr.close()
        # It is in the journal.
        time.sleep(0.2)
        echo.relay.kill()
        until(lambda: not list(tmp_path.glob(".*-spool-*")), "the folder is gone")
    assert len(recorded(database)) == 40
    assert rows(database, "SELECT ended_ns IS NULL FROM sessions") == [(0,)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "value"),
    every(
        6,
        [
            ("decode_as", ["udp.port==9,unheard-of"]),
            ("decode_as", ["-"]),
            ("started_ns", 1 << 80),
            ("parts", [["game.db", -1]]),
            ("parts", [["game.db", 1 << 70]]),
            ("parts", []),
            ("limits", {"duration_s": "x", "size": None}),
        ],
    ),
)
def test_a_note_that_cannot_be_followed_is_reported(name: str, value: object, left: Left) -> None:
    note = json.loads((left.spool / "note.json").read_text())
    (left.spool / "note.json").write_text(json.dumps({**note, name: value}))
    done = left.recovered()
    assert done.returncode == 1
    assert str(left.spool) in done.stderr
    assert "error of Kiebitz" not in done.stderr
    assert left.spool.exists()


def note_through_a_link(spool: Path) -> None:
    (spool / "note.json").rename(spool.parent / "note")
    (spool / "note.json").symlink_to(spool.parent / "note")


def note_as_a_pipe(spool: Path) -> None:
    (spool / "note.json").unlink()
    os.mkfifo(spool / "note.json")


def note_that_leads_away(spool: Path) -> None:
    note = json.loads((spool / "note.json").read_text())
    note["parts"][0][0] = "../game/game.db"
    (spool / "note.json").write_text(json.dumps(note))


PLANTED: dict[str, Callable[[Path], object]] = {
    "another user's": lambda spool: os.chown(spool, 65534, 65534),
    "open to others": lambda spool: spool.chmod(0o755),
    "a link to its note": note_through_a_link,
    "a pipe as its note": note_as_a_pipe,
    "a note that leads away": note_that_leads_away,
    "a note of nonsense": lambda spool: (spool / "note.json").write_bytes(b"\xff" * 100),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", PLANTED)
def test_a_folder_that_is_not_ours_or_not_whole_is_not_followed(kind: str, left: Left) -> None:
    if "user" in kind and os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    spool = left.spool
    PLANTED[kind](spool)
    before = sorted(path.name for path in spool.rglob("*"))
    assert "is unfinished" not in kiebitz("sessions", str(left.database)).err
    done = kiebitz("import", str(spool))
    assert (done.status, "Traceback" in done.err) == (1, False)
    assert str(spool) in done.err
    mode = f"reverse:udp://127.0.0.1:9@127.0.0.1:{free_port('udp')}"
    with running(*KIEBITZ, "relay", "-m", mode, "-w", str(left.database), "-q", ready="listening on"):
        pass
    assert sorted(path.name for path in spool.rglob("*")) == before
