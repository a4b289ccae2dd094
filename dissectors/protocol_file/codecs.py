"""Codecs of protocol files by format."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.grammar import Grammar
from kiebitz.dissectors.protocol_file.json_codec import JsonCodec
from kiebitz.dissectors.protocol_file.pairs_codec import PairsCodec
from kiebitz.dissectors.protocol_file.specification import Framing, Specification
from kiebitz.dissectors.protocol_file.struct_codec import StructCodec
from kiebitz.dissectors.protocol_file.words_codec import WordsCodec
from kiebitz.dissectors.protocol_file.xml_codec import XmlCodec
from kiebitz.dissectors.websocket.codec import WebSocketCodec
from kiebitz.dissectors.websocket.frames import BINARY, TEXT

_CODECS: dict[str, Callable[[Specification, Grammar], Codec]] = {
    "words": WordsCodec,
    "delimited": WordsCodec,
    "pairs": PairsCodec,
    "json": JsonCodec,
    "xml": XmlCodec,
    "struct": StructCodec,
}


def codec_of(specification: Specification, grammar: Grammar) -> Codec:
    """Return the codec of a protocol file."""
    make = _CODECS[specification.format.kind]
    if specification.framing.kind != "websocket":
        return make(specification, grammar)
    # Each message is whole, as a datagram is.
    inner = msgspec.structs.replace(specification, framing=Framing(kind="datagrams"))
    return WebSocketCodec(make(inner, grammar), BINARY if specification.format.kind == "struct" else TEXT)
