"""The codec for CGML: elements in an optional envelope, each followed by an empty line."""

from __future__ import annotations

from functools import partial

from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.xml.codec import XmlCodec
from kiebitz.dissectors.grammar.xml.notes import Misprint, XmlFormat
from kiebitz.dissectors.grammar.xml.tree import location_of as location_in
from kiebitz.dissectors.protocols.cgml.grammar import ENVELOPE, GRAMMAR, VERSION, VERSIONS

location_of = partial(location_in, envelope=ENVELOPE)
"""Returns the offset and length in bytes of a part of a message's element."""

FORMAT = XmlFormat(
    envelope=ENVELOPE,
    version=VERSION,
    versions=VERSIONS,
    blank_line=True,
    # The specification names no charset; Czech peers use UTF-8 or this one.
    charset="iso-8859-2",
    # Peers have copied the specification's misprints.
    misprints=(
        Misprint("quote", '=["… "]…="', '"…" ', "Licitace -- informace"),
        Misprint("equals", ' [… "…"]', '…="…"', "Talon -- převzetí"),
        Misprint("dots", '=["…"...]>', '"…"   ', "Talon -- informace"),
    ),
    is_strict=True,
)


CODEC = XmlCodec(GRAMMAR, Envelope(), FORMAT, repeated=("dial",), clause="1 Základní struktura datové zprávy")
