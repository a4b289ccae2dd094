"""The checks that plug-ins' tests use find what they are there to find."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import pytest
from command import ROOT
from hypothesis import Phase, settings
from hypothesis.strategies import just
from kiebitz_noughts.dissector import NOUGHTS
from kiebitz_noughts.grammar import GRAMMAR
from kiebitz_noughts.table import NoughtsTable
from message_cases import cases

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.extras import install_command
from kiebitz.dissectors.grammar.fields import Text
from kiebitz.dissectors.grammar.framing import ByteFramer, Frame
from kiebitz.dissectors.grammar.grammar import Decoded, MessageType, Violation
from kiebitz.dissectors.grammar.text_codec import DelimitedCodec
from kiebitz.dissectors.grammar.text_message import Sent
from kiebitz.dissectors.model import Direction, Message
from kiebitz.dissectors.testing import (
    any_cut_gives_the_same,
    decode_after_encode_is_the_identity,
    every_byte_is_accounted_for,
    every_violation_lies_inside,
    findings_are_consistent,
)

SAID = [case.data for case in cases(NOUGHTS, "sound")]


class SegmentFramer(ByteFramer):
    """Takes each segment for a message."""

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        return (Frame(offset, data, len(data)),)

    def _seek(self) -> None:
        pass


class ForgetfulFramer(SegmentFramer):
    """Drops what has no line end."""

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        return super().feed(offset, data) if data.endswith(b"\n") else ()


class SecretiveTable(NoughtsTable):
    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        super().message(message, row, valid, frame)
        self.context.state["latest"] = row.name


class WideCodec(DelimitedCodec):
    def unknown(self, sent: Sent, direction: Direction) -> Violation:
        return self.error("unknown-message", "nobody knows it", (0, sent.end + 10), "something else")


class RaisingCodec(DelimitedCodec):
    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        assert b"BYE" not in frame
        return super().decode(frame, direction)


class ShoutingCodec(DelimitedCodec):
    """Writes names otherwise than it reads them."""

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return super().encode(name, direction, fields).upper()


@pytest.fixture(autouse=True)
def _without_shrinking() -> Iterator[None]:
    settings.register_profile("unshrunk", parent=settings.get_profile("kiebitz"), phases=[Phase.generate])
    settings.load_profile("unshrunk")
    yield
    settings.load_profile("kiebitz")


def other(**parts: Any) -> Dissector:
    """Noughts and crosses, made otherwise."""
    made = copy(NOUGHTS)
    vars(made).update(parts)
    return made


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("check", "faulty"),
    [
        (any_cut_gives_the_same, other(framer=SegmentFramer)),
        (every_byte_is_accounted_for, other(framer=ForgetfulFramer)),
        (findings_are_consistent, other(table=SecretiveTable)),
        (findings_are_consistent, other(codec=RaisingCodec(GRAMMAR, "Lines", line_end="\n"))),
        (every_violation_lies_inside, other(codec=WideCodec(GRAMMAR, "Lines", line_end="\n"))),
    ],
    ids=["cut", "lost", "state", "raises", "outside"],
)
def test_false_conditions_are_found(
    check: Callable[[Dissector, Sequence[bytes]], None], faulty: Dissector
) -> None:
    with pytest.raises(AssertionError):
        check(faulty, SAID)


def test_decoding_errors_are_found() -> None:
    with pytest.raises(AssertionError):
        decode_after_encode_is_the_identity(other(codec=ShoutingCodec(GRAMMAR, "Lines", line_end="\n")))


def test_values_that_nobody_knows_must_be_reported() -> None:
    from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN

    with pytest.raises(TypeError, match="say in values_of what the values of"):
        decode_after_encode_is_the_identity(
            MAEXCHEN, lambda kind: just("anna") if type(kind) is Text else None
        )


def test_without_hypothesis_it_reports_it() -> None:
    program = "import sys; sys.modules['hypothesis'] = None; import kiebitz.dissectors.testing"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert f"kiebitz.dissectors.testing needs hypothesis: {install_command('test')}" in done.stderr
