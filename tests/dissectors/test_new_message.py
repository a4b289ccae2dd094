"""A line in the file of Okey or Schafkopf is a new message with a new field, for every part of Kiebitz."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.protocol_file import packaged
from kiebitz.dissectors.protocol_file.reading.reader import PythonParts, read
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.okey.grammar import TYPES as OKEY_TYPES
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.protocols.schafkopf.grammar import TYPES as SCHAFKOPF_TYPES
from kiebitz.dissectors.testing import check_anatomy
from kiebitz.dissectors.wireshark.script import wireshark_script


class New(NamedTuple):
    """A new message: its row, a frame, another with an error, and what becomes of them.

    Attributes:
        edited: The frame before and after its field `wanted` is changed.
        anonymous: The frame with another name in `partner`.
    """

    dissector: Dissector
    types: Mapping[str, FieldType]
    row: str
    frame: bytes
    fields: Mapping[str, Any]
    wrong: tuple[bytes, str, int, int]
    edited: tuple[bytes, str, bytes]
    anonymous: bytes
    cases: tuple[str, ...]


MESSAGES = {
    "okey": New(
        OKEY,
        OKEY_TYPES,
        """SWAP = { is = "c: tile=tile wanted=red|black partner=name", about = "wants to swap a tile", \
clause = "{none}", descriptions = { wanted = "colour", partner = "player" } }
""",
        b'SWAP 4:BLUE red "Ann B "\r\n',
        {"tile": "4:BLUE", "wanted": "red", "partner": "Ann B"},
        (b"SWAP 4:BLUE rd ann\r\n", 'SWAP: "rd" is not known here: did you mean red?', 12, 2),
        (b'SWAP 4:BLUE  red "Ann B "\r\n', "black", b'SWAP 4:BLUE  black "Ann B "\r\n'),
        b"SWAP 4:BLUE red other\r\n",
        ("tile/unknown-colour", "wanted/other-case", "partner/left-out"),
    ),
    "schafkopf": New(
        SCHAFKOPF,
        SCHAFKOPF_TYPES,
        """SWAP = { is = "c: karte=card wanted=red|black partner=name", about = "wants to swap a card", \
clause = "{server}", descriptions = { wanted = "colour", partner = "player" } }
""",
        "!SWAP\nHERZ\nSAU\nred\nJürgen\n!END\n".encode(),
        {"karte": "HERZ SAU", "wanted": "red", "partner": "Jürgen"},
        (b"!SWAP\nHERZ\nSAU\nrd\nAnn\n!END\n", 'SWAP: "rd" is not known here: did you mean red?', 15, 2),
        (
            "!SWAP\r\nHERZ\nSAU\nred\nJürgen\r\n!END\n".encode("cp1252"),
            "black",
            "!SWAP\r\nHERZ\nSAU\nblack\nJürgen\r\n!END\n".encode("cp1252"),
        ),
        b"!SWAP\nHERZ\nSAU\nred\nother\n!END\n",
        ("karte/half", "wanted/other-case", "partner/left-out"),
    ),
}

each = pytest.mark.parametrize("name", MESSAGES)


@pytest.fixture
def known(name: str, monkeypatch: pytest.MonkeyPatch) -> Dissector:
    """Return the protocol with one line more in its file."""
    new = MESSAGES[name]
    grammar = new.dissector.grammar
    assert grammar.table_file is not None
    text = Path(grammar.table_file).read_text()
    changed = text.replace("[messages]\n", f"[messages]\n{new.row}")
    parts = PythonParts(name, new.types)
    found = read(changed, name, lambda protocol: parts).specification
    package, packed = new.dissector.package, pickle.dumps(found)
    of = msgspec.structs.replace(found.format, python=new.types)
    found = msgspec.structs.replace(found, format=of)
    file = packaged.PackagedFile(package, new.types, name, found, packed)
    monkeypatch.setitem(packaged.known_files, package, file)
    dissector = copy(new.dissector)
    more = packaged.packaged_grammar(package, new.types)
    vars(dissector).update(grammar=more, codec=packaged.packaged_codec(package, more))
    return dissector


@each
def test_it_is_checked(name: str, known: Dissector) -> None:
    new = MESSAGES[name]
    found = known.codec.decode(new.frame, "c2s")
    assert (found.fields, found.valid, found.violations) == (new.fields, True, ())
    frame, text, *place = new.wrong
    (violation,) = known.codec.decode(frame, "c2s").violations
    assert (violation.text, violation.offset, violation.length) == (text, *place)
    pieces = check_anatomy(known, new.frame, "c2s")
    assert {piece.path[0] for piece in pieces if piece.path} == {*new.fields}


@each
def test_it_is_edited_and_made_anonymous(name: str, known: Dissector) -> None:
    new = MESSAGES[name]
    frame, value, edited = new.edited
    assert known.codec.rewrite(frame, "c2s", {**new.fields, "wanted": value}) == edited
    (row,) = known.grammar.rows_named("c2s", "SWAP")
    anonymous = row.anonymized(new.fields, lambda text: "other", lambda kind, name: "other")
    assert known.codec.rewrite(new.frame, "c2s", anonymous) == new.anonymous


@each
def test_it_is_probed(name: str, known: Dissector) -> None:
    names = {case.name for case in generate_cases(known, "server")}
    assert {f"{name}/SWAP/{case}" for case in MESSAGES[name].cases} <= names


@each
def test_it_is_in_the_dissector_for_wireshark(name: str, known: Dissector) -> None:
    script = wireshark_script(known).text
    assert all(f'"{name}.{word}"' in script for word in ("SWAP", "wanted", "partner"))
