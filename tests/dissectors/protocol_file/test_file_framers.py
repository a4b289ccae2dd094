"""Framers of protocol files: cuts, gaps, resynchronisation, and frames that are too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import every, times

from kiebitz.dissectors.grammar import framing as framing_module
from kiebitz.dissectors.grammar.framing import DatagramFramer, Frame, LineFramer
from kiebitz.dissectors.grammar.json import framer as json_framer
from kiebitz.dissectors.grammar.xml import framer as xml_framer
from kiebitz.dissectors.protocol_file import framers
from kiebitz.dissectors.protocol_file.codecs import framer_of
from kiebitz.dissectors.protocol_file.reading.notation import NamedTypes, Parser
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.protocol_file.specification import Framing, HeaderPart


def header(text: str) -> tuple[HeaderPart, ...]:
    """Return the parts of a header in the notation of protocol files."""
    return Parser(text, NamedTypes()).header()


FRAMINGS: dict[str, tuple[Framing, list[bytes]]] = {
    "lines": (Framing(), [b"abc\n", b"\r\n", b"x\r", b"y"]),
    "json": (
        Framing(kind="json"),
        [
            b'{"a":1}',
            b'{"a":{"b":[1,2,"}"]}}\n',
            b'  {"x":"y\\"z\\\\"}',
            b'{"a":1',
            b'{"a":"unended\n',
            b'{"a":[1}',
            b'{"deep":' + b"[" * 70 + b"]" * 70 + b"}",
            b'{"q":{"b":1}\n',
            b"garbage",
            b"}",
            b"[1,2]",
            b"\n",
            b"\\\n",
            b'"',
        ],
    ),
    "xml": (
        Framing(kind="xml"),
        [
            b"<a/>",
            b'<a b="1"/>\n',
            b"<m><c>1</c><c/></m>",
            b"<m><c>1</c>\n",
            b'<?xml version="1.0"?><a>x</a>',
            b'<!-- <x> --><b c="a>b">t</b>',
            b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
            b"<![CDATA[ <a> ]]>",
            b"<q r='1'>s</q>",
            b"junk",
            b"</a>",
            b"<",
            b'<a b="',
            b">",
        ],
    ),
    "u8": (Framing(kind="length", prefix="u8"), [b"\3abc", b"\0", b"\1x", b"\xff"]),
    "u16": (Framing(kind="length", prefix="u16"), [b"\0\3abc", b"\0\0", b"\0\1x", b"\0", b"\xff\xff"]),
    "u32 inclusive": (
        Framing(kind="length", prefix="u32", order="little", inclusive="length"),
        [b"\5\0\0\0a", b"\4\0\0\0", b"\0\0\0\0", b"\1", b"\xff\xff\xff\xff"],
    ),
    "u64": (Framing(kind="length", prefix="u64"), [b"\0\0\0\0\0\0\0\2ab", b"\0" * 8, b"\xff" * 8, b"\0"]),
    "header": (
        Framing(kind="length", header=header("'0x4d58' name=u8 length=u16"), order="little"),
        [b"MX\1\3\0abc", b"MX\2\0\0", b"MX", b"M", b"MX\1\xff\xff", b"x", b"\0\0"],
    ),
    "header inclusive": (
        Framing(kind="length", header=header("type=u8 length=varint end=i8"), inclusive="header"),
        [b"\1\4ta", b"\2\3t", b"\3\2t", b"\xff" * 11, b"\1\x85\0tb", b"\0"],
    ),
    "weak header": (
        Framing(kind="length", header=header("length=u8 'x'"), inclusive="length"),
        [b"\3xab", b"\1x", b"\0x", b"\2y", b"x", b"\xff"],
    ),
    "header of text": (
        Framing(kind="length", header=header("name=text '|' length=text:3 '|'")),
        [b"JOIN|003|abc", b"A|  0|", b"|9|x", b"B|x  |", b"||", b"y" * 300, b"C|03 |"],
    ),
    "size": (Framing(kind="size", size=5), [b"abcde", b"\0\0", b"x", b"fghij"]),
    "sized header": (
        Framing(kind="size", size=5, header=header("'0x4d58'")),
        [b"MXabc", b"MX", b"M", b"x", b"\0\0\0"],
    ),
    "fields": (
        Framing(kind="fields"),
        [
            b"\1\3ann",
            b"\2\2\1a\5\2bb\6\1\2\3",
            b"\2\0xyz",
            b"\3\0\1\2\3\4",
            b"\4\x81\0z",
            b"\2\xff",
            b"\xff",
            b"x",
            b"\1",
        ],
    ),
    "varint": (Framing(kind="length", prefix="varint"), [b"\3abc", b"\0", b"\x81\0x", b"\xff" * 11]),
    "varint inclusive": (
        Framing(kind="length", prefix="varint", inclusive="length"),
        [b"\4abc", b"\0", b"\x82\0x", b"\xff" * 11],
    ),
    "delimiter": (Framing(kind="delimiter", end="||"), [b"abc||", b"|", b"x", b"\n"]),
    "block": (Framing(kind="block", end="."), [b"abc\n", b".\n", b".", b".\r\n", b"\n"]),
    "blank": (Framing(kind="block", end=""), [b"abc\n", b"\n", b"\r\n", b" \n"]),
}


class Run(NamedTuple):
    """Bytes, and the length of the gap after them; None if that is unknown, -1 if there is no gap."""

    data: bytes
    gap: int | None


FIELDS = read_specification("""
protocol = "p"
framing = "fields"
format = "struct"
[codes]
JOIN = 1
SCORES = 2
MOVE = 3
CHAT = 4
[messages]
JOIN = "c: name=text8"
SCORES = "c: n=u8 rows=[{name=text8 score=u8}]*n dice=[u8]3"
MOVE = "c: at={x=u16 y=u16}"
CHAT = "c: n=varint letters=[text:1]*n"
""")


def _framed(framing: Framing, runs: Sequence[Run], sizes: Sequence[int]) -> list[Frame]:
    framer = framer_of(framing, "tcp", FIELDS if framing.kind == "fields" else None)("c2s")
    found: list[Frame] = []
    offset = number = 0
    for data, gap in runs:
        at = 0
        while at < len(data):
            size = sizes[number % len(sizes)]
            number += 1
            found += framer.feed(offset + at, data[at : at + size])
            at += size
        offset += len(data)
        if gap != -1:
            found += framer.gap(offset, gap)
            offset += gap or 0
    return [*found, *framer.eof()]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", every(3, FRAMINGS))
def test_any_cut_gives_the_same_frames(name: str) -> None:
    framing, parts = FRAMINGS[name]
    data = st.lists(st.sampled_from(parts), max_size=8).map(b"".join)
    runs = st.lists(st.builds(Run, data, st.sampled_from([-1, None, 0, 1, 5])), min_size=1, max_size=3)

    @settings(max_examples=times(1000), deadline=None)
    @given(runs, st.lists(st.integers(1, 9), min_size=1, max_size=4))
    def check(runs: list[Run], sizes: list[int]) -> None:
        whole = _framed(framing, runs, [1 << 30])
        assert sum(frame.size for frame in whole) == sum(len(run.data) for run in runs)
        assert _framed(framing, runs, sizes) == whole
        for frame in whole:
            if frame.cut is None or frame.cut == "end":
                assert frame.size == len(frame.data)

    check()


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", every(3, FRAMINGS))
def test_frames_beyond_the_limit_are_skipped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (framing_module, framers, json_framer, xml_framer):
        monkeypatch.setattr(module, "FRAME_LIMIT", 20)
    framing, parts = FRAMINGS[name]
    long = {"json": b'{"a":"' + b"x" * 50, "xml": b"<a>" + b"x" * 50}.get(name, b"x" * 50)
    data = st.lists(st.sampled_from([*parts, long]), max_size=6).map(b"".join)

    @settings(max_examples=times(1000), deadline=None)
    @given(data, st.lists(st.integers(1, 30), min_size=1, max_size=4))
    def check(data: bytes, sizes: list[int]) -> None:
        whole = _framed(framing, [Run(data, -1)], [1 << 30])
        assert sum(frame.size for frame in whole) == len(data)
        assert _framed(framing, [Run(data, -1)], sizes) == whole
        assert all(frame.size <= 20 or frame.cut in ("limit", "end") for frame in whole)

    check()


def _texts(name: str, data: bytes) -> list[bytes]:
    return [frame.data for frame in _framed(FRAMINGS[name][0], [Run(data, -1)], [3])]


@pytest.mark.parametrize(
    ("name", "frames"),
    [
        ("fields", [b"\xff\xff", b"\1\3ann", b"\3\0\1\2\3"]),
        ("json", [b'{"a":1\n', b'{"b":2}']),
        ("json", [b'{"a":{"b":1}\n', b'{"b":2}', b'{"c":3}']),
        ("json", [b'{"a":"b\n', b'{"c":1}']),
        ("json", [b"x", b'{"b":2}', b'\n{"c":[{}]}']),
        ("json", [b'{"a":[1}', b'{"b":2}']),
        ("xml", [b"<m><c>1</c>\n", b"<m><d/></m>"]),
        ("xml", [b"<m><c></m>", b"<n/>"]),
        ("xml", [b"<m>", b"<?xml version='1.0'?><n/>"]),
        ("varint", [b"\0", b"\1a", b"\x81\0b"]),
        ("header", [b"MX\1\3\0abc", b"NX\1\0\0", b"MX\2\0\0"]),
        ("weak header", [b"\3xab", b"\0y\1z", b"\1x", b"\2xa"]),
        ("delimiter", [b"||", b"a|b||"]),
        ("block", [b"a\n.b\n.\r\n", b".\n"]),
    ],
)
def test_the_next_message_is_whole_after_a_broken_one(name: str, frames: list[bytes]) -> None:
    assert _texts(name, b"".join(frames)) == frames


@pytest.mark.parametrize(
    ("name", "before", "gap", "after", "found"),
    [
        ("u16", b"\0\5ab", 2, b"c\0\1d", [b"\0\1d"]),
        ("u16", b"\0\5ab", 3, b"\0\1d", [b"\0\1d"]),
        ("u64", b"\0" * 8, None, b"xxxx" + b"\0" * 7 + b"\1d" + b"\0" * 8, [b"\0" * 7 + b"\1d", b"\0" * 8]),
        ("header", b"MX\1\5\0a", 2, b"cdMX\2\0\0", [b"MX\2\0\0"]),
        ("header", b"MX\1\5\0a", None, b"bcdMMX\2\0\0", [b"MX\2\0\0"]),
        ("size", b"ab", 4, b"ghijklmno", [b"klmno"]),
        ("size", b"abcde", 10, b"pqrst", [b"pqrst"]),
        ("size", b"ab", None, b"fghij", [b"fghij"]),
        ("sized header", b"MXa", None, b"cMXdefMX", [b"MXdef"]),
        ("fields", b"\2\2\1a", None, b"\5\6bb\1\3ann\3\0\1\2\3x", [b"\1\3ann", b"\3\0\1\2\3"]),
        ("json", b'{"a":', None, b'1}\n{"b":2}', [b'{"b":2}']),
        ("json", b'{"a":1}', None, b'{"b":2}', [b'{"b":2}']),
        ("xml", b"<a/>", None, b"<c>1</c></b><a>2</a>", [b"<a>2</a>"]),
        ("block", b"a\n", 5, b"b\n.\nc\n.\n", [b"c\n.\n"]),
        ("delimiter", b"a", None, b"|b||c||", [b"c||"]),
    ],
)
def test_it_resumes_after_a_gap(
    name: str, before: bytes, gap: int | None, after: bytes, found: list[bytes]
) -> None:
    frames = _framed(FRAMINGS[name][0], [Run(before, gap), Run(after, -1)], [2])
    offset = len(before) + (gap or 0)
    assert [each.data for each in frames if each.cut is None and each.offset >= offset] == found


def test_white_space_after_the_last_message_is_not_the_beginning_of_another() -> None:
    for kind, data in (("json", b"{}\n"), ("xml", b"<a/>\r\n")):
        framer = framer_of(FRAMINGS[kind][0], "tcp")("c2s")
        assert [frame.data for frame in framer.feed(0, data)] == [data.strip()]
        assert not framer.is_unfinished


def test_datagrams_are_whole_messages() -> None:
    assert framer_of(Framing(kind="datagrams"), "udp") is DatagramFramer
    assert framer_of(Framing(kind="lines"), "udp") is DatagramFramer
    assert framer_of(Framing(), "tcp") is LineFramer
