"""The properties of all protocols for protocol files: of conversations, of the test data, of each format."""

from __future__ import annotations

import pytest
from conversation_files import file_dissector, frames_by
from file_conversations import dissector_named
from file_formats import IN_ORDER, PAIRS, USUAL, protocol, sent_by, values_of
from file_formats import frames as frames_of
from kiebitz_nim import NIM
from snapshots import DATA
from strength import a_few, times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.testing import CHECKS, EXAMPLES, Check, decode_after_encode_is_the_identity

TALKS = {
    "table": ("dice", "scores", "ids"),
    "rooms": ("rooms", "answered", "of a player"),
    "requests": ("guesses", "trials", "datagrams"),
    "events": ("dots",),
}
"""Protocols in the conversations of protocol files, whose messages are examples."""

some_formats = pytest.mark.parametrize(("framing", "of"), a_few(PAIRS, USUAL))
each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@pytest.mark.full(but=6)
@pytest.mark.parametrize(("file", "name"), [(file, name) for file, names in TALKS.items() for name in names])
@each_check
def test_protocols_of_conversations(check: Check, file: str, name: str) -> None:
    path = DATA / "conversations" / f"files_{file}.txt"
    frames = frames_by(path, *TALKS[file])
    check(file_dissector(path, name), frames, times(EXAMPLES // 2, quick=2))


@pytest.mark.full(but=4)
@pytest.mark.parametrize("name", ["nim", "counted", *IN_ORDER])
@each_check
def test_protocols_of_the_test_data(check: Check, name: str) -> None:
    dissector: Dissector = NIM
    if name == "nim":
        sent = [b"JOIN ann\n", b"START 5 ann bob\n", b"TAKE 3\n", b"TAKEN 3\n", b"TAKEN 2\n", b"TAKEN 4\n"]
    else:
        dissector = dissector_named(name)
        titles = ("sound", "malformed") if name == "counted" else ("sound",)
        sent = [frame for _, frame in sent_by(name, *titles)]
    check(dissector, sent, times(EXAMPLES if name == "nim" else 60, quick=2))


@pytest.mark.full(but=2)
@some_formats
@each_check
def test_each_format(check: Check, framing: str, of: str) -> None:
    check(protocol(framing, of), frames_of(framing, of), times(20, quick=2))


@pytest.mark.full(but=2)
@some_formats
def test_decode_after_encode_is_the_identity(framing: str, of: str) -> None:
    decode_after_encode_is_the_identity(protocol(framing, of), values_of, times(120))
