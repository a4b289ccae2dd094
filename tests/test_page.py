"""The page in a real Chromium: keys, addresses, dragging, filters, one message in full, hostile names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import (
    NARROW,
    PHONE,
    PROJECTOR,
    STATIC,
    WIDE,
    Look,
    chromium,
    looking,
    needs_chromium,
    serious_findings,
    serving,
)
from command import CAPTURES, ODD, TINY, kiebitz
from lesson import Class
from live import KIEBITZ, free_port, rows, running, until
from strength import a_few

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FIVE = str(CAPTURES / "catan-five-servers.pcapng.gz")

_MODULES = sorted(STATIC.glob("*.js"))
_TOP_LEVEL = re.compile(r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+|\{[^}]*\})", re.MULTILINE)


# The files, without a browser.


def test_no_two_modules_have_a_name_in_common() -> None:
    names = Counter(
        name.strip()
        for module in _MODULES
        for found in _TOP_LEVEL.findall(module.read_text())
        for name in found.strip("{} ").split(",")
    )
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_nothing_of_a_page_is_markup_that_came_from_elsewhere() -> None:
    ways = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|import\("
    )
    # A type in a comment is no import.
    found = {
        module.name: ways.findall(re.sub(r"/\*.*?\*/|//.*", "", module.read_text(), flags=re.DOTALL))
        for module in _MODULES
    }
    assert {name: these for name, these in found.items() if these} == {}


def test_a_module_is_short_and_imports_what_the_one_file_can_join() -> None:
    for module in _MODULES:
        source = module.read_text()
        assert source.count("\n") < 300, module.name
        imports = [line for line in source.splitlines() if line.startswith("import")]
        joined = [line for line in imports if re.fullmatch(r'import \{ [\w, ]+ \} from "\./\w+\.js";', line)]
        assert imports == joined, module.name
        assert "export default" not in source, module.name


def test_the_page_names_no_other_place() -> None:
    for file in STATIC.iterdir():
        addresses = set(re.findall(r"https?://[^\s'\"`<)]+", file.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, file.name


# In the browser.


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A session with the names that tests give hostile players: 474 events, 51 errors."""
    with serving(ODD) as found:
        yield found


@pytest.fixture
def look(browser: Browser, address: str) -> Iterator[Look]:
    with looking(browser) as found:
        found.go(f"{address}#at=200")
        found.at(200)
        yield found
        found.check_quiet()


@needs_chromium
@pytest.mark.parametrize(
    ("keys", "event"),
    [
        (["ArrowRight"], 201),
        (["ArrowLeft", "ArrowLeft"], 198),
        (["Shift+ArrowRight"], 210),
        (["Home"], 1),
        (["End"], 474),
        (["End", "ArrowRight"], 474),
        (["Home", "ArrowLeft"], 1),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else str(value),
)
def test_keys_move_along_the_events(look: Look, keys: list[str], event: int) -> None:
    look.press(*keys)
    look.at(event)
    look.until(f"location.hash.includes('at={event}')")


@needs_chromium
def test_a_key_with_another_one_held_is_the_browsers(look: Look) -> None:
    look.press("Control+ArrowRight", "Alt+n", "Control+End")
    look.press("ArrowRight")
    look.at(201)


@needs_chromium
def test_an_address_is_a_moment(look: Look, address: str) -> None:
    look.go(f"{address}#at=132&as=odd&pane=message&message=993")
    look.at(132)
    look.says("#993 SEE", "pane-message")
    assert look.ask("document.getElementById('as').value") == "odd"
    look.ask("location.hash = '#table=1&at=7&pane=flaws'")
    look.at(7)
    look.until("document.getElementById('tab-flaws').ariaSelected === 'true'")


@needs_chromium
def test_n_leads_from_error_to_error(look: Look) -> None:
    # Four came before anything had happened.
    for code in ("empty-datagram", "unknown-message"):
        look.press(*(["Home"] if code == "empty-datagram" else []), "n")
        look.says(f"error[{code}]", "notice")
        look.at(1)
    look.press("N")
    look.says("error[empty-datagram]", "notice")


@needs_chromium
def test_one_message_has_its_bytes_beside_what_took_them(look: Look, address: str) -> None:
    look.go(f"{address}#at=132&message=993&pane=message")
    look.page.wait_for_selector("#pane-message .flaw.is-error")
    assert look.text("#pane-message .is-flawed") == "78"
    token = look.page.locator("#pane-message .piece", has_text="token =")
    token.hover()
    look.until("document.querySelectorAll('.dump-hex .is-marked').length === 6")
    look.page.locator(".dump-hex [data-piece='0']").hover()
    look.until("document.querySelector('.piece.is-marked').textContent.startsWith('message')")


@needs_chromium
def test_the_timeline_is_dragged(look: Look) -> None:
    box = look.page.locator("#range").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2 + 3
    look.page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    look.page.mouse.down()
    look.page.mouse.move(box["x"] + box["width"] * 0.75, middle, steps=20)
    look.page.mouse.up()
    look.until("Number(document.getElementById('range').value) > 300")
    at = int(look.ask("document.getElementById('range').value"))
    look.press("ArrowRight")
    look.at(at + 1)


@needs_chromium
def test_the_chart_is_a_timeline_too(look: Look) -> None:
    box = look.page.locator(".chart-plot").bounding_box()
    assert box is not None
    look.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 20)
    look.at(238)


