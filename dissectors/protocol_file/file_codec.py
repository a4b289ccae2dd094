"""The base of the codecs of protocol files."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.grammar import Grammar, MessageType
from kiebitz.dissectors.grammar.layout_codec import LayoutCodec
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
from kiebitz.dissectors.protocol_file.specification import Specification

MakeCodec = Callable[[Specification, Grammar], Codec]
"""A function that returns the codec of a protocol file with this grammar."""


def part_of(grammar: Grammar, rows: Iterable[MessageType]) -> Grammar:
    """Return the grammar of a codec that reads messages of these rows for the codec of all."""
    return Grammar(grammar.protocol, grammar.title, rows=rows, lenient=grammar.lenient)


class FileCodec(LayoutCodec):
    """A codec of a protocol file, which describes its format, its envelope, and its codes."""

    def __init__(self, specification: Specification, grammar: Grammar) -> None:
        of = specification.format
        super().__init__(
            grammar,
            FileEnvelope(specification.framing, of),
            clause=specification.clause,
            encoding=of.encoding,
            codes=specification.codes,
            is_nameless=not of.name,
        )
