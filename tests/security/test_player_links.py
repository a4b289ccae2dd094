"""Players' links and `--as`: no answer holds what only connections of others carried.

What a player may see is worked out here from the recorded bytes alone: a text, a token, an address or a name
that occurs in messages of other connections, and nowhere on the player's own, is a secret. Only the names of
those at the player's own table are none. Every address of the server is asked for every player of a session,
as are the file and the commands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import Any

import msgspec
import pytest
from catan_play import Server as CatanServer
from catan_wire import items
from command import kiebitz
from imported_databases import database_of
from inspected_captures import CAPTURES
from player_views import COMMANDS, asked_of, exported_page, opened
from processes_and_rows import until
from served_pages import QUICK_S, serving
from session_factory import START_NS, Conversation, record
from strength import a_few, times

from kiebitz.cli.web.access import Keys
from kiebitz.cli.web.event_stream import encode_events
from kiebitz.cli.web.grants import Grant
from kiebitz.cli.web.lists import messages, stream_list
from kiebitz.cli.web.reader import NotThereError, Reader, ServedSession
from kiebitz.cli.web.request_params import RowRange
from kiebitz.dissectors.model import Chunk, End, Item
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.conditions import compile_optional_filter
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.recording.recorder import Recorder
from kiebitz.storage.recording.rotation import RotatingRecorder

GAMES = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)

MOST_PLAYERS = times(6, 3)
MOST_MOMENTS = times(8, 3)
LEAST_SECRET = 3


# Made sessions: names that change, are reused, stolen and come again.


class Catan(CatanServer):
    """A Catan server at which players take names as they like."""

    def __init__(self, *names: str) -> None:
        self.called: dict[int, str] = {}
        super().__init__(*names)

    def spieler(self, player: int, is_open: bool = True) -> dict[str, Any]:
        return {**super().spieler(player, is_open), "Name": self.called.get(player, f"Spieler {player}")}

    def name(self, player: int, name: str, colour: str) -> None:
        with self.asked(player, "Spieler", {"Name": name, "Farbe": colour}):
            self.called[player], self.colours[player] = name, colour

    def ready(self, player: int, colour: str | None = None) -> None:
        with self.asked(player, "Spiel starten", {}):
            self.statuses[player] = "Wartet auf Spielbeginn"

    def play(self) -> None:
        """Begin a game, in which each player gets something that the others do not see."""
        self.start(
            (1, ((0, 0), (1, 0), (0, 1)), ((0, 0), (1, 0))),
            (2, ((-1, 0), (-1, 1), (-2, 1)), ((-1, 0), (-1, 1))),
            (3, ((0, -1), (1, -1), (1, -2)), ((0, -1), (1, -1))),
        )
        self.roll(1, (6, 2))
        self.end_turn(1)
        self.gain(2, {"Erz": 3}, shown_to=[2])
        self.gain(1, {"Holz": 1}, shown_to=[1])
        self.update()

    def items(self) -> list[Item]:
        found: list[Item] = []
        for item in items(self.steps):
            if isinstance(item, (Chunk, End)):
                item.ts_ns += START_NS
                item.stream.opened_ns = START_NS
                found.append(item)
        return found


def catan(first: str) -> Catan:
    """Return a server with mal, who has taken the first name, ali and bob."""
    server = Catan("mal")
    server.name(1, first, "Rot")
    server.join("ali")
    server.name(2, "alice", "Blau")
    server.join("bob")
    server.name(3, "bob", "Weiß")
    return server


def reused() -> list[Item]:
    """Mallory takes the name that alice had by default."""
    server = catan("mallory")
    server.name(1, "Spieler 2", "Rot")
    server.play()
    return server.items()


def squatted() -> list[Item]:
    """Mallory is called alice before alice comes, and then mallory again."""
    server = catan("alice")
    server.name(1, "mallory", "Rot")
    server.play()
    return server.items()


def impersonated() -> list[Item]:
    """Alice is gone, and Mallory comes with her name."""
    server = catan("mallory")
    server.play()
    server.hang_up("ali")
    server.join("eve", 4)
    server.name(4, "alice", "Orange")
    return server.items()


def dice(*talks: Conversation) -> list[Item]:
    """Mäxchen conversations, in the order of time."""
    return sorted((item for talk in talks for item in talk.items), key=lambda item: item.ts_ns)


def _later(talk: Conversation, seconds: float) -> Conversation:
    return talk.waits_until(START_NS + int(seconds * 1e9))


def returned() -> list[Item]:
    """Return a session in which alice returns from her own address, and eve from another with her name."""
    bob = Conversation("10.0.0.2:4000", number=1).says(b"REGISTER;bob").hears(b"REGISTERED")
    alice = Conversation("10.0.0.1:4000", number=2).says(b"REGISTER;alice").hears(b"REGISTERED")
    alice.hears(b"ROUND STARTING;t0ken-alice-1").says(b"JOIN;t0ken-alice-1").ends()
    again = _later(Conversation("10.0.0.1:4001", number=3), 10).says(b"REGISTER;alice").hears(b"REGISTERED")
    again.hears(b"ROUND STARTING;t0ken-alice-2").says(b"JOIN;t0ken-alice-2").ends()
    eve = _later(Conversation("10.0.0.9:4000", number=4), 20).says(b"REGISTER;alice").hears(b"REGISTERED")
    eve.hears(b"ROUND STARTING;t0ken-eve").says(b"JOIN;t0ken-eve")
    return dice(bob, alice, again, eve)


def rejected() -> list[Item]:
    """Return a session in which eve asks for alice's name, and is rejected."""
    alice = Conversation("10.0.0.1:4000", number=1).says(b"REGISTER;alice").hears(b"REGISTERED")
    alice.hears(b"ROUND STARTING;t0ken-alice").says(b"JOIN;t0ken-alice")
    eve = _later(Conversation("10.0.0.1:5000", number=2), 1).says(b"REGISTER;alice").hears(b"REJECTED")
    eve.says(b"REGISTER;eve").hears(b"REGISTERED").hears(b"ROUND STARTING;t0ken-eve")
    return dice(alice, eve)


