"""Frames with other values in them: they say what was asked for, and are spelt as they were in all else."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import pytest
from bijections import back, onwards
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import CASES, each_protocol
from single_direction import is_one_frame
from strength import times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.grammar.patching import differences, replaced, value_at
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF


class Rewritten(NamedTuple):
    """A frame, the fields that become others, or come, and the frame then."""

    dissector: Dissector
    direction: Direction
    before: bytes
    fields: dict[str, Any]
    after: bytes


def latin1(text: str) -> bytes:
    return text.encode("latin-1")


def cp1252(text: str) -> bytes:
    return text.encode("cp1252")


def latin2(text: str) -> bytes:
    return text.encode("iso-8859-2")


def utf8(text: str) -> bytes:
    return text.encode()


_CARDS = b"\n".join([b"EICHEL\nOBER"] + [b"\xa7\n\xa7"] * 13)
_FEWER = b"\n".join([b"\xa7\n\xa7"] * 14)

TABLE = [
    # Mäxchen: a dialect is another row; what is surplus or loosely spelt stays.
    Rewritten(MAEXCHEN, "s2c", b"ROUND STARTED;7;a,b", {"players": ["c", "b"]}, b"ROUND STARTED;7;c,b"),
    Rewritten(MAEXCHEN, "s2c", b"ROUND STARTED;a,b", {"players": ["b"]}, b"ROUND STARTED;b"),
    Rewritten(MAEXCHEN, "c2s", b"ANNOUNCE; 1 , 6 ;abc;x", {"token": "d"}, b"ANNOUNCE; 1 , 6 ;d;x"),
    Rewritten(MAEXCHEN, "c2s", b"REGISTER;al;\xff", {"name": "bo"}, b"REGISTER;bo;\xff"),
    Rewritten(MAEXCHEN, "s2c", b"SCORE;a:1,b:-2", {"scores": {"ü": 1, "b": -2}}, utf8("SCORE;ü:1,b:-2")),
    # A value that only another row has: the name stays, the row does not.
    Rewritten(MAEXCHEN, "s2c", b"PLAYER LOST;a;MIA", {"reason": "so it is"}, b"PLAYER LOST;a;so it is"),
    # What was missing can be put in.
    Rewritten(MAEXCHEN, "c2s", b"JOIN", {"token": "a"}, b"JOIN;a"),
    # Schafkopf: line ends, charsets, spellings of §, surplus lines.
    Rewritten(SCHAFKOPF, "s2c", b"!DRAN\r\n0\r\n!END\r\n", {"dran": 3}, b"!DRAN\r\n3\r\n!END\r\n"),
    Rewritten(SCHAFKOPF, "s2c", b"!KONTO\n007\n5\n!END\n", {"stock": 6}, b"!KONTO\n007\n6\n!END\n"),
    Rewritten(SCHAFKOPF, "s2c", b"!DRAN\n0\nx\n!END", {"dran": 3}, b"!DRAN\n3\nx\n!END"),
    Rewritten(SCHAFKOPF, "s2c", b"!SIEGER\n10\n4\n!END\n", {"spieler": 13}, b"!SIEGER\n13\n4\n!END\n"),
    Rewritten(
        SCHAFKOPF, "c2s", latin1("!NAME\nJörg\n!END\n"), {"name": "Jürg"}, latin1("!NAME\nJürg\n!END\n")
    ),
    Rewritten(SCHAFKOPF, "c2s", latin1("!NAME\nJörg\n!END\n"), {"name": "Ω"}, utf8("!NAME\nΩ\n!END\n")),
    Rewritten(
        SCHAFKOPF,
        "s2c",
        utf8("!MITSPIELER\nJörg\n") + latin1("Jürg\nx\n\n!END\n"),
        {"namen": ["Görg", "Gürg", "y", ""]},
        utf8("!MITSPIELER\nGörg\n") + latin1("Gürg\ny\n\n!END\n"),
    ),
    Rewritten(
        SCHAFKOPF,
        "c2s",
        b"!MODEL\n!SPIEL\n" + _CARDS + b"\n",
        {"spielerhand": [None] * 6},
        b"!MODEL\n!SPIEL\n" + _FEWER + b"\n",
    ),
    Rewritten(
        SCHAFKOPF,
        "s2c",
        utf8("!MITSPIELER\r\nÂ§\r\nA\r\nB\r\nC\r\n!END\r\n"),
        {"namen": ["§", "A", "§", "C"]},
        utf8("!MITSPIELER\r\nÂ§\r\nA\r\nÂ§\r\nC\r\n!END\r\n"),
    ),
    # Catan: spellings, blanks, line ends, order, unknown attributes, other forms.
    Rewritten(
        CATAN,
        "s2c",
        b' {"Wuerfelwurf" : { "Wurf":[1, 6],"Spieler" :1 ,"x":[]}}\r\n',
        {"Spieler": 22},
        b' {"Wuerfelwurf" : { "Wurf":[1, 6],"Spieler" :22 ,"x":[]}}\r\n',
    ),
    Rewritten(
        CATAN,
        "s2c",
        b'{"Wuerfelwurf":{"Spieler":1,"Wurf":[1, 6]}}',
        {"Wurf": [1, 5]},
        b'{"Wuerfelwurf":{"Spieler":1,"Wurf":[1, 5]}}',
    ),
    Rewritten(
        CATAN,
        "c2s",
        rb'{"Spieler":{"N\u0061me":"J\u00f6rg","Farbe":"Gr\u00fcn"}}' + b"\n",
        {"Name": 'Jü"rg'},
        rb'{"Spieler":{"N\u0061me":"J' + utf8("ü") + rb'\"rg","Farbe":"Gr\u00fcn"}}' + b"\n",
    ),
    Rewritten(
        CATAN,
        "s2c",
        b'{"Spieler":0,"Ritter ausspielen":{"Ziel":3,"Ort":{"x":1,"y":1}}}\n',
        {"Spieler": 1, "Ziel": 2, "Ort": {"x": 0, "y": 1}},
        b'{"Spieler":1,"Ritter ausspielen":{"Ziel":2,"Ort":{"x":0,"y":1}}}\n',
    ),
    Rewritten(
        CATAN,
        "c2s",
        b'{"Strassenbaukarte ausspielen":[[{"x":0,"y":0},{"x":1,"y":0}]]}\n',
        {"Straße 1": [{"x": 0, "y": 0}, {"x": 0, "y": 1}]},
        b'{"Strassenbaukarte ausspielen":[[{"x":0,"y":0},{"x":0,"y":1}]]}\n',
    ),
    Rewritten(CATAN, "s2c", b'{"Serverantwort":"OK"}\n', {"Meldung": "no"}, b'{"Serverantwort":"no"}\n'),
    Rewritten(
        CATAN,
        "s2c",
        b'{"Spieler":0,"Ritter ausspielen":{"Ort":{"x":1,"y":1}}} \n',
        {"Ziel": 3},
        b'{"Ritter ausspielen":{"Ort":{"x":1,"y":1},"Ziel":3},"Spieler":0} \n',
    ),
    Rewritten(
        CATAN,
        "s2c",
        b'{"Ertrag":{"Spieler": 1,"Rohstoffe": {"Unbekannt":3}}}\n',
        {"Rohstoffe": 4},
        b'{"Ertrag":{"Spieler": 1,"Rohstoffe": 4}}\n',
    ),
    Rewritten(
        CATAN,
        "c2s",
        b'{"Seehandel": {"Angebot": {"Holz": 4},"Nachfrage": {"Erz": 1}}}\n',
        {"Angebot": {"Holz": 2, "Lehm": 1}},
        b'{"Seehandel": {"Angebot": {"Holz":2,"Lehm":1},"Nachfrage": {"Erz": 1}}}\n',
    ),
    # Okey: paddings, line ends, bare tokens, surplus arguments, charsets.
    Rewritten(OKEY, "s2c", b"+LOGI anna\n", {"actualname": "Zoe"}, b"+LOGI Zoe\n"),
    Rewritten(OKEY, "s2c", b"+LOGI anna\r\n", {"actualname": "a b"}, b'+LOGI "a b "\r\n'),
    Rewritten(OKEY, "s2c", b"JOND anna\r\n", {"name": "a b"}, b'JOND "a b%"\r\n'),
    Rewritten(OKEY, "s2c", b'CATS b "a b%" anna\r\n', {"sender": "an na"}, b'CATS b "a b%" "an na%"\r\n'),
    Rewritten(
        OKEY,
        "s2c",
        rb'+LLPL "\"5 boran \\"%\\"%\"%"' + b"\r\n",
        {"lobbieswithplayerlist": [{"lobby": 6, "players": ["a b", None]}]},
        rb'+LLPL "\"6 \\"a b%\\" \\"%\\"%\"%"' + b"\r\n",
    ),
    Rewritten(
        OKEY,
        "c2s",
        cp1252("CATC  w grüße robin more words\r"),
        {"whisperrecipient": "Žoë"},
        cp1252("CATC  w grüße Žoë more words\r"),
    ),
    Rewritten(OKEY, "s2c", b"+JLOB t\r\n", {"debugmessage": "a b"}, b'+JLOB t "a b "\r\n'),
    # CGML: quotes, blanks, comments, envelope, charset, misprints.
    Rewritten(
        CGML,
        "s2c",
        b"<!-- playerid='1' --><flek  playerid = '6533' type='info' >\n 4 </flek>\n\n",
        {"playerid": 7, "flek": "1:2"},
        b"<!-- playerid='1' --><flek  playerid = '7' type='info' >\n 1:2 </flek>\n\n",
    ),
    Rewritten(
        CGML,
        "s2c",
        b'<cgml version="1.15"><ABORT><player id="1"><name/></player></ABORT></cgml>\r\n\r\n',
        {"player": {"id": 12, "name": 'A & "B"'}},
        b'<cgml version="1.15"><ABORT><player id="12"><name>A &amp; &quot;B&quot;</name></player>'
        b"</ABORT></cgml>\r\n\r\n",
    ),
    Rewritten(
        CGML,
        "s2c",
        latin2('<renonc><player id="1"><name>Žluť</name></player><message>č</message></renonc>\r\n\r\n'),
        {"player": {"id": 1, "name": "Žáβ"}},
        latin2('<renonc><player id="1"><name>Žá&#946;</name></player><message>č</message></renonc>\r\n\r\n'),
    ),
    Rewritten(
        CGML,
        "s2c",
        b'<licite type="info "playerid="6533">100</licite>\r\n\r\n',
        {"playerid": 1},
        b'<licite type="info "playerid="1">100</licite>\r\n\r\n',
    ),
    Rewritten(
        CGML,
        "s2c",
        b'<dial type="cards" from "talon" to="hand"><card/><card></card><card>R0A</card></dial>\r\n\r\n',
        {"card": ["B07", "B10", None]},
        b'<dial type="cards" from "talon" to="hand"><card>B07</card><card>B10</card><card></card>'
        b"</dial>\r\n\r\n",
    ),
    # Other elements than before: as the specification writes it.
    Rewritten(
        CGML,
        "c2s",
        b"<playcard from='hand' to='desk' type='cards'><card>R10</card></playcard>\n\n",
        {"card": ["R10", "B10"]},
        b'<playcard type="cards" from="hand" to="desk">\r\n  <card>R10</card>\r\n  <card>B10</card>\r\n'
        b"</playcard>\r\n\r\n",
    ),
]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: repr(case.after[:70]))
def test_only_what_is_to_be_other_bytes_is(case: Rewritten) -> None:
    decoded = case.dissector.codec.decode(case.before, case.direction)
    assert decoded.row is not None
    fields = decoded.fields | case.fields
    assert fields != decoded.fields
    written = case.dissector.codec.rewrite(case.before, case.direction, fields)
    assert written == case.after
    assert case.dissector.codec.decode(written, case.direction).fields == fields


@pytest.mark.parametrize(
    ("dissector", "direction", "frame", "fields"),
    [
        (MAEXCHEN, "c2s", b"JOIN;abc", {"token": "a b"}),
        (MAEXCHEN, "c2s", b"JOIN;abc", {"token": 1}),
        (MAEXCHEN, "c2s", b"JOIN;abc", {}),
        (MAEXCHEN, "c2s", b"NOTHING", {}),
        (SCHAFKOPF, "c2s", b"!NAME\na\n!END\n", {"name": "a\nb"}),
        (SCHAFKOPF, "c2s", b"!NAME\na\n!END\n", {"name": "!END"}),
        (SCHAFKOPF, "c2s", b"!NAME\na\n!END\n", {"name": "a\r"}),
        (SCHAFKOPF, "c2s", b"!NAME\na\n!END\n", {"name": "Â§"}),
        (SCHAFKOPF, "s2c", b"!DRAN\n0\n!END\n", {"dran": True}),
        (SCHAFKOPF, "s2c", b"!DRAN\n0\n!END\n", {"dran": 4}),
        (CATAN, "s2c", b'{"Willkommen":{"id":1}}\n', {"id": True}),
        (CATAN, "s2c", b'{"Willkommen":{"id":1}}\n', {"id": 2**31}),
        (OKEY, "c2s", b"LOGI anna\r\n", {"nickname": "a\nb"}),
        (OKEY, "c2s", b"JLOB 1\r\n", {"n": 2**31}),
        (CGML, "c2s", b"<load>1</load>\r\n\r\n", {"load": 101}),
        (CGML, "c2s", b"<load>1</load>\r\n\r\n", {"load": 1, "more": 1}),
        (CGML, "s2c", b"<abort><message>a</message></abort>\r\n\r\n", {"message": "\0"}),
    ],
)
def test_values_outside_a_row_are_not_written(
    dissector: Dissector, direction: Direction, frame: bytes, fields: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"cannot be written|no message"):
        dissector.codec.rewrite(frame, direction, fields)


@each_protocol
def test_other_names_go_into_every_case_and_out_again(dissector: Dissector) -> None:
    for case in CASES[dissector]:
        before = dissector.codec.decode(case.data, case.direction)
        if before.row is None or "2147483647" in before.fields_json:
            # Nothing names anything there, or the next number would be too large.
            continue
        fields = before.row.renamed(before.fields, onwards)
        other = dissector.codec.rewrite(case.data, case.direction, fields)
        after = dissector.codec.decode(other, case.direction)
        assert after.row is not None
        assert (after.row, after.fields) == (before.row, fields)
        assert after.valid >= before.valid
        first = dissector.codec.rewrite(other, case.direction, after.row.renamed(after.fields, back))
        assert dissector.codec.decode(first, case.direction).fields == before.fields


# Any fields, for any frame.

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["", "\n", "\r", ";", ",", " ", '"', "%", "§", "Â§", "<", "&", "!END", "ü", "ž", "\0"]),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(st.text(max_size=6), parts, max_size=4),
    max_leaves=5,
)


@st.composite
def others(draw: st.DrawFn, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with something else somewhere in them, or something more, or less."""
    new = deepcopy(fields)
    place: Any = new
    while True:
        steps = [*place] if isinstance(place, dict) else [*range(len(place))]
        if not steps or draw(st.integers(0, 9)) == 0:
            if isinstance(place, dict):
                place[draw(st.text(max_size=4))] = draw(JSON)
            else:
                place.append(draw(JSON))
            return new
        step = draw(st.sampled_from(steps))
        if isinstance(place[step], dict | list) and draw(st.integers(0, 3)):
            place = place[step]
        elif draw(st.integers(0, 5)):
            place[step] = draw(JSON)
            return new
        else:
            del place[step]
            return new


