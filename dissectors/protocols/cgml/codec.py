"""The codec for CGML: elements in an optional envelope, each followed by an empty line."""

from __future__ import annotations

from functools import partial

from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.xml.codec import XmlCodec
from kiebitz.dissectors.grammar.xml.notes import XmlFormat
from kiebitz.dissectors.grammar.xml.tree import location_of as location_in
from kiebitz.dissectors.protocols.cgml.grammar import ENVELOPE, GRAMMAR, VERSION

location_of = partial(location_in, envelope=ENVELOPE)
"""Returns the offset and length in bytes of a part of a message's element."""

FORMAT = XmlFormat(
    envelope=ENVELOPE,
    outer=(VERSION,),
    blank_line=True,
    charset=GRAMMAR.lenient.charset,
    misprints=GRAMMAR.lenient.misprints,
    is_strict=True,
)

CODEC = XmlCodec(GRAMMAR, Envelope(), FORMAT, clause="1 Základní struktura datové zprávy")
