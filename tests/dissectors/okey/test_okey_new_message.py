"""A line in `okey.toml` is a new message, for every part of Kiebitz."""

from __future__ import annotations

import tomllib
from copy import copy
from pathlib import Path

import pytest

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar import table_file
from kiebitz.dissectors.grammar.table_file import grammar_from
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.protocols.okey.codec import OkeyCodec
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.okey.grammar import GRAMMAR, TYPES
from kiebitz.dissectors.testing import check_anatomy
from kiebitz.dissectors.wireshark.script import wireshark_script

LINE = """SWAP = { is = "c: tile=tile wanted=red|black partner=name", about = "wants to swap a tile", \
clause = "{none}", descriptions = { wanted = "colour", partner = "player" } }
"""


@pytest.fixture
def okey(monkeypatch: pytest.MonkeyPatch) -> Dissector:
    """Return Okey with one line more in its file."""
    assert GRAMMAR.table_file is not None
    text = Path(GRAMMAR.table_file).read_text()
    changed = text.replace("[messages]\n", "[messages]\n" + LINE.replace("\\\n", ""))
    monkeypatch.setattr(table_file, "table_document", lambda package: (tomllib.loads(changed), "okey.toml"))
    grammar = grammar_from("okey", TYPES)
    dissector = copy(OKEY)
    vars(dissector).update(grammar=grammar, codec=OkeyCodec(grammar))
    return dissector


FRAME = b'SWAP 4:BLUE red "Ann B "\r\n'
FIELDS = {"tile": "4:BLUE", "wanted": "red", "partner": "Ann B"}


def test_it_is_checked(okey: Dissector) -> None:
    found = okey.codec.decode(FRAME, "c2s")
    assert (found.fields, found.valid, found.violations) == (FIELDS, True, ())
    (violation,) = okey.codec.decode(b"SWAP 4:BLUE rd ann\r\n", "c2s").violations
    assert violation.text == 'SWAP: "rd" is not known here: did you mean red?'
    assert (violation.offset, violation.length) == (12, 2)
    assert [piece.path for piece in check_anatomy(okey, FRAME, "c2s") if piece.path] == [
        ("tile",),
        ("wanted",),
        ("partner",),
        ("partner",),
    ]


def test_it_is_edited_and_made_anonymous(okey: Dissector) -> None:
    frame = FRAME.replace(b" red", b"  red")
    fields = {**FIELDS, "wanted": "black"}
    assert okey.codec.rewrite(frame, "c2s", fields) == b'SWAP 4:BLUE  black "Ann B "\r\n'
    (row,) = okey.grammar.rows_named("c2s", "SWAP")
    anonymous = row.anonymized(FIELDS, lambda text: "other", lambda kind, name: f"a {kind.title}")
    assert okey.codec.rewrite(FRAME, "c2s", anonymous) == b"SWAP 4:BLUE red other\r\n"


def test_it_is_probed(okey: Dissector) -> None:
    names = {case.name for case in generate_cases(okey, "server")}
    assert {
        f"okey/SWAP/{each}" for each in ("tile/unknown-colour", "wanted/other-case", "partner/left-out")
    } <= names


def test_it_is_in_the_dissector_for_wireshark(okey: Dissector) -> None:
    script = wireshark_script(okey).text
    assert all(f'"okey.{name}"' in script for name in ("SWAP", "wanted", "partner"))
