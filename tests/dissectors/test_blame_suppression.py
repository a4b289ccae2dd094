from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from session_factory import Conversation, record

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.inspection.blame_suppression import AffectedPeriod
from kiebitz.dissectors.model import Action, Altered, Game, Item
from kiebitz.storage.read.message_queries import diagnostics

Span = tuple[int, int | None]

AT_5: list[tuple[str, list[Span], list[Span], int | None]] = [
    # Games that are on at 5, games that begin later, and from when on peers are judged again.
    ("its game is over and another has begun", [(1, 9)], [(12, 15)], 12),
    ("its game is over, and no other has begun", [(1, 9)], [], None),
    ("its game is never over", [(1, None)], [(12, 15)], None),
    ("it was before the first game", [], [(7, 9), (12, 15)], 12),
    ("it was before the only game", [], [(7, 9)], None),
    ("another game goes on beside it", [(1, 9), (2, 20)], [(12, 15), (22, 25)], 22),
    ("no game at all", [], [], None),
]


@pytest.mark.parametrize(("on", "later", "clean"), [row[1:] for row in AT_5], ids=[row[0] for row in AT_5])
def test_until_when_it_may_show(on: list[Span], later: list[Span], clean: int | None) -> None:
    def games(first: int, spans: list[Span]) -> list[Game]:
        return [
            Game(first + number, 1, "maexchen", "", start, end) for number, (start, end) in enumerate(spans)
        ]

    aftermath = AffectedPeriod()
    assert not aftermath.affects(4)
    before = games(1, on)
    aftermath.altered(5, {game.id: game for game in before})
    for game in [*before, *games(10, later)]:
        # It is reported when it begins, and again at its end.
        aftermath.game_seen(game)
        aftermath.game_seen(game)
    assert aftermath.is_open == (clean is None)
    assert [aftermath.affects(moment) for moment in (5, (clean or 100) - 1)] == [True, True]
    if clean is not None:
        assert not aftermath.affects(clean)
        aftermath.altered(clean + 1, {})
        assert aftermath.is_open


def _talk(altered: Action | None) -> list[Item]:
    talk = Conversation()
    for said in (b"REGISTERED", b"PLAYER LOST;bob;MIA", b"SCORE;bob:x", b"ROUND CANCELED;WHY"):
        talk.hears(said)
    items = talk.items
    if altered is None:
        return items
    chunk = items[2]
    assert msgspec.structs.asdict(chunk)["data"] == b"SCORE;bob:x"
    mark = Altered(
        talk.stream,
        "s2c",
        chunk.ts_ns,
        29,
        11,
        altered,
        "--change",
        chunk.ts_ns,
        b"ANNOUNCED;bob;3,1",
        "ANNOUNCED",
        "{}",
    )
    return [*items[:2], mark, *items[2:]]


@pytest.mark.parametrize(
    ("altered", "severity", "blame"),
    [
        (None, "error", "server"),
        ("change", "note", "kiebitz"),
        ("insert", "note", "kiebitz"),
        ("double", "note", "kiebitz"),
        # It came late, but it is what the server wrote.
        ("delay", "error", "server"),
        ("hold", "error", "server"),
    ],
)
def test_blame_for_malformed_bytes(tmp_path: Path, altered: Action | None, severity: str, blame: str) -> None:
    timeline = open_session(record(tmp_path / "game.db", _talk(altered)))
    found = [(d.severity, d.blame) for d in diagnostics(timeline, "d.offset BETWEEN 29 AND 39")]
    timeline.connection.close()
    assert found == [(severity, blame)]
