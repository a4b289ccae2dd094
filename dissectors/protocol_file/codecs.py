"""Codecs of protocol files by format."""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.grammar import Grammar
from kiebitz.dissectors.protocol_file.json_codec import JsonCodec
from kiebitz.dissectors.protocol_file.pairs_codec import PairsCodec
from kiebitz.dissectors.protocol_file.specification import Specification
from kiebitz.dissectors.protocol_file.struct_codec import StructCodec
from kiebitz.dissectors.protocol_file.words_codec import WordsCodec
from kiebitz.dissectors.protocol_file.xml_codec import XmlCodec

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
    return _CODECS[specification.format.kind](specification, grammar)
