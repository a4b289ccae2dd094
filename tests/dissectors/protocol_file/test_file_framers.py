"""Framers of protocol files: cuts, gaps, resynchronisation, and frames that are too long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from conversation_files import Block, blocks, check
from file_conversations import dissector_of
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import DATA, as_bytes, as_text
from strength import every, times

from kiebitz.dissectors.grammar import framing as framing_module
from kiebitz.dissectors.grammar.framing import DatagramFramer, Frame, LineFramer
from kiebitz.dissectors.grammar.json import framer as json_framer
from kiebitz.dissectors.grammar.xml import framer as xml_framer
from kiebitz.dissectors.protocol_file import framers
from kiebitz.dissectors.protocol_file.dissector import FileDissector

FRAMINGS = blocks(DATA / "protocol_files" / "framings.txt")

each_framing = pytest.mark.parametrize("name", every(3, FRAMINGS))


def file_of(block: Block) -> FileDissector:
    lines = [step for step in block.steps if not step.startswith(("parts ", "stream "))]
    return dissector_of("\n".join(['protocol = "p"', *lines, ""]))


def parts_of(block: Block) -> list[bytes]:
    (parts,) = (step for step in block.steps if step.startswith("parts "))
    return [as_bytes(part) for part in parts.removeprefix("parts ").split(" ¦ ")]


class Run(NamedTuple):
    """Bytes, and the length of the gap after them; None if that is unknown, -1 if there is no gap."""

    data: bytes
    gap: int | None


def _framed(dissector: FileDissector, runs: Sequence[Run], sizes: Sequence[int]) -> list[Frame]:
    framer = dissector.framer("c2s")
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
@each_framing
def test_any_cut_gives_the_same_frames(name: str) -> None:
    dissector = file_of(FRAMINGS[name])
    data = st.lists(st.sampled_from(parts_of(FRAMINGS[name])), max_size=8).map(b"".join)
    runs = st.lists(st.builds(Run, data, st.sampled_from([-1, None, 0, 1, 5])), min_size=1, max_size=3)

    @settings(max_examples=times(1000), deadline=None)
    @given(runs, st.lists(st.integers(1, 9), min_size=1, max_size=4))
    def check(runs: list[Run], sizes: list[int]) -> None:
        whole = _framed(dissector, runs, [1 << 30])
        assert sum(frame.size for frame in whole) == sum(len(run.data) for run in runs)
        assert _framed(dissector, runs, sizes) == whole
        for frame in whole:
            if frame.cut is None or frame.cut == "end":
                assert frame.size == len(frame.data)

    check()


@pytest.mark.full(but=1)
@each_framing
def test_frames_beyond_the_limit_are_skipped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (framing_module, framers, json_framer, xml_framer):
        monkeypatch.setattr(module, "FRAME_LIMIT", 20)
    dissector = file_of(FRAMINGS[name])
    long = {"json": b'{"a":"' + b"x" * 50, "xml": b"<a>" + b"x" * 50}.get(name, b"x" * 50)
    data = st.lists(st.sampled_from([*parts_of(FRAMINGS[name]), long]), max_size=6).map(b"".join)

    @settings(max_examples=times(1000), deadline=None)
    @given(data, st.lists(st.integers(1, 30), min_size=1, max_size=4))
    def check(data: bytes, sizes: list[int]) -> None:
        whole = _framed(dissector, [Run(data, -1)], [1 << 30])
        assert sum(frame.size for frame in whole) == len(data)
        assert _framed(dissector, [Run(data, -1)], sizes) == whole
        assert all(frame.size <= 20 or frame.cut in ("limit", "end") for frame in whole)

    check()


def runs_of(text: str) -> list[Run]:
    """Return the runs of a stream with gaps such as ⟨7⟩ and ⟨?⟩."""
    pieces = [*re.split("⟨(.*?)⟩", text), "-1"]
    gaps = [None if gap == "?" else int(gap) for gap in pieces[1::2]]
    return [Run(as_bytes(data), gap) for data, gap in zip(pieces[::2], gaps, strict=True)]


@pytest.mark.parametrize("block", FRAMINGS.values(), ids=lambda block: block.title)
def test_the_next_message_is_whole_after_a_broken_one_and_a_gap(block: Block) -> None:
    lines = []
    for step in block.steps:
        lines.append(step)
        if step.startswith("stream "):
            frames = _framed(file_of(block), runs_of(step.removeprefix("stream ")), [2])
            lines += [
                f"    {frame.cut or 'frame'} at {frame.offset}: {as_text(frame.data)}" for frame in frames
            ]
    check(block, "\n".join(lines))


def test_white_space_after_the_last_message_is_not_the_beginning_of_another() -> None:
    for kind, data in (("json", b"{}\n"), ("xml", b"<a/>\r\n")):
        framer = file_of(FRAMINGS[kind]).framer("c2s")
        assert [frame.data for frame in framer.feed(0, data)] == [data.strip()]
        assert not framer.is_unfinished


def test_datagrams_are_whole_messages() -> None:
    messages = '[messages]\nA = "c:"\n'
    assert dissector_of(f'protocol = "p"\nframing = "datagrams"\n{messages}').framer is DatagramFramer
    assert dissector_of(f'protocol = "p"\ntransport = "udp"\n{messages}').framer is DatagramFramer
    assert dissector_of(f'protocol = "p"\n{messages}').framer is LineFramer