@needs_chromium
def test_it_plays_and_pauses(look: Look) -> None:
    look.press("Space")
    look.says("playing ×1", "how")
    look.until("Number(document.getElementById('range').value) > 203")
    look.press("Space")
    look.says("paused", "how")


@needs_chromium
def test_a_filter_is_completed_marked_where_it_slips_and_kept(look: Look) -> None:
    look.press("/")
    look.page.keyboard.type("act")
    look.page.wait_for_selector("#filter-names li")
    look.press("Tab")
    assert look.page.input_value("#filter") == "actor"
    look.page.keyboard.type(" =! 3")
    look.until("document.getElementById('filter-caret').textContent === '      ^'")
    look.says("is no operator", "filter-sentence")
    look.page.fill("#filter", 'kind == "rolled"')
    look.until("location.hash.includes('rolled')")
    look.press("Enter")
    look.until("document.getElementById('filter-line').hidden")
    look.press("ArrowRight")
    look.says("has rolled", "latest")
    look.press("/", "Escape")
    look.until("!location.hash.includes('filter')")


@needs_chromium
def test_as_a_player_only_what_that_player_could_know(look: Look) -> None:
    look.page.select_option("#as", label="odd")
    look.until("location.hash.includes('as=odd')")
    look.until(
        "(() => { const said = document.getElementById('pane-events').textContent;"
        " return said.includes('odd has rolled') && !said.includes('even has rolled'); })()"
    )


@needs_chromium
def test_what_cannot_be_seen_of_a_name_is_escaped_and_markup_is_text(look: Look) -> None:
    look.press("Home")
    look.says("<b>x</b> is registered", "pane-events")
    events = look.ask("document.getElementById('pane-events').textContent")
    assert r"a\x00b is registered" in events
    assert look.ask("[...document.querySelectorAll('b')].some((b) => b.textContent === 'x')") is False


@needs_chromium
def test_of_a_fragment_only_shapes_and_texts_are_taken_over(browser: Browser, address: str) -> None:
    markup = (
        '<g onload="alert(1)" style="fill: red" id="board"><script>alert(1)</script>'
        '<a href="x"><text>no</text></a>'
        '<image href="http://example.org/x"/><foreignObject><p>no</p></foreignObject><use href="#board"/>'
        '<rect fill="url(http://example.org/x)" width="3" class="k-card"/><text>&lt;b&gt; yes</text></g>'
    )
    taken_over = (
        "async (markup) => {"
        " const { shapesOf } = await import('./markup.js');"
        " return new XMLSerializer().serializeToString(shapesOf(markup)); }"
    )
    # The console tells of the style that the page's policy does not let in.
    with looking(browser) as look:
        look.go(address)
        found = look.ask(taken_over, markup)
    assert re.sub(r' xmlns="[^"]*"', "", found) == (
        '<g><g><rect width="3" class="k-card"/><text>&lt;b&gt; yes</text></g></g>'
    )


