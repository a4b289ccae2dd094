"""Ctrl-C ends each command within a second, wherever it is at work, and loses nothing that was recorded.

The second is one of CPU time, which other work of the machine does not change.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from command import CAPTURES, ROOT, kiebitz
from processes_and_rows import KIEBITZ, PATIENCE_S, rows, until
from session_factory import Conversation
from strength import a_few, times
from tables import tried_commands

from kiebitz.storage.database.schema import INDEXES
from kiebitz.storage.recording.recorder import Recorder

FILE_HEADER = 24
REPETITIONS = 15
STEP_S = 0.35
"""CPU time in seconds between two positions at which a command is interrupted."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a capture of 135,000 messages."""
    once = (CAPTURES / "maexchen-old-20111003.pcap").read_bytes()
    path = tmp_path_factory.mktemp("long") / "long.pcap"
    path.write_bytes(once[:FILE_HEADER] + once[FILE_HEADER:] * REPETITIONS)
    return path


@pytest.fixture(scope="module")
def database(capture: Path) -> Path:
    path = capture.with_suffix(".db")
    assert kiebitz("import", str(capture), "-w", str(path)).status == 0
    return path


def cpu_s(process: int) -> float:
    """Return the CPU time in seconds of a running process and its children."""
    with suppress(FileNotFoundError, ProcessLookupError):
        used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return sum(map(int, used)) / os.sysconf("SC_CLK_TCK") + sum(cpu_s(int(child)) for child in children)
    return 0.0


def interrupted(
    command: list[str], after_s: float, standard_input: Path | None, number: signal.Signals
) -> str | None:
    """Interrupt a command after some CPU time; return its messages, or None if it ended before."""
    with open(standard_input or os.devnull, "rb") as given:
        process = subprocess.Popen(
            [*KIEBITZ, *command],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    assert process.stderr is not None
    try:
        until(lambda: cpu_s(process.pid) >= after_s or process.poll() is not None, "it is at work")
        before = cpu_s(process.pid)
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
        end = time.monotonic() + PATIENCE_S
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0 and process.returncode is None:
            assert time.monotonic() < end, command
            time.sleep(0.01)
    except ChildProcessError:
        return None
    finally:
        process.kill()
        said = process.stderr.read().decode()
        process.communicate()
    status = os.waitstatus_to_exitcode(ended[1])
    assert "Traceback" not in said
    if status in (0, 3):
        return None
    # Until its modules are loaded, the signal itself ends the process.
    assert status in (130, -number), said
    used = ended[2]
    assert used.ru_utime + used.ru_stime - before < 1.0, (command, after_s)
    return said


COMMANDS = tried_commands("test_ctrl_c")


@pytest.mark.parametrize(
    ("command", "kind"),
    a_few(
        [(COMMANDS[0], signal.SIGTERM), *((command, signal.SIGINT) for command in COMMANDS)],
        lambda row: row[0][:2] == ["import", "-"],
        lambda row: f"{' '.join(row[0])}, {row[1].name}",
    ),
)
def test_ctrl_c_ends_a_command_within_a_second(
    command: list[str], kind: signal.Signals, capture: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    number = 1
    while number <= times(4, 1) and _is_interrupted(command, kind, number, capture, tmp_path, request):
        number += 1
    assert number > 1, "it is never interrupted"


def _is_interrupted(
    command: list[str],
    kind: signal.Signals,
    number: int,
    capture: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> bool:
    """Interrupt the command at this position; return False if it ends before. Check what it leaves."""
    new, copy = tmp_path / f"new{number}", tmp_path / f"copy{number}.db"
    paths = {"capture": str(capture), "new": str(new), "copy": str(copy)}
    if "{database}" in command or "{copy}" in command:
        stored: Path = request.getfixturevalue("database")
        copy.write_bytes(stored.read_bytes())
        paths["database"] = str(stored)
    given = capture if "-" in command else None
    said = interrupted([part.format(**paths) for part in command], number * STEP_S, given, kind)
    if said is None:
        return False
    # On a slow machine it may have created nothing yet.
    if command[0] == "import" and "{database}" not in command and rows(new, "SELECT 1 FROM sqlite_schema"):
        # Each datagram of this capture is a message.
        counts = "(SELECT count(*) FROM chunks) - (SELECT count(*) FROM messages), count(*), count(ended_ns)"
        ((undissected, sessions, ended),) = rows(new, f"SELECT {counts} FROM sessions")
        assert sessions == ended
        assert sessions <= said.count("of the capture were imported; kiebitz sessions") + (undissected > 0)
        assert undissected == 0 or "its last bytes may not be dissected" in said
    if command[0] == "redissect":
        messages = "SELECT count(*) FROM messages"
        assert rows(copy, messages) == rows(stored, messages)
    return True


@pytest.mark.parametrize("patience_s", [PATIENCE_S, -1.0])
def test_indexes_that_take_long_are_left_out(patience_s: float, tmp_path: Path) -> None:
    conversation = Conversation()
    for number in range(100):
        conversation.says(b"REGISTER;%d" % number)
    database = tmp_path / "game.db"
    stopped = Recorder(str(database), "import", "game.pcap")
    # Asked often enough for so few rows.
    stopped.connection.set_progress_handler(lambda: stopped.connection.is_cancelled(), 10)
    stopped.record(conversation.items)
    stopped.stop_soon(patience_s)
    stopped.close()
    count = "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name LIKE 'idx%'"
    (indexes,) = rows(database, count)[0]
    assert stopped.indexed == (indexes > 0) == (patience_s > 0)
    assert rows(database, "SELECT count(*), ended_ns > 0 FROM messages, sessions") == [(100, 1)]
    assert kiebitz("redissect", str(database)).status == 0
    assert rows(database, count) == [(sum(map(len, INDEXES.values())),)]
