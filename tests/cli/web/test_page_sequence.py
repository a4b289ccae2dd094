"""The pane with the sequence diagram: as the command draws it, from a server and from a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from altered_message import Deed, altered_session, some
from browser import Look, Served, Sight, file_address, served
from command import CAPTURES, TINY
from page_queries import exported
from strength import GAMES, a_few

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.sequence.model import Arrow, Note
from kiebitz.storage.derived.selection import PartRequest
from kiebitz.storage.sequence.reader import read_sequence


@pytest.fixture(scope="module")
def tiny() -> Iterator[Served]:
    with served(TINY) as server:
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
    with served(session) as server:
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


def test_a_broadcast_is_one_arrow_with_a_head_for_each_player(tiny: Served, look: Look) -> None:
    sight = opened(look, tiny.at(at=11))
    assert "server to all: ROUND STARTED players=carl,alice,dora,bob round=1" in steps(sight, "arrow")
    heads = sight.tell(
        "[...document.querySelectorAll('#pane-sequence .step.is-arrow')]"
        ".find((one) => one.textContent.includes('ROUND STARTED')).querySelectorAll('path').length"
    )
    assert heads == 5


@pytest.mark.full
def test_it_follows_the_position_and_leads_there(tiny: Served, look: Look) -> None:
    sight = opened(look, tiny.at(at=12))
    here = "#pane-sequence .row.is-here"
    assert sight.text(f"{here} .step-text") == "it is carl's turn"
    sight.be(at=13, pane="sequence")
    sight.until(lambda: sight.text(f"{here} .step-text") == "carl rolls", "the next event is marked")
    # An event is a position, a message opens.
    sight.one("#pane-sequence .step.is-note").filter(has_text="dora joins").first.click()
    sight.until(lambda: sight.text("#latest") == "dora joins the round", "its event is shown")
    sight.one("#pane-sequence .list-rows").focus()
    sight.press("ArrowDown", "Enter")
    sight.until(partial(sight.is_seen, "#pane-message .dump"), "the message is open")
    assert sight.text("#tab-message[aria-selected=true]") == "Message"


@pytest.mark.full
@pytest.mark.parametrize("pane", ["messages", "sequence"])
def test_the_selected_row_stays_selected_while_more_are_loaded(pane: str, look: Look) -> None:
    with served(str(CAPTURES / "maexchen-head-odd.pcap")) as server:
        sight = look(server.at(at=12))
        sight.pane(pane)
        sight.until(partial(sight.is_seen, f"#pane-{pane} .row.is-here"), "the position is marked")
        sight.rest()
        sight.one(f"#pane-{pane} .list-rows").focus()
        sight.press("ArrowDown", "ArrowDown")
        row = f"#pane-{pane} [aria-selected=true]"
        selected = sight.text(row)
        assert selected != sight.text(f"#pane-{pane} .row.is-here")
        loaded = len(sight.texts(f"#pane-{pane} .row"))
        sight.one(f"#pane-{pane} .list").evaluate("(list) => { list.scrollTop = list.scrollHeight; }")
        sight.until(lambda: len(sight.texts(f"#pane-{pane} .row")) > loaded, "more rows are loaded")
        assert sight.text(row) == selected


@pytest.mark.full
def test_a_player_gets_no_hidden_dice(tiny: Served, look: Look) -> None:
    whole = opened(look, tiny.at(at=10**6), height=3000)
    assert any("ROLLED dice=3,3" in text for text in steps(whole, "arrow"))
    sight = opened(look, tiny.at(at=10**6, as_="alice"), height=3000)
    assert sight.texts(".step-names span") == ["alice", "server"]
    assert not [text for text in [*steps(sight, "arrow"), *steps(sight, "note")] if "rolled 3,3" in text]


@pytest.mark.full
@pytest.mark.parametrize("kind", a_few(["server", "file"], ["file"]))
def test_a_dropped_message_is_drawn(kind: str, tmp_path: Path, look: Look) -> None:
    before = open_session(TINY)
    row = next(row for row in some(before, 10_000) if row.name == "ROLLED")
    path = str(tmp_path / "altered.db")
    altered_session(Path(path), TINY, [Deed(row, "drop")]).connection.close()
    words = "server to carl: ROLLED dice=3,3 token=… · dropped by --rule 'msg == \"ROLLED\"'"
    if kind == "file":
        address = file_address(exported(path, tmp_path / "game.html"), at=10**6)
        sight = opened(look, address, height=3000)
        assert words in steps(sight, "altered")
        return
    with served(path) as server:
        sight = opened(look, server.at(at=10**6), height=3000)
        assert words in steps(sight, "altered")
        # Players cannot know of it.
        sight = opened(look, server.at(at=10**6, as_="carl"), height=3000)
        assert steps(sight, "altered") == []


@pytest.mark.full
@pytest.mark.parametrize("size", [(390, 844), (1280, 720)])
def test_many_lifelines_scroll_in_the_pane(size: tuple[int, int], look: Look) -> None:
    with served(str(CAPTURES / "maexchen-head-odd.pcap")) as server:
        sight = opened(look, server.at(), width=size[0], height=size[1])
        assert sight.overflow() == 0
        assert len(sight.texts(".step-names span")) == 25
