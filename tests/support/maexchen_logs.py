"""Events in a Mäxchen server's own log, for comparison with the recorded ones."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from cleanup import close_after_test
from command import ROOT

from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.capture.packets import RawPacket
from kiebitz.services.importing.packets import PacketRecording
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.recording.recorder import Recorder

_SENT = re.compile(r"sending '(.*)' to (\S+) \((\S+)\)")
_RECEIVED = re.compile(r"received '(.*)' from (\S+)")


class LoggedEvent(NamedTuple):
    """An event: its kind, and its data as JSON."""

    kind: str
    data: str


class Log(NamedTuple):
    """The server's messages, in order, and the number of messages before each player joined.

    `late` has the tokens of players who tried to join after the round had started or was cancelled.
    """

    told: list[LoggedEvent]
    joined: list[tuple[int, str]]
    late: list[str]


def read_log(lines: Iterable[str]) -> Log:
    """Read the log of a server (newest dialect or fork), one event for all copies of a message."""
    log = Log([], [], [])
    names: dict[str, str] = {}
    asked: dict[str, str] = {}
    before = ""
    for line in lines:
        if sent := _SENT.match(line):
            text, name, client = sent.groups()
            message, *fields = text.split(";")
            names[client] = name
            if message == "ROUND STARTING":
                asked[fields[0]] = name
                text = message
            if text != before or message in ("REGISTERED", "UNREGISTERED"):
                log.told.append(_told(message, fields, name))
            before = text
        elif received := _RECEIVED.match(line):
            message, *fields = received[1].split(";")
            if message == "JOIN" and asked.pop(fields[0], None) is not None:
                log.joined.append((len(log.told), names[received[2]]))
            elif message == "JOIN":
                log.late.append(fields[0])
        if before.startswith(("ROUND STARTED", "ROUND CANCELED")):
            asked.clear()
    return log


def _told(message: str, fields: list[str], name: str) -> LoggedEvent:
    kind, data = _event(message, fields, name)
    return LoggedEvent(kind, json.dumps(data, sort_keys=True))


def _event(message: str, fields: list[str], name: str) -> tuple[str, dict[str, Any]]:
    match message, fields:
        case "REGISTERED" | "UNREGISTERED", []:
            return message.lower(), {"name": name}
        case "ROUND STARTING", _:
            return "round_starting", {"round": None}
        case "ROUND STARTED", [number, players]:
            return "round_started", {"round": int(number), "players": players.split(",")}
        case "ROUND CANCELED", [reason]:
            return "round_canceled", {"reason": reason}
        case "YOUR TURN", _:
            return "turn", {"name": name}
        case "PLAYER ROLLS", [player]:
            return "rolls", {"name": player}
        case "ROLLED", [dice, _]:
            return "rolled", {"name": name, "dice": dice}
        case "ANNOUNCED", [player, dice]:
            return "announced", {"name": player, "dice": dice}
        case "PLAYER WANTS TO SEE", [player]:
            return "wants_to_see", {"name": player}
        case "ACTUAL DICE", [dice]:
            return "actual_dice", {"dice": dice}
        case "PLAYER LOST", [players, reason]:
            return "lost", {"names": players.split(","), "reason": reason}
        case "SCORE", [scores]:
            entries = [entry.split(":") for entry in scores.split(",") if entry]
            return "score", {"scores": {player: int(points) for player, points in entries}}
    raise AssertionError(f"the log has {message} {fields}")


CAPTURES = ROOT / "captures"


def packets(name: str) -> list[RawPacket]:
    with open_capture(str(CAPTURES / f"{name}.pcap")) as capture:
        return list(capture)


def record(traffic: Iterable[RawPacket]) -> sqlite3.Connection:
    recorder = Recorder(MEMORY, "import", "traffic")
    recording = PacketRecording(recorder, {})
    recording.take(traffic)
    recording.close()
    return close_after_test(recorder.connection)
