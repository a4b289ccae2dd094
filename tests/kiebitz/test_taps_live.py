"""A listing, the terminal and the browser follow what is collected."""

from __future__ import annotations

import pytest
from processes_and_rows import PATIENCE_S, free_port, rows, until
from served_pages import Serving
from taps_and_nats import NEEDS_NATS, Lab, Program, count, place_at, until_recorded
from terminals import OnTerminal

pytestmark = [pytest.mark.full, NEEDS_NATS]


def test_a_listing_follows(lab: Lab) -> None:
    lab.give(0, 2)
    until(lambda: count(lab.database, "events") > 0, "something has happened")
    with Program(lab.folder / "follower.log", "messages", "-F", str(lab.database)) as follower:
        follower.until_says("REGISTER")
        before = len(follower.said.splitlines())
        lab.give(1, 2)
        until(lambda: len(follower.said.splitlines()) > before, "the second half is shown")


def test_the_page_follows(lab: Lab) -> None:
    """Each event once, in its order, despite the server's restart."""
    database = lab.folder / "served.db"
    place, port = place_at(lab.way.port), free_port("tcp")
    page = Serving(
        place, "-q", "-w", str(database), "--serve", f"127.0.0.1:{port}", command="collect"
    ).ready()
    try:
        lab.give(0, 2)
        with page.live(after=0) as stream:
            seen = [event["id"] for event in stream.events(5, PATIENCE_S)]
            lab.nats.kill()
            lab.give(1, 2)
            lab.nats.start()
            for tap in lab.taps:
                tap.finish()
            until_recorded(database, sum(count(tap.database, "chunks") for tap in lab.taps))
            seen += [event["id"] for event in stream.events(count(database, "events") - len(seen))]
            assert seen == [number for (number,) in rows(database, "SELECT id FROM events ORDER BY id")]
        assert page.end() == 0, page.err
    finally:
        page.kill()


def test_the_terminal_follows(lab: Lab) -> None:
    database = lab.folder / "watched.db"
    arguments = ("collect", place_at(lab.way.port), "-w", str(database), "--watch")
    with OnTerminal(*arguments, columns=120, rows=40) as terminal:
        terminal.read_until(lambda written: b"no game yet" in written)
        lab.give(0, 1)
        terminal.read_until(lambda written: "Mäxchen".encode() in written)
        terminal.type(b"q")
        assert terminal.ended() == 0, terminal.lines
    assert "receiving from the tap tap-0" in "\n".join(terminal.lines)
