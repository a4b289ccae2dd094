"""An exception anywhere in a dissector, or in writing what it found, ends the game of its own table only."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import ROOT, kiebitz
from test_resuming import ONE_OF_EACH, imported, on_known

from kiebitz.cli.live_view import LiveView
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.inspection.isolation import GAME_ENDED
from kiebitz.dissectors.model import Event, Item
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.recorded_items import RecordedItems
from kiebitz.storage.recording.recorder import Recorder
from kiebitz.storage.recording.resuming import ResumedRecorder

CAPTURES = {capture.partition("-")[0]: capture for capture in ONE_OF_EACH}
OTHER = {protocol: "okey" if protocol == "maexchen" else "maexchen" for protocol in CAPTURES}
"""Protocol -> the protocol of the server beside it."""


class PlantedError(Exception):
    """A fault of a dissector that nobody has thought of."""


def raising(*_arguments: object, **_options: object) -> Any:
    raise PlantedError


def later(call: Callable[..., Any], works: int = 2) -> Callable[..., Any]:
    """Return the function, which raises after it has worked some times."""
    number = count()
    return lambda *args, **options: (raising if next(number) >= works else call)(*args, **options)


Plant = Callable[[pytest.MonkeyPatch, Dissector], None]


def in_framer(name: str, works: int = 2) -> Plant:
    def plant(patch: pytest.MonkeyPatch, dissector: Dissector) -> None:
        def make(direction: Any, original: Any = dissector.framer) -> Any:
            framer = original(direction)
            kind = type(framer)
            broken = staticmethod(later(getattr(framer, name), works))
            framer.__class__ = type(kind.__name__, (kind,), {"__slots__": (), name: broken})
            return framer

        patch.setattr(dissector, "framer", make)

    return plant


def in_table(name: str, works: int = 2) -> Plant:
    def plant(patch: pytest.MonkeyPatch, dissector: Dissector) -> None:
        def make(*args: Any, original: Any = dissector.table) -> Any:
            table = original(*args)
            setattr(table, name, later(getattr(table, name), works))
            return table

        patch.setattr(dissector, "table", make)

    return plant


def in_part(part: str, name: str, works: int = 2) -> Plant:
    def plant(patch: pytest.MonkeyPatch, dissector: Dissector) -> None:
        owner = getattr(dissector, part) if part else dissector
        patch.setattr(owner, name, later(getattr(owner, name), works))

    return plant


def in_events(spoil: Callable[[Event], None]) -> Plant:
    """Plant a value that cannot be written into an event."""

    def plant(patch: pytest.MonkeyPatch, dissector: Dissector) -> None:
        original = GameContext.emit

        def emit(self: GameContext, *args: Any, **options: Any) -> Event:
            event = original(self, *args, **options)
            if self.info.protocol == dissector.protocol and event.seq > 1:
                spoil(event)
            return event

        patch.setattr(GameContext, "emit", emit)

    return plant


def in_games(patch: pytest.MonkeyPatch, dissector: Dissector) -> None:
    original = GameContext.open_game

    def open_game(self: GameContext, label: str, ts_ns: int) -> Any:
        return original(self, "\ud800" if self.info.protocol == dissector.protocol else label, ts_ns)

    patch.setattr(GameContext, "open_game", open_game)


def in_sentences(patch: pytest.MonkeyPatch, dissector: Dissector) -> None:
    # Those of other data may be known from before.
    in_events(lambda event: event.data.update(planted=True))(patch, dissector)
    patch.setattr(dissector.presentation, "describe", raising)


PLANTS: dict[str, Plant] = {
    "recognise": in_part("", "recognise", 0),
    "framer": in_part("", "framer", 0),
    "framer.feed": in_framer("feed"),
    "framer.eof": in_framer("eof", 0),
    "codec.decode": in_part("codec", "decode"),
    "table": in_part("", "table", 0),
    "table.message": in_table("message"),
    "table.closed": in_table("closed", 0),
    "table.undecided": in_table("undecided"),
    "table.finish": in_table("finish", 0),
    "identity.introduced": in_part("identity", "introduced", 0),
    "presentation.describe": in_sentences,
    "an event without JSON": in_events(lambda event: event.data.update(x=object())),
    "a change without JSON": in_events(lambda event: event.changes.append((["x"], object()))),
    "a change that is too large": in_events(lambda event: event.changes.append((["x"], "x" * (17 << 20)))),
    "a name that is no text": in_events(lambda event: setattr(event, "actor", "\ud800")),
    "a game that is no text": in_games,
}
QUIET = {"table.closed", "table.finish", "framer.eof", "identity.introduced", "a game that is no text"}
"""The plants that are not reached in every capture."""


def items_beside(protocol: str) -> Iterator[Item]:
    """Yield the traffic of two servers: that of a protocol, and another one in the middle of it."""
    victim = RecordedItems(imported(CAPTURES[protocol]))
    others = RecordedItems(imported(CAPTURES[OTHER[protocol]]))
    others.renumber(count(1001))
    items = [*victim.items()]
    yield from items[: len(items) // 2]
    yield from others.items()
    yield from items[len(items) // 2 :]


def rows_of(path: Path, stream_from: int = 0) -> dict[str, list[Any]]:
    """Return the rows about streams from a number on, without their own numbers."""
    queries = {
        "bytes": "SELECT stream_id, direction, offset, data FROM chunks WHERE stream_id > ?",
        "messages": "SELECT stream_id, direction, name, fields, offset FROM messages WHERE stream_id > ?",
        "diagnostics": "SELECT stream_id, text FROM diagnostics WHERE stream_id > ?"
        f" AND code <> '{GAME_ENDED}'",
        "events": "SELECT DISTINCT e.seq, e.kind, e.data, e.sentence FROM events AS e"
        " JOIN messages AS m ON m.event_id = e.id WHERE m.stream_id > ? ORDER BY e.seq",
    }
    with closing(sqlite3.connect(path)) as connection:
        return {name: connection.execute(query, (stream_from,)).fetchall() for name, query in queries.items()}


def ended_games(path: Path) -> Counter[str]:
    with closing(sqlite3.connect(path)) as connection:
        return Counter(
            server
            for (server,) in connection.execute(
                f"SELECT s.server FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id"
                f" WHERE d.code = '{GAME_ENDED}'"
            )
        )


def recorded(path: Path, protocol: str) -> Path:
    recorder = Recorder(str(path), "relay", "two servers", started_ns=0)
    for number, item in enumerate(items_beside(protocol), 1):
        recorder.record((item,))
        if number % 50 == 0:
            recorder.commit()
    recorder.close()
    return path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def get(protocol: str) -> Path:
        if protocol not in made:
            made[protocol] = recorded(tmp_path_factory.mktemp("undisturbed") / "whole.db", protocol)
        return made[protocol]

    return get


@pytest.mark.full(but=4)
@pytest.mark.parametrize("protocol", CAPTURES)
@pytest.mark.parametrize("plant", PLANTS)
def test_only_the_game_of_its_own_table_ends(
    protocol: str,
    plant: str,
    undisturbed: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = undisturbed(protocol)
    dissector = dissector_of(protocol)
    assert dissector is not None
    with monkeypatch.context() as patch:
        PLANTS[plant](patch, dissector)
        path = recorded(tmp_path / "game.db", protocol)
    assert rows_of(path)["bytes"] == rows_of(whole)["bytes"]
    assert rows_of(path, 1000) == rows_of(whole, 1000)
    ended = ended_games(path)
    assert set(ended.values()) == {1} or (plant in QUIET and not ended)
    assert "damaged" not in kiebitz("check", str(path)).err
    # A repaired Kiebitz makes everything from the bytes.
    assert kiebitz("redissect", str(path)).status == 0
    assert rows_of(path) == rows_of(whole)


@pytest.mark.parametrize("plant", ["framer.feed", "table.message", "presentation.describe"])
def test_a_recording_is_resumed_after_an_exception(
    plant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dissector = dissector_of("maexchen")
    assert dissector is not None
    path = tmp_path / "game.db"
    with monkeypatch.context() as patch:
        PLANTS[plant](patch, dissector)
        recorder = Recorder(str(path), "relay", "two servers", started_ns=0)
        recorder.record(islice(items_beside("maexchen"), 40))
        recorder.commit()
        recorder.release()
    with monkeypatch.context() as patch:
        PLANTS[plant](patch, dissector)
        resumed = ResumedRecorder([str(path)], 1)
        resumed.record(on_known(islice(items_beside("maexchen"), 40, None), resumed.open_streams))
        resumed.close()
    assert len(rows_of(path)["bytes"]) == sum(hasattr(item, "data") for item in items_beside("maexchen"))
    assert sum(ended_games(path).values()) == 1


PLANTED_IMPORT = """
import sys
import pytest
from kiebitz.cli.main import run
from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.importing import packets
from test_isolation import PLANTS
plant, smallest, *arguments = sys.argv[1:]
packets.MIN_SIZE_FOR_PROCESS = int(smallest)
PLANTS[plant](pytest.MonkeyPatch(), dissector_of("maexchen"))
raise SystemExit(run(arguments))
"""


@pytest.mark.full(but=1)
@pytest.mark.parametrize("smallest", [0, 1 << 40], ids=["in two processes", "in one process"])
@pytest.mark.parametrize("plant", ["framer.feed", "codec.decode", "table.message", "a name that is no text"])
def test_an_import_ends_well(plant: str, smallest: int, tmp_path: Path) -> None:
    path = tmp_path / "game.db"
    capture = str(ROOT / "captures" / CAPTURES["maexchen"])
    # A process of its own: one with threads is not forked, and a fresh one would have no plant.
    done = subprocess.run(
        [sys.executable, "-c", PLANTED_IMPORT, plant, str(smallest), "import", capture, "-w", str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [*ended_games(path).values()] == [1]


def test_a_view_that_raises_ends_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dissector = dissector_of("maexchen")
    assert dissector is not None
    recorder = Recorder(str(tmp_path / "game.db"), "relay", "two servers", started_ns=0)
    view = LiveView(recorder, None, quiet=False)
    recorder.record(items_beside("maexchen"))
    found = recorder.gather()
    monkeypatch.setattr(dissector, "presentation", SimpleNamespace(describe=raising))
    view.show(found)
    recorder.close()
    assert "PlantedError() in storage/test_isolation.py" in capsys.readouterr().err
    assert not ended_games(tmp_path / "game.db")
