from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Look, Served, Sight, served
from held_messages import Relay, held_message, holding
from session_factory import Conversation
from strength import a_few

from kiebitz.storage.recording.recorder import Recorder

REFUSED = "status of 409"
"""The browser itself complains of what is refused."""

SIZES = {"wide": (1440, 900), "projector": (1024, 768), "phone": (390, 844)}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = str(tmp_path_factory.mktemp("held") / "game.db")
    recorder = Recorder(path, "relay", "made up", started_ns=0)
    for number, name in enumerate((b"alice", b"bob"), 1):
        talk = Conversation(f"127.0.0.1:{40_000 + number}", number=number)
        recorder.record(talk.says(b"REGISTER;" + name).hears(b"REGISTERED").items)
    recorder.commit()
    yield path
    recorder.close()


@pytest.fixture(scope="module")
def page(database: str) -> Iterator[Served]:
    with served(database) as server:
        yield server


@pytest.fixture
def relay(database: str) -> Iterator[Relay]:
    with holding(database) as made:
        yield made


def opened(look: Look, page: Served, relay: Relay, count: int = 2, **size: int) -> Sight:
    relay.hold(
        *(held_message(number, f"ANNOUNCE;{number},1;token".encode()) for number in range(1, count + 1))
    )
    sight = look(page.at(), **size)
    sight.until(lambda: sight.is_seen("#held-strip"), "it is said that something waits")
    sight.press("h")
    sight.until(lambda: rows(sight) == count, "all are listed")
    keys_act(sight)
    return sight


def keys_act(sight: Sight) -> None:
    """Wait until keys go to the list."""
    sight.until(lambda: sight.tell("document.activeElement.role") == "listbox", "keys act")


def rows(sight: Sight) -> int:
    found: int = sight.tell("document.querySelectorAll('#pane-held [role=option]').length")
    return found


def done(sight: Sight, relay: Relay, *expected: object) -> None:
    sight.until(lambda: relay.engine.done == [expected], f"{expected} is done, not {relay.engine.done}")


def test_it_is_reported_what_waits_and_for_how_long(page: Served, relay: Relay, look: Look) -> None:
    sight = look(page.at())
    sight.until(lambda: sight.is_seen("#tab-held"), "there is a pane")
    assert not sight.is_seen("#held-strip")
    relay.hold(held_message(1, waited_s=3.2), held_message(2, b"SCORE;alice:1", "s2c"))
    sight.until(lambda: "1 more" in sight.text("#held-strip"), "two wait")
    words = sight.text("#held-strip")
    assert "held: ANNOUNCE from alice to the server," in words
    assert "the server waits 0.25 s" in words
    said = "SCORE from the server to alice is held"
    sight.until(lambda: sight.text("#said") == said, "a screen reader is told of it")
    # It ticks.
    sight.until(lambda: sight.text("#held-strip") != words, "its time goes on")
    # A projector has the public view, and a held message is not public.
    sight.press("p")
    sight.until(lambda: sight.is_alone() and not sight.is_seen("#held-strip"), "a projector is without it")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param(["Enter"], ("let go", 1), marks=pytest.mark.full),
        (["ArrowDown", "Enter"], ("let go", 2)),
        pytest.param(["d"], ("drop", 1), marks=pytest.mark.full),
        pytest.param(["g"], ("let all go", 1, 2), marks=pytest.mark.full),
    ],
)
def test_effects_of_a_key(
    keys: list[str], expected: tuple[object, ...], page: Served, relay: Relay, look: Look
) -> None:
    sight = opened(look, page, relay)
    sight.press(*keys)
    done(sight, relay, *expected)
    sight.until(lambda: rows(sight) == 2 - len(expected) + 1, "it is listed no more")


@pytest.mark.full
def test_buttons_for_one_message_and_for_the_whole_relay(page: Served, database: str, look: Look) -> None:
    with holding(database) as relay:
        sight = opened(look, page, relay)
        sight.one("#pane-held [role=option]").nth(1).click()
        sight.one("#pane-held").get_by_role("button", name="Drop").click()
        done(sight, relay, "drop", 2)
        sight.until(lambda: sight.text("#notice") == "ANNOUNCE was dropped", "it is said")
    sight.until(lambda: not sight.is_seen("#tab-held") and not sight.is_seen("#held-strip"), "it is gone")
    assert sight.is_seen("#pane-events")


