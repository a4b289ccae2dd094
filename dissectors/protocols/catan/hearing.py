"""What makes Catan's messages copies of each other: each player's version hides the others' cards."""

from __future__ import annotations

from collections.abc import Hashable

from kiebitz.dissectors.game.broadcast_dedup import text_key
from kiebitz.dissectors.game.observation_merge import PartialView
from kiebitz.dissectors.inspection.memo import BoundedCache
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.catan.hand import plain, total
from kiebitz.dissectors.protocols.catan.words import GRÖSSTE_RITTERMACHT, LÄNGSTE_HANDELSSTRASSE

OVERTAKEN_NS = 250_000_000
"""Some servers tell each client in a thread of its own, not always in the same order."""

_COMPARED = 200
"""Texts that are the same for so many characters are taken for the same."""


class Refusal:
    """A refusal, and on which stream was asked; None if that is not known. Equal if both can be the same."""

    __slots__ = ("asker", "text")

    def __init__(self, text: str, asker: int | None) -> None:
        self.text = text[:_COMPARED]
        self.asker = asker

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Refusal)
            and self.text == other.text
            and (self.asker is None or other.asker is None or self.asker == other.asker)
        )

    def __hash__(self) -> int:
        return hash(self.text)


_MAX_VERSIONS = 256
_MAX_REMEMBERED_LENGTH = 500
"""So many versions are remembered, of messages with so many characters at the most."""


class Versions:
    """The versions of the messages that came lately: most of what is told was told to another before."""

    def __init__(self) -> None:
        self._lately: BoundedCache[tuple[str, str], PartialView] = BoundedCache(
            _MAX_VERSIONS, _MAX_REMEMBERED_LENGTH
        )

    def of(self, message: Message) -> PartialView:
        """What a copy of a broadcast says."""
        key = (message.name, message.fields_json)
        found = self._lately.get(key)
        if found is None:
            found = _version_of(message)
            # One that hides something will be told what that is, and belongs to one observation.
            if found.open is not None:
                self._lately.keep(key, found, len(message.fields_json))
        return found


def _version_of(message: Message) -> PartialView:
    name, fields = message.name, message.fields
    if name == "Statusupdate":
        player = fields["Spieler"]
        resources, cards = player.get("Rohstoffe"), player.get("Entwicklungskarten")
        public = (
            name,
            player["id"],
            player.get("Status"),
            (player.get("Name") or "")[:_COMPARED],
            player.get("Farbe"),
            player.get("Rittermacht"),
            player.get(LÄNGSTE_HANDELSSTRASSE),
            player.get(GRÖSSTE_RITTERMACHT),
            None if resources is None else total(resources),
        )
        # His own points have the cards that others are not shown, and so have, with some servers, his cards.
        hides = isinstance(resources, int) or isinstance(cards, int)
        return PartialView(public, None if hides else (_comparable(resources), _comparable(cards)))
    resources = fields.get("Rohstoffe")
    if resources is not None:
        is_open = not isinstance(resources, int)
        return PartialView(
            (name, fields["Spieler"], total(resources)), _comparable(resources) if is_open else None
        )
    if name == "Entwicklungskarte gekauft":
        card = fields.get("Entwicklungskarte", 1)
        return PartialView((name, fields["Spieler"]), None if card == 1 else card)
    # Some servers chat with each player about what he alone has got, again and again in the same words.
    to_one = name == "Chatnachricht" and "Absender" not in fields
    # Its text has its names in order, and the same words for the same thing.
    return PartialView((name, text_key(message.fields_json)), (), to_one)


def _comparable(counts: dict[str, int] | None) -> Hashable:
    return None if counts is None else frozenset(plain(counts).items())
