"""Single messages of all protocols by tables of cases: decoding, encoding, cutting, recognising."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import catan_cases
import cgml_cases
import knobeln_cases
import maexchen_cases
import noughts_cases
import okey_cases
import pytest
import schafkopf_cases
from all_cases import CASES
from cases import Case
from cgml_broken import BROKEN
from hypothesis import given, settings
from hypothesis import strategies as st
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from single_direction import inspect
from strength import times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import DIRECTIONS, Direction, Findings
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.testing import payloads


class Group(NamedTuple):
    """Cases that are treated alike. With `exact`, encoding gives their bytes; else, if set, their fields."""

    dissector: Dissector
    cases: list[Case]
    severity: str | None = None
    sound: bool = True
    exact: bool | None = None


GROUPS = [
    Group(MAEXCHEN, maexchen_cases.SOUND, exact=True),
    Group(MAEXCHEN, maexchen_cases.LOOSE, "note"),
    Group(MAEXCHEN, maexchen_cases.MALFORMED, "error", False),
    Group(SCHAFKOPF, schafkopf_cases.SOUND, exact=True),
    Group(SCHAFKOPF, schafkopf_cases.LOOSE, "note"),
    Group(SCHAFKOPF, schafkopf_cases.IGNORED, "note", False),
    Group(SCHAFKOPF, [*schafkopf_cases.MALFORMED, *schafkopf_cases.NO_PAKET], "error", False),
    Group(SCHAFKOPF, schafkopf_cases.UNKNOWN, "note", False),
    Group(CATAN, catan_cases.SOUND, exact=True),
    Group(CATAN, catan_cases.DIALECTS, exact=False),
    Group(CATAN, catan_cases.LOOSE, "note", exact=False),
    Group(CATAN, catan_cases.IGNORED, "note", False),
    Group(CATAN, catan_cases.MALFORMED, "error", False),
    Group(CATAN, catan_cases.NO_MESSAGE, "error", False),
    Group(CATAN, catan_cases.UNKNOWN, "warning", False),
    Group(OKEY, okey_cases.SEED, exact=True),
    Group(OKEY, okey_cases.HEAD, exact=False),
    Group(OKEY, okey_cases.LOOSE, "note"),
    Group(OKEY, okey_cases.MALFORMED, "error", False),
    Group(CGML, cgml_cases.SOUND, exact=False),
    Group(CGML, cgml_cases.LOOSE, "note"),
    Group(CGML, BROKEN, "error", False),
    Group(KNOBELN, knobeln_cases.SOUND, exact=True),
    Group(KNOBELN, knobeln_cases.MALFORMED, "error", False),
    Group(NOUGHTS, noughts_cases.SOUND),
    Group(NOUGHTS, noughts_cases.MALFORMED, "error", False),
]
DISSECTORS = dict.fromkeys(group.dissector for group in GROUPS)
ROWS = [(dissector, row) for dissector in DISSECTORS for row in dissector.grammar.rows]


def label(value: object) -> str | None:
    match value:
        case Dissector():
            return value.protocol
        case Case():
            return f"{value.direction} {value.data[:60]!r}"
        case MessageType():
            return f"{value.direction} {value.name} {','.join(field.name for field in value.fields)}"
    return None


def each(groups: Iterable[Group], share: int = 1) -> pytest.MarkDecorator:
    """Parametrize a test with the cases of these groups, in `make test` with one in `share` of each."""
    rows = [(group.dissector, case, group) for group in groups for case in [*group.cases][:: times(1, share)]]
    return pytest.mark.parametrize(
        ("dissector", "case", "group"), rows, ids=[f"{label(row[0])} {label(row[1])}" for row in rows]
    )


def sound_cases(dissector: Dissector) -> list[Case]:
    return [case for group in GROUPS if group.dissector == dissector and group.sound for case in group.cases]


# Decoding and encoding.


@each(GROUPS, 2)
def test_a_message_decodes_to_what_it_says(dissector: Dissector, case: Case, group: Group) -> None:
    decoded = dissector.codec.decode(case.data, case.direction)
    name = decoded.row.name if decoded.row is not None else None
    assert (name, decoded.fields, decoded.valid) == (case.name, case.fields, group.sound)
    places = [(violation.code, *violation.place(case.data)) for violation in decoded.violations]
    assert sorted(places) == sorted(case.diagnostics)
    worst = {violation.severity for violation in decoded.violations} - (
        {"note"} if group.severity == "error" else set()
    )
    assert worst == ({group.severity} if case.diagnostics else set())
    is_ignored = group.cases in (schafkopf_cases.IGNORED, catan_cases.IGNORED)
    assert (
        group.sound
        or is_ignored
        or all(violation.expected and violation.clause for violation in decoded.violations)
    )


@each((group for group in GROUPS if group.exact is not None), 2)
def test_a_message_is_encoded_as_it_was_read(dissector: Dissector, case: Case, group: Group) -> None:
    assert case.name is not None
    encoded = dissector.codec.encode(case.name, case.direction, case.fields)
    if group.exact:
        assert encoded == case.data
    decoded = dissector.codec.decode(encoded, case.direction)
    assert decoded.row is not None
    assert (decoded.row.name, decoded.fields) == (case.name, case.fields)


@pytest.mark.parametrize(("dissector", "row"), ROWS, ids=label)
def test_every_row_has_a_case_a_clause_and_a_gloss(dissector: Dissector, row: MessageType) -> None:
    assert any(
        dissector.codec.decode(case.data, case.direction).row is row for case in sound_cases(dissector)
    )
    assert row.clause
    assert row.description


NO_ROWS: list[tuple[Dissector, str, Direction, dict[str, Any]]] = [
    (MAEXCHEN, "ROLL", "c2s", {"dice": "1,1"}),
    (SCHAFKOPF, "DRAN", "s2c", {"konto": 1}),
    (SCHAFKOPF, "NAME", "s2c", {"name": "!END"}),
    (SCHAFKOPF, "NAME", "s2c", {"name": "Anna\n!END\n!ID"}),
    (SCHAFKOPF, "NAME", "s2c", {"name": "Anna\r"}),
    (SCHAFKOPF, "MITSPIELER", "s2c", {"namen": ["a", "b", "c"]}),
    (CATAN, "OK", "c2s", {}),
    (CATAN, "Wetter", "s2c", {}),
    (CATAN, "Willkommen", "s2c", {"id": -1}),
    (CATAN, "Willkommen", "s2c", {}),
    (CATAN, "Würfeln", "c2s", {"Spieler": 1}),
    (CATAN, "Würfelwurf", "s2c", {"Spieler": 1, "Wurf": [1, 7]}),
    (CATAN, "Monopol", "c2s", {"Rohstoff": "LEHM"}),
    (CATAN, "Wuerfeln", "c2s", {}),
    (OKEY, "OK", "c2s", {}),
    (OKEY, "STAT", "c2s", {}),
    (OKEY, "LOGI", "c2s", {}),
    (OKEY, "LOGI", "c2s", {"nickname": "a\nPING"}),
    (OKEY, "DRAW", "c2s", {"drawstack": "x"}),
    (OKEY, "PUTT", "c2s", {"tile": "4:GREEN", "deck": []}),
    (OKEY, "CATC", "c2s", {"messagetype": "w", "msg": "x"}),
    (OKEY, "STRT", "s2c", {"startdeck": ["1:RED"] * 25, "playeridx": 0}),
    (OKEY, "PING", "c2s", {"msg": "x"}),
    (CGML, "load", "c2s", {"load": 101}),
    (CGML, "load", "c2s", {"laod": 1}),
    (CGML, "licite", "c2s", {"type": "answer", "licite": "200"}),
    (CGML, "playcard", "c2s", {"type": "cards", "from": "hand", "to": "desk", "card": ["T18"]}),
    (CGML, "disconnect", "c2s", {"disconnect": "\0"}),
    (CGML, "smile", "c2s", {}),
    (KNOBELN, "WURF", "s2c", {"name": "alice"}),
]


@pytest.mark.parametrize(("dissector", "name", "direction", "fields"), NO_ROWS, ids=label)
def test_values_without_a_row_cannot_be_encoded(
    dissector: Dissector, name: str, direction: Direction, fields: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=name):
        dissector.codec.encode(name, direction, fields)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("dissector", DISSECTORS, ids=label)
@given(data=st.data(), direction=st.sampled_from(DIRECTIONS))
@settings(max_examples=times(300))
def test_a_broken_message_has_one_diagnostic(
    dissector: Dissector, data: st.DataObject, direction: Direction
) -> None:
    frame = data.draw(payloads([case.data for case in CASES.get(dissector, sound_cases(dissector))]))
    for decoded in (dissector.codec.decode(frame, direction), dissector.codec.truncated(frame, direction)):
        severe = [
            violation.code
            for violation in decoded.violations
            if not violation.habit and violation.code != "duplicate-key"
        ]
        assert decoded.valid or len(severe) <= 1
        assert decoded.valid or severe or not frame.strip()


# In a stream.

FOLLOWING: dict[Dissector, dict[Direction, bytes]] = {
    SCHAFKOPF: {"s2c": b"!ID\n2\n!END\n", "c2s": b"!ERSTE3\nNEIN\n!END\n"},
    CATAN: {"s2c": b'{"OK":{}}\n', "c2s": b'{"Zug beenden":{}}\n'},
    OKEY: {"s2c": b"PING\r\n", "c2s": b"PING\r\n"},
    CGML: {"s2c": b'<playcard type="ask"></playcard>\r\n\r\n', "c2s": b"<load>48</load>\r\n\r\n"},
}
"""A message that may come before or after any other, of each protocol over TCP."""

REST = {
    SCHAFKOPF: b"0\n!END\n",
    CATAN: b'rsion":"x"}}\n',
    OKEY: b"rest of a line\r\n",
    CGML: b"rd></round>\r\n\r\n",
}
"""The second half of a message."""

over_tcp = each((group for group in GROUPS if group.dissector in FOLLOWING), 8)


def messages(found: Findings) -> list[tuple[str, Any, int, int]]:
    return [(message.name, message.fields, message.offset, message.length) for message in found.messages]


def malformed(found: Findings, start: int = 0) -> list[tuple[str, int, int]]:
    """Return what is wrong in the bytes from `start` on; that it is a dialect is reported by the table."""
    return sorted(
        (violation.code, violation.offset, violation.length)
        for violation in found.diagnostics
        if violation.group == "malformed" and violation.code != "dialect" and violation.offset >= start
    )


@pytest.mark.full(but=25)
@over_tcp
def test_a_message_means_the_same_bytewise_and_the_next_is_read(
    dissector: Dissector, case: Case, group: Group
) -> None:
    # Schafkopf has no line end in UTF-16 after which another message could begin.
    is_endless = dissector == SCHAFKOPF and b"\0" in case.data
    following = b"" if is_endless else FOLLOWING[dissector][case.direction]
    whole = inspect(dissector, case.direction, case.data + following)
    first, *others = messages(whole)
    assert first == (case.name or "unreadable", case.fields, 0, len(case.data))
    assert [other[2:] for other in others] == ([(len(case.data), len(following))] if following else [])
    in_pieces = inspect(dissector, case.direction, *(bytes([byte]) for byte in case.data + following))
    assert messages(in_pieces) == messages(whole)
    assert malformed(in_pieces) == malformed(whole)
    assert is_endless or malformed(whole) == sorted(case.diagnostics)
    for violation in whole.diagnostics if group.severity == "error" else ():
        assert violation.severity == "note" or violation.blame == (
            "client" if case.direction == "c2s" else "server"
        )


@pytest.mark.full(but=16)
@each(
    (
        group
        for group in GROUPS
        if group.dissector in FOLLOWING
        and (
            group.severity is None
            or group.dissector == SCHAFKOPF
            or group.cases in (catan_cases.MALFORMED, catan_cases.UNKNOWN)
        )
    ),
    8,
)
def test_a_message_means_the_same_after_a_gap_and_in_mid_stream(
    dissector: Dissector, case: Case, group: Group
) -> None:
    before, rest = FOLLOWING[dissector][case.direction], REST[dissector]
    for gap in (7, None):
        for first in (before, b""):
            found = inspect(dissector, case.direction, *([first] if first else []), gap, rest, case.data)
            at = len(first) + (gap or 0) + len(rest)
            last = (case.name or "unreadable", case.fields, at, len(case.data))
            assert messages(found)[-1] == last
            if dissector != SCHAFKOPF:
                expected = [(code, at + offset, length) for code, offset, length in case.diagnostics]
                assert malformed(found, at) == sorted(expected)


# Recognising.

FOREIGN = [
    *(b"", b"\n", b"{}\n", b"[]\n", b"{", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    *(b"\x16\x03\x01\x02\x00\x01", b"HTTP/1.1 200 OK\r\n\r\n", b"SSH-2.0-OpenSSH_9\r\n", b"!END\n"),
    *(b"220 mail ESMTP\r\n", b"EHLO x\r\n", b"* OK IMAP4\r\n", b"NICK boran\r\nUSER b 0 * :b\r\n"),
    *(b"+OK POP3\r\n", b"USER x\r\nPASS y\r\n", b"QUIT\r\n", b"+PONG\r\n", b"!PING\n!END\n"),
    *(b'{"type":"Spieler","id":1}\n{"type":"Bauen"}\n', b'{"hello":{"version":"1"}}\n', b'{"Hal'),
    *(b'{"level":"info","msg":"OK","time":1.5}\n', b'["Hallo",{"Version":"1"}]\n'),
    b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}\n' * 3,
    b'HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n{"status":"OK","Hallo":"Welt"}',
    b"POST /rpc HTTP/1.1\r\nHost: example.org\r\nContent-Type: application/json\r\nContent-Length: 46\r\n\r\n"
    b'{"jsonrpc":"2.0","method":"Hallo","params":{}}',
    b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x02de\x00",
]
SHARED = {"PING", "+PING", "NAME", "STAT", "LEFT"}
"""Messages of Okey that other programs may say, too."""


@pytest.mark.full(but=28)
@each((group for group in GROUPS if group.sound), 4)
def test_a_message_is_recognised(dissector: Dissector, case: Case, group: Group) -> None:
    likeness = dissector.recognise(case.data, case.direction)
    if group.severity is None:
        assert likeness == ("similar" if dissector == OKEY and case.name in SHARED else "certain")
    for other in FOLLOWING if dissector in (CATAN, SCHAFKOPF, CGML) else ():
        assert other == dissector or other.recognise(case.data, case.direction) is None


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dissector", [*FOLLOWING, MAEXCHEN], ids=label)
def test_foreign_traffic_is_not_recognised(
    dissector: Dissector, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A capture may hold many megabytes of it: searching for the nearest name of each line takes seconds.
    monkeypatch.setattr(OKEY.grammar, "nearest", pytest.fail)
    said = [*FOREIGN, *(case.data for case in (maexchen_cases.SOUND if dissector != MAEXCHEN else []))]
    assert [data for data in said if dissector.recognise(data, direction) is not None] == []
