"""Duplicate names in JSON objects: the diagnostic, its place, and the value that counts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from altered_sessions import Said, recorded
from command import kiebitz
from hypothesis import example, given
from hypothesis import strategies as st
from message_cases import rewritten
from snapshots import DATA, check, unmarked

from kiebitz.dissectors.grammar.json.diagnostics import duplicate_key
from kiebitz.dissectors.protocols.catan.dissector import CATAN

_decode = msgspec.json.decode


def found(text: str) -> tuple[int, str] | None:
    """Return the offset of the repeated name in bytes and its spelling; None if all names are unique."""
    data = text.encode()
    violation = duplicate_key(data, _decode(data))
    if violation is None:
        return None
    return violation.offset, data[violation.offset : violation.offset + violation.length].decode()


@pytest.mark.parametrize("line", (DATA / "duplicate_names.txt").read_text().splitlines()[2:])
def test_the_second_of_two_equal_names_is_found(line: str) -> None:
    data, places = unmarked(line)
    violation = duplicate_key(data, _decode(data))
    assert places == ([(violation.offset, violation.length)] if violation is not None else [])


_NAMES = st.sampled_from(["a", "b", "ä", ":", '"', "\\", "N", ""])
_PLAIN = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a:", '":', "\\u003a", "ä,{"])


class _Members(list[tuple[str, Any]]):
    """The members of an object, whose names may be equal."""


_VALUES = st.recursive(
    _PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(_NAMES, inner), max_size=4).map(_Members),
    max_leaves=12,
)


@st.composite
def _texts(draw: st.DrawFn) -> str:
    """Draw a JSON text with names that occur again, in any spelling, and with blanks anywhere."""

    def blank() -> str:
        return draw(st.sampled_from(["", "", " ", "\n", "\t "]))

    def quoted(text: str) -> str:
        spelt = ""
        for character in text:
            if draw(st.integers(0, 3)) == 0:
                spelt += f"\\u{ord(character):04x}" if draw(st.booleans()) else f"\\u{ord(character):04X}"
            else:
                spelt += json.dumps(character, ensure_ascii=False)[1:-1]
        return f'"{spelt}"'

    def written(value: Any) -> str:
        if isinstance(value, _Members):
            parts = [
                f"{blank()}{quoted(name)}{blank()}:{blank()}{written(part)}{blank()}" for name, part in value
            ]
            return "{" + (",".join(parts) or blank()) + "}"
        if isinstance(value, list):
            return "[" + ",".join(f"{blank()}{written(part)}{blank()}" for part in value) + "]"
        return quoted(value) if isinstance(value, str) else json.dumps(value)

    return f"{blank()}{written(draw(_VALUES))}{blank()}"


@given(_texts())
@example('{"a":{"a":":"},"\\u0061":":"}')
def test_a_parser_that_sees_all_pairs_agrees(text: str) -> None:
    repeated: list[str] = []

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in members]
        repeated.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)
        return dict(members)

    assert json.loads(text, object_pairs_hook=pairs) == _decode(text)
    place = found(text)
    assert (place is None) == (not repeated)
    if place is not None:
        offset, spelt = place
        assert json.loads(spelt) in repeated
        # It is a name, and the text before it repeats none: without it, this one is the first of its kind.
        data = text.encode()
        rest = data[offset + len(spelt.encode()) :]
        assert rest.lstrip().startswith(b":")
        renamed = data[:offset] + b'"other than all"' + rest
        later = duplicate_key(renamed, _decode(renamed))
        assert later is None or later.offset > offset


@pytest.mark.full
def test_a_text_that_is_nested_too_deeply_to_be_written_is_scanned() -> None:
    text = b'{"a":' * 900 + b'{"b":1,"b":2}' + b"}" * 900
    value: Any = _decode(text)
    violation = duplicate_key(text, value)
    assert violation is not None
    assert violation.offset == 900 * 5 + 7
    for _ in range(200_000):
        value = {"a": value}
    assert duplicate_key(text, value) == violation


def test_catan_reports_one_duplicate_of_a_message() -> None:
    path = DATA / "messages" / "catan_duplicate_names.txt"
    check(path, rewritten(CATAN, path))


def test_check_shows_each_such_message_of_a_capture_at_its_byte(tmp_path: Path) -> None:
    known = recorded("catan-eisfrei-lobby.pcap.gz")

    def with_two_names(one: Said) -> Said:
        # An escape spells the first letter of the second.
        return replace(one, data=one.data.replace(b'"Name"', b'"Name":"Eva","\\u004eame"', 1))

    wrong = [one for one in known.said if one.direction == "c2s" and b'"Name"' in one.data]
    said = [with_two_names(one) if one in wrong else one for one in known.said]
    before = kiebitz("events", known.write(tmp_path / "before.db"), "--json").json
    database = known.with_said(said).write(tmp_path / "after.db")
    assert [event["sentence"] for event in kiebitz("events", database, "--json").json] == [
        event["sentence"] for event in before
    ]
    done = kiebitz("check", database, "-Y", "diag.code == 'duplicate-key'", "--json")
    assert len(wrong) == len(done.json) > 0
    for violation, one in zip(done.json, wrong, strict=True):
        assert (violation["severity"], violation["blame"], violation["clause"]) == (
            "warning",
            "client",
            "RFC 8259, 4",
        )
        assert '"Name" occurs twice in this object; the last value counts' in violation["text"]
        assert violation["length"] == len(b'"\\u004eame"')
        assert with_two_names(one).data.startswith(b'"\\u004eame"', one.data.index(b'"Name"') + 13)
