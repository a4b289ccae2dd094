"""Players' links and `--as`: no answer holds what only connections of others carried.

What a player may see is worked out here from the recorded bytes alone: a text, a token, an address or a name
that stands in messages of other connections, and nowhere on the player's own, is a secret. Only the names of
those at the player's own table are none. Every address of the server is asked for every player of a session,
as are the file and the commands.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from catan_play import Server as CatanServer
from catan_wire import Step, items
from command import kiebitz
from made_sessions import START_NS, Conversation, record
from recorded import CAPTURES
from serving import serving
from stored import stored
from strength import few_captures, times

from kiebitz.cli.drawings.sheet import SIZES
from kiebitz.cli.web.access import Keys, Reach
from kiebitz.cli.web.addresses import ADDRESSES, Address, session_info
from kiebitz.cli.web.asked import Asked
from kiebitz.cli.web.feed import _tell_on
from kiebitz.cli.web.one_file import write_html
from kiebitz.cli.web.reader import NotThereError, Reader, Served
from kiebitz.dissectors.records import Item
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.hearers import Hearers
from kiebitz.storage.timeline import Timeline, sessions

GAMES = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)

MOST_PLAYERS = times(12, 4)
MOST_MOMENTS = times(20, 4)
LEAST_SECRET = 3
"""Shorter texts stand in sentences by chance."""


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
        self.gain(2, {"Erz": 3}, shown_to=[2])
        self.gain(1, {"Holz": 1}, shown_to=[1])
        self.update()

    def items(self) -> list[Item]:
        found = [item for item in items(step for step in self.steps if isinstance(step, Step))]
        for item in found:
            item.ts_ns += START_NS  # type: ignore[union-attr]
        for stream in {id(item.stream): item.stream for item in found}.values():  # type: ignore[union-attr]
            stream.opened_ns += START_NS
        return found  # type: ignore[return-value]


def reused() -> list[Item]:
    """Mallory takes the name that alice had by default."""
    server = Catan("mal")
    server.name(1, "mallory", "Rot")
    server.join("ali")
    server.name(2, "alice", "Blau")
    server.join("bob")
    server.name(3, "bob", "Weiß")
    server.name(1, "Spieler 2", "Rot")
    server.play()
    return server.items()


def squatted() -> list[Item]:
    """Mallory is called alice before alice comes, and then mallory again."""
    server = Catan("mal")
    server.name(1, "alice", "Rot")
    server.join("ali")
    server.name(2, "alice", "Blau")
    server.join("bob")
    server.name(3, "bob", "Weiß")
    server.name(1, "mallory", "Rot")
    server.play()
    return server.items()


def impersonated() -> list[Item]:
    """Alice is gone, and Mallory comes with her name."""
    server = Catan("mal")
    server.name(1, "mallory", "Rot")
    server.join("ali")
    server.name(2, "alice", "Blau")
    server.join("bob")
    server.name(3, "bob", "Weiß")
    server.play()
    server.hang_up("ali")
    server.join("eve", 4)
    server.name(4, "alice", "Orange")
    return server.items()


def dice(*talks: Conversation) -> list[Item]:
    """Mäxchen conversations, in the order of time."""
    return sorted((item for talk in talks for item in talk.items), key=lambda item: item.ts_ns)  # type: ignore[union-attr]


def _later(talk: Conversation, seconds: float) -> Conversation:
    return talk.waits_until(START_NS + int(seconds * 1e9))


def returned() -> list[Item]:
    """alice comes back from her own address, and eve from another with her name."""
    bob = Conversation("10.0.0.2:4000", number=1).says(b"REGISTER;bob").hears(b"REGISTERED")
    alice = Conversation("10.0.0.1:4000", number=2).says(b"REGISTER;alice").hears(b"REGISTERED")
    alice.hears(b"ROUND STARTING;t0ken-alice-1").says(b"JOIN;t0ken-alice-1").ends()
    again = _later(Conversation("10.0.0.1:4001", number=3), 10).says(b"REGISTER;alice").hears(b"REGISTERED")
    again.hears(b"ROUND STARTING;t0ken-alice-2").says(b"JOIN;t0ken-alice-2").ends()
    eve = _later(Conversation("10.0.0.9:4000", number=4), 20).says(b"REGISTER;alice").hears(b"REGISTERED")
    eve.hears(b"ROUND STARTING;t0ken-eve").says(b"JOIN;t0ken-eve")
    return dice(bob, alice, again, eve)


def rejected() -> list[Item]:
    """eve asks for alice's name, and does not get it."""
    alice = Conversation("10.0.0.1:4000", number=1).says(b"REGISTER;alice").hears(b"REGISTERED")
    alice.hears(b"ROUND STARTING;t0ken-alice").says(b"JOIN;t0ken-alice")
    eve = _later(Conversation("10.0.0.1:5000", number=2), 1).says(b"REGISTER;alice").hears(b"REJECTED")
    eve.says(b"REGISTER;eve").hears(b"REGISTERED").hears(b"ROUND STARTING;t0ken-eve")
    return dice(alice, eve)


