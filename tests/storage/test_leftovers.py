"""Files that a killed or failed command has left: the next one that writes recovers from them."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path

import pytest
from command import CAPTURES, ROOT, TINY, kiebitz, spawn
from foreign_files import give_to_stranger
from imported_databases import copy_of_database
from processes_and_rows import KIEBITZ, PATIENCE_S, until
from recording_relays import small_disk
from strength import a_few, every, times
from tables import tried_commands

from kiebitz.services.probing.session_store import cases_with_verdict
from kiebitz.storage.recording.tap_progress import CollectedSession

SUFFIXES = ("", "-journal", "-wal", "-shm")
MAGIC = bytes.fromhex("d9d505f920a163d7")

OTHER = str(CAPTURES / "maexchen-old-20110928-seed-tiny.pcap")
LARGE = str(CAPTURES / "okey-head-chat.pcap.gz")


@cache
def events(capture: str) -> str:
    return kiebitz("events", capture).out


def files(database: Path) -> dict[str, bytes]:
    found = {}
    for suffix in SUFFIXES:
        with suppress(FileNotFoundError):
            found[suffix] = Path(f"{database}{suffix}").read_bytes()
    return found


def put(found: dict[str, bytes], database: Path) -> None:
    database.parent.mkdir()
    for suffix, data in found.items():
        path = Path(f"{database}{suffix}")
        path.write_bytes(data)
        path.chmod(0o600)


def assert_sound(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def assert_recovered(database: Path, is_new: bool = False) -> None:
    """Commands that read do so or say what to do; those that write do so, and nothing is lost."""
    listed = kiebitz("sessions", str(database))
    sentences = [f"undone first by kiebitz redissect {database}"]
    if is_new:
        sentences += ["is still empty", "there is no such file", "is empty: "]
    assert listed.status == 0 or any(sentence in listed.err for sentence in sentences), listed
    assert "error of Kiebitz" not in listed.err
    if not is_new:
        done = kiebitz("redissect", str(database))
        assert done.status == 0, done.err
    done = kiebitz("import", TINY, "-w", str(database))
    assert done.status == 0, done.err
    assert not Path(f"{database}-journal").exists()
    assert_sound(database)
    names = {row["id"]: row["name"] for row in kiebitz("sessions", str(database), "--json").json}
    assert is_new or 1 in names
    for number, name in names.items():
        if (CAPTURES / name).exists():
            assert kiebitz("events", f"{database}:{number}").out == events(str(CAPTURES / name))


# Killed at any moment.


def two_sessions(path: Path) -> None:
    path.write_bytes(_two_sessions())
    path.chmod(0o600)


@cache
def _two_sessions() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "game.db"
        for capture in (TINY, OTHER):
            assert kiebitz("import", capture, "-w", str(path)).status == 0
        return path.read_bytes()


KILLED = tried_commands("test_leftovers: killed")
WRITING = tried_commands("test_leftovers: writing")


def on(database: Path, command: Sequence[str]) -> list[str]:
    """Return a command on this database."""
    names = {"TINY": TINY, "OTHER": OTHER, "LARGE": LARGE, "LONG": "x" * 100_000}
    return [names.get(part, part.replace("DB", str(database))) for part in command]


def photographed(command: list[str], database: Path, draw: random.Random) -> list[dict[str, bytes]]:
    """Return copies of the files at many moments of a command, as a kill would leave them."""
    states: list[dict[str, bytes]] = []
    with spawn(*command) as process:
        while process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if (found := files(database)) not in states[-1:]:
                states.append(found)
            process.send_signal(signal.SIGCONT)
            time.sleep(draw.uniform(0, 0.002))
    assert process.returncode == 0
    return states


@pytest.mark.full
@pytest.mark.parametrize(
    ("command", "is_new"),
    a_few(
        [(command, is_new) for command in KILLED for is_new in (False, True)[: 1 + (command[0] == "import")]],
        lambda row: row[1] or "--delete" in row[0],
        lambda row: f"{' '.join(row[0])}{', new' if row[1] else ''}",
    ),
)
def test_whatever_a_command_leaves_when_it_is_killed_is_recovered(
    command: list[str], is_new: bool, tmp_path: Path
) -> None:
    database = tmp_path / "game.db"
    if not is_new:
        two_sessions(database)
        with closing(sqlite3.connect(database)) as connection:
            # Pages are written to the database before the transaction ends.
            connection.execute("PRAGMA default_cache_size = 4")
    draw = random.Random(" ".join(command))
    states = photographed(on(database, command), database, draw)
    assert len(states) > 1
    hot = [state for state in states if state.get("-journal", b"")[:1] == MAGIC[:1]]
    # One that SQLite rolls back.
    assert hot or "--delete" not in command
    chosen = draw.sample(states, min(times(40, 2), len(states)))
    for number, state in enumerate([*hot[:1], *hot[-1:], *chosen]):
        again = tmp_path / str(number) / "game.db"
        put(state, again)
        assert_recovered(again, is_new)


# Each kind of leftover.


def hot_journal(database: Path) -> None:
    """A journal that is to be rolled back: the transaction has changed the database."""
    found: dict[str, bytes] = {}
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA cache_size = 2")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE chunks SET data = zeroblob(3000)")
        connection.execute("UPDATE messages SET fields = '{}'")
        found = files(database)
        connection.rollback()
    assert found["-journal"].startswith(MAGIC)
    for suffix, data in found.items():
        Path(f"{database}{suffix}").write_bytes(data)
    Path(f"{database}-journal").chmod(0o600)


def log(database: Path, shared: bool, cut: int = 0) -> None:
    """A write-ahead log in which a committed transaction is, and perhaps the beginning of another one."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE sessions SET note = 'in the log'")
        connection.commit()
        connection.execute("PRAGMA cache_size = 2")
        connection.execute("UPDATE chunks SET data = zeroblob(3000)")
        found = files(database)
        connection.rollback()
    with suppress(FileNotFoundError):
        Path(f"{database}-wal").unlink()
    found["-wal"] = found["-wal"][: len(found["-wal"]) - cut]
    if not shared:
        del found["-shm"]
    for suffix, data in found.items():
        Path(f"{database}{suffix}").write_bytes(data)
        Path(f"{database}{suffix}").chmod(0o600)


