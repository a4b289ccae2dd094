"""Codecs and framers of protocol files. A protocol has one format, so only its modules are loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from kiebitz.dissectors.game.table import python_part
from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.framing import AnyLineFramer, DatagramFramer, Framer, LineFramer
from kiebitz.dissectors.grammar.grammar import NAMELESS, Grammar
from kiebitz.dissectors.model import DIRECTIONS, Direction, Transport
from kiebitz.dissectors.protocol_file.specification import Format, Framing, Specification

_AROUND = ("length", "fields", "send", "websocket")
"""Framings in which a message is whole, as a datagram is."""


def codec_of(specification: Specification, grammar: Grammar, package: str = "") -> Codec:
    """Return the codec of a protocol file; the file of a `package` may name a class for it."""
    own = python_part(specification.codec, package) if specification.codec is not None else None
    make: Callable[[Specification, Grammar], Codec] = partial(_codec, own=own)
    framing = specification.framing
    if specification.formats or any(message.name == NAMELESS for message in specification.messages):
        from kiebitz.dissectors.protocol_file.choosing_codec import ChoosingCodec

        make = partial(ChoosingCodec, make=make)
    has_header = bool(framing.kind in ("length", "fields") or framing.header or framing.before)
    if framing.kind not in _AROUND and not has_header:
        return make(specification, grammar)
    if has_header:
        from kiebitz.dissectors.protocol_file.header_codec import HeaderCodec

        codec: Codec = HeaderCodec(specification, grammar, make)
    else:
        codec = make(msgspec.structs.replace(specification, framing=Framing(kind="datagrams")), grammar)
    if framing.kind == "websocket":
        from kiebitz.dissectors.websocket.codec import WebSocketCodec
        from kiebitz.dissectors.websocket.frames import BINARY, TEXT

        return WebSocketCodec(codec, BINARY if specification.format.kind == "struct" else TEXT)
    if framing.kind == "send":
        from kiebitz.dissectors.protocol_file.choosing_codec import GuessedCodec

        return GuessedCodec(codec, framing.kind)
    return codec


def _codec(specification: Specification, grammar: Grammar, own: Any = None) -> Codec:
    """Return the codec of a format, of the class `own` if there is one."""
    of, framing = specification.format, specification.framing
    more: dict[str, Any] = {
        "clause": specification.clause,
        "encoding": of.encoding,
        "codes": specification.codes,
    }
    match of.kind:
        case "json":
            from kiebitz.dissectors.protocol_file.json_codec import json_codec

            return json_codec(specification, grammar, own)
        case "xml":
            from kiebitz.dissectors.protocol_file.xml_codec import xml_codec

            return xml_codec(specification, grammar, own, **more)
        case "pairs" | "struct":
            from kiebitz.dissectors.protocol_file.envelope import FileEnvelope

            envelope = FileEnvelope(framing, of)
            if of.kind == "struct":
                from kiebitz.dissectors.protocol_file.struct_codec import StructCodec

                is_padded = framing.kind == "size"
                return StructCodec(grammar, envelope, of, is_padded, is_nameless=not of.name, **more)
            from kiebitz.dissectors.protocol_file.pairs_codec import PairsCodec

            return PairsCodec(grammar, envelope, of, is_nameless=not of.name, **more)
    from kiebitz.dissectors.protocol_file.text_types import has_line_fields

    has_lines = has_line_fields(specification)
    if of.kind != "lines" or framing.kind != "lines" or has_lines:
        return _text_codec(specification, grammar, own, has_lines, is_nameless=not of.name, **more)
    from kiebitz.dissectors.grammar.packet_codec import PacketCodec

    ends = {row.name: row.end for row in specification.messages if row.end is not None}
    line_end = of.line_end or "\n"
    make: Any = own or PacketCodec
    codec: Codec = make(grammar, mark=of.mark, end=of.end, more_ends=ends, line_end=line_end, **more)
    return codec


def _text_codec(
    specification: Specification, grammar: Grammar, own: Any, has_lines: bool, **more: Any
) -> Codec:
    from kiebitz.dissectors.grammar.text_codec import TextCodec
    from kiebitz.dissectors.grammar.tokens import PaddedQuotes, Splitter, Tokenizer
    from kiebitz.dissectors.protocol_file.envelope import FileEnvelope

    of, framing = specification.format, specification.framing
    tokenizer: Tokenizer = Splitter(of.delimiter, of.quote)
    if of.pads:
        tokenizer = PaddedQuotes(of.quote, of.pads)
    elif of.kind == "words":
        blanks = " \t\r\n" if framing.kind in ("block", "send") and not has_lines else " \t"
        tokenizer = Splitter(" ", of.quote, blanks)
    any_line_end = specification.lenient.line_ends and not has_lines
    envelope = FileEnvelope(framing, of, any_line_end=any_line_end, has_lines=has_lines)
    if of.mark:
        sent = {(row.direction, row.name): row.name for row in grammar.rows} | more["codes"]
        more["codes"] = {key: f"{of.mark}{code}" for key, code in sent.items()}
    make: Any = own or TextCodec
    if has_lines and isinstance(tokenizer, Splitter):
        from kiebitz.dissectors.protocol_file.line_fields import HeadAndLines, LineFieldsCodec

        make, tokenizer = LineFieldsCodec, HeadAndLines(tokenizer)
    codec: Codec = make(grammar, tokenizer, envelope, **more)
    return codec


def framer_of(
    framing: Framing,
    transport: Transport,
    specification: Specification | None = None,
    codec: Codec | None = None,
) -> Callable[[Direction], Framer]:
    """Return the factory for framers of a protocol file, whose messages and codec are known if given."""
    if transport == "udp":
        return DatagramFramer
    match framing.kind:
        case "datagrams":
            return DatagramFramer
        case "lines":
            return _framer_of_lines(specification, codec)
        case "json":
            from kiebitz.dissectors.grammar.json.codec import JsonCodec
            from kiebitz.dissectors.grammar.json.framer import JsonFramer
            from kiebitz.dissectors.protocol_file.json_codec import json_framing

            own = codec.framing if isinstance(codec, JsonCodec) else None
            return partial(JsonFramer, framing=own or json_framing(specification))
        case "xml":
            from kiebitz.dissectors.grammar.xml.codec import XmlCodec
            from kiebitz.dissectors.grammar.xml.framer import XmlFramer, XmlFraming

            return partial(XmlFramer, framing=codec.framing if isinstance(codec, XmlCodec) else XmlFraming())
        case "websocket":
            from kiebitz.dissectors.websocket.framer import WebSocketFramer

            return WebSocketFramer
    return _framer_of_bytes(framing, specification)


def _framer_of_lines(
    specification: Specification | None, codec: Codec | None
) -> Callable[[Direction], Framer]:
    if specification is None:
        return LineFramer
    if specification.lenient.line_ends:
        names: dict[Direction, list[str]] = {each: [] for each in DIRECTIONS}
        for message in specification.messages:
            names[message.direction].append(str(message.name if message.code is None else message.code))
        return partial(AnyLineFramer, names=names)
    from kiebitz.dissectors.grammar.packet_codec import PacketCodec

    return codec.framer if isinstance(codec, PacketCodec) else LineFramer


def _framer_of_bytes(framing: Framing, specification: Specification | None) -> Callable[[Direction], Framer]:
    from kiebitz.dissectors.protocol_file import framers
    from kiebitz.dissectors.protocol_file.framers import FieldExtents
    from kiebitz.dissectors.protocol_file.header import Header, beginning_of

    match framing.kind:
        case "delimiter":
            return partial(framers.DelimiterFramer, end=framing.end.encode())
        case "block":
            return partial(framers.BlockFramer, end=framing.end.encode())
        case "send":
            return framers.SendFramer
        case "fields":
            assert specification is not None, "only the rows know where messages end"
            return partial(
                framers.LengthFramer,
                headers={each: FieldExtents(specification, each) for each in DIRECTIONS},
            )
    headers: Mapping[Direction, Header] = dict.fromkeys(DIRECTIONS, Header(framing, Format()))
    if specification is not None:
        of = specification.format
        headers = {each: Header(framing, of, beginning_of(specification, each)) for each in DIRECTIONS}
    return partial(framers.LengthFramer, headers=headers)