@pytest.mark.full
def test_a_message_is_edited_field_by_field(page: Served, relay: Relay, look: Look) -> None:
    sight = opened(look, page, relay, 1)
    sight.expect(REFUSED)
    sight.press("e")
    dialog = sight.one("#held-dialog")
    assert dialog.get_by_label("token").input_value() == "token"
    dialog.get_by_label("dice").fill("9,9")
    sight.press("Enter")
    sight.until(lambda: "dice=9,9 does not fit" in sight.text("#held-error-0"), "the grammar says so there")
    assert sight.text("#held-error-1") == ""
    assert dialog.get_by_label("dice").get_attribute("aria-invalid") == "true"
    assert not relay.engine.done
    # Letters that are keys elsewhere.
    dialog.get_by_label("token").fill("gdeh")
    dialog.get_by_label("dice").fill("2,1")
    sight.press("Enter")
    done(sight, relay, "change", 1, b"ANNOUNCE;2,1;gdeh")
    sight.until(lambda: not sight.is_seen("#held-dialog"), "the dialog is left")


@pytest.mark.full
def test_the_sender_is_answered(page: Served, relay: Relay, look: Look) -> None:
    sight = opened(look, page, relay, 1)
    sight.expect(REFUSED)
    sight.press("r")
    dialog = sight.one("#held-dialog")
    assert "REJECTED" in sight.tell(
        "[...document.querySelectorAll('#held-names option')].map((o) => o.value)"
    )
    dialog.get_by_label("As if from the server").fill("REJETED")
    sight.press("Enter")
    sight.until(lambda: "did you mean REJECTED?" in sight.text("#held-form"), "it is said")
    dialog.get_by_label("As if from the server").fill("REJECTED")
    sight.press("Enter")
    done(sight, relay, "answer", 1, b"REJECTED")
    assert rows(sight) == 1


@pytest.mark.full
def test_a_decision_never_applies_to_another_message(page: Served, relay: Relay, look: Look) -> None:
    sight = opened(look, page, relay, 3)
    sight.press("ArrowDown")
    relay.do(lambda: relay.engine.act("drop", 2, ""))
    sight.until(lambda: rows(sight) == 2, "it is gone")
    sight.press("Enter")
    sight.until(lambda: "select a message first" in sight.text("#notice"), "it is said")
    assert relay.engine.done == [("drop", 2)]
    assert sight.tell("document.querySelectorAll('#pane-held [aria-selected=true]').length") == 0


@pytest.mark.full
def test_one_player_s_view_shows_nothing_of_it(page: Served, relay: Relay, look: Look) -> None:
    sight = opened(look, page, relay)
    sight.be(as_="alice")
    sight.until(lambda: not sight.is_seen("#held-strip") and not sight.is_seen("#tab-held"), "it is hidden")
    assert sight.text("#pane-held [role=option]") == ""
    sight.press("h")
    sight.until(lambda: "no relay holds messages here" in sight.text("#notice"), "it is said")


@pytest.mark.full
def test_a_page_that_only_shows(database: str, relay: Relay, look: Look) -> None:
    with served(database, "--read-only") as server:
        sight = opened(look, server, relay)
        assert sight.one("#pane-held").get_by_role("button", name="Drop").is_disabled()
        sight.press("d", "g", "Enter", "e")
        sight.until(lambda: sight.text("#notice") == "this page is read-only", "it is said")
        assert not relay.engine.done
        sight.leave()


@pytest.mark.full
@pytest.mark.parametrize("size", a_few(SIZES, ["phone"]))
def test_it_can_be_read_and_fits(size: str, page: Served, relay: Relay, look: Look) -> None:
    width, height = SIZES[size]
    sight = opened(look, page, relay, 2, width=width, height=height)
    assert sight.overflow() == 0
    assert sight.violations() == []
    sight.press("e")
    sight.until(lambda: sight.is_seen("#held-dialog"), "it can be edited")
    assert sight.overflow() == 0
    assert sight.violations() == []


@pytest.mark.full
def test_peer_messages_are_only_text(page: Served, relay: Relay, look: Look) -> None:
    hostile = '<img src=x onerror="ran()">\x1b\u202e'
    relay.hold(held_message(1, f"REGISTER;{hostile}".encode(), who=hostile))
    sight = look(page.at())
    sight.until(lambda: "<img src=x" in sight.text("#held-strip"), "it waits")
    sight.press("h")
    sight.until(lambda: rows(sight) == 1, "it is listed")
    for key in ("e", "r"):
        keys_act(sight)
        sight.press(key)
        sight.until(lambda: sight.is_seen("#held-dialog"), "a dialog")
        assert sight.tell("document.querySelectorAll('main img, dialog img').length") == 0
        assert "\u202e" not in sight.text("main") + sight.text("#held-dialog")
        sight.press("Escape")