def at_two_tables() -> list[Item]:
    one = Conversation("10.0.0.1:4000", number=1).says(b"REGISTER;alice").hears(b"REGISTERED")
    one.hears(b"ROUND STARTING;t0ken-one").hears(b"SCORE;alice:1,Erster:2")
    other = Conversation("10.0.0.2:4000", server="127.0.0.1:9001", number=2)
    _later(other, 1).says(b"REGISTER;alice").hears(b"REGISTERED")
    other.hears(b"ROUND STARTING;t0ken-other").hears(b"SCORE;alice:1,Zweiter:2")
    return dice(one, other)


MADE: dict[str, Callable[[], list[Item]]] = {
    made.__name__: made for made in (reused, squatted, impersonated, returned, rejected, at_two_tables)
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    known: dict[str, str] = {}
    folder = tmp_path_factory.mktemp("made")

    def path(name: str) -> str:
        if name not in known:
            known[name] = record(folder / f"{name}.db", MADE[name]())
        return known[name]

    return path


# What others' connections alone carried.


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)


class Truth:
    """A session's messages, and what each connection carried."""

    def __init__(self, timeline: Timeline) -> None:
        self.streams: dict[int, str] = {}
        self.secrets: dict[int, set[str]] = {}
        self.names: dict[int, set[str]] = {}
        self.servers = dict(timeline.connection.execute("SELECT id, server FROM streams"))
        self.clients: dict[int, str] = {}
        carried: dict[int, list[str]] = {}
        for stream, client, protocol in timeline.connection.execute(
            "SELECT id, client, protocol FROM streams"
        ):
            self.clients[stream] = client
            carried[stream] = [client]
            self.secrets[stream] = {client}
            self.names[stream] = set()
            dissector = dissector_of(protocol) if protocol is not None else None
            for direction, name, stored_fields in timeline.connection.execute(
                "SELECT direction, name, fields FROM messages WHERE stream_id = ?", (stream,)
            ):
                fields = json.loads(stored_fields)
                carried[stream] += texts(fields)
                row = dissector.grammar.row_of(name, direction, fields) if dissector is not None else None
                if row is not None and dissector is not None:
                    free = {field.name for field in row.fields if field.type.is_free_text}
                    named = row.identifiers(fields)
                    self.names[stream].update(str(value) for handle, value in named if handle.of_player)
                    found = [str(value) for handle, value in named if not handle.of_player]
                    found += texts([value for key, value in fields.items() if key in free])
                    self.secrets[stream].update(found)
            for (data,) in timeline.connection.execute(
                "SELECT data FROM chunks WHERE stream_id = ? AND data IS NOT NULL", (stream,)
            ):
                carried[stream].append(bytes(data).decode(errors="replace"))
        self.streams = {stream: "\n".join(parts) for stream, parts in carried.items()}

    def unknown_to(self, streams: Set[int]) -> list[str]:
        own = "\n".join(self.streams[stream] for stream in streams)
        here = {self.servers[stream] for stream in streams}
        others = {
            secret
            for stream, server in self.servers.items()
            if stream not in streams
            for secret in self.secrets[stream] | (self.names[stream] if server not in here else set())
        }
        others -= {
            name for stream, server in self.servers.items() if server in here for name in self.names[stream]
        }
        return sorted(
            secret
            for secret in others
            if len(secret) >= LEAST_SECRET and not secret.isdecimal() and secret not in own
        )