def at_two_tables() -> list[Item]:
    """Two players of one name, at two servers."""
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
    """The database of a made session, by its name; each is recorded once."""
    known: dict[str, str] = {}
    folder = tmp_path_factory.mktemp("made")

    def path(name: str) -> str:
        if name not in known:
            known[name] = record(folder / f"{name}.db", MADE[name]())
        return known[name]

    return path


# What others' connections alone carried.


def texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value, those of keys too."""
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
        for stream, client, protocol in timeline.connection.execute("SELECT id, client, protocol FROM streams"):
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
                row = dissector.row_of(name, direction, fields) if dissector is not None else None
                if row is not None and dissector is not None:
                    free = {field.name for field in row.fields if field.type.is_free_text}
                    named = dissector.names(row, fields)
                    self.names[stream].update(str(value) for handle, value in named if handle.of_player)
                    found = [str(value) for handle, value in named if not handle.of_player]
                    found += texts([value for key, value in fields.items() if key in free])
                    self.secrets[stream].update(text for text in found if not text.isdecimal())
            for (data,) in timeline.connection.execute(
                "SELECT data FROM chunks WHERE stream_id = ? AND data IS NOT NULL", (stream,)
            ):
                carried[stream].append(bytes(data).decode(errors="replace"))
        self.streams = {stream: "\n".join(parts) for stream, parts in carried.items()}

    def unknown_to(self, streams: frozenset[int]) -> list[str]:
        """What no connection among these carried."""
        own = "\n".join(self.streams[stream] for stream in streams)
        here = {self.servers[stream] for stream in streams}
        others = {
            secret
            for stream, server in self.servers.items()
            if stream not in streams
            for secret in self.secrets[stream] | (self.names[stream] if server not in here else set())
        }
        others -= {name for stream, server in self.servers.items() if server in here for name in self.names[stream]}
        return sorted(secret for secret in others if len(secret) >= LEAST_SECRET and secret not in own)


def leaked(answer: str, secrets: list[str]) -> str | None:
    """The first secret that stands in an answer as a word."""
    return next(
        (
            secret
            for secret in secrets
            if secret in answer and re.search(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", answer)
        ),
        None,
    )


def readable(body: Any) -> str:
    """All texts of an answer, as they are read."""
    if isinstance(body, bytes):
        return body.decode()
    return "\n".join(texts(msgspec.to_builtins(body)))


# Every question.


def questions(address: Address, reader: Reader, words: list[str]) -> Iterator[tuple[dict[str, str], dict[str, int]]]:
    """The queries of an address, and the numbers in it."""
    timeline = reader.timeline
    known = {parameter.name for parameter in address.parameters}
    tables = [table.id for table in timeline.tables()]
    for table in tables if "{table}" in address.path else [0]:
        first, last = timeline.first_seq(table), timeline.last_seq(table)
        moments: list[str | None] = [None]
        if "at" in known and "{table}" in address.path:
            moments += [str(at) for at in range(first, last + 1, max((last - first) // MOST_MOMENTS, 1))]
        for at in moments:
            query = {} if at is None else {"at": at}
            if "limit" in known:
                query |= {"limit": "500", "after": "0"}
            if "{message}" in address.path:
                (count,) = timeline.connection.execute("SELECT count(*) FROM messages").fetchone()
                for number in range(1, count + 1, max(count // (4 * MOST_MOMENTS), 1)):
                    yield query, {"message": number}
                continue
            if "shape" in known:
                for shape in SIZES:
                    yield query | {"shape": shape}, {"table": table}
                continue
            numbers = {"table": table} if table else {}
            if address.path == "/api/complete":
                yield {"text": words[0][:2] if words else "x"}, numbers
                continue
            yield query, numbers
            if "filter" in known:
                for word in words[:MOST_MOMENTS]:
                    yield query | {"filter": f"named == {json.dumps(word, ensure_ascii=False)}"}, numbers
            if "table" in known:
                for number in tables:
                    yield query | {"table": str(number)}, numbers


def answers(reader: Reader, reach: Reach, secrets: list[str]) -> Iterator[tuple[str, str]]:
    """What a link gives by every address of the server, live too, with the question."""
    label = reader.label(reach)
    for address in ADDRESSES:
        for query, numbers in questions(address, reader, secrets):
            asked = Asked(query, address.known, reach, numbers)
            asked.player = label
            try:
                # A filter stands in the question, and nothing of it in the answer.
                yield f"{address.path} {query} {numbers}", readable(address.ask(reader, asked))
            except NotThereError as error:
                yield f"{address.path} {query} {numbers}", str(error)
    yield "sessions", readable(session_info(reader.served, reader, False, label))
    news, _ = _tell_on(reader, (reach, None), 0, reader.timeline.last_event(), 0, {})
    pushed = [json.loads(line[6:]) for line in news.decode().splitlines() if line.startswith("data: ")]
    yield "live", "\n".join(texts(pushed))


def page(reader: Reader, player: str) -> str:
    """The texts of the file that is exported for a player."""
    file = io.BytesIO()
    write_html(reader, player, file, lambda _done, _all: None)
    found = re.search(rb'id="kiebitz-data">([^<]*)<', file.getvalue())
    assert found is not None
    data = json.loads(gzip.decompress(base64.b64decode(found.group(1))))
    # Bytes of messages are the player's own; a fragment is markup.
    return "\n".join(texts(data))


def opened(path: str) -> Reader:
    return Reader(Served(1, path, 1, "game.db"))


def check(path: str) -> int:
    """Ask everything for every player of a session; the number of answers."""
    reader = opened(path)
    truth = Truth(reader.timeline)
    source = reader.timeline.session.source
    seats = reader.seats()
    asked = 0
    for reach in seats[:: max(len(seats) // MOST_PLAYERS, 1)]:
        label = reader.label(reach)
        assert label is not None
        secrets = truth.unknown_to(reader.hearers.streams_of(label))
        own = {(stream.server, stream.protocol) for stream in _streams(reader, label)}
        tables = {table.id for table in reader.timeline.tables() if (table.server, table.protocol) in own}
        for question, answer in answers(reader, reach, secrets):
            found = leaked(answer, secrets)
            assert found is None, (label, question, found, answer[:2000])
            assert source not in answer.split("\n"), question
            number = re.search(r"'table': '?(\d+)", question)
            if number is not None and int(number.group(1)) not in tables:
                assert answer.startswith("there is no table"), question
            asked += 1
        found = leaked(page(opened(path), label), secrets)
        assert found is None, (label, "html", found)
        for command in (["events", path], ["state", path], ["state", path, "--json"], ["replay", path, "--speed", "0"]):
            found = leaked(kiebitz(*command, "--as", label).out, secrets)
            assert found is None, (label, command, found)
    return asked


def _streams(reader: Reader, label: str) -> Any:
    from kiebitz.cli.web.lists import stream_list

    return stream_list(reader, label).streams


@pytest.mark.parametrize("capture", few_captures(GAMES))
def test_no_answer_holds_what_only_others_were_told(capture: str) -> None:
    check(stored(capture))


@pytest.mark.parametrize("name", MADE)
def test_names_that_change_hands_give_nothing_away(name: str, made: Callable[[str], str]) -> None:
    assert check(made(name))
