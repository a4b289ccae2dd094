"""The framer of XML elements by the names of messages: cuts, gaps, envelopes, broken messages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times

from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.grammar.xml.diagnostics import XmlFormat
from kiebitz.dissectors.grammar.xml.framer import Root, XmlFramer, XmlFraming

NAMED = (
    Root("a"),
    Root("b", "k", frozenset("cad")),
    Root("M", None, frozenset(("b", "c", "d", "m"))),
    Root("any", None, None),
)
FRAMINGS = {
    "unknown": XmlFraming(),
    "named": XmlFraming(roots=NAMED),
    "marked": XmlFraming(XmlFormat(mark="type"), inside=frozenset("cd")),
    "envelope": XmlFraming(XmlFormat(envelope="e"), NAMED),
    "lines": XmlFraming(XmlFormat(envelope="e", blank_line=True), NAMED),
}
PARTS = [
    *(
        b"<a/>",
        b"<a>",
        b"</a>",
        b'<b k="1">',
        b"<b>",
        b"</b>",
        b"<c>",
        b"</c>",
        b"<d/>",
        b"<M x='y'>",
        b"</M>",
    ),
    *(
        b"<any>",
        b"</any>",
        b"<e>",
        b"</e>",
        b'<m type="q">',
        b"</m>",
        b'<m type="r"/>',
        b'<?xml version="1"?>',
    ),
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\n\n", b" ", b"x", b"\r", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<!X"),
    *(
        b'"',
        b"'",
        b'<a b="c>d">',
        b'<a b="c',
        b"<",
        b">",
        b"&amp;",
        b"\xef\xbb\xbf",
        b"<!DOCTYPE a [<!ENTITY",
    ),
]


def framed(framing: XmlFraming, runs: Sequence[bytes], sizes: Sequence[int]) -> list[Frame]:
    """Return the frames of bytes with a gap of three bytes after each run but the last."""
    framer = XmlFramer("c2s", framing)
    found: list[Frame] = []
    offset = number = 0
    for run in runs:
        if offset:
            found += framer.gap(offset, 3)
            offset += 3
        at = 0
        while at < len(run):
            size = sizes[number % len(sizes)]
            number += 1
            found += framer.feed(offset + at, run[at : at + size])
            at += size
        offset += len(run)
    return [*found, *framer.eof()]


@pytest.mark.parametrize("name", FRAMINGS)
def test_any_cut_gives_the_same_frames_and_no_byte_is_lost(name: str) -> None:
    run = st.lists(st.sampled_from(PARTS), min_size=1, max_size=14).map(b"".join)

    @settings(max_examples=times(2000), deadline=None)
    @given(st.lists(run, min_size=1, max_size=3), st.lists(st.integers(1, 9), min_size=1, max_size=4))
    def check(runs: list[bytes], sizes: list[int]) -> None:
        whole = framed(FRAMINGS[name], runs, [1 << 30])
        assert sum(frame.size for frame in whole) == sum(map(len, runs))
        assert framed(FRAMINGS[name], runs, sizes) == whole
        assert all(frame.size == len(frame.data) for frame in whole if frame.cut in (None, "end"))

    check()


@pytest.mark.parametrize(
    ("name", "frames"),
    [
        # The element of another message begins the next one, wherever it is.
        ("named", ["<a><c>1</c>", "<M/>"]),
        ("named", ["<b k='1'><c>1</b>", "<a/>"]),
        ("named", ["<a>1</ab>", "<a/>"]),
        ("named", ["<a><c>1</c></c2>", "</a>", "<a/>"]),
        ("named", ["junk <x>", "<a/>"]),
        ("named", ["</a>", "<a/>"]),
        ("named", ['<a b="1>2</a>', "<a/>"]),
        ("named", ["<a", "<a/>"]),
        ("named", ["<!-- no end\n", "<a/>"]),
        ("named", ["<zzz>", "<a/>"]),
        # It may also be inside this one.
        ("named", ["<M><b>1</b></M>", "<a/>"]),
        ("named", ["<M><b>1</b>", '<b k="2"/>']),
        ("named", ["<any><a/><M/></any>", "<a/>"]),
        ("marked", ['<m type="q"><c>', '<m type="r"/>']),
        ("marked", ['<m type="q"><d type="x"/></m>', '<m type="r"/>']),
        # An envelope belongs to its first and its last element.
        ("envelope", ["<e><a/>", "<a></a></e>", "<a/>"]),
        ("lines", ["<e>\n<a/>\n", "<a></a>\n</e>\n\n", "<a/>\n\n"]),
        ("lines", ["<a>\n\n</a>\n\n", "<a/>\n\n"]),
    ],
)
def test_the_next_message_is_whole_after_a_broken_one(name: str, frames: list[str]) -> None:
    data = "".join(frames).encode()
    assert [frame.data.decode() for frame in framed(FRAMINGS[name], [data], [1])] == frames


def test_a_message_is_complete_with_its_last_byte() -> None:
    for name, data in (("unknown", b"<x><y/></x>"), ("named", b"\n<a></a>"), ("envelope", b"<e><a/></e>")):
        framer = XmlFramer("c2s", FRAMINGS[name])
        assert [frame.data for frame in framer.feed(0, data)] == [data]
        framer.feed(len(data), b"\r\n")
        assert not framer.is_unfinished
