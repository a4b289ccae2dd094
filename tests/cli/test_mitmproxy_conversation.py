from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy_live import CONVERSATIONS, Sent, sent_on
from strength import every, times

from kiebitz.cli.mitm.conversation import Conversation
from kiebitz.dissectors.model import DIRECTIONS, Direction, Stream, Transport

MILLISECOND = 1_000_000


OVER_TCP = [name for name, (transport, _, _) in CONVERSATIONS.items() if transport == "tcp"]


def read(transport: Transport, sent: list[Sent], is_whole: bool = True) -> Conversation:
    conversation = Conversation(Stream(1, transport, "127.0.0.1:1", "127.0.0.1:2", 0), is_whole)
    for piece in sent:
        conversation.take(*piece)
    return conversation


def found_in(conversation: Conversation, count: int) -> list[tuple[Direction, str, int, int]]:
    return [
        (message.direction, message.name, message.offset, message.length)
        for number in range(count)
        for message in conversation.messages(number)
    ]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_each_message_is_in_the_piece_where_it_ends(name: str) -> None:
    transport, sent, messages = CONVERSATIONS[name]
    conversation = read(transport, sent)
    conversation.end()
    found = found_in(conversation, len(sent))
    assert len(found) > 4
    for way in DIRECTIONS:
        assert [row for row in found if row[0] == way] == [row for row in messages if row[0] == way]
    for number, piece in enumerate(sent):
        start, data = conversation.piece(number)
        assert data == piece.data
        for message in conversation.messages(number):
            assert message.direction == piece.direction
            assert start < message.offset + message.length <= start + len(data)


@given(st.sampled_from(OVER_TCP), st.randoms(use_true_random=False))
@settings(max_examples=times(40), deadline=None)
def test_bytes_cut_anywhere_say_the_same(name: str, random: Random) -> None:
    _, sent, messages = CONVERSATIONS[name]
    cut: list[Sent] = []
    for piece in sent:
        marks = sorted(random.randrange(len(piece.data) + 1) for _ in range(random.randrange(4)))
        cut += [Sent(piece.direction, piece.ts_ns, piece.data[a:b]) for a, b in pairwise([0, *marks, None])]
    conversation = read("tcp", cut)
    conversation.end()
    found = found_in(conversation, len(cut))
    for way in DIRECTIONS:
        assert [row for row in found if row[0] == way] == [row for row in messages if row[0] == way]
    # Every byte is in a message; a piece in which none ends names its message.
    for number, piece in enumerate(cut):
        rest, unended = conversation.unended(number)
        told = sum(message.length for message in conversation.messages(number))
        assert told + rest >= len(piece.data)
        assert (rest > 0) == (unended is not None) or not piece.data


def test_incomplete_data_is_passed_on_as_it_arrives() -> None:
    transport, sent, messages = CONVERSATIONS["schafkopf-1.3-badcard.pcap"]
    conversation = read(transport, [])
    told = 0
    for number, piece in enumerate(sent):
        conversation.take(*piece)
        told += len(conversation.messages(number))
        # Complete messages are shown at once.
        assert told + 1 >= sum(
            1
            for way, _, offset, length in messages
            if offset + length <= sum(len(said.data) for said in sent[: number + 1] if said.direction == way)
        )


def test_pieces_before_the_protocol_is_recognised_are_read_once_it_is() -> None:
    conversation = read("udp", [Sent("c2s", 1, b""), Sent("c2s", 2, b"gibberish")])
    assert conversation.dissector is None
    conversation.take("c2s", 3, b"REGISTER;alice")
    assert conversation.dissector is not None
    assert [len(conversation.messages(number)) for number in range(3)] == [1, 1, 1]
    # Times that repeat themselves or go back change nothing: each datagram is one message.
    for number in range(3, 6):
        conversation.take("c2s", 1, b"")
        assert len(conversation.messages(number)) == 1
    # Diagnostics are reported once the game is certain.
    conversation.end()
    for number in range(3, 6):
        assert [
            diagnostic.code for diagnostic in conversation.diagnostics(conversation.messages(number)[0])
        ] == ["empty-datagram"]


def test_bytes_of_a_direction_across_pieces() -> None:
    sent = [Sent("c2s", 1, b"abc"), Sent("s2c", 2, b"XYZ"), Sent("c2s", 3, b""), Sent("c2s", 4, b"defg")]
    conversation = read("tcp", sent)
    for start in range(9):
        for end in range(start, 9):
            assert conversation.between("c2s", start, end).data == b"abcdefg"[start:end]
    assert conversation.between("s2c", 1, 99).data == b"YZ"


@pytest.mark.parametrize(
    "name",
    every(
        3,
        [
            "schafkopf-1.3-1human-tiny.pcap",
            "catan-lurche-py-3p.pcap.gz",
            "okey-head-game-win.pcap.gz",
            "cgml-tiny.pcap.gz",
        ],
    ),
)
def test_from_the_middle_on_no_violation_is_reported(name: str) -> None:
    _, sent, _ = sent_on(name, 1)
    for begin in range(1, len(sent), max(len(sent) // 12, 1)):
        first, *rest = sent[begin:]
        late = [first._replace(data=first.data[len(first.data) // 2 :]), *rest]
        conversation = read("tcp", late, is_whole=False)
        codes = [
            (message.name, diagnostic.code)
            for number in range(len(late))
            for message in conversation.messages(number)
            for diagnostic in conversation.diagnostics(message)
            if diagnostic.severity == "error"
        ]
        assert codes == []


@given(
    st.sampled_from(["udp", "tcp"]),
    st.lists(st.tuples(st.sampled_from(DIRECTIONS), st.integers(0, 3), st.binary(max_size=40)), max_size=20),
    st.booleans(),
)
@settings(max_examples=times(150), deadline=None)
def test_any_bytes(transport: Transport, sent: list[tuple[Direction, int, bytes]], is_whole: bool) -> None:
    begin: dict[Transport, bytes] = {"udp": b"REGISTER;x", "tcp": b'{"Hallo":{"Version":"x"}}\n'}
    pieces = [Sent("c2s", 0, begin[transport]), *(Sent(*piece) for piece in sent)]
    conversation = read(transport, pieces, is_whole)
    conversation.end()
    found = found_in(conversation, len(pieces))
    if transport == "udp" and conversation.dissector is not None:
        assert len(found) == len(pieces)
    # If the guess was taken back, what comes after that is no game's.
    assert len(found) <= len(pieces) or transport == "tcp"
    for number in range(len(pieces)):
        assert conversation.unended(number)[0] >= 0
