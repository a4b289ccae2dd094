"""The log of copies: what one stream was told is found again on the others, whatever one copy's key is."""

from __future__ import annotations

import pytest

from kiebitz.dissectors.game.broadcast_dedup import LATEST_COPY_NS, REORDERED_NS, BroadcastLog
from kiebitz.dissectors.model import Event

MS = 1_000_000


class Listening:
    """Streams that hear lines, one a millisecond; each line is news, or a copy of one that was."""

    def __init__(self, overtaken_ns: int) -> None:
        self.log: BroadcastLog[Event] = BroadcastLog(doubled=False, overtaken_ns=overtaken_ns)
        self.now = 0
        self.told: list[str] = []
        """The keys of all news."""

    def hear(self, stream: int, *keys: str) -> list[int]:
        """Which news each line tells, counted from 1."""
        return [self._hear(stream, key) for key in keys]

    def _hear(self, stream: int, key: str) -> int:
        self.now += MS
        event = self.log.match_copy(stream, key, self.now)
        if event is None:
            self.told.append(key)
            event = Event(len(self.told), 1, None, len(self.told), self.now, key, None, {}, [])
            self.log.add(stream, key, event)
        return event.id


each_transport = pytest.mark.parametrize("overtaken_ns", [0, REORDERED_NS], ids=["tcp", "udp"])


@each_transport
def test_one_wrong_key_makes_no_news_of_the_copies_after_it(overtaken_ns: int) -> None:
    heard = Listening(overtaken_ns)
    heard.hear(1, "a")
    heard.hear(2, "a")
    heard.hear(1, "b", "c", "d", "e")
    assert heard.hear(2, "b'", "c", "d", "e") == [6, 3, 4, 5]
    assert heard.hear(2, "f") == [7]
    assert heard.hear(1, "f") == [7]


@each_transport
def test_nor_do_some_that_come_again_and_again(overtaken_ns: int) -> None:
    heard = Listening(overtaken_ns)
    first = heard.hear(1, "a", *(f"{kind}{number}" for number in range(20) for kind in "bc"))
    again = heard.hear(2, "a", *(f"{kind}{number}" for number in range(20) for kind in ("b'", "c")))
    assert again[2::2] == first[2::2]


def test_what_a_stream_was_not_told_is_not_held_against_its_news_for_long() -> None:
    heard = Listening(0)
    heard.hear(1, "a")
    heard.hear(2, "a")
    heard.hear(1, "x")
    # Not told to 2; what it hears next is all news.
    assert heard.hear(2, "b", "c", "d", "e", "f", "x") == [3, 4, 5, 6, 7, 8]


def test_what_was_told_long_ago_has_no_copies() -> None:
    heard = Listening(0)
    heard.hear(1, "a")
    heard.hear(2, "a")
    heard.hear(1, "b", "c")
    heard.hear(2, "b'")
    heard.now += LATEST_COPY_NS
    assert heard.hear(2, "c") == [5]


def test_a_stream_that_has_just_come_was_told_nothing_of_before() -> None:
    heard = Listening(0)
    heard.hear(1, "a", "b")
    assert heard.hear(2, "x", "b") == [3, 4]
