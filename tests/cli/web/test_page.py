"""The page of `kiebitz serve` in a real browser: what it shows of recorded sessions, and how one moves."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from browser import Look, Served, Sight, served
from command import CAPTURES, ROOT, kiebitz
from page_queries import PANES, SLIP, asked, place
from playwright.sync_api import Route
from session_factory import Conversation, record
from strength import GAMES, a_few

# They are served in their order.
SESSION = {name: number for number, name in enumerate(GAMES, 1)}


Five = Served


@pytest.fixture(scope="module")
def five() -> Iterator[Five]:
    with served(*(str(CAPTURES / name) for name in GAMES.values())) as server:
        yield server


def table_of(server: Served, session: int) -> dict[str, Any]:
    """Return the table that is shown at first: where most has happened."""
    tables: list[dict[str, Any]] = asked(server, "tables", session=session)["tables"]
    return max(tables, key=lambda table: (table["last"], -table["table"]))


def events_of(server: Served, session: int, **query: Any) -> list[dict[str, Any]]:
    table = table_of(server, session)["table"]
    found: list[dict[str, Any]] = asked(
        server, f"tables/{table}/events", session=session, limit=500, after=0, **query
    )["events"]
    return found


def opening_of(server: Served, session: int) -> int:
    """Return the position at which a recorded session opens: where its first game begins."""
    table = table_of(server, session)["table"]
    games = asked(server, f"tables/{table}/timeline", session=session)["games"]
    return int(games[0]["seq"]) if games else 1


# What it shows.


@pytest.mark.parametrize("game", a_few(GAMES, ["catan"]))
def test_each_game_is_drawn_and_told(game: str, five: Five, look: Look) -> None:
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
    picture = asked(five, f"tables/{table['table']}/picture", session=session, at=table["last"])
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


# How one moves.


@pytest.mark.full
def test_keys_move(five: Five, look: Look) -> None:
    sight = look(five.at(session=SESSION["schafkopf"]))
    events = events_of(five, SESSION["schafkopf"])
    # A recorded session opens where its first game begins.
    sight.until_at(5)
    sight.press("Home")
    sight.until_at(1)
    for key, there in (
        *(
            ("ArrowRight", 2),
            ("ArrowRight", 3),
            ("ArrowLeft", 2),
            ("Shift+ArrowRight", 12),
            ("Shift+ArrowLeft", 2),
        ),
        *(("PageDown", 5), ("End", len(events)), ("PageUp", 5), ("Home", 1), ("ArrowLeft", 1)),
    ):
        sight.press(key)
        sight.until_at(there)
        sight.tells(events[there - 1]["sentence"])
    sight.press("PageUp")
    sight.until(lambda: sight.text("#notice") == "that was the first game", "it is told so")
    # Only the first error is shown.
    course = asked(five, f"tables/{table_of(five, 2)['table']}/timeline", session=2)
    (wrong, *_) = [diagnostic["seq"] for diagnostic in course["flaws"] if diagnostic["severity"] == "error"]
    sight.press("n")
    sight.until_at(wrong)
    sight.until(lambda: "error[" in sight.text("#notice"), "the error is told")
    sight.press("End")
    sight.until_at(len(events))
    sight.press("N")
    sight.until(lambda: sight.seq < len(events), "it goes back to an error")
    sight.press("+", "+", "-")
    assert sight.text("#speed") == "×2"
    # With Ctrl, Alt or Meta a key is the browser's.
    at = sight.seq
    for key in ("Control+ArrowRight", "Alt+n", "Meta+End", "Control+Home"):
        if "Alt" not in key:
            sight.press(key)
    sight.page.wait_for_timeout(100)
    assert sight.seq == at


def test_keys_open_and_leave(five: Five, look: Look) -> None:
    sight = look(five.at(session=SESSION["maexchen"], at=8))
    sight.until_at(8)
    for number, name in enumerate(PANES, 1):
        sight.press(str(number))
        sight.until(partial(sight.is_seen, f"#pane-{name} *"), f"{name} is filled")
        assert sight.texts("[role=tab][aria-selected=true]") == [sight.text(f"#tab-{name}")]
        assert sight.tell("document.querySelectorAll('[role=tabpanel]:not([hidden])').length") == 1
    sight.press("]")
    assert sight.is_seen("#pane-events")
    sight.press("[")
    assert sight.is_seen("#pane-statistics")
    sight.until(lambda: sight.text("#said") == "Statistics", "a screen reader is told of it")
    # Space plays, also after a click on a tab.
    sight.one("#tab-events").click()
    sight.press("Space")
    sight.until(lambda: sight.text("#how").startswith("playing"), "it plays")
    sight.press("Space")
    sight.until(lambda: sight.text("#how").startswith("paused"), "it is paused")
    sight.settle()
    sight.go(five.at(session=SESSION["maexchen"], at=8))
    sight.until_at(8)
    sight.press("?")
    # Single characters can be switched off, as speech input presses them unintended; other keys stay.
    choice = sight.one("#help input")
    choice.uncheck()
    sight.press("Escape")
    sight.until(lambda: not sight.is_seen("#help"), "the help is closed")
    sight.press("p", "3")
    assert sight.is_seen(".head")
    assert sight.is_seen("#pane-events")
    sight.press("ArrowRight")
    sight.until_at(9)
    sight.press("ArrowLeft")
    sight.until_at(8)
    sight.one("#help-button").click()
    choice.check()
    sight.press("Escape", "?")
    shown = sight.texts("#help kbd")
    assert {"Space", "Home", "1…9", "Esc", "?"} <= set(shown)
    # While a dialog is open, keys are its own.
    sight.press("ArrowRight", "p")
    sight.press("Escape")
    sight.until(lambda: not sight.is_seen("#help"), "Esc leaves the help")
    assert sight.seq == 8
    sight.press("p")
    sight.until(lambda: not sight.is_seen(".head"), "there is nothing but the table")
    sight.settle()
    assert sight.is_seen("#latest")
    assert not sight.is_seen("#tabs")
    assert sight.tell("document.getElementById('board').getBoundingClientRect().height / innerHeight") > 0.7
    sight.press("ArrowRight")
    sight.until(lambda: sight.seq > 8, "it is at the next public event")
    sight.press("Escape")
    sight.until(lambda: sight.is_seen(".head"), "Esc leaves")
    sight.press("a")
    assert sight.tell("document.activeElement.id") == "as"
    sight.press("Escape")
    sight.tell("document.activeElement.blur()")
    sight.press("t")
    sight.until(lambda: "only one table" in sight.text("#notice"), "there are no others")
    sight.press("/")
    assert sight.tell("document.activeElement.id") == "filter"
    # What one types in the line is text.
    at = sight.seq
    sight.page.keyboard.type("n t 3 p ?")
    sight.press("Home", "End", "ArrowLeft")
    assert sight.one("#filter").input_value() == "n t 3 p ?"
    assert sight.seq == at
    assert not sight.is_seen("#help")
    sight.press("Escape")
    sight.until(lambda: not sight.is_seen("#filter-line"), "Esc drops it")


@pytest.mark.full
def test_the_slider_is_dragged_and_moved_by_keys(five: Five, look: Look) -> None:
    sight = look(five.at(session=SESSION["okey"], at=1))
    sight.until_at(1)
    last = sight.count
    box = sight.one("#range").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    mouse = sight.page.mouse
    mouse.move(box["x"] + 8, middle)
    mouse.down()
    mouse.move(box["x"] + box["width"] / 2, middle, steps=8)
    sight.until(lambda: abs(sight.seq - last / 2) <= 2, "it follows the mouse")
    mouse.move(box["x"] + box["width"] - 1, middle, steps=4)
    mouse.up()
    sight.until_at(last)
    sight.one("#range").focus()
    sight.press("ArrowLeft")
    sight.until_at(last - 1)
    sight.press("Home")
    sight.until_at(1)
    said = sight.one("#range").get_attribute("aria-valuetext") or ""
    assert said.startswith(f"#1 of {last}")
    assert events_of(five, SESSION["okey"])[0]["sentence"] in said


@pytest.mark.full
def test_the_chart_is_a_second_timeline(five: Five, look: Look) -> None:
    session = SESSION["maexchen"]
    sight = look(five.at(session=session, at=1))
    sight.until_at(1)
    course = asked(five, f"tables/{table_of(five, session)['table']}/timeline", session=session)
    assert sight.texts(".chart-names li span") != []
    assert {*sight.texts(".chart-names li span")} == {*course["scores"]["names"]}
    assert sight.tell("document.querySelectorAll('.chart-line').length") == len(course["scores"]["names"])
    box = sight.one(".chart-plot").bounding_box()
    assert box is not None
    sight.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    sight.page.mouse.down()
    sight.until(lambda: abs(sight.seq - sight.count / 2) <= 2, "it goes where it is clicked")
    sight.page.mouse.move(box["x"] + box["width"] + 30, box["y"] + box["height"] / 2, steps=4)
    sight.page.mouse.up()
    sight.until_at(sight.count)
    name, last = course["scores"]["names"], course["scores"]["steps"][-1][1]
    shown = dict(zip(sight.texts(".chart-names li span"), sight.texts(".chart-names li b"), strict=True))
    assert shown == {one: str(points) for one, points in zip(name, last, strict=True)}


@pytest.mark.full
def test_playing_shows_one_event_after_another(five: Five, look: Look) -> None:
    sight = look(five.at(session=SESSION["maexchen"], at=20))
    sight.until_at(20)
    sight.tell("""() => {
        window.seen = [];
        new MutationObserver(() => window.seen.push(document.getElementById("place").textContent)).observe(
            document.getElementById("place"), { childList: true, characterData: true, subtree: true });
    }""")
    sight.press("Space")
    sight.until(lambda: sight.text("#how") == "end", "it plays to the end")
    places = [int(re.findall(r"\d+", text)[0]) for text in sight.tell("window.seen")]
    assert places == list(range(21, sight.count + 1))
    # From the end, it starts from the beginning; a silence of more than two seconds is shortened and
    # reported.
    sight.be(session=SESSION["schafkopf"], at=1)
    sight.until_at(1)
    events = events_of(five, SESSION["schafkopf"])
    gaps = [(after["time"] - before["time"], before["seq"]) for before, after in pairwise(events)]
    longest, seq = max(gaps)
    assert longest > 2
    sight.be(session=SESSION["schafkopf"], at=seq)
    sight.until_at(seq)
    sight.press("Space")
    sight.until(lambda: "s pause, shortened" in sight.text("#notice"), "it says that it shortens")
    assert sight.text("#how").startswith("playing")
    sight.press("Space")
    sight.until(lambda: sight.text("#how") == "paused", "it stands still")


# Panes.


def test_one_message_has_its_bytes_next_to_its_productions(five: Five, look: Look) -> None:
    session = SESSION["schafkopf"]
    sight = look(five.at(session=session, pane="diagnostics"))
    sight.until(lambda: sight.is_seen(".row .is-error"), "errors are listed")
    diagnostics = asked(
        five, "diagnostics", session=session, table=table_of(five, session)["table"], severity="error"
    )
    diagnostic = diagnostics["diagnostics"][0]
    # An error leads to its place, and to its message.
    sight.one(f"#diagnostic-{diagnostic['id']}").click()
    sight.until_at(diagnostic["seq"])
    sight.until(lambda: place(sight).get("message") == str(diagnostic["message"]), "its message is opened")
    sight.press("3")
    sight.until(lambda: f"#{diagnostic['message']} " in sight.text(".message-name"), "it is shown in full")
    assert diagnostic["text"] in sight.text("#pane-message .diagnostic")
    assert "expected" in sight.text("#pane-message .diagnostic") or "clause" in sight.text(
        "#pane-message .diagnostic"
    )
    assert sight.is_seen(".dump .is-invalid")
    full = asked(five, f"messages/{diagnostic['message']}", session=session)
    hexed = "".join(sight.tell("[...document.querySelectorAll('.dump-hex')].map((one) => one.textContent)"))
    assert bytes.fromhex(hexed.replace(" ", "")).hex() == hexed.replace(" ", "")
    assert len(bytes.fromhex(hexed.replace(" ", ""))) == full["message"]["length"]
    # One marks the other: pointed at, and by the keyboard.
    sight.one(".dump [data-piece]").first.hover()
    number = sight.one(".dump [data-piece]").first.get_attribute("data-piece")
    assert sight.tell("document.querySelector('.pieces .is-marked')?.dataset.piece") == number
    sight.one(".pieces").focus()
    sight.press("ArrowDown")
    chosen = sight.one(".pieces [aria-selected=true]").get_attribute("data-piece")
    assert sight.tell("document.querySelector('.pieces .is-marked')?.dataset.piece") == chosen
    assert sight.one(".pieces").get_attribute("aria-activedescendant") == f"piece-{chosen}"
    assert sight.tell("document.querySelectorAll('.dump .is-marked').length") > 0
    # A click on a byte shows its field.
    last = sight.one(".dump-text [data-piece]").last
    last.click()
    shown = ".pieces [aria-selected=true]"
    assert sight.one(shown).get_attribute("data-piece") == last.get_attribute("data-piece")
    assert sight.tell(f"document.querySelector('{shown}').getBoundingClientRect().bottom < innerHeight")
    # A mark with a note is on the message and on its line, and leads to it.
    sight.press("m")
    sight.page.keyboard.type("carl <b>cheats")
    sight.press("Enter")
    sight.until(lambda: "★ carl <b>cheats" in sight.text(".mark-line"), "it is marked")
    (marked,) = asked(five, "marks", session=session)["marks"]
    assert (marked["number"], marked["note"]) == (diagnostic["message"], "carl <b>cheats")
    # A line of the list of messages opens one, too.
    sight.pane("messages")
    line = sight.one(f"#message-{diagnostic['message']}")
    assert "★ carl <b>cheats" in (line.text_content() or "")
    sight.one("#pane-messages .row").first.click()
    sight.until(lambda: sight.is_seen("#pane-message"), "a click opens it")
    sight.press("m")
    sight.one(".mark-list .link").click()
    sight.until(lambda: f"#{diagnostic['message']} " in sight.text(".message-name"), "the mark leads to it")
    sight.press("m")
    sight.one("#held-form").get_by_role("button", name="Remove the mark").click()
    sight.until(lambda: "★" not in sight.text(".mark-line"), "it is no longer marked")


IN_VIEW = """['.dump .is-error', '.pieces .diagnostic.is-error'].map((one) => {
    const { top, bottom } = document.querySelector(one)?.getBoundingClientRect() ?? {};
    return top > document.getElementById("tabs").getBoundingClientRect().bottom && bottom < innerHeight;
})"""


@pytest.mark.parametrize(("width", "height"), a_few([(1366, 768), (1280, 720), (1200, 800)], [(1366, 768)]))
def test_a_message_opens_at_its_error(width: int, height: int, five: Five, look: Look) -> None:
    session = SESSION["schafkopf"]
    found = asked(five, "diagnostics", session=session, severity="error")["diagnostics"]
    number = next(row["message"] for row in found if row["code"] == "suit-not-followed")
    sight = look(five.at(session=session, message=number, pane="message"), width=width, height=height)
    sight.until(lambda: sight.tell(IN_VIEW) == [True, True], "the bytes are above the explanation")
    # The lists mark the opened message, not the first one of its event.
    sight.pane("messages")
    sight.until(lambda: sight.texts("#pane-messages .is-here .row-id") == [f"#{number}"], "it is marked")
    sight.pane("sequence")
    here = "document.querySelector('#pane-sequence .is-here')?.dataset.key"
    sight.until(lambda: str(sight.tell(here)).startswith(f"m{number}"), "its arrow is marked")
    # On paper, the list is there in full, without what one presses.
    sight.page.emulate_media(media="print", color_scheme="dark")
    list_ = "document.querySelector('#pane-sequence .list')"
    assert sight.tell(f"{list_}.scrollHeight - {list_}.clientHeight") == 0
    assert not sight.is_seen("button:not([aria-selected=true])")
    assert sight.tell("getComputedStyle(document.documentElement).colorScheme") == "light"


WRONG = {
    "session=99&at=3": ("there is no session 99 here", {"at": "3"}),
    "session={}&table=7&at=3": ("there is no table 7 in this session", {}),
    "session={}&table=1&at=99999": ("there is no event 99999 at this table: the last one is ", {}),
    "session={}&at=3&message=99999": ("there is no message 99999 in this session", {"at": "3"}),
    "session={}&at=x": ("at is a number, not x", {}),
    "session={}&at=3&pane=nope": ("there is no list nope", {"at": "3"}),
    "session={}&at=3&seq=4": ("an address has no seq", {"at": "3"}),
}


@pytest.mark.parametrize("wrong", a_few(WRONG, ["session={}&table=1&at=99999"]))
def test_a_wrong_address_says_what_is_wrong_and_keeps_the_rest(wrong: str, five: Five, look: Look) -> None:
    sentence, kept = WRONG[wrong]
    sight = look(f"{five.address}#{wrong.format(SESSION['okey'])}")
    sight.expect("status of 404")
    sight.until(lambda: sentence in sight.text("#notice"), "it is said")
    sight.until(lambda: sight.text("#latest") not in ("", "…"), "a table is shown")
    assert place(sight) | kept == place(sight)
    assert not sight.is_seen("#trouble")


def _is_at_message(sight: Sight, message: str) -> bool:
    return place(sight).get("message") == message


SAID = """() => {
    window.told = [];
    const said = document.getElementById("said");
    const told = () => window.told.push([performance.now(), said.textContent]);
    new MutationObserver(told).observe(said, { childList: true });
}"""


def test_all_errors_are_counted_and_visited(tmp_path: Path, look: Look) -> None:
    """Also if there are more than the timeline has marks."""
    count = 1203
    talk = Conversation().says(b"REGISTER;alice").hears(b"REGISTERED").hears(b"ROUND STARTING;1;tok")
    talk.says(b"JOIN;tok").hears(b"ROUND STARTED;1;alice")
    for _ in range(count):
        talk.says(b"ANNOUNCE;9,9;tok").hears(b"ANNOUNCED;alice;3,1")
    with served(record(tmp_path / "errors.db", talk.items)) as server:
        found = asked(server, "tables/1/timeline")
        assert (found["errors"], found["warnings"]) == (count, 0)
        assert 500 < len(found["flaws"]) <= 1000
        sight = look(server.at())
        sight.until(lambda: sight.text("#errors") == "1,203 errors", "they are counted")
        sight.tell(SAID)
        ids = asked(server, "diagnostics", table=1, severity="error", limit=4, after=0)["diagnostics"]
        visited = [str(one["message"]) for one in ids]
        for key, message in [*zip("nnnn", visited, strict=True), ("N", visited[-2])]:
            sight.press(key)
            sight.until(partial(_is_at_message, sight, message), f"{key} leads to {message}")
        sight.rest()
        notice, latest = sight.text("#notice"), sight.text("#latest")
        sight.until(lambda: sight.text("#said").endswith(latest), "the event is said")
        # The error before it was not cut short.
        told = sight.tell("window.told")
        at = next(place for place, (_, said) in enumerate(told) if said.startswith(notice))
        assert at == len(told) - 1 or told[at + 1][0] - told[at][0] > 1500
        # The notice leads to the message.
        sight.one("#notice button").click()
        focused = "document.activeElement.ariaLabel"
        sight.until(lambda: sight.tell(focused) == "Message details", "it is opened")
        title = f"#{visited[-2]} "
        sight.until(lambda: sight.text(".message-name").startswith(title), "it is that of the notice")
        sight.rest()
        sight.leave()


@pytest.mark.full
def test_the_filter_line(five: Five, look: Look) -> None:
    session = SESSION["maexchen"]
    sight = look(five.at(session=session))
    sight.expect(SLIP)
    sight.until_at(6)
    sight.press("Home")
    sight.until_at(1)
    sight.press("/")
    sight.page.keyboard.type("act")
    sight.until(lambda: "actor" in sight.texts("#filter-names li"), "names are offered")
    assert sight.one("#filter").get_attribute("aria-expanded") == "true"
    sight.press("Tab")
    assert sight.one("#filter").input_value().startswith("act")
    # Values are completed in quotes, and no names within them.
    sight.one("#filter").fill('actor == "bo')
    sight.until(lambda: sight.texts("#filter-names li") == ['"bob"'], "values are offered")
    # While one types, a slip is a hint.
    sight.until(lambda: sight.is_seen("#filter-sentence"), "a slip is marked")
    assert "^" in sight.text("#filter-caret")
    invalid = "document.getElementById('filter').getAttribute('aria-invalid')"
    assert sight.tell(invalid) == "false"
    # What is no filter is not kept.
    sight.press("Enter")
    sight.until(lambda: sight.tell(invalid) == "true", "now it is an error")
    assert sight.is_seen("#filter-line")
    sight.one("#filter").fill('actor == "bob"')
    sight.press("Enter")
    sight.until(lambda: not sight.is_seen("#filter-line"), "Enter keeps it")
    bobs = events_of(five, session, filter='actor == "bob"')
    assert bobs
    sight.until(
        lambda: sight.texts("#pane-events .row-text") == [event["sentence"] for event in bobs],
        "only bob's are listed",
    )
    assert sight.text("#filter-shown") == 'filter: actor == "bob"'
    found = asked(five, "tables/1/matches", session=session, filter='actor == "bob"')
    assert (found["events"], found["is_complete"]) == (len(bobs), True)
    counts = f"{len(bobs)} events, {found['messages']} messages, {found['diagnostics']} diagnostics"
    sight.until(lambda: sight.text("#matches") == f"matches {counts}", "they are counted")
    sight.press("End")
    sight.until_at(bobs[-1]["seq"])
    sight.press("ArrowLeft")
    sight.until_at(bobs[-2]["seq"])
    sight.until(lambda: place(sight).get("filter") == 'actor == "bob"', "the address has it")
    sight.press("/", "Escape")
    sight.until(lambda: not sight.is_seen("#filter-shown"), "Esc drops it")
    sight.until(lambda: len(sight.texts("#pane-events .row-text")) > len(bobs), "all are listed again")


@pytest.mark.full
def test_over_a_players_shoulder(five: Five, look: Look) -> None:
    session = SESSION["maexchen"]
    sight = look(five.at(session=session, at=1))
    sight.until_at(1)
    names = asked(five, "tables", session=session)["players"]
    assert sight.tell("[...document.getElementById('as').options].map((one) => one.textContent)") == [
        "everything",
        "public view",
        *names,
    ]
    sight.one("#as").select_option(label="bob")
    known = [event["sentence"] for event in events_of(five, session, as_="bob")]
    assert known != [event["sentence"] for event in events_of(five, session)]
    sight.until(lambda: sight.texts("#pane-events .row-text") == known, "only what bob could know is told")
    sight.until(lambda: place(sight).get("as") == "bob", "the address has it")
    sight.pane("messages")
    rows = asked(five, "messages", session=session, as_="bob")["messages"]
    ports = {row["client"] for row in rows}
    sight.until(lambda: len(sight.texts("#pane-messages .row")) > 0, "messages are listed")
    assert len(ports) == 1
    # The browser's back button returns to the view of all players.
    sight.page.go_back()
    sight.until(lambda: "as" not in place(sight), "everybody's is shown again")
    sight.until(lambda: sight.one("#as").input_value() == "everything", "so says the chooser")


@pytest.mark.full
@pytest.mark.parametrize("asks", ["messages", "diagnostics"])
def test_a_perspective_s_rows_are_not_reused_for_another(asks: str, five: Five, look: Look) -> None:
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
def test_a_moment_has_an_address(five: Five, look: Look) -> None:
    session = SESSION["okey"]
    events = events_of(five, session)
    sight = look(five.at(session=session, at=30, pane="state"))
    sight.until_at(30)
    sight.tells(events[29]["sentence"])
    assert sight.is_seen("#pane-state")
    sight.press("ArrowRight")
    sight.until_at(31)
    sight.until(
        lambda: place(sight) == {"session": "4", "table": "1", "at": "31", "pane": "state"}, "it is written"
    )
    steps = sight.tell("history.length")
    sight.press("ArrowRight", "ArrowRight")
    sight.until(lambda: place(sight).get("at") == "33", "it is written again")
    assert sight.tell("history.length") == steps, "not each event is a step back"
    # Another address, followed; and back.
    sight.be(session=session, table=1, at=50)
    sight.until_at(50)
    sight.tells(events[49]["sentence"])
    assert sight.is_seen("#pane-events")
    sight.page.go_back()
    sight.until_at(33)
    # An address that names what is not there.
    sight.be(session=99, table=77, at="x", pane="nowhere", message="-1")
    sight.until_at(opening_of(five, 1))
    sight.be(session=session, at=10**9)
    sight.until_at(len(events))
    # Loaded again, one is where one was.
    sight.be(session=session, table=1, at=17)
    sight.until_at(17)
    sight.page.reload()
    sight.until_at(17)


@pytest.mark.full
def test_a_reference_is_copied(five: Five, look: Look) -> None:
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
def test_light_and_dark(five: Five, look: Look) -> None:
    address = five.at(session=SESSION["catan"])

    def ground(sight: Sight) -> int:
        colour = sight.tell("getComputedStyle(document.documentElement).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    sight = look(address, color_scheme="dark")
    assert ground(sight) < 200
    board = sight.tell("getComputedStyle(document.documentElement).getPropertyValue('--k-ground')")
    sight.one("#theme").click()
    assert ground(sight) > 600
    assert sight.one("#theme").get_attribute("aria-label") == "Dark colours"
    assert (
        sight.tell("getComputedStyle(document.documentElement).getPropertyValue('--k-ground')") != board
        or not board
    )
    # It is remembered, until one wants what the machine prefers.
    sight.page.reload()
    sight.until(lambda: ground(sight) > 600, "it is light again")
    sight.one("#theme").click()
    assert ground(sight) < 200
    assert sight.tell("localStorage.length") == 0
    assert ground(look(address, color_scheme="light")) > 600


def test_all_tabs_fit_in_one_row(five: Five, look: Look) -> None:
    sight = look(five.at())
    sight.tell("void (document.getElementById('tab-held').hidden = false)")
    for width, height in ((1200, 800), (1280, 720), (1366, 768), (1920, 1080)):
        sight.page.set_viewport_size({"width": width, "height": height})
        rows = "[...document.querySelectorAll('#tabs button')].map((one) => one.offsetTop)"
        assert len(set(sight.tell(rows))) == 1, width
        assert sight.tell("(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(window.tabs)") == 0


@pytest.mark.full
@pytest.mark.parametrize("game", GAMES)
def test_small_and_enlarged_windows_scroll_one_way_only(game: str, five: Five, look: Look) -> None:
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


# Several tables.


@pytest.mark.full
def test_several_tables_are_seen_side_by_side(look: Look) -> None:
    with served(str(CAPTURES / "maexchen-two-servers-restart.pcapng")) as server:
        tables = asked(server, "tables")["tables"]
        assert len(tables) == 2
        sight = look(server.at(table=1, at=40))
        sight.until_at(40)
        assert sight.tell("document.getElementById('table').options.length") == 2
        sight.press("t")
        sight.until(
            lambda: len([one for one in sight.texts("#several .tile-latest") if one]) == 2, "both are drawn"
        )
        assert not sight.is_seen("#stage")
        assert sight.tell(
            "[...document.querySelectorAll('#several .tile svg')].every((one) => one.querySelector('use'))"
        )
        assert sight.overflow() == 0
        sight.until(lambda: place(sight).get("several") == "1", "the address has it")
        # All are at the same position: none has later data.
        times = {
            event["sentence"]: event["time"]
            for table in (1, 2)
            for event in asked(server, f"tables/{table}/events", limit=500, after=0)["events"]
        }
        assert all(sentence in times for sentence in sight.texts("#several .tile-latest"))
        sight.press("Tab", "Enter")
        sight.until(lambda: sight.is_seen("#stage"), "Enter enlarges one")
        sight.until(lambda: place(sight).get("table") == "2", "it is the other one")
        sight.settle()
        sight.one("#table").select_option(value="1")
        sight.until(lambda: place(sight).get("table") == "1", "so does the chooser")
        sight.press("t")
        sight.until(lambda: not sight.is_seen("#stage"), "all again")
        sight.press("Escape")
        sight.until(lambda: sight.is_seen("#stage"), "Esc leaves")


# With little or too much data.


@pytest.mark.full
def test_columns_sort_and_hide(five: Five, look: Look) -> None:
    session = SESSION["schafkopf"]
    sight = look(five.at(session=session, pane="streams"), bypass_csp=True)
    bytes_ = ".data tbody td:nth-child(5)"
    sight.until(lambda: len(sight.texts(bytes_)) == 4, "the streams are listed")
    for order, is_reversed in (("ascending", False), ("descending", True)):
        sight.one(".data th button").nth(4).click()
        found = [int(one) for one in sight.texts(bytes_)]
        assert found == sorted(found, reverse=is_reversed)
        assert sight.one(".data th").nth(4).get_attribute("aria-sort") == order
    sight.one(".columns summary").click()
    sight.one(".columns").get_by_label("bytes").uncheck()
    assert "bytes" not in sight.texts(".data th")
    assert sight.violations() == []
    sight.page.reload()
    sight.pane("statistics")
    sight.until(lambda: sight.is_seen("#pane-statistics .data caption"), "they are loaded")
    titles = sight.texts("#pane-statistics .data caption")
    found = asked(five, f"tables/{table_of(five, session)['table']}/statistics", session=session)[
        "statistics"
    ]
    assert titles == ["Rounds", *(one["title"] for one in found if one["rows"])]
    # A round is one click away.
    sight.press("End")
    sight.one("#pane-statistics .data .link").first.click()
    sight.until_at(opening_of(five, session))
    sight.pane("streams")
    assert "bytes" not in sight.texts(".data th")


def test_the_board_is_turned(five: Five, look: Look) -> None:
    session = SESSION["schafkopf"]
    sight = look(five.at(session=session, at=40))
    sight.until_at(40)
    drawn = "[...document.querySelectorAll('#board use')].map((one) => one.getAttribute('href'))"
    usual = sight.tell(drawn)
    first, *_ = asked(five, "tables", session=session)["players"]
    for seat in [*asked(five, "tables", session=session)["players"], None]:
        sight.press("b")
        query = {} if seat is None else {"seat": seat}
        pieces = asked(five, "tables/1/picture", session=session, at=40, **query)["wide"]["pieces"]
        expected = [f"#fragment-{name}" for name, *_ in pieces]
        sight.until(partial(lambda shown: sight.tell(drawn) == shown, expected), f"{seat} is first")
        assert (sight.tell(drawn) == usual) == (seat in (None, first))
    # A player's view has its own seat first.
    sight.be(session=session, at=40, as_="D")
    sight.until(lambda: sight.one("#as").input_value() == "D", "it is D's")
    sight.rest()
    sight.press("b")
    sight.until(lambda: "own seat" in sight.text("#notice"), "it is said")


def test_a_move_of_a_turn_is_one_click_away(five: Five, look: Look) -> None:
    events = events_of(five, SESSION["okey"])
    sight = look(five.at(session=SESSION["okey"], pane="statistics"))
    turns = sight.page.locator(".data", has_text="Turns")
    sight.until(lambda: turns.count() == 1, "there are turns")
    drawn = [event for event in events if event["kind"] == "drew"]
    # The first player puts without drawing.
    assert turns.locator("tbody tr").count() == len(drawn) + 1
    cells = turns.locator("tbody tr").nth(1).locator("td").all_inner_texts()
    assert cells[:2] == ["2", "boran"]
    turns.get_by_role("button", name="draws blue 4 from the left stack").click()
    sight.until_at(drawn[0]["seq"])


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


def test_the_walk_with_the_keyboard_only(tmp_path: Path, look: Look) -> None:
    guide = (ROOT / "docs" / "guides" / "browser.md").read_text()
    section = guide.partition("## From the first key")[2].partition("\n## ")[0]
    rows = WALK.findall(section)[2:]
    assert rows == [*AT_END]
    path = tmp_path / "game.db"
    assert kiebitz("import", str(CAPTURES / GAMES["schafkopf"]), "-w", str(path)).status == 0
    with served(str(path)) as server:
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


SORTED = {
    "events": ("tables/1/events", "player", "actor", 'kind != "turn"'),
    "messages": ("messages", "message", "name", 'name != "WARTEN"'),
    "diagnostics": ("diagnostics", "code", "code", 'diag.code != "truncated"'),
}
"""List -> a column, as the page and as the API call it, and a filter."""


@pytest.mark.parametrize("pane", a_few(SORTED, ["events"]))
def test_lists_sort_by_their_heads(pane: str, five: Five, look: Look) -> None:
    path, column, field, wanted = SORTED[pane]
    session = SESSION["schafkopf"]

    def rows(sort: str) -> list[Any]:
        found = asked(five, path, session=session, filter=wanted, sort=sort, limit=500, after=0)
        return [row["id"] for row in found[pane]]

    sight = look(five.at(session=session, pane=pane, filter=wanted))
    if pane == "events":
        # Their kinds and players are hidden at first.
        sight.one("#pane-events .columns summary").click()
        sight.one("#pane-events .columns").get_by_label("player").check()
    heads = f"#pane-{pane} .row-heads"
    sight.until(lambda: sight.is_seen(f"#pane-{pane} .row"), "rows are listed")
    natural = keys_of(sight, pane)
    sight.one(f"{heads} [tabindex='0']").focus()
    while sight.text(":focus") != column:
        sight.press("ArrowRight")
    for sort, order in ((field, "ascending"), (f"-{field}", "descending")):
        sight.press("Enter")
        sight.until(partial(_is_sorted, sight, pane, rows(sort)[:20]), f"rows are sorted by {sort}")
        assert sight.tell("document.activeElement.parentElement.ariaSort") == order
        assert sight.tell("document.activeElement.textContent") == column, "the focus stays"
    assert natural != keys_of(sight, pane)
    sight.press("Enter")
    sight.until(partial(_is_sorted, sight, pane, natural[:5]), "they are in their own order again")


def keys_of(sight: Sight, pane: str) -> list[int]:
    """Return the keys of the listed rows."""
    rows = f"[...document.querySelectorAll('#pane-{pane} .row')].map((row) => Number(row.dataset.key))"
    found: list[int] = sight.tell(rows)
    return found


def _is_sorted(sight: Sight, pane: str, expected: list[int]) -> bool:
    return keys_of(sight, pane)[: len(expected)] == expected


@pytest.mark.full
def test_sessions_in_which_little_has_happened(tmp_path: Path, look: Look) -> None:
    nothing = record(tmp_path / "nothing.db", [])
    unknown = record(tmp_path / "unknown.db", Conversation().says(b"\x00\x01\x02").hears(b"?").items)
    one = record(tmp_path / "one.db", Conversation().says(b"REGISTER;alice").hears(b"REGISTERED").items)
    with served(nothing, unknown, one) as server:
        for session in (1, 2):
            sight = look(server.at(session=session))
            sight.tells("nothing has happened yet")
            for pane in PANES:
                sight.pane(pane)
            sight.press("ArrowRight", "ArrowLeft", "Home", "End", "PageDown", "n", "Space", "y", "t", "a")
            sight.until(partial(sight.is_seen, "#notice"), "it is told that there is nothing")
            assert sight.overflow() == 0
        sight = look(server.at(session=3))
        sight.until_at(1)
        assert "alice" in sight.text("#latest")
        assert not sight.is_seen("#chart")
        sight.press("ArrowRight", "End", "ArrowLeft", "Home", "Space")
        sight.until(lambda: sight.text("#how") == "end", "there is but one")
        for pane in PANES:
            sight.pane(pane)
        sight.one("#session").select_option(value="1")
        sight.until(lambda: sight.text("#latest") == "nothing has happened yet", "the other has none")
        # The server must not end before it has answered.
        sight.rest()
        sight.leave()


@pytest.mark.full
def test_a_filter_that_takes_too_long_is_given_up_in_a_sentence(tmp_path: Path, look: Look) -> None:
    talk = Conversation().says(b"REGISTER;alice").hears(b"REGISTERED")
    for _ in range(30):
        talk.says(b"REGISTER;" + b"a" * 60_000 + b"!")
    database = record(tmp_path / "long.db", talk.items)
    with served(database) as server:
        sight = look(server.at())
        sight.until_at(1)
        sight.expect("status of (400|503)")
        sight.press("/")
        sight.page.keyboard.type('maexchen.name matches "(a|aa)+$"')
        sight.press("Enter")
        sight.until(
            lambda: (
                re.search(
                    "longer than|cancelled after",
                    sight.text("#notice") + sight.text("#filter-sentence"),
                )
                is not None
            ),
            "it says so",
        )
        # Everything else continues.
        sight.press("/", "Escape", "2")
        sight.until(lambda: len(sight.texts("#pane-messages .row")) > 10, "panes go on")
        sight.rest()


@pytest.mark.full
def test_a_message_that_is_not_there_is_reported(five: Five, look: Look) -> None:
    sight = look(five.at(session=SESSION["maexchen"], at=5))
    sight.until_at(5)
    sight.expect("status of 404")
    sight.be(session=1, table=1, at=5, pane="message", message=10**9)
    sight.until(lambda: "no message" in sight.text("#pane-message"), "it is told")
