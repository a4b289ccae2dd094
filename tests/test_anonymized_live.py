"""relay --anonymize: what is passed on stays, and what is recorded names nobody."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from live import PATIENCE_S, rows
from test_faults import recorded, relaying


def test_what_is_passed_on_stays_and_what_is_recorded_names_nobody(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("ending", ["killed", "ended at once"])
def test_another_recorder_does_not_carry_on(ending: str, tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database, {}, "--anonymize") as echo:
        echo.round_trip(b"REGISTER;alice")
        while not recorded(database):
            time.sleep(0.02)
        if ending == "killed":
            os.kill(echo.recorder(), signal.SIGKILL)
            echo.wait_for("nothing more is recorded")
            # It goes on.
            echo.round_trip(b"REGISTER;bob")
            echo.stop()
        else:
            os.kill(echo.recorder(), signal.SIGSTOP)
            echo.relay.send_signal(signal.SIGINT)
            time.sleep(1.5)
            echo.relay.send_signal(signal.SIGINT)
            echo.wait_for("lost, as it was to be anonymized")
            echo.relay.wait(PATIENCE_S)
    for path in tmp_path.iterdir():
        assert path.is_file()
        assert b"alice" not in path.read_bytes()