@needs_chromium
@pytest.mark.full
def test_tables_stand_side_by_side_and_one_is_enlarged(browser: Browser) -> None:
    with serving(FIVE) as address, looking(browser) as look:
        look.go(f"{address}#several=1")
        look.until("document.querySelectorAll('.small svg use').length > 50")
        assert look.ask("document.querySelectorAll('.small').length") == 5
        look.page.locator(".small").first.click()
        look.until("location.hash.includes('table=1') && !location.hash.includes('several')")
        look.check_quiet()


@needs_chromium
def test_the_page_as_a_file_needs_no_server(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "game.html"
    assert kiebitz("export", TINY, "-T", "html", "-o", str(file)).status == 0
    with looking(browser) as look:
        look.page.context.set_offline(True)
        look.go(f"{file.as_uri()}#at=4")
        look.at(4)
        look.press("ArrowRight")
        look.at(5)
        assert look.text("#kind") == "recorded · file"
        look.press("/")
        look.page.keyboard.type("ROLLED alice")
        look.press("Enter")
        look.until("document.getElementById('filter-line').hidden")
        look.press("ArrowRight")
        look.says("alice has rolled 6,5", "latest")
        look.press("3")
        look.page.wait_for_selector("#pane-message .dump-row")
        look.check_quiet()


@needs_chromium
@pytest.mark.parametrize(
    ("size", "dark"),
    a_few([(WIDE, False), (PROJECTOR, True), (PHONE, False), (NARROW, True)], {(PHONE, False)}),
)
def test_nothing_is_in_the_way_of_a_reader(
    browser: Browser, address: str, size: tuple[int, int], dark: bool
) -> None:
    with looking(browser, size, dark=dark, axe=True) as look:
        for pane in ("events", "message", "flaws", "streams", "state"):
            look.go(f"{address}#at=132&pane={pane}")
            look.at(132)
            look.until(f"document.querySelectorAll('#pane-{pane} .pane-body > *').length > 0")
            assert serious_findings(look) == []
            assert look.ask("document.documentElement.scrollWidth") <= size[0], pane


@needs_chromium
@pytest.mark.parametrize(("size", "least"), [(PROJECTOR, 0.5), (PHONE, 0.6)])
def test_the_drawing_is_what_one_sees_first(
    browser: Browser, address: str, size: tuple[int, int], least: float
) -> None:
    with looking(browser, size) as look:
        look.go(f"{address}#at=200")
        look.at(200)
        stage = look.page.locator("#stage").bounding_box()
        transport = look.page.locator("#play").bounding_box()
        assert stage is not None
        assert transport is not None
        assert stage["width"] * stage["height"] > least * size[0] * size[1]
        assert transport["y"] + transport["height"] <= size[1]
        look.press("p")
        look.until("getComputedStyle(document.getElementById('panes')).display === 'none'")
        look.press("Escape")
        look.until("getComputedStyle(document.getElementById('panes')).display !== 'none'")


@pytest.fixture
def lesson() -> Iterator[Class]:
    made = Class()
    yield made
    made.close()


@needs_chromium
def test_live_it_follows_stays_where_one_is_and_loses_nothing(
    browser: Browser, lesson: Class, tmp_path: Path
) -> None:
    database = str(tmp_path / "game.db")
    relay = [*KIEBITZ, "relay", "-q", "-m", lesson.mode, "-w", database]
    port = free_port("tcp")
    with running(*relay, ready="listening on"), looking(browser) as look:
        lesson.register("alice")
        until(lambda: bool(rows(Path(database), "SELECT 1 FROM events")), "an event")
        with serving(database, port=port) as address:
            look.go(address)
            look.says("alice is registered", "latest")
            lesson.register("bob")
            look.says("bob is registered", "latest")
            look.says("live", "how")
            look.press("ArrowLeft")
            look.at(1)
            lesson.register("carl")
            look.says("event 1 of 3", "place")
            look.press("End")
            look.says("carl is registered", "latest")
            look.check_quiet()
        look.says("connection lost, trying again", "notice")
        lesson.register("dora")
        with serving(database, port=port):
            look.says("dora is registered", "latest")
            look.until("document.getElementById('notice').textContent === ''")
            events = look.ask(
                "[...document.querySelectorAll('#pane-events .row')].map((row) => Number(row.dataset.key))"
            )
            assert events == [1, 2, 3, 4]
