"""Codecs of protocol files by format."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.carried_codec import CarriedCodec
from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.grammar import NAMELESS, Decoded, Grammar, MessageType
from kiebitz.dissectors.grammar.packet_codec import LINES, PacketCodec
from kiebitz.dissectors.grammar.text_codec import TextCodec
from kiebitz.dissectors.grammar.tokens import PaddedQuotes, Splitter, Tokenizer
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.choosing_codec import ChoosingCodec
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
from kiebitz.dissectors.protocol_file.file_codec import MakeCodec
from kiebitz.dissectors.protocol_file.header_codec import HeaderCodec
from kiebitz.dissectors.protocol_file.json_codec import FileJsonCodec
from kiebitz.dissectors.protocol_file.line_fields import (
    HeadAndLines,
    LineFieldsCodec,
    LinesEnvelope,
    has_line_fields,
)
from kiebitz.dissectors.protocol_file.pairs_codec import PairsCodec
from kiebitz.dissectors.protocol_file.specification import Framing, Specification
from kiebitz.dissectors.protocol_file.struct_codec import StructCodec
from kiebitz.dissectors.protocol_file.xml_codec import xml_codec
from kiebitz.dissectors.websocket.codec import WebSocketCodec
from kiebitz.dissectors.websocket.frames import BINARY, TEXT


def _text_codec(specification: Specification, grammar: Grammar) -> TextCodec:
    of, framing = specification.format, specification.framing
    has_lines = has_line_fields(specification, of)
    tokenizer: Tokenizer = Splitter(of.delimiter, of.quote)
    if of.pads:
        tokenizer = PaddedQuotes(of.quote, of.pads)
    elif of.kind == "lines":
        if framing.kind == "lines" and not has_lines:
            return _packet_codec(specification, grammar)
        tokenizer = LINES
    elif of.kind == "words":
        blanks = " \t\r\n" if framing.kind in ("block", "send") and not has_lines else " \t"
        tokenizer = Splitter(" ", of.quote, blanks)
    envelope = (
        LinesEnvelope(framing, of)
        if has_lines
        else FileEnvelope(framing, of, any_line_end=specification.lenient.line_ends)
    )
    codes: dict[tuple[Direction, str], int | str] = {**specification.codes}
    if of.mark:
        sent = {(row.direction, row.name): row.name for row in grammar.rows} | codes
        codes = {key: f"{of.mark}{code}" for key, code in sent.items()}
    make: type[TextCodec] = TextCodec
    if has_lines and isinstance(tokenizer, Splitter):
        make, tokenizer = LineFieldsCodec, HeadAndLines(tokenizer)
    return make(grammar, tokenizer, envelope, encoding=of.encoding, codes=codes, is_nameless=not of.name)


def _packet_codec(specification: Specification, grammar: Grammar) -> PacketCodec:
    of = specification.format
    return PacketCodec(
        grammar,
        mark=of.mark,
        end=of.end,
        more_ends={row.name: row.end for row in specification.messages if row.end is not None},
        line_end=of.line_end or "\n",
        encoding=of.encoding,
        codes=specification.codes,
    )


_CODECS: dict[str, MakeCodec] = {
    "words": _text_codec,
    "delimited": _text_codec,
    "lines": _text_codec,
    "pairs": PairsCodec,
    "json": FileJsonCodec,
    "xml": xml_codec,
    "struct": StructCodec,
}


class GuessedCodec(CarriedCodec):
    """The codec of messages whose end is a guess: what does not fit may be a wrong guess, and is no error."""

    def __init__(self, inner: Codec, kind: str) -> None:
        self.inner = inner
        self.wire_fallback = inner.wire_fallback
        self._kind = kind

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        return self._doubted(self.inner.decode(frame, direction))

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        return self._doubted(self.inner.truncated(frame, direction))

    @staticmethod
    def _doubted(decoded: Decoded) -> Decoded:
        if not decoded.violations:
            return decoded
        violations = tuple(
            msgspec.structs.replace(
                each,
                severity="warning" if each.severity == "error" else each.severity,
                text=f"{each.text} (where a message ends is a guess)",
            )
            for each in decoded.violations
        )
        return msgspec.structs.replace(decoded, violations=violations)

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return self.inner.encode(name, direction, fields)

    def rewrite(self, frame: bytes, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return self.inner.rewrite(frame, direction, fields)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        return self.inner.anatomy(frame, direction)

    def start_of(self, frame: bytes) -> int:
        return 0

    def inner_of(self, row: MessageType) -> tuple[Codec, MessageType]:
        return self.inner, row

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        return self.inner.resembles(frame, direction)

    def wire_format(self) -> Mapping[str, Any] | None:
        described = self.inner.wire_format()
        return described and {**described, "framing": {**described["framing"], "kind": self._kind}}


def _plain_codec(specification: Specification, grammar: Grammar) -> Codec:
    return _CODECS[specification.format.kind](specification, grammar)


def codec_of(specification: Specification, grammar: Grammar) -> Codec:
    """Return the codec of a protocol file."""
    make, framing = _CODECS[specification.format.kind], specification.framing
    if specification.formats or any(message.name == NAMELESS for message in specification.messages):
        make = partial(ChoosingCodec, make=_plain_codec)
    if framing.kind not in ("length", "fields", "send", "websocket") and not (
        framing.header or framing.before
    ):
        return make(specification, grammar)
    if framing.kind in ("length", "fields") or framing.header or framing.before:
        codec: Codec = HeaderCodec(specification, grammar, make)
    else:
        # Each message is whole, as a datagram is.
        codec = make(msgspec.structs.replace(specification, framing=Framing(kind="datagrams")), grammar)
    if framing.kind == "websocket":
        return WebSocketCodec(codec, BINARY if specification.format.kind == "struct" else TEXT)
    return GuessedCodec(codec, framing.kind) if framing.kind == "send" else codec
