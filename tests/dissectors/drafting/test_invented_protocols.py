"""Drafts of protocols that were invented for these tests."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest
from drafted_protocols import (
    ANSWERS,
    BROADCASTS,
    FIELDS,
    HEARTBEATS,
    NEUTRAL,
    SERVER,
    WIRES,
    Game,
    Wire,
    merged,
)
from strength import every, times

from kiebitz.dissectors.drafting.draft import Draft, draft
from kiebitz.dissectors.drafting.traffic import Conversation, Piece, segments_of
from kiebitz.dissectors.drafting.writer import row_text
from kiebitz.dissectors.model import DIRECTIONS, port_of
from kiebitz.dissectors.protocol_file.dissector import FileDissector, dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.services.drafting import Server, Traffic, draft_from


def _drafted(wire: Wire, seed: int = 1) -> tuple[Draft, list[Conversation]]:
    conversations = merged(Game(wire, seed).conversations())
    return draft(conversations, [port_of(SERVER)], "invented", wire.name), conversations


def _dissector(drafted: Draft) -> FileDissector:
    return dissector_from(read_specification(drafted.text))


def _plain(name: str) -> str:
    """Return the name in the game of a drafted name."""
    if name.startswith("message_"):
        return [*FIELDS][int(name.removeprefix("message_")) - 1][1]
    return name.strip("+- ").upper().removesuffix("MSG")


@pytest.mark.full(but=1)
@pytest.mark.parametrize("wire", every(4, WIRES, lambda wire: wire.name))
def test_messages_and_relations(wire: Wire) -> None:
    drafted, _ = _drafted(wire)
    found = {(row.direction, _plain(row.name)): row for row in drafted.rows}
    assert found.keys() == FIELDS.keys()
    for kind, fields in FIELDS.items():
        columns = found[kind].columns
        # One message is no sample, and padding adds fields.
        if kind[1] not in ("ERROR", "STARTED"):
            assert len(columns) == len(fields), kind
            if not columns or not columns[0].key.isdigit():
                assert {column.name for column in columns} == {*fields}
    answers = {(kind[1], _plain(asked)) for kind, row in found.items() for asked in row.answers}
    assert len(answers & ANSWERS) >= 3
    assert len(answers - ANSWERS - NEUTRAL) <= 3
    assert {kind[1] for kind, row in found.items() if row.broadcast} == BROADCASTS
    # Without a name, and with a game that goes on between them, they are recognised by their intervals.
    assert {kind[1] for kind, row in found.items() if row.heartbeat} == HEARTBEATS
    identity = {
        key: [_plain(name) for name in names] for key, (names, _) in drafted.contents.identity.items()
    }
    assert identity["login"] == ["JOIN"]
    assert identity["given"] == ["WELCOME"]
    assert "JOINED" in identity["named"]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("wire", every(4, WIRES, lambda wire: wire.name))
def test_a_draft_dissects_other_games(wire: Wire) -> None:
    dissector = _dissector(_drafted(wire)[0])
    total = valid = 0
    for segment in segments_of(Game(wire, seed=2).conversations()):
        for frame in dissector.framer(segment.direction).feed(0, segment.data):
            if dissector.encapsulation is not None and not dissector.encapsulation.has_message(frame.data):
                continue
            total += 1
            valid += dissector.codec.decode(frame.data, segment.direction).valid
    assert valid >= 0.98 * total


@pytest.mark.parametrize(("name", "sign"), [("pairs", ""), ("block", "# ")])
def test_a_certain_turn_is_no_comment(name: str, sign: str) -> None:
    text = _drafted(next(wire for wire in WIRES if wire.name == name))[0].text
    assert f'\n{sign}[events]\n{sign}turn = {{ on = "TURN", silent = true, turn = true }}' in text


@pytest.mark.full
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_the_order_of_captures_changes_nothing(wire: Wire) -> None:
    # All begin at the same time, with the same clients.
    games = [merged(Game(wire, seed).conversations()) for seed in (1, 2, 3)]
    server = Server(wire.transport, port_of(SERVER))
    texts = set()
    for order in [*permutations(games)][:: times(1, 5)]:
        found = [
            msgspec.structs.replace(one, capture=number) for number, game in enumerate(order) for one in game
        ]
        texts.add(draft_from(Traffic({server: found}, []), (), ["invented"]).text)
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("join", "joined", "said", "game"),
    [
        ("JOIN_ROOM {room}\n", "ROOM_JOINED {room} {player}\n", "MOVED {player} 3\n", "room"),
        (
            '{{"type":"join","roomId":{room}}}\n',
            '{{"type":"joined","roomId":{room},"player":"{player}"}}\n',
            '{{"type":"moved","player":"{player}"}}\n',
            "roomId",
        ),
    ],
    ids=["words", "json"],
)
def test_several_games_at_once(join: str, joined: str, said: str, game: str) -> None:
    conversations = []
    for number in range(6):
        about = {"room": number // 2 + 7, "player": f"p{number}"}
        texts = [("c2s", join), ("s2c", joined), *[("s2c", said)] * 5]
        pieces, at = [], {"c2s": 0, "s2c": 0}
        for order, (direction, text) in enumerate(texts):
            data = text.format(**about).encode()
            time = 300_000_000 * order + 1_000_000 * number
            pieces.append(Piece(direction, time, at[direction], data))  # type: ignore[arg-type]  # of literals
            at[direction] += len(data)
        conversations.append(Conversation(f"10.0.0.2:{number + 1}", SERVER, "tcp", pieces))
    drafted = draft(conversations, [4711], "rooms", "rooms")
    assert f'game = "{game}"' in drafted.text
    room = read_specification(drafted.text).game
    assert room is not None
    assert room.id == game


def _talk(lines: list[str], clients: int = 1) -> list[Conversation]:
    """Return conversations in which a client asks for each line, one after the other."""
    pieces: list[list[Piece]] = [[] for _ in range(clients)]
    at = [[0, 0] for _ in range(clients)]
    for number, line in enumerate(lines):
        client = number % clients
        for order, text in enumerate((f"ASK {number % 7}\n", f"{line}\n")):
            time = 1_000_000_000 * number + 50_000_000 * order
            pieces[client].append(Piece(DIRECTIONS[order], time, at[client][order], text.encode()))
            at[client][order] += len(text.encode())
    return [Conversation(f"10.0.0.2:{number}", SERVER, "tcp", own) for number, own in enumerate(pieces)]


@pytest.mark.parametrize(
    ("lines", "row"),
    [
        (
            ["ROOMS 0 2 an bo", "ROOMS 2 7 Blue OPEN 8 Red SHUT 0", "ROOMS 1 9 Red SHUT 1 bo"],
            "s: number=0..2 list=[{number=7..9 word=Blue|Red word2=OPEN|SHUT}]*number number2=0..2"
            " list2=[an|bo]*number2",
        ),
        (["WHO ann bob END 3", "WHO cem END 1", "WHO END 2"], "s: list=[ann|bob|cem]..'END' number=1..3"),
        (["+WHO ann here", "+WHO bob gone"], "s: word=ann|bob word2=gone|here"),
        (["game over now", "game begins ann", "game begins bob"], "s: word=begins|over word2=ann|bob|now"),
        (["player left bob", "player joined ann 3"], "s: text=text number=0.."),
        (
            ["say ann hi", "say bob good day", "say ann good", "say bob by"],
            "s: word=ann|bob word2=by|good|hi text?=text",
        ),
        (["GAME OVER", "GAME STARTS 5"], "s: number=0.."),
    ],
    ids=["counted", "until", "sign", "small", "names", "players", "long"],
)
def test_lists_of_words(lines: list[str], row: str) -> None:
    drafted = draft(_talk(lines * 9), [4711], "lists")
    assert row in {row_text(each).partition(" < ")[0] for each in drafted.rows}
    assert drafted.described == 1


def test_a_gap_loses_few_messages() -> None:
    conversations = Game(WIRES[5]).conversations()
    pieces = conversations[0].pieces
    lacking = Conversation(conversations[0].client, SERVER, "tcp", [*pieces[:100], *pieces[103:]])
    drafted = draft([lacking, *conversations[1:]], [4711], "gap")
    assert {(row.direction, _plain(row.name)) for row in drafted.rows} == FIELDS.keys()
    assert drafted.described * drafted.messages >= drafted.messages - 3
    assert not drafted.seen


def test_doubts_are_said() -> None:
    pieces = [Piece("c2s", 1000 * number, 3 * number, b"A1\n") for number in range(5)]
    drafted = draft([Conversation("10.0.0.2:1", SERVER, "tcp", pieces)], [4711], "few")
    said = " ".join(drafted.warnings)
    assert "no bytes from the server" in said
    assert "only 5 messages" in said
    assert "only one connection" in said
