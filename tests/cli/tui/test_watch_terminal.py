"""`kiebitz watch`, and --watch, on a real terminal: keys typed, screens read, and the terminal given back."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from command import TINY
from imported_databases import copy_of_database, database_of
from networks import needs_libpcap, needs_rights
from processes_and_rows import KIEBITZ, PATIENCE_S, running, until
from relayed_class import Class
from screens import ASCII, Filled
from strength import a_few

ALICE = "alice is registered"


@pytest.fixture
def lesson() -> Iterator[Class]:
    made = Class()
    yield made
    made.close()


@contextmanager
def relayed(lesson: Class, database: Path, *options: str, rows: int = 24) -> Iterator[Filled]:
    """Yield a relay with --watch on a terminal; alice has registered, and is seen."""
    command = ("relay", "-m", lesson.mode, "-w", str(database), "--watch", *options)
    with Filled(*command, columns=100, rows=rows) as relay:
        try:
            relay.until("no game yet")
            lesson.register("alice")
            relay.until(ALICE)
            yield relay
        finally:
            if relay.process.poll() is None:
                relay.signal(signal.SIGTERM)
                relay.ended()


def children(process: int, word: str) -> list[int]:
    """Return a process's children whose command has this word."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(pid) for pid in found if word in Path(f"/proc/{pid}/cmdline").read_text().split("\0")]


# A finished session.

SURROUNDINGS: dict[str, tuple[tuple[int, int], dict[str, str]]] = {
    "as usual": ((80, 24), {}),
    "16 colours": ((80, 24), {"TERM": "xterm"}),
    "no colours": ((80, 24), {"NO_COLOR": "1"}),
    "no Unicode": ((80, 24), ASCII),
    "40 by 12": ((40, 12), {}),
    "40 by 12, neither colours nor Unicode": ((40, 12), {"NO_COLOR": "1", **ASCII}),
}


@pytest.mark.full
def test_it_ends_when_its_terminal_is_gone() -> None:
    watch = Filled("watch", TINY)
    try:
        watch.until("q quit")
        # It does not belong to the terminal, so no signal reaches it.
        os.close(watch.controller)
        assert watch.process.wait(PATIENCE_S) != 0
    finally:
        watch.process.kill()
        watch.process.wait()
        os.close(watch.terminal)


@pytest.mark.parametrize("kind", a_few(SURROUNDINGS, ("40 by 12, neither colours nor Unicode",)))
@pytest.mark.full
def test_a_terminal_of_any_kind(kind: str) -> None:
    (columns, rows), environment = SURROUNDINGS[kind]
    with Filled("watch", TINY, columns=columns, rows=rows, **environment) as watch:
        watch.until(lambda screen: "#6 of 26" in screen and "q quit" in screen)
        watch.type(b"\x1b[H")
        watch.until("#1 of 26")
        watch.type(b"\x1b[C\x1b[C")
        assert "carl is registered" in watch.until("#3 of 26")
        # Everything that is shown at some time.
        for keys, seen in (
            (b"?", "play or pause"),
            (b"q", "#3 of 26"),
            (b"a", "everything"),
            (b"\x1b[B\x1b[B\r", "as alice"),
            (b"/", "a filter"),
            (b"x =\t", "x ="),
            (b"\x7f" * 3, "a filter"),
            (b"\r", "1 of 15"),
            (b"\t", "REGISTER"),
            (b"\t", "clause: "),
        ):
            watch.type(keys)
            watch.until(lambda screen, seen=seen: seen in screen)  # type: ignore[misc]  # cannot infer its type
            if keys == b"\r":
                # Before the line is gone, Tab would complete in it.
                watch.until(lambda screen: "a filter" not in screen)
        watch.type(b"q")
        assert watch.ended() == 0
        assert watch.is_as_it_was()
        assert watch.typed() == 0
        if "LC_ALL" in environment:
            assert watch.written.isascii()
        if environment.get("TERM") == "xterm":
            assert b"[38;" not in watch.written
            assert b";38;" not in watch.written
        if "NO_COLOR" in environment:
            assert b"[31m" not in watch.written
            assert b"38;" not in watch.written