def leaked(answer: str, secrets: list[str]) -> str | None:
    return next(
        (
            secret
            for secret in secrets
            if secret in answer and re.search(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", answer)
        ),
        None,
    )


def readable(body: Any) -> str:
    if isinstance(body, str):
        return body
    if isinstance(body, bytes):
        return body.decode()
    return "\n".join(texts(msgspec.to_builtins(body)))


def check(path: str, connections: dict[str, set[int]] | None = None) -> int:
    """Ask everything for every player of a session; the number of answers.

    The players' `connections` are given where they do not follow from one name each.
    """
    reader = opened(path)
    truth = Truth(reader.timeline)
    source = reader.timeline.session.source
    seats = reader.player_grants()
    asked = 0
    for reach in seats[:: max(len(seats) // MOST_PLAYERS, 1)]:
        label = reader.label(reach)
        assert label is not None
        streams = reader.visibility.streams_of(label) if connections is None else connections[label]
        secrets = truth.unknown_to(streams)
        own = {(stream.server, stream.protocol) for stream in stream_list(reader, label).streams}
        tables = {table.id for table in reader.timeline.tables() if (table.server, table.protocol) in own}
        for question, body in asked_of(reader, reach, secrets, MOST_MOMENTS):
            # A filter is in the request, but not in the answer.
            answer = readable(body)
            found = leaked(answer, secrets)
            assert found is None, (label, question, found, answer[:2000])
            assert source not in answer.split("\n"), question
            number = re.search(r"'table': '?(\d+)", question)
            if number is not None and int(number.group(1)) not in tables:
                assert answer.startswith("there is no table"), question
            asked += 1
        # Bytes of messages are the player's own; a fragment is markup.
        found = leaked("\n".join(texts(json.loads(exported_page(opened(path), label)))), secrets)
        assert found is None, (label, "html", found)
        for command, *options in COMMANDS:
            found = leaked(kiebitz(command, path, *options, "--as", label).out, secrets)
            assert found is None, (label, command, found)
    return asked


QUICK = {"schafkopf-1.3-badcard.pcap"}
"""The capture of the ordinary run."""


@pytest.mark.parametrize("capture", a_few(GAMES, QUICK.__contains__))
def test_no_answer_has_hidden_values(capture: str) -> None:
    check(database_of(capture))


# Reused names: a name's connections, and a name that is no longer used.

OWN: list[tuple[str, dict[str, set[int]]]] = [
    ("reused", {"Spieler 2": {1}, "alice": {2}, "bob": {3}, "mallory": {1}, "Spieler 3": {3}}),
    ("squatted", {"mallory": {1}, "alice": {2}, "bob": {3}, "alice (2)": {2}}),
    # A name proves nothing where the server asks for no more.
    ("impersonated", {"mallory": {1}, "alice": {2}, "bob": {3}, "alice (4)": {4}}),
    # Here the server knows a player by the address.
    ("returned", {"bob": {1}, "alice": {2, 3}, "alice (2)": {4}}),
    ("rejected", {"alice": {1}, "eve": {2}}),
    ("at_two_tables", {"alice": {1}, "alice (2)": {2}}),
]


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "streams"),
    a_few(OWN, lambda row: row[0] == "impersonated", lambda row: row[0]),
)
def test_names_that_change_hands_give_nothing_away(
    name: str, streams: dict[str, set[int]], made: Callable[[str], str]
) -> None:
    visibility = opened(made(name)).visibility
    assert {label: set(visibility.streams_of(label)) for label in streams} == streams
    assert {*visibility.labels()} <= streams.keys()
    assert check(made(name), streams) > 20


@pytest.mark.full
def test_a_link_stays_with_its_connection(tmp_path: Path) -> None:
    """A link to a name does not apply to a later player of that name."""
    path = tmp_path / "game.db"
    found = squatted()
    begun = next(place for place, item in enumerate(found) if item.stream.id == 2)
    recorder = Recorder(str(path), "relay", "made up", started_ns=START_NS)
    recorder.record(found[:begun])
    recorder.commit()
    reader = opened(str(path))
    (old,) = reader.player_grants()
    assert (old.player, old.stream) == ("alice", 1)
    for item in found[begun:]:
        recorder.record([item])
        recorder.commit()
        reader.look()
        label = reader.label(old)
        assert label is not None
        assert reader.visibility.streams_of(label) == {1}
        (upto,) = reader.timeline.connection.execute("SELECT max(id) FROM events").fetchone()
        news, _ = encode_events(reader, (old, None), 0, upto, 0, {})
        assert b'{"Erz":3}' not in news
    recorder.close()
    assert label == "mallory"
    links = {reach.player: reach for reach in reader.player_grants()}
    assert reader.visibility.streams_of("alice") == {2}
    assert (links["alice"].session, links["alice"].stream) == (1, 2)
    assert reader.label(old) == "mallory"
    keys = Keys()
    assert keys.grant(keys.player(old)) == old
    assert keys.player(old) != keys.player(links["alice"])


def test_a_link_goes_on_where_the_server_recognises_the_player(tmp_path: Path) -> None:
    """In Mäxchen, the server refuses a name that another address has."""
    path = tmp_path / "game.db"
    found = returned()
    begun = next(place for place, item in enumerate(found) if item.stream.id == 3)
    recorder = Recorder(str(path), "relay", "made up", started_ns=START_NS)
    recorder.record(found[:begun])
    recorder.commit()
    reader = opened(str(path))
    link = next(grant for grant in reader.player_grants() if grant.player == "alice")
    recorder.record(found[begun:])
    recorder.close()
    reader.look()
    label = reader.label(link)
    assert label == "alice"
    assert link in reader.player_grants()
    rows = reader.rows(label, compile_optional_filter('msg == "ROUND STARTING"'))
    seen = messages(reader, None, rows, RowRange(100, after=0)).messages
    assert [row.fields["token"] for row in seen] == ["t0ken-alice-1", "t0ken-alice-2"]


def test_a_link_continues_in_the_next_database(tmp_path: Path) -> None:
    """The names of players are in the database before; a new one has their streams."""
    found = squatted()
    recorder = RotatingRecorder(str(tmp_path / "one.db"), "relay", "made up", started_ns=START_NS)
    half = len(found) - 8
    recorder.record(found[:half])
    recorder.commit()
    served = ServedSession(1, str(tmp_path / "one.db"), 1, "game.db")
    reader = Reader(served)
    links = {reach.player: reach for reach in reader.player_grants()}
    board = reader.visibility.state("alice", 1, reader.timeline.last_seq(1))
    rest = recorder.record_until_settled(found[half:])
    recorder.continue_in(str(tmp_path / "two.db"))
    recorder.record(rest)
    recorder.close()
    served.path, served.session_id = recorder.path, recorder.session_id
    reader.look()
    assert {reach.player: reach for reach in reader.player_grants()} == links
    first = reader.timeline.first_seq(1)
    (game,) = reader.visibility.state("alice", 1, first)["games"].values()
    assert game["private"].keys() <= {"alice"}
    assert game["board"] == next(iter(board["games"].values()))["board"]
    reader.close()


def test_a_link_of_another_session_opens_nothing(made: Callable[[str], str]) -> None:
    reader = opened(made("reused"))
    (alice,) = (reach for reach in reader.player_grants() if reach.player == "alice")
    assert reader.label(alice) == "alice"
    others = [
        # With kept keys, the session of that number may be another one after a restart.
        msgspec.structs.replace(alice, opened_ns=alice.opened_ns + 1),
        msgspec.structs.replace(alice, session=2),
        msgspec.structs.replace(alice, stream=9),
    ]
    for reach in (*others, Grant("nobody", 0, 0)):
        with pytest.raises(NotThereError, match="there is no player"):
            reader.label(reach)


@pytest.mark.full
def test_the_server_asks_for_the_key_of_a_connection(made: Callable[[str], str]) -> None:
    """By the real command: the link of a former name of alice shows none of her cards."""
    with serving(made("reused"), made("at_two_tables"), "--host", "127.0.0.1", "--player-links") as server:
        names = {"alice", "bob", "Spieler 2", "alice (session 2)", "alice (2)"}
        until(lambda: names <= server.links().keys(), "there are links", QUICK_S)
        links = server.links()
        mallory = links["Spieler 2"]
        assert [row["id"] for row in server.well("api/streams", key=mallory)["streams"]] == [1]
        wanted: dict[str, str | int | None] = {"filter": 'msg == "Ertrag"', "limit": 1000}
        own = server.get("api/messages", None, "GET", key=mallory, **wanted).body
        assert b'"Erz":3' not in own
        assert b'"Erz":3' in server.get("api/messages", None, "GET", key=links["alice"], **wanted).body
        for key, number in ((links["alice (session 2)"], 1), (links["alice (2)"], 2)):
            (table,) = server.well("api/tables", key=key)["tables"]
            assert table["table"] == number
            (session,) = server.well("api/sessions", key=key)["sessions"]
            assert (session["number"], session["source"]) == (2, None)
            other = server.get(f"api/tables/{3 - number}/state", None, "GET", key=key)
            assert (other.status, other.sentence) == (404, f"there is no table {3 - number} in this session")


def test_a_player_s_state_follows_from_observed_events(made: Callable[[str], str]) -> None:
    """After the end of its connection nothing changes for it, and nothing of before is there."""
    visibility = opened(made("impersonated")).visibility
    table = 1
    last = visibility.timeline.last_seq(table)
    after = visibility.state("alice (4)", table, last)
    assert "private" not in json.dumps(after)
    alice = visibility.state("alice", table, last)
    (game,) = alice["games"].values()
    assert game["private"]["alice"]["resources"]["Erz"] == 3
    assert "alice (4)" not in alice["players"]
    # Asked for in any order, it is the same.
    every = [visibility.state("alice", table, seq) for seq in range(last + 1)]
    for seq in [*range(last, -1, -3), last]:
        assert visibility.state("alice", table, seq) == every[seq]
        assert visibility.shared_state("alice", table, seq) == every[seq]
