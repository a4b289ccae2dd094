"""What a frame is made of: which production took which bytes, in every protocol and in plug-ins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import knobeln_cases
import msgspec
import noughts_cases
import pytest
from all_cases import CASES
from cases import Case
from inspected_captures import CAPTURES, messages_of
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from strength import few_captures

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import MAX_PIECES, Piece
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT
from kiebitz.dissectors.grammar.grammar import Decoded, unreadable
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.maexchen.grammar import GRAMMAR
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.testing import check_anatomy

ALL_CASES: dict[Dissector, list[Case]] = {
    **CASES,
    KNOBELN: [*knobeln_cases.SOUND, *knobeln_cases.FLAWED],
    NOUGHTS: [*noughts_cases.SOUND, *noughts_cases.FLAWED],
}
RECORDED = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)

each_protocol = pytest.mark.parametrize("dissector", ALL_CASES, ids=lambda dissector: dissector.protocol)


def check_frame(dissector: Dissector, frame: bytes, direction: Direction) -> None:
    """Its pieces are all of it; what is sound is understood, and what is nothing is not."""
    pieces = check_anatomy(dissector, frame, direction)
    decoded = dissector.codec.decode(frame, direction)
    is_unread = any(piece.kind == "unread" for piece in pieces)
    if decoded.valid:
        assert not is_unread, frame
    elif decoded.row is None and frame.strip() and any(flaw.severity == "error" for flaw in decoded.flaws):
        assert is_unread, frame
    # It turns to JSON as it is, and what has no value has none there.
    told = json.loads(msgspec.json.encode(pieces))
    assert ["value" in piece for piece in told] == [piece.value is not msgspec.UNSET for piece in pieces]


@each_protocol
def test_the_pieces_of_every_case_are_all_of_it(dissector: Dissector) -> None:
    for case in ALL_CASES[dissector]:
        check_frame(dissector, case.data, case.direction)


@pytest.mark.parametrize("name", few_captures(RECORDED))
def test_the_pieces_of_what_was_recorded_are_all_of_it(name: str) -> None:
    for dissector, direction, frame in messages_of(name):
        check_frame(dissector, frame, direction)


# A value stands where it is said to stand: the bytes of its piece alone say it again.


@pytest.mark.parametrize(
    ("dissector", "cases"),
    [
        (MAEXCHEN, CASES[MAEXCHEN]),
        (KNOBELN, ALL_CASES[KNOBELN]),
        (NOUGHTS, ALL_CASES[NOUGHTS]),
    ],
    ids=lambda given: given.protocol if isinstance(given, Dissector) else "",
)
def test_the_bytes_of_a_field_say_its_value(dissector: Dissector, cases: list[Case]) -> None:
    count = 0
    for case in cases:
        row = dissector.codec.decode(case.data, case.direction).row
        types = {} if row is None else {field.name: field.type for field in row.fields}
        for piece in _valued(dissector, case):
            text = case.data[piece.offset : piece.end].decode("utf-8", "replace")
            assert types[str(piece.path[0])].decode(text) == piece.value, case.data
            count += 1
    assert count > 3


def test_the_bytes_of_a_member_say_its_value() -> None:
    count = 0
    for case in CASES[CATAN]:
        if case.flaws or not case.name:
            continue
        for piece in _valued(CATAN, case):
            text = case.data[piece.offset : piece.end].decode().rstrip(", \r\n")
            if isinstance(piece.path[-1], str) and text.startswith('"') and '":' in text:
                assert json.loads(f"{{{text}}}") == {piece.path[-1]: piece.value}, case.data
            else:
                assert json.loads(text) == piece.value, case.data
            count += 1
    assert count > 200


def test_the_lines_of_a_field_say_its_value() -> None:
    for case in CASES[SCHAFKOPF]:
        if case.flaws or b"\r" in case.data or b"\xa7" in case.data:
            continue
        for piece in _valued(SCHAFKOPF, case):
            text = case.data[piece.offset : piece.end].decode().removesuffix("\n")
            if isinstance(piece.value, int):
                assert int(text) == piece.value, case.data
            else:
                is_flag = piece.path == ("flag",)
                assert text[is_flag:].replace("\n", " ") == piece.value, case.data


def _valued(dissector: Dissector, case: Case) -> list[Piece]:
    pieces = dissector.codec.anatomy(case.data, case.direction)
    return [piece for piece in pieces if piece.value is not msgspec.UNSET]


# What the pieces are.


class Taken(NamedTuple):
    """The bytes of a piece that has no others inside, its kind, where its field is, and its value."""

    sent: str
    kind: str
    path: str = ""
    value: Any = msgspec.UNSET


def taken(dissector: Dissector, frame: bytes, direction: Direction) -> list[Taken]:
    """The pieces of a frame that have no others inside."""
    pieces = check_anatomy(dissector, frame, direction)
    following = [*pieces[1:], None]
    return [
        Taken(
            frame[piece.offset : piece.end].decode("utf-8", "backslashreplace"),
            piece.kind,
            ".".join(map(str, piece.path)),
            piece.value,
        )
        for piece, after in zip(pieces, following, strict=False)
        if after is None or after.depth <= piece.depth
    ]


_LINE = Taken("\r\n", "markup")
_CONNECT = (
    '<connect status="passive">\r\n  <player id="7"><name>K</name></player>\r\n'
    "  <game>{}</game>{}</connect>\r\n\r\n"
)
_MARIAS = "licitovany_marias"


ANATOMIES: Mapping[str, tuple[Dissector, str, Direction, list[Taken]]] = {
    "Mäxchen: a name and fields": (
        MAEXCHEN,
        "ANNOUNCED;Jörg;5,3",
        "s2c",
        [
            Taken("ANNOUNCED", "name"),
            Taken(";", "markup"),
            Taken("Jörg", "field", "name", "Jörg"),
            Taken(";", "markup"),
            Taken("5,3", "field", "dice", "5,3"),
        ],
    ),
    "Mäxchen: the field with the flaw, and what follows it": (
        MAEXCHEN,
        "ANNOUNCE;7,7;token",
        "c2s",
        [
            Taken("ANNOUNCE", "name"),
            Taken(";", "markup"),
            Taken("7,7", "unread", "dice"),
            Taken(";token", "unread"),
        ],
    ),
    "Mäxchen: surplus fields": (
        MAEXCHEN,
        "ROLL;abc;d;e",
        "c2s",
        [
            Taken("ROLL", "name"),
            Taken(";", "markup"),
            Taken("abc", "field", "token", "abc"),
            Taken(";d;e", "ignored"),
        ],
    ),
    "Mäxchen: no message": (MAEXCHEN, "ROL;abc", "c2s", [Taken("ROL;abc", "unread")]),
    "Mäxchen: nothing": (MAEXCHEN, "", "c2s", []),
    "Okey: an argument in quotation marks": (
        OKEY,
        'CATC b "a \\"b\\" "\r\n',
        "c2s",
        [
            Taken("CATC", "name"),
            Taken(" ", "markup"),
            Taken("b", "field", "messagetype", "b"),
            Taken(" ", "markup"),
            Taken('"', "markup"),
            Taken('a \\"b\\"', "field", "msg", 'a "b"'),
            Taken(' "', "markup"),
            _LINE,
        ],
    ),
    "Okey: a list, and in it a name with a blank and nobody": (
        OKEY,
        '+LPLA "Jörg \\"bo b \\" \\" \\" "\r\n',
        "s2c",
        [
            Taken("+LPLA", "name"),
            Taken(" ", "markup"),
            Taken('"', "markup"),
            Taken("Jörg ", "field", "playerlist.0", "Jörg"),
            Taken('\\"bo b \\" ', "field", "playerlist.1", "bo b"),
            Taken('\\" \\"', "field", "playerlist.2", None),
            Taken(' "', "markup"),
            _LINE,
        ],
    ),
    "Okey: a tile that there is not": (
        OKEY,
        "PUTT 1:RED 4:BLEU\r\n",
        "c2s",
        [
            Taken("PUTT", "name"),
            Taken(" ", "markup"),
            Taken("1:RED", "field", "tile", "1:RED"),
            Taken(" ", "markup"),
            Taken("4:BLEU", "unread", "deck"),
            _LINE,
        ],
    ),
    "Schafkopf: lines": (
        SCHAFKOPF,
        "!SPIELT\n1\n4\n!END\n",
        "s2c",
        [
            Taken("!SPIELT\n", "name"),
            Taken("1\n", "field", "spieler", 1),
            Taken("4\n", "field", "mitspieler", 4),
            Taken("!END\n", "markup"),
        ],
    ),
    "Schafkopf: a card takes two lines, and one of them is wrong": (
        SCHAFKOPF,
        "!HOCHZEIT\nJA\nHERZ\nSUA\n!END\n",
        "c2s",
        [
            Taken("!HOCHZEIT\n", "name"),
            Taken("JA\n", "field", "nimmt", "JA"),
            Taken("HERZ\n", "field"),
            Taken("SUA\n", "unread", "karte"),
            Taken("!END\n", "markup"),
        ],
    ),
    "Schafkopf: an end that is none": (
        SCHAFKOPF,
        "!DRAN\n1\n!EDN\n",
        "s2c",
        [Taken("!DRAN\n", "name"), Taken("1\n", "field", "dran", 1), Taken("!EDN\n", "unread")],
    ),
    "Schafkopf: a line between two Pakete": (SCHAFKOPF, "\n", "s2c", [Taken("\n", "ignored")]),
    "Catan: members, a list, and a member that nobody knows": (
        CATAN,
        '{"Würfelwurf": {"Spieler":3,"foo":{"a":[1]}, "Wurf":[3, 4]}}\n',
        "s2c",
        [
            Taken("{", "markup"),
            Taken('"Würfelwurf": {', "name"),
            Taken('"Spieler":3,', "field", "Spieler", 3),
            Taken('"foo":{"a":[1]}, ', "ignored"),
            Taken('"Wurf":[', "markup"),
            Taken("3, ", "field", "Wurf.0", 3),
            Taken("4", "field", "Wurf.1", 4),
            Taken("]", "markup"),
            Taken("}}", "markup"),
            Taken("\n", "markup"),
        ],
    ),
    "Catan: of two members with one name the last counts": (
        CATAN,
        '{"Würfelwurf":{"Wurf":[1,2],"Spieler":3,"Spieler":4}}\n',
        "s2c",
        [
            Taken("{", "markup"),
            Taken('"Würfelwurf":{', "name"),
            Taken('"Wurf":[', "markup"),
            Taken("1,", "field", "Wurf.0", 1),
            Taken("2", "field", "Wurf.1", 2),
            Taken("],", "markup"),
            Taken('"Spieler":3,', "field", "Spieler"),
            Taken('"Spieler":4', "field", "Spieler", 4),
            Taken("}}", "markup"),
            Taken("\n", "markup"),
        ],
    ),
    "Catan: a value that is wrong": (
        CATAN,
        '{"Würfelwurf":{"Spieler":"x","Wurf":[3,4]}}\n',
        "s2c",
        [
            Taken("{", "markup"),
            Taken('"Würfelwurf":{', "name"),
            Taken('"Spieler":"x",', "unread", "Spieler"),
            Taken('"Wurf":[', "markup"),
            Taken("3,", "field", "Wurf.0"),
            Taken("4", "field", "Wurf.1"),
            Taken("]", "markup"),
            Taken("}}", "markup"),
            Taken("\n", "markup"),
        ],
    ),
    "Catan: no JSON from there on": (
        CATAN,
        '{"Würfelwurf":{"Spieler":3,"Wurf":[3,}}\n',
        "s2c",
        [
            Taken("{", "markup"),
            Taken('"Würfelwurf":{', "name"),
            Taken('"Spieler":3,', "field", "Spieler"),
            Taken('"Wurf":[', "markup"),
            Taken("3,", "field", "Wurf.0"),
            Taken("}}\n", "unread"),
        ],
    ),
    "CGML: attributes, and elements in elements": (
        CGML,
        _CONNECT.format(_MARIAS, "\r\n"),
        "c2s",
        [
            Taken("<connect ", "name"),
            Taken('status="passive"', "field", "status", "passive"),
            Taken(">\r\n  ", "markup"),
            Taken("<player ", "markup"),
            Taken('id="7"', "field", "player.id", 7),
            Taken(">", "markup"),
            Taken("<name>K</name>", "field", "player.name", "K"),
            Taken("</player>\r\n  ", "markup"),
            Taken(f"<game>{_MARIAS}</game>\r\n", "field", "game", _MARIAS),
            Taken("</connect>", "markup"),
            Taken("\r\n\r\n", "markup"),
        ],
    ),
    "CGML: a text that is wrong, and an element that nobody knows": (
        CGML,
        _CONNECT.format("skat", "<foo><a/></foo>"),
        "c2s",
        [
            Taken("<connect ", "name"),
            Taken('status="passive"', "field", "status"),
            Taken(">\r\n  ", "markup"),
            Taken("<player ", "markup"),
            Taken('id="7"', "field", "player.id"),
            Taken(">", "markup"),
            Taken("<name>K</name>", "field", "player.name"),
            Taken("</player>\r\n  ", "markup"),
            Taken("<game>skat</game>", "unread", "game"),
            Taken("<foo><a/></foo>", "unread"),
            Taken("</connect>", "markup"),
            Taken("\r\n\r\n", "markup"),
        ],
    ),
    "CGML: no XML from there on": (
        CGML,
        '<newgroup status="init">\r\n<game>x</gmae></newgroup>\r\n\r\n',
        "s2c",
        [
            Taken("<newgroup ", "name"),
            Taken('status="init"', "field", "status"),
            Taken(">\r\n", "markup"),
            Taken("<game>x</gmae></newgroup>\r\n\r\n", "unread"),
        ],
    ),
    "Knobeln, which says nothing of it": (
        KNOBELN,
        "WURF alice sechs",
        "s2c",
        [
            Taken("WURF", "name"),
            Taken(" ", "markup"),
            Taken("alice", "field", "name", "alice"),
            Taken(" ", "markup"),
            Taken("sechs", "unread", "zahl"),
        ],
    ),
    "noughts and crosses, which says nothing of it": (
        NOUGHTS,
        "MARK bob 5\r\n",
        "s2c",
        [
            Taken("MARK", "name"),
            Taken(" ", "markup"),
            Taken("bob", "field", "name", "bob"),
            Taken(" ", "markup"),
            Taken("5", "field", "square", "5"),
            _LINE,
        ],
    ),
}


@pytest.mark.parametrize(("dissector", "text", "direction", "pieces"), ANATOMIES.values(), ids=ANATOMIES)
def test_what_took_which_bytes(
    dissector: Dissector, text: str, direction: Direction, pieces: list[Taken]
) -> None:
    assert taken(dissector, text.encode(), direction) == pieces


def test_a_piece_says_its_production() -> None:
    words = {
        piece.production for piece in SCHAFKOPF.codec.anatomy(b"!HOCHZEIT\nJA\nHERZ\nSAU\n!END\n", "c2s")
    }
    assert words == {
        '"!HOCHZEIT" "JA" Karte "!END"',
        'Boolean = "JA" | "NEIN"',
        "Karte = Farbe Wert",
        "Farbe",
        "Wert",
        '"!END"',
    }


class Silent(Codec):
    """A codec that says nothing of what its frames are made of."""

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        row = GRAMMAR.rows_named("c2s", "JOIN")[0]
        return unreadable() if frame == b"?" else Decoded(row, {}, "{}", True)

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return b""


def test_a_codec_that_says_nothing_gives_a_frame_in_one_piece() -> None:
    assert [(piece.length, piece.kind) for piece in Silent().anatomy(b"JOIN;x", "c2s")] == [(6, "name")]
    assert [(piece.length, piece.kind) for piece in Silent().anatomy(b"?", "c2s")] == [(1, "unread")]
    assert Silent().anatomy(b"", "c2s") == ()


_HUGE = FRAME_LIMIT - 200


@pytest.mark.parametrize(
    ("dissector", "begin", "again", "end", "direction"),
    [
        (MAEXCHEN, b"PLAYER ROLLS;", b"x;", b"", "s2c"),
        pytest.param(OKEY, b'+LPLA "', b"a ", b' "\r\n', "s2c", marks=pytest.mark.full),
        pytest.param(OKEY, b"+LPLA ", b"a ", b"\r\n", "s2c", marks=pytest.mark.full),
        (SCHAFKOPF, b"!DRAN\n1\n", b"\n", b"!END\n", "s2c"),
        (CATAN, '{"Würfelwurf":{"Spieler":1,"Wurf":[3,4],'.encode(), b'"a":1,', b'"b":2}}\n', "s2c"),
        (CATAN, b'{"OK":', b"[", b"\n", "s2c"),
        (CATAN, b'{"OK":{', b'"', b"\n", "s2c"),
        (CGML, b'<dial type="cards" to="hand">', b"<card>A0A</card>", b"</dial>\r\n\r\n", "s2c"),
        (CGML, b"<dial ", b'a="1" ', b"/>\r\n\r\n", "s2c"),
        (CGML, b"<dial>", b"<x>", b"\r\n\r\n", "s2c"),
    ],
)
def test_a_huge_message_has_no_more_pieces_than_there_may_be(
    dissector: Dissector, begin: bytes, again: bytes, end: bytes, direction: Direction
) -> None:
    frame = begin + again * (_HUGE // len(again)) + end
    pieces = check_anatomy(dissector, frame, direction)
    assert len(pieces) <= MAX_PIECES + 1
    if len(pieces) > MAX_PIECES:
        assert (pieces[-1].kind, pieces[-1].end) == ("rest", len(frame))