@pytest.mark.full
@pytest.mark.parametrize(
    ("ends", "status"),
    a_few(
        [
            *((b"q", 0), (b"\x04", 0), (b"\x03", 130), (b"/abc\x03", 130), (b"xyzqjjj", 0)),
            *((number, 128 + number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)),
        ],
        [(b"/abc\x03", 130), (signal.SIGTERM, 143)],
    ),
)
def test_keys_and_signals_that_end_it_leave_the_terminal_as_it_was(
    ends: bytes | signal.Signals, status: int
) -> None:
    with Filled("watch", database_of(Path(TINY).name)) as watch:
        watch.until("? help")
        if isinstance(ends, bytes):
            watch.type(ends)
        else:
            watch.signal(ends)
        assert watch.ended() == status
        assert watch.is_as_it_was()
        assert watch.typed() == 0


@pytest.mark.full
def test_it_is_resized_while_it_runs() -> None:
    with Filled("watch", database_of(Path(TINY).name)) as watch:
        watch.until("? help")
        for columns, rows in ((160, 50), (40, 12), (80, 24)):
            watch.resize(columns, rows)
            watch.signal(signal.SIGWINCH)
            watch.until(
                lambda screen, rows=rows: (  # type: ignore[misc]  # cannot infer its type
                    len(screen.splitlines()) == rows
                    and "q quit" in screen.splitlines()[-1]
                    and "#6 of 26" in screen
                )
            )
        watch.type(b"q")
        assert watch.ended() == 0


@pytest.mark.full
def test_with_redirected_stderr_it_is_reported(tmp_path: Path) -> None:
    with Filled("watch", TINY) as watch, open(tmp_path / "errors", "w+") as errors:
        watch.until("? help")
        done = subprocess.run(
            [*KIEBITZ, "watch", TINY], stdin=watch.terminal, stdout=watch.terminal, stderr=errors, timeout=60
        )
        assert done.returncode == 2
        assert "this needs a terminal" in (tmp_path / "errors").read_text()
        watch.type(b"q")
        watch.ended()


# Databases that grow, vanish, or are kept to themselves.


@pytest.mark.full
def test_a_session_that_another_process_records_is_followed(lesson: Class, tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    relay = [*KIEBITZ, "relay", "-q", "-m", lesson.mode, "-w", str(database)]
    with running(*relay, ready="listening on"):
        lesson.register("alice")
        with Filled("watch", str(database)) as watch:
            watch.until(ALICE)
            assert "live" in watch.screen
            lesson.register("bob")
            watch.until("bob is registered")
            watch.type(b"\x1b[D")
            watch.until("paused")
            lesson.register("carl")
            watch.until("of 3")
            assert "#1 of 3" in watch.screen
            watch.type(b"\x1b[F")
            watch.until("carl is registered")
            # A deletion is reported, and the current rows are shown.
            database.rename(tmp_path / "elsewhere.db")
            watch.until(lambda screen: "was deleted or moved; no more events" in " ".join(screen.split()))
            watch.type(b"\x1b[D")
            watch.until("#2 of 3")
            watch.type(b"q")
            assert watch.ended() == 0


@pytest.mark.full
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGINT, "the recording has ended"),
        (signal.SIGKILL, "the recording stopped without ending the session"),
    ],
)
def test_the_end_of_a_recording_is_reported_and_the_picture_stays(
    number: signal.Signals, words: str, lesson: Class, tmp_path: Path
) -> None:
    database = tmp_path / "game.db"
    command = [*KIEBITZ, "relay", "-q", "-m", lesson.mode, "-w", str(database)]
    relay = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert relay.stderr is not None
        assert "listening on" in relay.stderr.readline()
        lesson.register("alice")
        with Filled("watch", str(database)) as watch:
            watch.until(ALICE)
            os.killpg(relay.pid, number)
            watch.until(lambda screen: words in " ".join(screen.split()))
            assert ALICE in watch.screen
            watch.type(b"q")
            assert watch.ended() == 0
            assert watch.is_as_it_was()
    finally:
        relay.kill()
        relay.communicate()


