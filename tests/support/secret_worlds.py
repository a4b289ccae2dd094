"""Recorded sessions with other hidden values on others' connections: dice, cards, tiles, resources."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from imported_databases import database_of
from player_views import numbering, opened, stored

from kiebitz.dissectors.model import Chunk, Direction, Item
from kiebitz.storage.read.recorded_items import RecordedItems


class Hidden(NamedTuple):
    """Values that a message carries to or from one player only.

    Attributes:
        part: Pattern of the messages; its group 1 contains the values.
        value: Pattern of a value in it.
        reveals: Pattern of messages that make the values in them known to a player, anywhere in a game.
        near: Number of a player's messages, before and after, that are searched for such; None: all of the
            game.
        kept: Pattern of anyone's messages whose values stay, as a rule needs them.
    """

    part: bytes
    value: bytes
    reveals: bytes
    near: int | None = None
    kept: bytes | None = None


_RESOURCES = rb'(?<=")(?:Holz|Lehm)(?=")'
_REVEALED = rb'"(?:Ertrag|Kosten|Erfindung|Monopol)"'
HIDDEN = {
    "maexchen": [Hidden(rb"\AROLLED;([^;]*)", rb".+", rb"\AACTUAL DICE")],
    "schafkopf": [
        Hidden(
            rb"\A!MODEL\r?\n![^\n]*\n((?:[^\n]*\n){12})",
            rb"(?:EICHEL|GRAS|HERZ|SCHELLEN)\r?\n[A-Z]+",
            rb"\A!MODEL",
        )
    ],
    "catan": [
        Hidden(rb'\A\s*\{"Statusupdate".*"Siegpunkte":(.)', rb"\d", rb"\Anever"),
        Hidden(rb'\A\s*\{"Statusupdate"(.*)', _RESOURCES, rb"\Anever"),
        Hidden(rb'\A\s*\{"(?:Ertrag|Kosten)"(.*)', _RESOURCES, _REVEALED, 12),
        Hidden(
            rb'\A\s*\{"(?:Statusupdate|Entwicklungskarte gekauft)"(.*)',
            rb'(?<=")(?:Siegpunkt|Erfindung)(?=")',
            rb"\Anever",
        ),
    ],
    "okey": [
        Hidden(
            rb"\A(?:STRT|\+DRAW|PUTT \S+)(.*)",
            rb"\d+:[A-Z]+",
            rb"\A(?:STAT|STRT|\+DRAW)",
            kept=rb"\A\+WINC",
        ),
        # Then, tiles are put that are not held.
        Hidden(rb"\ASTRT(.*)", rb"\d+:[A-Z]+", rb"\A(?:STAT|STRT|\+DRAW)"),
    ],
    "cgml": [
        Hidden(rb'\A\s*<(?:dial [^>]*"cards"|playcard [^>]*"talon")(.*)', rb"(?<=>)[AGRB]..(?=<)", rb"<card>")
    ],
}
"""Values that may be replaced together, by protocol."""


class _Sent(NamedTuple):
    """A message of a connection, with the place of its bytes."""

    stream: int
    direction: Direction
    offset: int
    protocol: str
    game: int | None
    content: tuple[Any, ...]
    data: bytes


class SecretWorlds:
    """A recorded capture, and its versions with values that one player cannot know replaced."""

    def __init__(self, capture: str) -> None:
        self._reader = opened(database_of(capture))
        self.players = self._reader.players()
        rows = self._reader.timeline.connection.execute(
            "SELECT stream_id, direction, offset, length, protocol, game_id, event_id, name, fields"
            " FROM messages JOIN streams ON streams.id = stream_id ORDER BY messages.id"
        )
        whole = _whole_bytes(self.items())
        self._messages: list[_Sent] = []
        latest: int | None = None
        for stream, direction, offset, length, protocol, game, *content in rows:
            # A client's message may belong to no game.
            latest = latest if game is None else game
            data = bytes(whole[stream, direction][offset : offset + length])
            self._messages.append(_Sent(stream, direction, offset, protocol, latest, tuple(content), data))

    def items(self) -> list[Item]:
        """Return the items of the capture, with the results of its dissection removed."""
        items = [*RecordedItems(self._reader.timeline).items()]
        for item in items:
            item.stream.protocol = item.stream.closed_ns = item.stream.close_reason = None
        return items

    def others(self, player: str) -> Iterable[list[Item]]:
        """Yield the items with hidden values of others replaced, of one kind each time."""
        protocols = {message.protocol for message in self._messages}
        for protocol in sorted(protocols & {*HIDDEN}):
            for hidden in HIDDEN[protocol]:
                items = self._replaced(player, hidden)
                if items:
                    yield items

    def _replaced(self, player: str, hidden: Hidden) -> list[Item]:
        """Return the items with each unknown value replaced by the next one that is unknown in its game."""
        own = self._reader.visibility.streams_of(player)
        copies = {message.content for message in self._told(own)}
        found = [
            (at, message, match.start(1) + value.start(), value[0])
            for at, message in enumerate(self._messages)
            if (match := re.search(hidden.part, message.data, re.DOTALL)) is not None
            for value in re.finditer(hidden.value, match[1])
        ]
        values = {value for *_, value in found}
        known_at = self._known(own, hidden)
        items, is_changed = self.items(), False
        whole = _whole_bytes(items)
        for at, message, place, value in found:
            known = known_at(at)
            if message.content in copies or value in known:
                continue
            other = _next(value, values - known)
            is_changed |= other != value
            start = message.offset + place
            whole[message.stream, message.direction][start : start + len(value)] = other
        for item in items if is_changed else ():
            if isinstance(item, Chunk):
                of = whole[item.stream.id, item.direction]
                item.data = bytes(of[item.offset : item.offset + len(item.data)])
        return items if is_changed else []

    def _told(self, own: Collection[int]) -> list[_Sent]:
        """Return the messages of a player; in the public view (none), those with copies for several."""
        if own:
            return [message for message in self._messages if message.stream in own]
        streams: dict[tuple[Any, ...], set[int]] = {}
        for message in self._messages:
            streams.setdefault(message.content, set()).add(message.stream)
        return [message for message in self._messages if len(streams[message.content]) > 1]

    def _known(self, own: Collection[int], hidden: Hidden) -> Callable[[int], set[bytes]]:
        """Return what a player's messages reveal near a message, or in its game, by the message's place."""
        revealing = re.compile(hidden.reveals)
        kept = re.compile(hidden.kept) if hidden.kept is not None else None
        told = {message.content for message in self._told(own)}
        theirs = [
            at for at, one in enumerate(self._messages) if (one.stream in own if own else one.content in told)
        ]

        def values(messages: Iterable[_Sent], telling: re.Pattern[bytes]) -> set[bytes]:
            told = [one.data for one in messages if telling.search(one.data) is not None]
            return {value for data in told for value in re.findall(hidden.value, data)}

        always = values(self._messages, kept) if kept is not None else set()

        @cache
        def in_game(game: int | None) -> set[bytes]:
            return always | values(
                (self._messages[at] for at in theirs if self._messages[at].game == game), revealing
            )

        def near(at: int) -> set[bytes]:
            assert hidden.near is not None
            place = bisect_left(theirs, at)
            around = theirs[max(place - hidden.near, 0) : place + hidden.near]
            return always | values((self._messages[one] for one in around), revealing)

        return near if hidden.near is not None else lambda at: in_game(self._messages[at].game)


def pairs_of(capture: str, folder: Path, viewer: str | None = None) -> Iterator[tuple[str, str, str]]:
    """Yield a viewer, or each player, with databases of two worlds that differ in what it cannot know."""
    worlds = SecretWorlds(capture)
    paths = [folder / world / "game.db" for world in ("first", "second")]
    for path in paths:
        path.parent.mkdir()
    first = stored(paths[0], worlds.items())
    for player in worlds.players if viewer is None else [viewer]:
        for items in worlds.others(player):
            second = stored(paths[1], items)
            if numbering(first) == numbering(second) and full_messages(first) != full_messages(second):
                yield player, first, second


def full_messages(path: str) -> list[tuple[str]]:
    return opened(path).timeline.connection.execute("SELECT fields FROM messages ORDER BY id").fetchall()


def _next(value: bytes, values: Collection[bytes]) -> bytes:
    """Return the following value of the same length; of the last one the first."""
    alike = sorted(one for one in values if len(one) == len(value))
    return alike[(alike.index(value) + 1) % len(alike)]


def _whole_bytes(items: Iterable[Item]) -> dict[tuple[int, Direction], bytearray]:
    """Return the bytes of each direction of a stream, at their offsets."""
    found: dict[tuple[int, Direction], bytearray] = {}
    for item in items:
        if isinstance(item, Chunk):
            whole = found.setdefault((item.stream.id, item.direction), bytearray())
            whole += bytes(max(item.offset - len(whole), 0))
            whole[item.offset : item.offset + len(item.data)] = item.data
    return found
