from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Look, Sight
from held_messages import Relay, held_message, holding
from page_walks import take
from served_pages import Serving, serving
from session_factory import Conversation, recording
from strength import a_few
from walks import deeds_of, walks

SIZES = {"wide": (1440, 900), "projector": (1024, 768), "phone": (390, 844)}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("held") / "game.db"
    talks = [
        Conversation(f"127.0.0.1:4000{number}", number=number).says(b"REGISTER;" + name).hears(b"REGISTERED")
        for number, name in enumerate((b"alice", b"bob"), 1)
    ]
    with recording(path, *talks):
        yield str(path)


@pytest.fixture(scope="module")
def page(database: str) -> Iterator[Serving]:
    with serving(database) as server:
        yield server


@pytest.fixture
def relay(database: str) -> Iterator[Relay]:
    with holding(database) as made:
        yield made


def opened(look: Look, page: Serving, relay: Relay, **size: int) -> Sight:
    relay.hold(held_message(1), held_message(2))
    sight = look(page.at(), **size)
    sight.until(lambda: sight.is_seen("#held-strip"), "it is said that something waits")
    sight.press("h")
    sight.until(lambda: sight.tell("document.activeElement.role") == "listbox", "keys act")
    return sight


WALKS = walks("page.txt", "held")


@pytest.mark.parametrize("title", a_few(WALKS, lambda title: title.endswith("buttons")))
def test_a_walk(title: str, page: Serving, relay: Relay, look: Look) -> None:
    take(WALKS[title], look(page.at()), deeds_of(relay))


@pytest.mark.full
def test_a_page_that_only_shows(database: str, relay: Relay, look: Look) -> None:
    with serving(database, "--read-only") as server:
        sight = opened(look, server, relay)
        assert sight.one("#pane-held").get_by_role("button", name="Drop").is_disabled()
        sight.press("d", "g", "Enter", "e")
        sight.until(lambda: sight.text("#notice") == "this page is read-only", "it is said")
        assert not relay.engine.done
        sight.leave()


@pytest.mark.full
@pytest.mark.parametrize("size", a_few(SIZES, ["phone"]))
def test_it_can_be_read_and_fits(size: str, page: Serving, relay: Relay, look: Look) -> None:
    width, height = SIZES[size]
    sight = opened(look, page, relay, width=width, height=height)
    assert sight.overflow() == 0
    assert sight.violations() == []
    sight.press("e")
    sight.until(lambda: sight.is_seen("#held-dialog"), "it can be edited")
    assert sight.overflow() == 0
    assert sight.violations() == []
