"""Ctrl-C and SIGTERM while a relay starts: it ends soon, and leaves no process, folder or half session."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from command import ROOT, TINY
from processes_and_rows import KIEBITZ, kill_all, rows, until
from strength import a_few

from kiebitz.proxy.system.deferred_signals import Interrupted, check_signals, deferred_signals, interruptible

SOON_S = 5.0

SIGNALS = pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)],
    ids=["Ctrl-C", "SIGTERM"],
)


@contextmanager
def starting(
    database: Path, *before: str, host: str = "127.0.0.1", ignored: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """Yield a relay; like a background job of a plain sh, it ignores SIGINT if that is `ignored`."""

    def as_sh_does() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL)

    process = subprocess.Popen(
        [*before, *KIEBITZ, "relay", "-m", f"reverse:udp://{host}:9@0", "-w", str(database), "-q"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=as_sh_does,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        kill_all(process)


def assert_ends(process: subprocess.Popen[str], number: signal.Signals, folder: Path) -> None:
    sent = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert time.monotonic() - sent < SOON_S
    assert process.returncode == (130 if number is signal.SIGINT else -number), said
    assert "Traceback" not in said
    assert_nothing_left(process, folder)


def assert_nothing_left(process: subprocess.Popen[str], folder: Path) -> None:
    assert list(folder.glob(".*spool*")) == []
    until(lambda: not members(process.pid), "its processes end")


def assert_nothing_half(folder: Path) -> None:
    if (folder / "game.db").exists():
        assert rows(folder / "game.db", "SELECT ended_ns IS NULL FROM sessions") in ([], [(0,)])


def members(session: int) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(name)
    return found


def spools(folder: Path) -> list[Path]:
    return list(folder.glob(".game.db-spool-*"))


@pytest.mark.full
@SIGNALS
def test_while_the_recorder_is_loaded(tmp_path: Path, number: signal.Signals) -> None:
    with starting(tmp_path / "game.db") as process:
        until(lambda: bool(spools(tmp_path)), "it begins")
        assert_ends(process, number, tmp_path)
    assert not (tmp_path / "game.db").exists()


@SIGNALS
@pytest.mark.full
def test_while_the_recorder_waits_for_the_database(tmp_path: Path, number: signal.Signals) -> None:
    """A session is opened by another process, which may wait for a lock."""
    database = tmp_path / "game.db"
    subprocess.run([*KIEBITZ, "import", TINY, "-w", str(database)], capture_output=True, check=True, cwd=ROOT)
    with closing(sqlite3.connect(database)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        with starting(database) as process:
            until(lambda: bool(spools(tmp_path)), "it begins")
            until(lambda: opened_by_a_child(process.pid, "game.db"), "the recorder opens the database")
            assert_ends(process, number, tmp_path)
        other.rollback()
        assert other.execute("SELECT count(*), min(ended_ns) > 0 FROM sessions").fetchall() == [(1, 1)]


def opened_by_a_child(process: int, name: str) -> bool:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    for child in children:
        # It opens and closes files meanwhile.
        with suppress(FileNotFoundError):
            for descriptor in Path(f"/proc/{child}/fd").glob("*"):
                if os.path.basename(os.path.realpath(descriptor)) == name:
                    return True
    return False


@pytest.mark.full(but=1)
@pytest.mark.parametrize("after_s", a_few([0.1, 0.3, 0.5, 0.7], [0.1, 0.5]))
def test_sigterm_ends_a_background_job_at_any_time(tmp_path: Path, after_s: float) -> None:
    with starting(tmp_path / "game.db", ignored=True) as process:
        time.sleep(after_s)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
        assert process.returncode in (0, -signal.SIGTERM)
        assert "Traceback" not in said
        assert_nothing_left(process, tmp_path)
    assert_nothing_half(tmp_path)


SILENT_NAME_SERVER = """
set -e
ip link add silent type veth peer name nobody
ip address add 192.0.2.2/24 dev silent
ip link set silent up
ip link set nobody up
ip neighbour add 192.0.2.1 lladdr 02:00:00:00:00:01 dev silent nud permanent
echo 'nameserver 192.0.2.1
options timeout:30 attempts:3' > "$1/resolv.conf"
mount --bind "$1/resolv.conf" /etc/resolv.conf
shift
exec "$@"
"""
"""Run in a network namespace of its own: what is sent to the name server gets lost."""


@pytest.mark.full
@SIGNALS
@pytest.mark.parametrize("ignored", [False, True], ids=["", "as a background job"])
def test_while_a_name_server_does_not_answer(tmp_path: Path, number: signal.Signals, ignored: bool) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("a silent name server takes root, unshare and ip")
    around = ("unshare", "--net", "--mount", "sh", "-c", SILENT_NAME_SERVER, "sh", str(tmp_path))
    with starting(tmp_path / "game.db", *around, host="game.example", ignored=ignored) as process:
        until(lambda: bool(spools(tmp_path)), "it begins")
        until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) > 1, "it asks")
        time.sleep(0.2)
        assert process.poll() is None
        assert_ends(process, number, tmp_path)


def test_slow_computations_return_the_same_result() -> None:
    assert interruptible(int, "12", base=8) == 10
    with pytest.raises(ValueError, match="invalid literal"):
        interruptible(int, "x")


def test_a_signal_that_is_held_does_later_what_it_does() -> None:
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        with deferred_signals():
            check_signals()
            # To this thread: another one of the test runner might not block it.
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            with pytest.raises(Interrupted):
                check_signals()
            with pytest.raises(Interrupted):
                interruptible(time.sleep, 60)
            assert came == []
        assert came == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
