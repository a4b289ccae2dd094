"""A line in the file of Schafkopf is a new message with a new field, for every part of Kiebitz."""

from __future__ import annotations

import pickle
from copy import copy
from pathlib import Path

import msgspec
import pytest

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.protocol_file import packaged
from kiebitz.dissectors.protocol_file.reading.reader import PythonParts, read
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.protocols.schafkopf.grammar import TYPES
from kiebitz.dissectors.testing import check_anatomy
from kiebitz.dissectors.wireshark.script import wireshark_script

ROW = """SWAP = { is = "c: karte=card wanted=red|black partner=name", about = "wants to swap a card", \
clause = "{server}", descriptions = { wanted = "colour", partner = "player" } }
"""
FIELDS = {"karte": "HERZ SAU", "wanted": "red", "partner": "Jürgen"}
FRAME = "!SWAP\nHERZ\nSAU\nred\nJürgen\n!END\n"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Dissector:
    """Return the protocol with one line more in its file."""
    assert SCHAFKOPF.grammar.table_file is not None
    text = Path(SCHAFKOPF.grammar.table_file).read_text().replace("[messages]\n", f"[messages]\n{ROW}")
    parts = PythonParts("schafkopf", TYPES)
    found = read(text, "schafkopf", lambda protocol: parts).specification
    package, packed = SCHAFKOPF.package, pickle.dumps(found)
    of = msgspec.structs.replace(found.format, python=TYPES)
    found = msgspec.structs.replace(found, format=of)
    file = packaged.PackagedFile(package, TYPES, "schafkopf", found, packed)
    monkeypatch.setitem(packaged.known_files, package, file)
    dissector = copy(SCHAFKOPF)
    more = packaged.packaged_grammar(package, TYPES)
    vars(dissector).update(grammar=more, codec=packaged.packaged_codec(package, more))
    return dissector


def test_it_is_checked(known: Dissector) -> None:
    found = known.codec.decode(FRAME.encode(), "c2s")
    assert (found.fields, found.valid, found.violations) == (FIELDS, True, ())
    (violation,) = known.codec.decode(b"!SWAP\nHERZ\nSAU\nrd\nAnn\n!END\n", "c2s").violations
    assert violation.text == 'SWAP: "rd" is not known here: did you mean red?'
    assert (violation.offset, violation.length) == (15, 2)
    pieces = check_anatomy(known, FRAME.encode(), "c2s")
    assert {piece.path[0] for piece in pieces if piece.path} == {*FIELDS}


def test_it_is_edited_and_made_anonymous(known: Dissector) -> None:
    sent = FRAME.replace("SWAP\n", "SWAP\r\n").replace("gen\n", "gen\r\n").encode("cp1252")
    assert known.codec.rewrite(sent, "c2s", FIELDS | {"wanted": "black"}) == sent.replace(b"red", b"black")
    (row,) = known.grammar.rows_named("c2s", "SWAP")
    anonymous = row.anonymized(FIELDS, lambda text: "other", lambda kind, name: "other")
    assert known.codec.rewrite(FRAME.encode(), "c2s", anonymous).decode() == FRAME.replace("Jürgen", "other")


def test_it_is_probed_and_in_the_dissector_for_wireshark(known: Dissector) -> None:
    names = {case.name for case in generate_cases(known, "server")}
    cases = ("karte/half", "wanted/other-case", "partner/left-out")
    assert {f"schafkopf/SWAP/{case}" for case in cases} <= names
    script = wireshark_script(known).text
    assert all(f'"schafkopf.{word}"' in script for word in ("SWAP", "wanted", "partner"))
