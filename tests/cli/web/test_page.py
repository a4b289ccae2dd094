"""The page of `kiebitz serve` in a real browser: what it shows of recorded sessions, and how one moves."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from browser import Look
from command import CAPTURES, ROOT
from imported_databases import copy_of_database
from page_queries import PANES, place
from page_walks import take
from playwright.sync_api import Route
from served_pages import Serving, serving
from session_factory import Conversation, record
from strength import GAMES, a_few
from walks import walks

# They are served in their order.
SESSION = {name: number for number, name in enumerate(GAMES, 1)}


@pytest.fixture(scope="module")
def five() -> Iterator[Serving]:
    with serving(*(str(CAPTURES / name) for name in GAMES.values())) as server:
        yield server


def table_of(server: Serving, session: int) -> dict[str, Any]:
    """Return the table that is shown at first: where most has happened."""
    tables: list[dict[str, Any]] = server.well("api/tables", session=session)["tables"]
    return max(tables, key=lambda table: (table["last"], -table["table"]))


def events_of(server: Serving, session: int, **query: Any) -> list[dict[str, Any]]:
    table = table_of(server, session)["table"]
    found: list[dict[str, Any]] = server.well(
        f"api/tables/{table}/events", session=session, limit=500, after=0, **query
    )["events"]
    return found


def opening_of(server: Serving, session: int) -> int:
    """Return the position at which a recorded session opens: where its first game begins."""
    table = table_of(server, session)["table"]
    games = server.well(f"api/tables/{table}/timeline", session=session)["games"]
    return int(games[0]["seq"]) if games else 1


# What it shows.


@pytest.mark.parametrize("game", a_few(GAMES, ["catan"]))
def test_each_game_is_drawn_and_told(game: str, five: Serving, look: Look) -> None:
    session = SESSION[game]
    events = events_of(five, session)
    sight = look(five.at(session=session))
    opening = opening_of(five, session)
    sight.until_at(opening)
    sight.tells(events[opening - 1]["sentence"])
    sight.press("End")
    sight.until_at(len(events))
    sight.tells(events[-1]["sentence"])
    assert sight.text("#said"), "a screen reader is told of it"
    table = table_of(five, session)
    picture = five.well(f"api/tables/{table['table']}/picture", session=session, at=table["last"])
    assert sight.tell("document.querySelectorAll('#board use').length") == len(picture["wide"]["pieces"])
    assert (
        sight.tell("[...document.querySelectorAll('#board-words li')].map((one) => one.textContent)")
        == picture["words"]
    )
    assert picture["title"] in (sight.one("#board").get_attribute("aria-label") or "")
    assert GAMES[game] in sight.page.title()
    drawn = sight.tell("(({width, height}) => [width, height])(document.getElementById('board').getBBox())")
    assert min(drawn) > 300
    assert sight.overflow() == 0
    # All tabs fit in one row.
    sight.tell("void (document.getElementById('tab-held').hidden = false)")
    for width, height in ((1200, 800), (1280, 720), (1366, 768), (1920, 1080)):
        sight.page.set_viewport_size({"width": width, "height": height})
        rows = "[...document.querySelectorAll('#tabs button')].map((one) => one.offsetTop)"
        assert len(set(sight.tell(rows))) == 1, width
        assert sight.tell("(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(window.tabs)") == 0


# How one moves, and what panes and dialogs do.

OWN = ["maexchen-two-servers-restart.pcapng", "maexchen-head-odd.pcap"]
"""Captures of walks that are no games of `GAMES`."""


def alice() -> Conversation:
    return Conversation().says(b"REGISTER;alice").hears(b"REGISTERED")


def with_errors(count: int) -> Conversation:
    talk = alice().hears(b"ROUND STARTING;1;tok").says(b"JOIN;tok").hears(b"ROUND STARTED;1;alice")
    for _ in range(count):
        talk.says(b"ANNOUNCE;9,9;tok").hears(b"ANNOUNCED;alice;3,1")
    return talk


def with_long_names(count: int) -> Conversation:
    talk = alice()
    for _ in range(count):
        talk.says(b"REGISTER;" + b"a" * 60_000 + b"!")
    return talk


WORLDS: dict[str, Callable[[], list[Conversation]]] = {
    "little": lambda: [Conversation(), Conversation().says(b"\x00\x01\x02").hears(b"?"), alice()],
    # More errors than the timeline has marks.
    "errors": lambda: [with_errors(1203)],
    "long": lambda: [with_long_names(30)],
}
"""Sessions that are made for walks."""

WALKS = walks("page.txt", *GAMES, *OWN, *WORLDS)
QUICK = ("panes, keys and dialogs", "a message has its bytes next to its productions")


@pytest.mark.parametrize("title", a_few(WALKS, QUICK))
def test_a_walk(title: str, five: Serving, tmp_path: Path, look: Look) -> None:
    walk = WALKS[title]
    with ExitStack() as opened:
        server = five
        if walk.session in GAMES:
            walk.options["session"] = str(SESSION[walk.session])
        elif walk.session in WORLDS:
            made = (record(tmp_path / f"{n}.db", talk.items) for n, talk in enumerate(WORLDS[walk.session]()))
            server = opened.enter_context(serving(*made))
        else:
            server = opened.enter_context(serving(str(CAPTURES / walk.session)))
        schemes = {"color_scheme": walk.options.pop("scheme")} if "scheme" in walk.options else {}
        sight = look(server.at(**walk.options), **schemes)
        take(walk, sight)
        sight.rest()
        sight.leave()


@pytest.mark.full
@pytest.mark.parametrize("asks", ["messages", "diagnostics"])
def test_a_perspective_s_rows_are_not_reused_for_another(asks: str, five: Serving, look: Look) -> None:
    game, player = ("maexchen", "bob") if asks == "messages" else ("schafkopf", "D")
    sight = look(five.at(session=SESSION[game], at=1))
    sight.until_at(1)
    # The answer for the view of all players is slow.
    held: list[Route] = []
    sight.page.route(f"**/api/{asks}?**", lambda route: held.append(route), times=1)
    sight.press("n" if asks == "diagnostics" else "3")
    sight.until(lambda: len(held) == 1, f"{asks} are asked for")
    sight.one("#as").select_option(label=player)
    sight.until(lambda: place(sight).get("as") == player, "it is looked over another shoulder")
    held[0].continue_()
    sight.rest()
    sight.press("3")
    # An answer that this player may not have would be a fault of the page.
    sight.until(lambda: "no message reports this event" in sight.text("#pane-message"), "they were not told")
    sight.rest()


# Addresses.


@pytest.mark.full
def test_a_reference_is_copied(five: Serving, look: Look) -> None:
    session = SESSION["maexchen"]
    events = events_of(five, session)
    sight = look(five.at(session=session, at=9), permissions=["clipboard-read", "clipboard-write"])
    sight.until_at(9)
    sight.press("y")
    sight.until(lambda: "copied #" in sight.text("#notice"), "it says so")
    reference, _, link = sight.tell("navigator.clipboard.readText()").partition(" ")
    assert reference == f"#{events[8]['id']}"
    sight.go(link)
    sight.until_at(9)
    # Where the browser does not let a page write there, it is shown to be copied by hand.
    sight.tell("void (navigator.clipboard.writeText = () => Promise.reject(new Error('no')))")
    sight.press("y")
    sight.until(lambda: sight.is_seen("#copy"), "it is shown")
    link, html = (one.input_value() for one in sight.one("#copy textarea").all())
    assert link.startswith(f"{reference} http")
    # The picture and the HTML need no server.
    assert html.startswith('<a href="http')
    picture = base64.b64decode(html.partition("base64,")[2].partition('"')[0]).decode()
    assert "<use" not in picture
    assert picture.count('<g id="fragment-') == sight.tell("document.querySelectorAll('#board use').length")
    assert ElementTree.fromstring(picture).tag.endswith("svg")


# How it looks.


@pytest.mark.full
@pytest.mark.parametrize("game", GAMES)
def test_small_and_enlarged_windows_scroll_one_way_only(game: str, five: Serving, look: Look) -> None:
    address = five.at(session=SESSION[game], at=10**6)
    # 640 pixels at twice the size are 320.
    for width, height in ((320, 640), (390, 844), (844, 390), (1024, 768)):
        sight = look(address, width=width, height=height, device_scale_factor=2)
        sight.settle()
        for name in PANES:
            sight.pane(name)
            assert sight.overflow() == 0, (width, name)
        sight.press("/")
        assert sight.overflow() == 0
        sight.press("Escape", "p")
        sight.until(sight.is_alone, "nothing but the table")
        sight.settle()
        assert sight.overflow() == 0


def test_the_board_is_turned(five: Serving, look: Look) -> None:
    session = SESSION["schafkopf"]
    sight = look(five.at(session=session, at=40))
    sight.until_at(40)
    drawn = "[...document.querySelectorAll('#board use')].map((one) => one.getAttribute('href'))"
    usual = sight.tell(drawn)
    first, *_ = five.well("api/tables", session=session)["players"]
    for seat in [*five.well("api/tables", session=session)["players"], None]:
        sight.press("b")
        query = {} if seat is None else {"seat": seat}
        pieces = five.well("api/tables/1/picture", session=session, at=40, **query)["wide"]["pieces"]
        expected = [f"#fragment-{name}" for name, *_ in pieces]
        sight.until(partial(lambda shown: sight.tell(drawn) == shown, expected), f"{seat} is first")
        assert (sight.tell(drawn) == usual) == (seat in (None, first))
    # A player's view has its own seat first.
    sight.be(session=session, at=40, as_="D")
    sight.until(lambda: sight.one("#as").input_value() == "D", "it is D's")
    sight.rest()
    sight.press("b")
    sight.until(lambda: "own seat" in sight.text("#notice"), "it is said")


WALK = re.compile(r"^\| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
KEYS = {"Esc": "Escape", "→": "ArrowRight"}
AT_END = {
    "Tab, Enter": "document.activeElement.id === 'tab-events'",
    "`n`": "document.getElementById('said').textContent.startsWith('error[')",
    "`3`": "document.querySelector('.dump .is-error') !== null",
    '`/`, `actor == "Falsch"`, Enter': "document.getElementById('said').textContent.includes('matches')",
    "`m`, `a joke`, Enter": "document.querySelector('.mark-line').textContent.includes('★ a joke')",
    "`2`, Tab, Tab, `→`, Enter": "document.activeElement.parentElement.ariaSort === 'ascending'",
    "`y`, Esc": "document.querySelector('dialog[open]') === null",
    "`8`": "document.querySelector('#pane-statistics caption')?.textContent === 'Rounds'",
    "`p`, Esc": "document.querySelector('.head').checkVisibility()",
    "`?`, Esc": "document.querySelector('dialog[open]') === null",
}
"""Condition that holds after each row of the walk in the guide."""


@pytest.mark.full
def test_the_walk_with_the_keyboard_only(tmp_path: Path, look: Look) -> None:
    guide = (ROOT / "docs" / "guides" / "browser.md").read_text()
    section = guide.partition("## From the first key")[2].partition("\n## ")[0]
    rows = WALK.findall(section)[2:]
    assert rows == [*AT_END]
    with serving(copy_of_database(GAMES["schafkopf"], tmp_path / "game.db")) as server:
        sight = look(server.at())
        for row in rows:
            for key in row.split(", "):
                name = key.strip("`")
                if name.isascii() and " " in name:
                    sight.page.keyboard.type(name)
                else:
                    sight.press(KEYS.get(name, name))
                sight.page.wait_for_timeout(100)
            sight.until(partial(sight.tell, AT_END[row]), row)
        sight.rest()
        sight.leave()
