from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

import pytest
from command import kiebitz
from imported_databases import database_of
from inspected_captures import CAPTURES
from strength import few_captures

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.model import Event
from kiebitz.storage.read.visibility import Visibility

GAMES = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)
MOST_PLAYERS = 12


class ObservedSession:
    def __init__(self, capture: str) -> None:
        self.timeline = open_session(database_of(capture))
        connection = self.timeline.connection
        self.events = list(self.timeline.events())
        self.protocols = {table.id: table.protocol for table in self.timeline.tables()}
        self.streams: dict[int, set[int]] = defaultdict(set)
        for event, stream in connection.execute(
            "SELECT event_id, stream_id FROM messages WHERE event_id IS NOT NULL"
        ):
            self.streams[event].add(stream)
        self.players = sorted({event.actor for event in self.events if event.actor is not None})

    def beside(self, event: Event, streams: frozenset[int]) -> bool:
        return any(
            (other.table_id, other.ts_ns) == (event.table_id, event.ts_ns)
            and self.streams[other.id] & streams
            for other in self.events
        )

    def in_game(self, event: Event, streams: frozenset[int]) -> list[Event]:
        return [
            other
            for other in self.events
            if (other.table_id, other.game_id) == (event.table_id, event.game_id)
            and other is not event
            and self.streams[other.id] & streams
        ]


def _knows_the_order(told: ObservedSession, event: Event, streams: frozenset[int]) -> bool:
    return any(other.seq < event.seq for other in told.in_game(event, streams))


def _sees_the_stacks(told: ObservedSession, event: Event, streams: frozenset[int]) -> bool:
    return event.data.get("valid") is not False and any(
        other.kind in ("status", "won") and other.seq > event.seq for other in told.in_game(event, streams)
    )


FOLLOWING: Mapping[tuple[str, str], Callable[[ObservedSession, Event, frozenset[int]], bool]] = {
    ("maexchen", "turn"): _knows_the_order,
    ("cgml", "turn"): _knows_the_order,
    ("okey", "drew"): _sees_the_stacks,
    ("okey", "put"): _sees_the_stacks,
}


@pytest.mark.parametrize("capture", few_captures(GAMES))
def test_a_player_is_shown_received_or_inferred_values_only(capture: str) -> None:
    told = ObservedSession(capture)
    visibility = Visibility(told.timeline)
    for player in told.players[:MOST_PLAYERS]:
        streams = visibility.streams_of(player)
        found = visibility.player(player)
        names = {name for claim in found.claims for _, name in claim.names} if found is not None else {player}
        for event in told.events if streams else ():
            shown = visibility.seen(event, player) is not None
            by_message = bool(told.streams[event.id] & streams)
            if shown and not by_message and (event.actor not in names or told.streams[event.id]):
                follows = FOLLOWING.get((told.protocols[event.table_id], event.kind))
                if follows is None:
                    assert not told.streams[event.id], (player, event.id, visibility.sentence(event))
                    assert told.beside(event, streams), (player, event.id, visibility.sentence(event))
                else:
                    assert follows(told, event, streams), (player, event.id, visibility.sentence(event))
            if by_message:
                assert shown, (player, event.id, visibility.sentence(event))


@pytest.mark.parametrize("capture", few_captures(GAMES))
def test_every_client_is_a_player(capture: str) -> None:
    """Each stream with a game has exactly one player."""
    told = ObservedSession(capture)
    visibility = Visibility(told.timeline)
    renamed = {
        name
        for event in told.events
        if event.data.get("before") is not None
        for name in (event.data["before"], event.data["name"])
    }
    of_stream: dict[int, set[str]] = defaultdict(set)
    for player in told.players:
        for stream in visibility.streams_of(player):
            of_stream[stream].add(player)
    for stream, players in of_stream.items():
        assert len(players - renamed) <= 1 or _is_shared(told, stream), (stream, players)
    playing = {
        stream for event in told.events if event.game_id is not None for stream in told.streams[event.id]
    }
    spectators = {stream for stream in playing if stream not in of_stream}
    assert not spectators, spectators


def _is_shared(told: ObservedSession, stream: int) -> bool:
    """Over UDP an address may register again under another name; a CGML server's connection is of several."""
    protocol = told.timeline.connection.execute(
        "SELECT protocol FROM streams WHERE id = ?", (stream,)
    ).fetchone()[0]
    return protocol in ("maexchen", "cgml")


def test_of_a_player_without_a_connection_only_secrets_are_kept_back() -> None:
    """A server's own player has none."""
    told = ObservedSession("schafkopf-1.3-1human-tiny.pcap")
    visibility = Visibility(told.timeline)
    assert visibility.streams_of("[BOT]-0") == frozenset()
    seen = {event.kind for event in told.events if visibility.seen(event, "[BOT]-0") is not None}
    assert "turn" in seen
    assert not seen & {"dealt", "answered", "bid"} - {"dealt"}


def test_a_player_is_known_by_every_name_they_took() -> None:
    told = ObservedSession("okey-head-chat.pcap.gz")
    visibility = Visibility(told.timeline)
    assert visibility.streams_of("pascal") == visibility.streams_of('Pasqual "P" vF') != frozenset()


@pytest.mark.full
def test_a_theft_is_seen_by_two_players_only() -> None:
    game = database_of("catan-niedlichepixel-game2-3p.pcap.gz")
    stolen = {
        viewer: [
            event["data"]["resources"]
            for event in kiebitz("events", game, "--as", viewer, "--json", "-Y", 'kind == "paid"').json
            if event["data"]["why"] == "robber"
        ]
        for viewer in ("BlueBro", "RedBro", "OrangeBro")
    }
    hidden = {viewer: sum(isinstance(counts, int) for counts in seen) for viewer, seen in stolen.items()}
    # Each theft is hidden from the third.
    assert sum(hidden.values()) == len(stolen["BlueBro"]) > 15
    assert all(hidden.values())