def another_file(ending: str, data: bytes) -> Callable[[Path], None]:
    def leave(database: Path) -> None:
        Path(f"{database}{ending}").write_bytes(data)
        Path(f"{database}{ending}").chmod(0o600)

    return leave


def journal(data: bytes) -> Callable[[Path], None]:
    return another_file("-journal", data)


OWN: dict[str, Callable[[Path], None]] = {
    "an empty journal": journal(b""),
    "a journal without its magic bytes": journal(bytes(12) + b"x" * 500),
    "a journal's first bytes": journal(MAGIC[:5]),
    "half the head of a journal": journal(MAGIC + bytes(12)),
    "a journal that is over": journal(bytes(512)),
    "a journal to be rolled back": hot_journal,
    "a log": lambda path: log(path, shared=False),
    "a log with its index": lambda path: log(path, shared=True),
    "a log that is cut": lambda path: log(path, shared=True, cut=1000),
    "an empty log": another_file("-wal", b""),
    "an unfinished file": another_file(".part", b"x"),
}


@pytest.mark.full
@pytest.mark.parametrize(
    "kind",
    a_few(
        OWN,
        [
            "half the head of a journal",
            "a journal to be rolled back",
            "a log that is cut",
            "an unfinished file",
        ],
    ),
)
def test_leftovers_are_recovered_by_any_writing_command(kind: str, tmp_path: Path) -> None:
    few = WRITING[2:3] if kind == "a journal to be rolled back" else WRITING[1:2]
    for number, command in enumerate(WRITING if times(2, 1) == 2 else few):
        database = tmp_path / str(number) / "game.db"
        database.parent.mkdir()
        two_sessions(database)
        OWN[kind](database)
        before = files(database)
        listed = kiebitz("sessions", str(database), "--json")
        assert files(database)[""] == before[""]
        if kind == "a journal to be rolled back":
            assert (listed.status, listed.out) == (1, "")
            assert f"undone first by kiebitz redissect {database}" in listed.err
        elif kind not in ("a journal's first bytes", "half the head of a journal"):
            assert listed.status == 0, listed.err
            assert [row["note"] for row in listed.json] == ["in the log" if "a log" in kind else None] * 2
        done = kiebitz(*on(database, command))
        assert done.status == 0, (command, done.err)
        assert_recovered(database)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("kind", ["nothing", "only its head", "its creation is to be rolled back"])
