"""Recorded games with other hidden values look the same to the players who cannot know them.

This holds for the recording, and for its anonymized copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from command import kiebitz
from player_views import numbering, opened, stored, whole_view
from secret_worlds import SecretWorlds
from strength import a_few, times

from kiebitz.cli.render import svg
from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import PUBLIC, port_of

PAIRS = {
    "maexchen-head-tiny.pcap": 5,
    "schafkopf-1.3-badcard.pcap": 1,
    "catan-lurche-py-3p.pcap.gz": 3,
    "catan-niedlichepixel-game2-3p.pcap.gz": 5,
    "okey-seed-game-win.pcap.gz": 4,
    "okey-head-game-win.pcap.gz": 4,
    "cgml-tiny.pcap.gz": 2,
}
"""Numbers of pairs of a player and a second world, by capture."""

QUICK = {
    ("maexchen-head-tiny.pcap", "recorded"),
    ("maexchen-head-tiny.pcap", "imported"),
    ("schafkopf-1.3-badcard.pcap", "exported"),
    ("okey-seed-game-win.pcap.gz", "recorded"),
    ("cgml-tiny.pcap.gz", "recorded"),
}


def pairs_of(capture: str, folder: Path, viewer: str | None = None) -> Iterator[tuple[str, str, str]]:
    """Yield a viewer, or each player, with databases of two worlds that differ in what it cannot know."""
    worlds = SecretWorlds(capture)
    first = stored(folder / "first.db", worlds.items())
    for player in worlds.players if viewer is None else [viewer]:
        for items in worlds.others(player):
            second = stored(folder / "second.db", items)
            if numbering(first) == numbering(second) and full_messages(first) != full_messages(second):
                yield player, first, second


def copied(path: str, how: str) -> str:
    """Return a copy of a database, anonymized other than for `recorded`."""
    if how == "recorded":
        return path
    copy = Path(path).with_suffix(f".{how}.db")
    copy.unlink(missing_ok=True)
    if how == "imported":
        done = kiebitz("import", path, "-w", str(copy), "--anonymize")
    else:
        capture = copy.with_suffix(".pcapng")
        done = kiebitz("export", path, "-T", "pcapng", "--anonymize", "-o", str(capture))
        assert done.status == 0, done.err
        done = kiebitz("import", str(capture), "-w", str(copy))
    assert done.status == 0, done.err
    return str(copy)


def ports_of(path: str, player: str) -> set[int]:
    reader = opened(path)
    streams = reader.visibility.streams_of(player)
    rows = reader.timeline.connection.execute("SELECT id, client FROM streams")
    return {port_of(client) for number, client in rows if number in streams}


def full_messages(path: str) -> list[tuple[str]]:
    return opened(path).timeline.connection.execute("SELECT fields FROM messages ORDER BY id").fetchall()


@pytest.fixture(autouse=True)
def _draw_equal_scenes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reuse drawings, as a drawing depends on its scene alone."""
    known: dict[bytes, dict[Shape, Drawing]] = {}
    draw = svg.draw_shapes

    def drawn(protocol: str, scene: Scene, shapes: Sequence[Shape]) -> dict[Shape, Drawing]:
        key = msgspec.json.encode((protocol, scene, shapes))
        if key not in known:
            known[key] = draw(protocol, scene, shapes)
        return known[key]

    monkeypatch.setattr(svg, "draw_shapes", drawn)


@pytest.mark.parametrize(
    ("capture", "how"),
    a_few([(capture, how) for capture in PAIRS for how in ("recorded", "imported", "exported")], QUICK),
)
def test_other_hidden_values_change_nothing_for_a_player(tmp_path: Path, capture: str, how: str) -> None:
    pairs = 0
    one: str | None = None
    views: dict[str, list[tuple[str, bytes]]] = {}
    for player, first, second in islice(pairs_of(capture, tmp_path), times(PAIRS[capture], 1)):
        one, other = one or copied(first, how), copied(second, how)
        still_differ = full_messages(one) != full_messages(other)
        assert still_differ
        ports = ports_of(first, player)
        (label,) = [name for name in opened(one).players() if ports_of(one, name) == ports]
        if label not in views:
            views[label] = [*named_alike(whole_view(one, label, [label], times(3, 1)))]
        seen_in_other = named_alike(whole_view(other, label, [label], times(3, 1)))
        for seen, in_other in zip(views[label], seen_in_other, strict=True):
            assert seen == in_other
        pairs += 1
    assert pairs == times(PAIRS[capture], 1)


PUBLIC_PAIRS = {
    "maexchen-head-tiny.pcap": 1,
    "catan-lurche-py-3p.pcap.gz": 1,
    "catan-niedlichepixel-game2-3p.pcap.gz": 3,
    "okey-seed-game-win.pcap.gz": 1,
    "okey-head-game-win.pcap.gz": 1,
    "cgml-tiny.pcap.gz": 1,
}
"""Numbers of second worlds for the public view, by capture."""


@pytest.mark.parametrize("capture", a_few([*PUBLIC_PAIRS], {"maexchen-head-tiny.pcap", "cgml-tiny.pcap.gz"}))
def test_secrets_change_nothing_in_the_public_view(tmp_path: Path, capture: str) -> None:
    pairs = 0
    view: list[tuple[str, bytes]] = []
    for _, first, second in pairs_of(capture, tmp_path, PUBLIC):
        view = view or [*named_alike(whole_view(first, PUBLIC, [PUBLIC], times(3, 1)))]
        for seen, in_other in zip(
            view, named_alike(whole_view(second, PUBLIC, [PUBLIC], times(3, 1))), strict=True
        ):
            assert seen == in_other
        pairs += 1
    assert pairs >= PUBLIC_PAIRS[capture]


def named_alike(view: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield a view as if both databases had one name."""
    for question, answer in view:
        yield question, answer.replace(b"second", b"first").replace(b"SECOND", b"FIRST")