def check_rewriting(dissector: Dissector, direction: Direction, frame: bytes, fields: dict[str, Any]) -> None:
    before = dissector.codec.decode(frame, direction)
    try:
        written = dissector.codec.rewrite(frame, direction, fields)
    except ValueError:
        return
    after = dissector.codec.decode(written, direction)
    assert before.row is not None
    assert after.row is not None
    assert after.row.name == before.row.name
    assert to_json(after.fields) == to_json(fields)
    assert after.valid >= before.valid
    if is_one_frame(dissector, direction, frame):
        assert is_one_frame(dissector, direction, written)


@pytest.mark.full(but=1)
@each_protocol
@settings(max_examples=times(300, 8))
@given(data=st.data())
def test_a_frame_decodes_to_its_values_or_is_not_written(dissector: Dissector, data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES[dissector]))
    fields = data.draw(others(dissector.codec.decode(case.data, case.direction).fields))
    check_rewriting(dissector, case.direction, case.data, fields)


@pytest.mark.full(but=1)
@each_protocol
@settings(max_examples=times(300))
@given(data=st.data())
def test_no_bytes_break_the_rewriting(dissector: Dissector, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(CASES[dissector])).data
    start, end = sorted((data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, len(whole)))))
    frame = whole[:start] + data.draw(st.binary(max_size=8)) + whole[end:]
    for direction in DIRECTIONS:
        fields = dissector.codec.decode(frame, direction).fields
        if dissector.codec.decode(frame, direction).row is not None:
            assert dissector.codec.rewrite(frame, direction, fields) == frame
        check_rewriting(dissector, direction, frame, data.draw(others(fields)))


# The pieces.


@given(JSON, JSON)
def test_only_differences_are_reported(before: Any, after: Any) -> None:
    merged = deepcopy(before)
    for path in differences(before, after):
        assert to_json(value_at(before, path)) != to_json(value_at(after, path))
        if not path:
            merged = after
        else:
            value_at(merged, path[:-1])[path[-1]] = value_at(after, path)
    assert to_json(merged) == to_json(after)


def test_differences_are_as_small_as_can_be() -> None:
    before = {"a": [1, {"b": 2, "c": [3]}], "d": 1, "e": {"f": 1}}
    after = {"a": [1, {"b": 4, "c": [3, 4]}], "d": True, "e": {"g": 1}}
    assert [*differences(before, after)] == [("a", 1, "b"), ("a", 1, "c"), ("d",), ("e",)]


def test_bytes_are_put_in_place_of_others() -> None:
    assert replaced(b"abcdef", {(4, 1): b"", (0, 2): b"AB!", (3, 0): b"-"}) == b"AB!c-df"
    assert replaced(b"abc", {}) == b"abc"