def test_a_database_that_was_only_begun(kind: str, tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    database.touch(0o600)
    if kind != "nothing":
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    if kind == "its creation is to be rolled back":
        # It had no pages before.
        sizes = struct.pack(">IIIII", 0, 1, 0, 512, 4096)
        journal((MAGIC + sizes).ljust(512, b"\0"))(database)
    for command in (["sessions"], ["events"], ["redissect"]):
        done = kiebitz(command[0], str(database))
        assert (done.status, done.out) == (1, "")
        assert "error of Kiebitz" not in done.err
    if kind == "its creation is to be rolled back":
        assert database.stat().st_size == 0
    assert_recovered(database, is_new=True)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["to be rolled back", "only its head"])
def test_commands_that_look_before_they_record(kind: str, tmp_path: Path) -> None:
    """`collect`, which continues a session, and `probe --last-verdict`."""
    for number, record in enumerate((_collects, _probes)):
        database = tmp_path / str(number) / "game.db"
        database.parent.mkdir()
        if kind == "only its head":
            with closing(sqlite3.connect(database)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
        else:
            two_sessions(database)
            hot_journal(database)
        record(str(database))
        assert_recovered(database, is_new=kind == "only its head")


def _collects(database: str) -> None:
    CollectedSession(database, "nats://127.0.0.1:4222/x", "x", {}).recorder.close()


def _probes(database: str) -> None:
    assert list(cases_with_verdict(database, "server", "failed")) == []


# Foreign files.


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def foreign_text(path: Path) -> None:
    path.write_text("my journal: slept well")
    path.chmod(0o600)


def enormous(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[16:20] = b"\x7f\xff\xff\xff"
    path.write_bytes(data)


def another_name(path: Path) -> None:
    path.with_name("other").hardlink_to(path)


def a_link(path: Path) -> None:
    path.rename(path.with_name("real"))
    path.symlink_to("real")


def names_another(path: Path) -> None:
    name = bytes(path.with_name("victim"))
    with path.open("ab") as file:
        file.write(name + len(name).to_bytes(4) + sum(name).to_bytes(4) + MAGIC)


FOREIGN: dict[str, tuple[Callable[[Path], object], str]] = {
    "another user's": (give_to_stranger, "it does not belong to"),
    "which a group may write": (lambda path: path.chmod(0o620), "other users may write to it"),
    "which anybody may write": (lambda path: path.chmod(0o602), "other users may write to it"),
    "with another name": (another_name, "it has another hard link"),
    "a link": (a_link, "this is not a file, and SQLite would use it"),
    "a pipe": (a_pipe, "this is not a file, and SQLite would use it"),
    "a folder": (a_folder, "this is not a file, and SQLite would use it"),
    "of another program": (foreign_text, "not a journal of this database"),
    "for a database of terabytes": (enormous, "not a journal of this database"),
    "that names another": (names_another, "SQLite would delete the file that this names"),
}


OF_JOURNALS = ("of another program", "for a database of terabytes", "that names another")
FOREIGN_FILES = [
    *(("-journal", kind) for kind in FOREIGN),
    *((suffix, kind) for suffix in ("-wal", "-shm") for kind in FOREIGN if kind not in OF_JOURNALS),
]


@pytest.mark.full(but=4)
@pytest.mark.parametrize(("suffix", "kind"), FOREIGN_FILES)
def test_a_file_that_kiebitz_cannot_have_left_is_not_touched(suffix: str, kind: str, tmp_path: Path) -> None:
    spoil, words = FOREIGN[kind]
    database = tmp_path / "game.db"
    two_sessions(database)
    beside = Path(f"{database}{suffix}")
    if suffix == "-journal":
        hot_journal(database)
    else:
        beside.touch(0o600)
    spoil(beside)
    (tmp_path / "victim").write_text("all my work")
    before, entry = database.read_bytes(), beside.lstat()
    for command in WRITING if times(2, 1) == 2 or suffix == "-journal" else WRITING[:1]:
        done = kiebitz(*on(database, command))
        assert done.status == 1, command
        assert f"game.db{suffix}: " in done.err
        assert words in done.err
    if suffix == "-journal" and kind != "of another program":
        done = kiebitz("sessions", str(database))
        assert (done.status, done.out) == (1, "")
        assert words in done.err
    assert database.read_bytes() == before
    assert os.path.samestat(beside.lstat(), entry)
    assert (tmp_path / "victim").read_text() == "all my work"


def test_a_restored_journal_is_validated_before_writing(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    two_sessions(database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM chunks; END")
        connection.commit()
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("DROP TRIGGER t")
        connection.execute("UPDATE chunks SET data = zeroblob(3000)")
        found = files(database)
        connection.rollback()
    for suffix, data in found.items():
        Path(f"{database}{suffix}").write_bytes(data)
    assert b"CREATE TRIGGER" in files(database)["-journal"]
    for command in WRITING[2:3]:
        done = kiebitz(*on(database, command))
        assert done.status == 1
        assert "it contains the unknown trigger t" in done.err
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (2,)


@pytest.mark.full
def test_a_database_of_another_user_is_recovered_by_its_owner(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    two_sessions(database)
    hot_journal(database)
    for suffix in ("", "-journal"):
        give_to_stranger(Path(f"{database}{suffix}"))
    done = kiebitz("events", str(database))
    assert done.status == 1
    assert "its owner does so" in done.err
    # The advice holds.
    mine = tmp_path / "mine" / "game.db"
    put(files(database), mine)
    assert_recovered(mine)


def _is_locked(path: Path) -> bool:
    # To try the lock would take it from the process that is about to.
    return f":{path.stat().st_ino} " in Path("/proc/locks").read_text()


@pytest.mark.full
def test_a_list_of_pseudonyms_may_be_written_after_a_kill(tmp_path: Path) -> None:
    named, database = tmp_path / "who.txt", tmp_path / "game.db"
    options = ("--anonymize", "--mapping-file", str(named), "-w", str(database))
    with half_an_import(*options) as one:
        until(lambda: named.exists() and _is_locked(named), "it has begun")
        # Another one that runs now may not have the same list.
        done = kiebitz("import", TINY, *options)
        assert (done.status, named.read_bytes()) == (1, b"")
        assert "file exists" in done.err
        one.kill()
    assert kiebitz("import", TINY, *options).status == 0
    assert "alice" in named.read_text()
    assert kiebitz("import", TINY, *options).status == 1


# Imports that fail.


def limited(command: Sequence[str], size: int, out: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that may write no larger file, in units of 1,024 bytes; its output goes into `out`."""
    shell = ["bash", "-c", f'ulimit -f {size}; exec "$@" > {out}', "bash", *KIEBITZ, *command]
    # Python would leave modules behind that are cut short, and fail over them later.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        shell, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT, env=environment
    )


def _fails_on_a_limit(database: Path) -> str:
    done = limited(["import", LARGE, "-w", str(database)], 160, database.with_name("out"))
    assert done.returncode == 1
    return done.stderr


def _fails_on_a_full_disk(database: Path) -> str:
    done = kiebitz("import", LARGE, "-w", str(database))
    assert done.status == 1
    return done.err


def _fails_on_damage(database: Path) -> str:
    damaged = database.with_name("damaged.pcap")
    # A packet of more bytes than any has.
    damaged.write_bytes(Path(TINY).read_bytes()[:24] + b"\0" * 8 + b"\xff" * 8 + b"x" * 100)
    done = kiebitz("import", str(damaged), "-w", str(database))
    assert done.status == 1
    return done.err


@contextmanager
def half_an_import(*options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run an import that reads from a pipe, into which only the beginning of a capture comes."""
    with spawn("import", "-", *options, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(Path(TINY).read_bytes()[:24])
        process.stdin.flush()
        yield process
        process.wait(PATIENCE_S)


def _fails_on_an_interrupt(database: Path) -> str:
    with half_an_import("-w", str(database)) as process:
        # It has a log as long as its recorder has it open.
        until(Path(f"{database}-wal").exists, "it has begun")
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 130
    return said.decode()


def _is_killed(database: Path) -> str:
    with half_an_import("-w", str(database)) as process:
        until(Path(f"{database}-wal").exists, "it has begun")
        process.kill()
    return ""


FAILING: dict[str, tuple[Callable[[Path], str], str]] = {
    "a limit of files": (_fails_on_a_limit, "(ulimit -f)"),
    "a full disk": (_fails_on_a_full_disk, "the disk is full"),
    "a damaged capture": (_fails_on_damage, "damaged.pcap"),
    "Ctrl-C": (_fails_on_an_interrupt, ""),
    "kill -9": (_is_killed, ""),
}


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "is_new"),
    a_few(
        [(kind, is_new) for kind in FAILING for is_new in (False, True)],
        [("a full disk", False), ("a damaged capture", True), ("Ctrl-C", False), ("kill -9", True)],
        lambda row: f"{row[0]}-{'into a new file' if row[1] else 'beside a session'}",
    ),
)
def test_an_import_that_fails_leaves_no_empty_session(kind: str, is_new: bool, tmp_path: Path) -> None:
    fail, words = FAILING[kind]
    folder = tmp_path / "disk"
    with small_disk(folder, "600k") if kind == "a full disk" else nullcontext():
        folder.mkdir(exist_ok=True)
        database = folder / "game.db"
        if not is_new:
            copy_of_database(Path(TINY).name, database)
            database.chmod(0o600)
        said = fail(database)
        assert words in said
        assert "Traceback" not in said
        listed = kiebitz("sessions", str(database), "--json")
        if is_new and listed.status:
            assert "is still empty" in listed.err or "is empty" in listed.err or "no such file" in listed.err
        else:
            assert [(row["id"], row["messages"]) for row in listed.json] == ([] if is_new else [(1, 69)])
        put(files(database), tmp_path / "other" / "game.db")
    assert_recovered(tmp_path / "other" / "game.db", is_new)


@pytest.mark.full
@pytest.mark.parametrize("command", every(4, tried_commands("test_leftovers: limited")), ids=" ".join)
def test_a_limit_of_files_is_called_so(command: list[str], tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    copy_of_database(Path(TINY).name, database)
    database.chmod(0o600)
    command = [part.replace("FOLDER", str(tmp_path)) for part in command]
    done = limited(on(database, command), 4, tmp_path / "out")
    assert done.returncode == 1, done
    said = done.stderr.splitlines()
    assert len(said) == 1
    assert said[0].startswith("kiebitz: ")
    assert "limited to 4,096 bytes here (ulimit -f): raise that limit" in said[0]
    assert not (tmp_path / "x").exists()
    assert_recovered(database)
