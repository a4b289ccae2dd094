"""The pane with the sequence diagram: as the command draws it, from a server and from a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from altered_message import Deed, altered_session, some
from browser import Look, Sight, file_address
from command import CAPTURES, TINY
from page_queries import exported
from served_pages import Serving, serving
from strength import GAMES, a_few

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.sequence.model import Arrow, Note
from kiebitz.storage.derived.selection import PartRequest
from kiebitz.storage.sequence.reader import read_sequence


@pytest.fixture(scope="module")
def tiny() -> Iterator[Serving]:
    with serving(TINY) as server:
        yield server


def opened(look: Look, address: str, **size: int) -> Sight:
    sight = look(address, **size)
    sight.pane("sequence")
    sight.until(partial(sight.is_seen, "#pane-sequence .step"), "steps are drawn")
    sight.rest()
    return sight


def steps(sight: Sight, kind: str) -> list[str]:
    return sight.texts(f"#pane-sequence .step.is-{kind} .step-text")


@pytest.mark.full
@pytest.mark.parametrize("game", a_few(["maexchen", "schafkopf"], ["maexchen"]))
@pytest.mark.parametrize("player", a_few([None, "first"], ["first"]))
def test_it_is_that_of_the_command(game: str, player: str | None, tmp_path: Path, look: Look) -> None:
    session = str(CAPTURES / GAMES[game])
    player = player and {"maexchen": "alice", "schafkopf": "Falsch"}[game]
    timeline = open_session(session)
    diagram = read_sequence(timeline, PartRequest(), player)
    drawn = [*diagram.steps]
    names = [step.name for step in drawn if isinstance(step, Arrow)]
    notes = [step.text for step in drawn if isinstance(step, Note) and step.severity is None]
    path = exported(session, tmp_path / "game.html")
    with serving(session) as server:
        place = {} if player is None else {"as_": player}
        for address in (server.at(at=10**6, **place), file_address(path, at=10**6, **place)):
            sight = opened(look, address, height=3000)
            arrows = sight.texts("#pane-sequence .step.is-arrow .step-text b")
            # Of a long session the page has the part before the current event, and no earlier copies.
            cut = 0 if len(arrows) == len(names) else 8
            assert arrows[cut:] == names[cut - len(arrows) :]
            assert len(arrows) == len(names) or len(arrows) > 30
            shown = [text for text in steps(sight, "note") if not text.startswith(("error", "warning"))]
            assert shown[cut:] == notes[cut - len(shown) :]
            assert sight.texts(".step-names span") == [lifeline.name for lifeline in diagram.lifelines]


@pytest.mark.full
def test_a_player_gets_no_hidden_dice(tiny: Serving, look: Look) -> None:
    whole = opened(look, tiny.at(at=10**6), height=3000)
    assert any("ROLLED dice=3,3" in text for text in steps(whole, "arrow"))
    sight = opened(look, tiny.at(at=10**6, as_="alice"), height=3000)
    assert sight.texts(".step-names span") == ["alice", "server"]
    assert not [text for text in [*steps(sight, "arrow"), *steps(sight, "note")] if "rolled 3,3" in text]


@pytest.mark.full
def test_a_dropped_message_is_drawn(tmp_path: Path, look: Look) -> None:
    row = next(row for row in some(open_session(TINY), 10_000) if row.name == "ROLLED")
    path = str(tmp_path / "altered.db")
    altered_session(Path(path), TINY, [Deed(row, "drop")]).connection.close()
    words = "server to carl: ROLLED dice=3,3 token=… · dropped by --rule 'msg == \"ROLLED\"'"
    with serving(path) as server:
        for address, expected in (
            (file_address(exported(path, tmp_path / "game.html"), at=10**6), [words]),
            (server.at(at=10**6), [words]),
            # Players cannot know of it.
            (server.at(at=10**6, as_="carl"), []),
        ):
            assert steps(opened(look, address, height=3000), "altered") == expected


@pytest.mark.full
@pytest.mark.parametrize("size", [(390, 844), (1280, 720)])
def test_many_lifelines_scroll_in_the_pane(size: tuple[int, int], look: Look) -> None:
    with serving(str(CAPTURES / "maexchen-head-odd.pcap")) as server:
        sight = opened(look, server.at(), width=size[0], height=size[1])
        assert sight.overflow() == 0
        assert len(sight.texts(".step-names span")) == 25
