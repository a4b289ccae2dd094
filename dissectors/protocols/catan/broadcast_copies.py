"""Recognition of broadcast copies in Catan, in which each player's copy hides the others' cards."""

from __future__ import annotations

from collections.abc import Hashable

from kiebitz.dissectors.game.broadcast_dedup import text_key
from kiebitz.dissectors.game.observation_merge import PartialView
from kiebitz.dissectors.inspection.memo import BoundedCache
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.catan.ledger import plain, total

MAX_COPY_DELAY_NS = 250_000_000
"""Maximum delay between copies: some servers use a thread per client, which may reorder them."""

_COMPARED = 200
"""Number of characters compared of a text."""


class RefusalKey:
    """The key of a refusal: its text and the stream of the request, None if unknown.

    Two are equal if they may be copies of each other.
    """

    __slots__ = ("asker", "text")

    def __init__(self, text: str, asker: int | None) -> None:
        self.text = text[:_COMPARED]
        self.asker = asker

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RefusalKey)
            and self.text == other.text
            and (self.asker is None or other.asker is None or self.asker == other.asker)
        )

    def __hash__(self) -> int:
        return hash(self.text)


_MAX_VERSIONS = 256
_MAX_REMEMBERED_LENGTH = 500
"""Maximum number of cached views, and maximum length of their messages in characters."""


class PartialViews:
    """A cache of the recent messages' partial views, as most messages are copies of earlier ones."""

    def __init__(self) -> None:
        self._lately: BoundedCache[tuple[str, str], PartialView] = BoundedCache(
            _MAX_VERSIONS, _MAX_REMEMBERED_LENGTH
        )

    def of(self, message: Message) -> PartialView:
        """Return the partial view that a copy of a broadcast shows."""
        key = (message.name, message.fields_json)
        found = self._lately.get(key)
        if found is None:
            found = _partial_view(message)
            # A view that hides something is completed by other copies, so it belongs to one observation.
            if found.open is not None:
                self._lately.keep(key, found, len(message.fields_json))
        return found


def _partial_view(message: Message) -> PartialView:
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
            player.get("Längste Handelsstraße"),
            player.get("Größte Rittermacht"),
            None if resources is None else total(resources),
        )
        # A player's own points include hidden cards; on some servers, so do the player's own cards.
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
    # Some servers send each player chat messages about their own cards, often with the same words.
    to_one = name == "Chatnachricht" and "Absender" not in fields
    # Its JSON has the names in a fixed order and spelling.
    return PartialView((name, text_key(message.fields_json)), (), to_one)


def _comparable(counts: dict[str, int] | None) -> Hashable:
    return None if counts is None else frozenset(plain(counts).items())
