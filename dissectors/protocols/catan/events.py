"""The kinds of events of a Catan table, with their fields and sentences."""

from __future__ import annotations

from kiebitz.dissectors.grammar.field_type import IdentifierKinds, KeysOf
from kiebitz.dissectors.grammar.grammar import EventKind
from kiebitz.dissectors.protocols.catan.identifiers import NAME, PLAYER, TRADE

EVENTS = (
    EventKind(
        "joined",
        ("player", "name"),
        "{name} joins",
        reported_by=("Willkommen",),
        identifies=True,
        # The server then sends the list of players to the newcomer.
        reveals=("server", "players"),
    ),
    EventKind("configured", ("player", "name", "colour", "before"), "{name} plays {colour}"),
    EventKind("ready", ("player", "name"), "{name} is ready"),
    EventKind("started", ("map",), "the game begins"),
    EventKind("rolled", ("player", "name", "dice"), "{name} rolls {dice}"),
    EventKind("gained", ("player", "name", "resources", "why"), "{name} gains {resources} ({why})"),
    EventKind("paid", ("player", "name", "resources", "why"), "{name} pays {resources} ({why})"),
    EventKind("discarded", ("player", "name", "resources"), "{name} discards {resources}"),
    EventKind(
        "robber", ("player", "name", "to", "from_player", "from_name"), "{name} moves the robber to {to}"
    ),
    EventKind("built", ("player", "name", "type", "place"), "{name} builds {type} at {place}"),
    EventKind("bought_card", ("player", "name", "card"), "{name} buys a development card: {card}"),
    EventKind(
        "played_card",
        ("player", "name", "card", "to", "from_player", "roads", "resource", "resources"),
        "{name} plays {card}",
    ),
    EventKind(
        "trade_offered",
        ("player", "name", "trade", "offer", "demand"),
        "{name} offers {offer} for {demand} (trade {trade})",
    ),
    EventKind("trade_accepted", ("player", "name", "trade"), "{name} accepts trade {trade}"),
    EventKind("trade_declined", ("player", "name", "trade"), "{name} rejects trade {trade}"),
    EventKind(
        "trade_done",
        ("player", "name", "partner", "partner_name", "trade"),
        "{name} and {partner_name} trade (trade {trade})",
    ),
    EventKind("trade_cancelled", ("player", "name", "trade"), "{name} withdraws from trade {trade}"),
    EventKind(
        "sea_trade", ("player", "name", "paid", "gained"), "{name} trades {paid} overseas for {gained}"
    ),
    EventKind("longest_road", ("player", "name"), "longest road: {name}"),
    EventKind("largest_army", ("player", "name"), "largest army: {name}"),
    EventKind("status", ("player", "name", "status", "points"), "{name}: {status}"),
    EventKind("chat", ("from", "name", "text"), "{name}: {text}", directed=True),
    EventKind("refused", ("player", "name", "what", "why"), "{name} is refused {what}: {why}"),
    EventKind("ended", ("winner", "name", "points"), "the game is over; {name} wins"),
    EventKind("left", ("player", "name", "reason"), "{name} is gone: {reason}", ending="reason"),
)

# Kinds of identifiers in the events' data and in the state.
DATA_IDENTIFIERS: IdentifierKinds = {
    "actor": NAME,
    "player": PLAYER,
    "name": NAME,
    "before": NAME,
    "from_player": PLAYER,
    "from_name": NAME,
    "partner": PLAYER,
    "partner_name": NAME,
    "from": PLAYER,
    "winner": PLAYER,
    "points": KeysOf(PLAYER),
    "Eigentümer": PLAYER,
    "trade": TRADE,
}
STATE_IDENTIFIERS: IdentifierKinds = {
    "players": KeysOf(PLAYER),
    "id": PLAYER,
    "name": NAME,
    "private": KeysOf(NAME),
    "turn": PLAYER,
    "owner": PLAYER,
    "player": PLAYER,
    "accepted": PLAYER,
    "winner": PLAYER,
    "longest_road": PLAYER,
    "largest_army": PLAYER,
    "trades": KeysOf(TRADE),
}
ALIASES = {
    "player": "name",
    "from_player": "from_name",
    "partner": "partner_name",
    "from": "name",
    "winner": "name",
}