@pytest.mark.full
@pytest.mark.parametrize("capture", a_few([TINY, "several"], [TINY]))
def test_a_database_that_is_locked_is_reported_and_asked_again(capture: str, tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    copy_of_database("catan-five-servers.pcapng.gz" if capture == "several" else Path(TINY).name, database)
    with Filled("watch", str(database)) as watch:
        watch.until("? help")
        watch.until(lambda screen: "searching" not in screen)
        before = watch.screen
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            watch.type(b"\x1b[C")
            watch.until(lambda screen: "retrying: database is locked" in " ".join(screen.split()))
            # The picture stays, and keys go on to be heard.
            assert before.splitlines()[0][:10] in watch.screen
            watch.type(b"?")
            watch.until("play or pause")
            watch.type(b"q")
        watch.until(lambda screen: "tried again" not in screen and "play or pause" not in screen)
        watch.type(b"\x1b[C")
        watch.until("table 1 of 5" if capture == "several" else "event ")
        watch.type(b"q")
        assert watch.ended() == 0
        assert watch.is_as_it_was()


# On the terminal where it is recorded.


def test_a_relay_with_watch(lesson: Class, tmp_path: Path) -> None:
    with relayed(lesson, tmp_path / "game.db") as relay:
        assert "live" in relay.until("#1 of 1")
        hostile = "x\x1b[2J\x1b]0;t\x07\x9b5m"
        lesson.register(hostile)
        assert r"x\x1b[2J\x1b]0" in relay.until("#2 of 2")
        assert hostile.encode() not in relay.written
        assert b"\x1b[2J" not in relay.written
        assert b"\x1b]0;t" not in relay.written
        relay.type(b"\x1b[Z")
        relay.until(f"listening on udp 127.0.0.1:{lesson.port}")
        # A stopped process would keep the terminal.
        relay.type(b"\x1a")
        relay.until("Ctrl-Z is disabled")
        relay.type(b"q")
        assert relay.ended() == 0
        assert relay.is_as_it_was()
        assert relay.typed() == 0
        lines = relay.lines
        assert "recorded 2 streams, 4 messages" in lines[-1]
        assert any(f"listening on udp 127.0.0.1:{lesson.port}" in line for line in lines[-3:-1])


@pytest.mark.parametrize(
    ("number", "keys"),
    a_few([(2, b""), (15, b""), (None, b"\x03"), (None, b"Q")], [(15, b"")]),
)
@pytest.mark.full
def test_the_view_ends_with_the_relay(number: int | None, keys: bytes, lesson: Class, tmp_path: Path) -> None:
    with relayed(lesson, tmp_path / "game.db") as relay:
        if number is not None:
            relay.signal(signal.Signals(number))
        relay.type(keys)
        assert relay.ended() == 0
        assert relay.is_as_it_was()
        assert "recorded 1 stream" in relay.lines[-1]


@pytest.mark.full
def test_a_picture_that_is_killed_is_reported_and_the_relay_continues(lesson: Class, tmp_path: Path) -> None:
    with relayed(lesson, tmp_path / "game.db") as relay:
        (picture,) = children(relay.process.pid, "watch")
        os.kill(picture, signal.SIGKILL)
        relay.read_until(lambda written: b"was killed by signal 9; still recording" in written)
        assert relay.is_as_it_was()
        lesson.register("bob")
        relay.signal(signal.SIGINT)
        assert relay.ended() == 0
        assert b"recorded 2 streams, 4 messages" in relay.written


@pytest.mark.full
def test_a_relay_that_is_killed_leaves_no_picture_on_the_terminal(lesson: Class, tmp_path: Path) -> None:
    with relayed(lesson, tmp_path / "game.db") as relay:
        relay.signal(signal.SIGKILL)
        relay.read_until(lambda written: b"the recording process is gone" in written)
        relay.read_until(lambda _: relay.is_as_it_was())


@pytest.mark.full
def test_a_rotation_is_followed(lesson: Class, tmp_path: Path) -> None:
    with relayed(lesson, tmp_path / "game.db", "-b", "duration:2", rows=30) as relay:
        until(lambda: len(list(tmp_path.glob("game_*.db"))) > 0, "the next database")
        relay.until(lambda screen: "the recording continues in" in " ".join(screen.split()))
        lesson.register("bob")
        relay.until("bob is registered")
        relay.type(b"q")
        assert relay.ended() == 0


@pytest.mark.full
@needs_rights
@needs_libpcap
def test_a_sniff_with_watch(lesson: Class, tmp_path: Path) -> None:
    bpf = f"udp port {lesson.server_port}"
    command = ("sniff", "-i", "lo", "-f", bpf, "-w", str(tmp_path / "game.db"), "--watch")
    with Filled(*command) as sniff:
        sniff.until("no game yet")
        lesson.register("alice", lesson.server_port)
        sniff.until(ALICE)
        sniff.type(b"\x1b[Z")
        screen = sniff.until("capturing on lo")
        assert ALICE not in screen.partition("recorder")[2]
        sniff.type(b"q")
        assert sniff.ended() == 0
        assert sniff.is_as_it_was()
        assert ALICE not in "\n".join(sniff.lines[-3:])
