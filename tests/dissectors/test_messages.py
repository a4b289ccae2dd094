"""Single messages of all protocols by tables of cases: decoding, encoding, cutting, recognising."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from conversation_files import blocks
from conversation_files import check as check_block
from hypothesis import given, settings
from hypothesis import strategies as st
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from message_cases import CASES, Case, cases, groups, path_of, rewritten
from single_direction import inspect
from snapshots import DATA, as_bytes, as_text, check
from strength import every, times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import blame_of
from kiebitz.dissectors.model import DIRECTIONS, Direction, Findings
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.testing import CHECKS, EXAMPLES, Check, decode_after_encode_is_the_identity, payloads

CONFORMING = ("sound", "dialects")
"""Titles of the groups whose messages have no diagnostics."""


def label(value: object) -> str | None:
    match value:
        case Dissector():
            return value.protocol
        case Case():
            return f"{value.direction} {value.data[:60]!r}"
    return None


each_protocol = pytest.mark.parametrize("dissector", CASES, ids=label)

Row = tuple[Dissector, str, Case]


def each(rows: Iterable[Row], share: int) -> pytest.MarkDecorator:
    """Parametrize a test with these cases, in `make test` with one in `share`."""
    return pytest.mark.parametrize(
        ("dissector", "title", "case"), every(share, rows, lambda row: f"{label(row[0])} {label(row[2])}")
    )


TWO_FRAMES = "two frames"
"""Title of the group whose messages are two frames in a stream: another message begins in them."""

ROWS: list[Row] = [
    (dissector, title, case)
    for dissector in CASES
    for title, some in groups(dissector).items()
    for case in some
    if title != TWO_FRAMES
]


# Decoding and encoding.


@each_protocol
def test_messages_decode_to_what_they_say(dissector: Dissector) -> None:
    path = path_of(dissector)
    check(path, rewritten(dissector, path))


@each_protocol
def test_the_groups_contain_what_their_titles_say(dissector: Dissector) -> None:
    expected = {"loose": {"", "note"}, "ignored": {"note"}, "unknown": {"note", "warning"}}
    for title, some in groups(dissector).items():
        severities = {""} if title in CONFORMING else expected.get(title, {"error"})
        if title == "broken message names":
            severities = {"error", "warning"}
        assert {case.severity for case in some} <= severities, title
        for case in some:
            decoded = dissector.codec.decode(case.data, case.direction)
            assert decoded.valid == (title in (*CONFORMING, "loose")), case
            assert (
                decoded.valid
                or title == "ignored"
                or all(violation.expected and violation.clause for violation in decoded.violations)
            ), case


@pytest.mark.parametrize("dissector", [SCHAFKOPF, CATAN], ids=label)
def test_another_message_begins_in_one_that_is_broken(dissector: Dissector) -> None:
    for case in groups(dissector)[TWO_FRAMES]:
        found = inspect(dissector, case.direction, case.data)
        assert len(found.messages) > 1
        assert sum(message.length for message in found.messages) == len(case.data)
        assert malformed(found)


@each_protocol
def test_the_fields_of_a_message_lead_to_its_row(dissector: Dissector) -> None:
    for case in groups(dissector)["sound"]:
        decoded = dissector.codec.decode(case.data, case.direction)
        assert decoded.row is not None
        found = dissector.grammar.row_of(decoded.row.name, case.direction, decoded.fields)
        assert found is decoded.row, case


@each_protocol
def test_a_message_is_encoded_as_it_was_read(dissector: Dissector) -> None:
    for case in cases(dissector, *(title for title in CONFORMING if title in groups(dissector))):
        assert case.name is not None
        encoded = dissector.codec.encode(case.name, case.direction, case.fields)
        decoded = dissector.codec.decode(encoded, case.direction)
        assert decoded.row is not None
        assert (decoded.row.name, decoded.fields) == (case.name, case.fields)
    for case in groups(dissector)["sound"] if dissector not in (CGML, NOUGHTS) else ():
        assert case.name is not None
        assert dissector.codec.encode(case.name, case.direction, case.fields) == case.data


@each_protocol
def test_every_row_has_a_case_a_clause_and_a_gloss(dissector: Dissector) -> None:
    decoded = [dissector.codec.decode(case.data, case.direction) for case in CASES[dissector]]
    assert {*dissector.grammar.rows} == {one.row for one in decoded if one.valid}
    assert all(row.clause and row.description for row in dissector.grammar.rows)


def write(message: str) -> bytes:
    """Encode the fields of a message, or put them into its bytes."""
    protocol, way, text = message.split(" ", 2)
    (codec,) = (dissector.codec for dissector in CASES if dissector.protocol == protocol)
    direction = DIRECTIONS[way == "s2c"]
    before, arrow, after = text.partition(" → ")
    if arrow:
        return codec.rewrite(as_bytes(before), direction, json.loads(after))
    name, _, fields = text.partition(" {")
    return codec.encode(name, direction, json.loads(f"{{{fields}"))


def test_values_without_a_row_are_not_written() -> None:
    (block,) = blocks(DATA / "unwritable_messages.txt").values()
    lines = []
    for step in block.steps:
        with pytest.raises(ValueError) as raised:  # noqa: PT011  # the text has each message
            write(step)
        lines += [step, f"    {as_text(str(raised.value).encode())}"]
    check_block(block, "\n".join(lines))


@pytest.mark.full(but=1)
@each_protocol
@given(data=st.data(), direction=st.sampled_from(DIRECTIONS))
@settings(max_examples=times(300))
def test_a_broken_message_has_one_diagnostic(
    dissector: Dissector, data: st.DataObject, direction: Direction
) -> None:
    frame = data.draw(payloads([case.data for case in CASES[dissector]]))
    for decoded in (dissector.codec.decode(frame, direction), dissector.codec.truncated(frame, direction)):
        severe = [
            violation.code
            for violation in decoded.violations
            if not violation.habit and violation.code != "duplicate-key"
        ]
        assert decoded.valid or len(severe) <= 1
        # It may be a note: of a byte order mark alone, or of capital letters in CGML.
        noted = {violation.code for violation in decoded.violations} & {"byte-order-mark", "upper-case"}
        assert decoded.valid or severe or noted or not frame.strip()


# Any bytes.


@pytest.mark.full(but=14)
@each_protocol
@pytest.mark.parametrize("test", CHECKS, ids=lambda test: test.__name__)
def test_properties_of_all_protocols(test: Check, dissector: Dissector) -> None:
    test(dissector, [case.data for case in CASES[dissector]], times(EXAMPLES, quick=4))


@pytest.mark.parametrize("dissector", [KNOBELN, NOUGHTS], ids=label)
def test_decode_after_encode_is_the_identity(dissector: Dissector) -> None:
    decode_after_encode_is_the_identity(dissector, examples=times(EXAMPLES))


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
@each((row for row in ROWS if row[0] in FOLLOWING), 8)
def test_a_message_means_the_same_bytewise_and_the_next_is_read(
    dissector: Dissector, title: str, case: Case
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
    for violation in whole.diagnostics if case.severity == "error" else ():
        assert violation.severity == "note" or violation.blame == (
            "client" if case.direction == "c2s" else "server"
        )


@pytest.mark.full(but=16)
@each(
    (
        row
        for row in ROWS
        if row[0] in FOLLOWING
        and (
            row[1] in CONFORMING
            or row[0] == SCHAFKOPF
            or (row[0] == CATAN and row[1] in ("malformed", "unknown"))
        )
    ),
    8,
)
def test_a_message_means_the_same_after_a_gap_and_in_mid_stream(
    dissector: Dissector, title: str, case: Case
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


@pytest.mark.full(but=12)
@each((row for row in ROWS if row[0] in FOLLOWING and row[1] == "sound" and len(row[2].data) < 90), 4)
@pytest.mark.parametrize("reason", ["closed", "reset", "end"])
def test_a_stream_that_ends_in_a_message(dissector: Dissector, title: str, case: Case, reason: str) -> None:
    """The side that ends the stream is blamed; no side if only the capture ends."""
    for cut in range(1, len(case.data)):
        found = inspect(dissector, case.direction, case.data[:cut], reason=reason)
        assert [(message.offset, message.length) for message in found.messages] == [(0, cut)]
        severe = [one for one in found.diagnostics if one.group == "malformed" and one.severity == "error"]
        assert len(severe) <= (reason != "end")
        for violation in severe:
            assert violation.blame == blame_of(case.direction)
            assert violation.expected
            assert violation.offset + violation.length <= cut
        if dissector in (SCHAFKOPF, CATAN) and reason != "end" and severe:
            assert (severe[0].code, severe[0].offset, severe[0].length) == ("truncated", cut, 0)
        if cut < len(case.data.rstrip()) and dissector == CATAN:
            assert len(severe) == (reason != "end")


@pytest.mark.parametrize(
    ("dissector", "case"), [(each, case) for each in (MAEXCHEN, KNOBELN) for case in CASES[each]], ids=label
)
def test_a_datagram_means_the_same_after_a_gap(dissector: Dissector, case: Case) -> None:
    whole, after = (inspect(dissector, case.direction, *sent) for sent in ([case.data], [10, case.data]))
    assert [message[:2] for message in messages(after)] == [message[:2] for message in messages(whole)]
    gap, *others = after.diagnostics
    assert (gap.code, gap.offset, gap.length) == ("gap", 0, 10)
    assert [(one.code, one.offset) for one in others] == [
        (one.code, one.offset + 10) for one in whole.diagnostics
    ]


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
@each((row for row in ROWS if row[1] in (*CONFORMING, "loose")), 4)
def test_a_message_is_recognised(dissector: Dissector, title: str, case: Case) -> None:
    likeness = dissector.recognise(case.data, case.direction)
    if title in CONFORMING:
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
    said = [*FOREIGN, *(case.data for case in (cases(MAEXCHEN, "sound") if dissector != MAEXCHEN else []))]
    assert [data for data in said if dissector.recognise(data, direction) is not None] == []
