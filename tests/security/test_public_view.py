"""The public view: what all at a table may know.

It is contained in the view of each player that was there, and of a spectator where the protocol has one.

Recorded games with other hidden values look the same to the players who cannot know them.

This holds for the recording, and for its anonymized copies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browser import Look
from command import kiebitz
from imported_databases import database_of
from inspected_captures import CAPTURES
from player_views import opened, whole_view
from secret_worlds import full_messages, pairs_of
from served_pages import Serving, own_address, serving
from strength import a_few, few_captures, times

from kiebitz.cli.render import svg
from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape
from kiebitz.cli.web.reader import Reader
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import PUBLIC, Event, port_of
from kiebitz.storage.read.message_queries import messages
from kiebitz.storage.read.seen_rows import PublicMessages

CAPTURE_NAMES = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)


def present(reader: Reader, event: Event) -> Iterator[str]:
    """Yield the players that the server served in an event's game before and after it, but not the actor."""
    query = (
        "SELECT min(ts_ns), max(ts_ns) FROM messages"
        " WHERE stream_id = ? AND direction = 's2c' AND (? IS NULL OR game_id = ?)"
    )
    for player in reader.visibility.players():
        if event.actor in {name for claim in player.claims for _, name in claim.names}:
            continue
        for claim in player.claims:
            given = claim.stream, event.game_id, event.game_id
            first_ns, last_ns = reader.timeline.connection.execute(query, given).fetchone()
            is_served = first_ns is not None and first_ns < event.ts_ns < last_ns
            if is_served and claim.table == event.table_id and claim.names[0][0] <= event.id:
                yield player.label
                break


def is_less(public: Any, other: Any) -> bool:
    """Return True if a value of the public view tells no more than another one."""
    if public is None or public == other:
        return True
    if isinstance(public, dict) and isinstance(other, dict):
        return all(key in other and is_less(part, other[key]) for key, part in public.items())
    # A number of cards in place of the cards.
    if isinstance(public, int) and isinstance(other, (dict, list)):
        return public == (sum(other.values()) if isinstance(other, dict) else len(other))
    if isinstance(public, list) and isinstance(other, list) and len(public) == len(other):
        # CGML's names of hidden cards.
        return all(one == two or one == "?" for one, two in zip(public, other, strict=True))
    return False


@pytest.mark.parametrize("capture", few_captures(CAPTURE_NAMES))
def test_the_public_view_is_in_the_view_of_each_player(capture: str) -> None:
    reader = opened(database_of(capture))
    visibility = reader.visibility
    for event in reader.timeline.events():
        public = visibility.seen(event, PUBLIC)
        if public is None:
            continue
        for player in present(reader, event):
            seen = visibility.seen(event, player)
            assert seen is not None, (player, event)
            hidden = event.data.keys() & {"known_to", "others_see"}
            data = {key: part for key, part in seen.data.items() if key not in hidden}
            assert is_less(public.data, data), (player, public.data, data)


SPECTATED = ["maexchen-head-tiny.pcap", "maexchen-head-port4711.pcap"]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("capture", SPECTATED)
def test_a_spectator_of_maexchen_sees_what_is_public(capture: str) -> None:
    reader = opened(database_of(capture))
    spectators = {
        stream
        for (stream,) in reader.timeline.connection.execute(
            "SELECT stream_id FROM messages WHERE name = 'REGISTER_SPECTATOR'"
        )
    }
    (player,) = [one for one in reader.visibility.players() if one.streams <= spectators]
    seen, public = (
        [
            (event.id, found.data)
            for event in reader.timeline.events()
            if event.kind not in ("registered", "left")
            and player.label in present(reader, event)
            and (found := reader.visibility.seen(event, viewer)) is not None
        ]
        for viewer in (player.label, PUBLIC)
    )
    assert seen == public
    assert len(seen) > 5


@pytest.mark.parametrize("capture", few_captures(CAPTURE_NAMES))
def test_public_messages_were_sent_to_all_players_alike(capture: str) -> None:
    reader = opened(database_of(capture))
    public = [row for row in messages(reader.timeline) if PublicMessages(reader.visibility).first_copy(row)]
    for row in public:
        assert row.event_id is not None
        event = next(reader.timeline.events("e.id = ?", [row.event_id]))
        alike = [
            copy.stream.id
            for copy in messages(reader.timeline, "m.event_id = ?", [row.event_id])
            if (copy.name, copy.direction, copy.fields) == (row.name, "s2c", row.fields)
        ]
        for player in present(reader, event):
            found = reader.visibility.player(player)
            assert found is not None
            assert not found.streams.isdisjoint(alike), (player, row)


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    path = str(CAPTURES / "schafkopf-1.3-2humans.pcap")
    with serving(path, "--player-links", "--host", own_address()) as server:
        yield server


