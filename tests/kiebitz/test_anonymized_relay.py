from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from command import kiebitz
from load_on_relays import wait_until_all_are_gone
from processes_and_rows import PATIENCE_S, rows, until
from recording_relays import recorded, relaying
from strength import a_few


def test_forwarded_data_is_unchanged_and_recorded_data_anonymous(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database, {}, "--anonymize") as echo:
        # Each comes back as it was sent.
        echo.round_trip(b"REGISTER;alice")
        echo.round_trip(b"HELLO;alice and bob\n")
        assert echo.stop() == 0
    there, back, *others = recorded(database)
    assert there == back
    assert there.startswith(b"REGISTER;")
    assert there[len(b"REGISTER;") :] in others[0]
    for path in tmp_path.iterdir():
        assert b"alice" not in path.read_bytes()
    ((name, fields),) = rows(database, "SELECT name, fields FROM messages LIMIT 1")
    assert (name, json.loads(fields)["name"].encode()) == ("REGISTER", there[len(b"REGISTER;") :])
    assert rows(database, "SELECT name, source FROM sessions") == [("anonymized 1", "anonymized")]


@pytest.mark.parametrize(
    "ending", a_few(["recorder killed", "both killed", "ended at once"], ["both killed"])
)
@pytest.mark.full
def test_recovered_data_is_anonymized(ending: str, tmp_path: Path) -> None:
    """In a session of its own: the recorder's pseudonyms are lost with its process."""
    database = tmp_path / "game.db"
    with relaying(database, {}, "--anonymize") as echo:
        echo.round_trip(b"REGISTER;alice")
        until(lambda: len(recorded(database)) == 2, "it is recorded")
        os.kill(echo.recorder(), signal.SIGSTOP)
        echo.round_trip(b"REGISTER;alice2")
        # It is in the journal.
        time.sleep(0.2)
        if ending == "recorder killed":
            os.kill(echo.recorder(), signal.SIGKILL)
            echo.wait_for("nothing more is recorded")
            # It continues.
            echo.round_trip(b"REGISTER;bob")
            assert echo.stop() == 1
        elif ending == "both killed":
            os.killpg(echo.relay.pid, signal.SIGKILL)
        else:
            echo.relay.send_signal(signal.SIGINT)
            time.sleep(1.5)
            echo.relay.send_signal(signal.SIGINT)
            echo.wait_for("is kept with the real names in")
            echo.relay.wait(PATIENCE_S)
    wait_until_all_are_gone(tmp_path)
    (folder,) = tmp_path.glob(".*-spool-*")
    assert f"kiebitz import {folder}" in kiebitz("sessions", str(database)).err
    assert kiebitz("import", str(folder)).status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["game.db"]
    assert b"alice" not in database.read_bytes()
    assert [len(data) for data in recorded(database) if data] == [14, 14, 15, 15]
    assert rows(database, "SELECT name, source, ended_ns >= started_ns FROM sessions") == [
        ("anonymized 1", "anonymized", 1),
        ("anonymized 2", "anonymized", 1),
    ]
