"""Codecs of protocol files by format."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.grammar import Grammar
from kiebitz.dissectors.grammar.packet_codec import LINES, PacketCodec
from kiebitz.dissectors.grammar.text_codec import TextCodec
from kiebitz.dissectors.grammar.tokens import PaddedQuotes, Splitter, Tokenizer
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
from kiebitz.dissectors.protocol_file.header_codec import HeaderCodec
from kiebitz.dissectors.protocol_file.json_codec import FileJsonCodec
from kiebitz.dissectors.protocol_file.pairs_codec import PairsCodec
from kiebitz.dissectors.protocol_file.specification import Framing, Specification
from kiebitz.dissectors.protocol_file.struct_codec import StructCodec
from kiebitz.dissectors.protocol_file.xml_codec import xml_codec
from kiebitz.dissectors.websocket.codec import WebSocketCodec
from kiebitz.dissectors.websocket.frames import BINARY, TEXT


def _text_codec(specification: Specification, grammar: Grammar) -> TextCodec:
    of, framing = specification.format, specification.framing
    tokenizer: Tokenizer = Splitter(of.delimiter, of.quote)
    if of.pads:
        tokenizer = PaddedQuotes(of.quote, of.pads)
    elif of.kind == "lines":
        if framing.kind == "lines":
            return _packet_codec(specification, grammar)
        tokenizer = LINES
    elif of.kind == "words":
        blanks = " \t\r\n" if framing.kind == "block" else " \t"
        tokenizer = Splitter(" ", of.quote, blanks)
    envelope = FileEnvelope(framing, of, any_line_end=specification.lenient.line_ends)
    codes: dict[tuple[Direction, str], int | str] = {**specification.codes}
    if of.mark:
        sent = {(row.direction, row.name): row.name for row in grammar.rows} | codes
        codes = {key: f"{of.mark}{code}" for key, code in sent.items()}
    return TextCodec(grammar, tokenizer, envelope, encoding=of.encoding, codes=codes, is_nameless=not of.name)


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


_CODECS: dict[str, Callable[[Specification, Grammar], Codec]] = {
    "words": _text_codec,
    "delimited": _text_codec,
    "lines": _text_codec,
    "pairs": PairsCodec,
    "json": FileJsonCodec,
    "xml": xml_codec,
    "struct": StructCodec,
}


def codec_of(specification: Specification, grammar: Grammar) -> Codec:
    """Return the codec of a protocol file."""
    make = _CODECS[specification.format.kind]
    if specification.framing.kind == "length":
        return HeaderCodec(specification, grammar, make)
    if specification.framing.kind != "websocket":
        return make(specification, grammar)
    # Each message is whole, as a datagram is.
    inner = msgspec.structs.replace(specification, framing=Framing(kind="datagrams"))
    return WebSocketCodec(make(inner, grammar), BINARY if specification.format.kind == "struct" else TEXT)