def spectators_link(server: Serving) -> str:
    (link,) = re.findall(r"^for spectators \(public view\): (http://\S+)$", server.out, re.MULTILINE)
    return str(link)


def test_spectators_links_show_the_public_view(served: Serving) -> None:
    key = spectators_link(served).partition("key=")[2]
    found = served.well("api/sessions", key=key)
    assert (found["player"], found["sessions"][0]["source"], found["delay"]) == (PUBLIC, None, None)
    state = served.well("api/tables/1/state", key=key, at=60)
    assert state == served.well("api/tables/1/state", key=served.key, at=60, as_=PUBLIC)
    assert "private" not in str(state)
    sent = served.well("api/messages", key=key, table=1)["messages"]
    assert {(row["client"], row["player"], row["direction"]) for row in sent} == {
        ("all players", None, "s2c")
    }
    served.well(f"api/messages/{sent[0]['number']}", key=key)
    assert served.well("api/streams", key=key)["streams"] == []
    assert served.well("api/complete", key=key, text='player == "')["words"] == []
    home = served.well("api/home", key=key)["sessions"][0]
    assert (home["errors"], home["warnings"]) == (0, 0)
    assert home == served.well("api/home", key=served.key, as_=PUBLIC)["sessions"][0]
    wrong = served.get("api/home", None, "GET", key=served.key, as_="Bärbel")
    assert (wrong.status, wrong.sentence) == (
        400,
        "all sessions together are shown in the full view or as public",
    )
    for query, status, why in (
        ({"as_": "Bärbel"}, 403, "this link shows only the public view"),
        ({}, 404, "the public view has only messages that the server sent to all players alike"),
    ):
        refused = served.get("api/messages/1", None, "GET", key=key, **query)
        assert (refused.status, refused.sentence) == (status, why)


RESULTS = {
    "maexchen-head-tiny.pcap": "alice lost: announced too little",
    "okey-seed-game-win.pcap.gz": "istref wins",
    "schafkopf-1.3-2humans.pcap": "the round is over: played; [BOT]-0 wins",
    "catan-niedlichepixel-game2-3p.pcap.gz": "the game is over; BlueBro wins",
}


@pytest.mark.full
def test_a_public_wall_shows_who_won() -> None:
    paths = [str(CAPTURES / name) for name in RESULTS]
    with serving(*paths) as server:
        sessions = server.well("api/home", as_=PUBLIC)["sessions"]
    assert {one["session"]["name"]: one["result"] for one in sessions} == RESULTS


@pytest.mark.full
def test_the_projector_shows_the_public_view(served: Serving, look: Look) -> None:
    sight = look(spectators_link(served))
    sight.page.locator("#viewer", has_text="public view").wait_for()
    assert sight.page.locator("#as-choice").is_hidden()
    sight.go(f"{served.address}#at=60")
    sight.page.locator("#as-choice").wait_for()
    chosen = "document.getElementById('as').value"
    assert sight.page.evaluate(chosen) == "everything"
    sight.page.keyboard.press("p")
    sight.page.wait_for_function(f"{chosen} === 'public view'")
    sight.page.keyboard.press("p")
    sight.page.wait_for_function(f"{chosen} === 'everything'")
    sight.go(f"{served.address}#at=60&projector=1")
    sight.page.wait_for_function(f"{chosen} === 'public view'")
    sight.leave()


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
    ("schafkopf-1.3-badcard.pcap", "exported"),
    ("cgml-tiny.pcap.gz", "imported"),
}


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
            views[label] = [*whole_view(one, label, [label], times(3, 1))]
        seen_in_other = whole_view(other, label, [label], times(3, 1))
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


@pytest.mark.parametrize("capture", a_few([*PUBLIC_PAIRS], {"maexchen-head-tiny.pcap"}))
def test_secrets_change_nothing_in_the_public_view(tmp_path: Path, capture: str) -> None:
    pairs = 0
    view: list[tuple[str, bytes]] = []
    for _, first, second in pairs_of(capture, tmp_path, PUBLIC):
        view = view or [*whole_view(first, PUBLIC, [PUBLIC], times(3, 1))]
        for seen, in_other in zip(view, whole_view(second, PUBLIC, [PUBLIC], times(3, 1)), strict=True):
            assert seen == in_other
        pairs += 1
    assert pairs >= PUBLIC_PAIRS[capture]
