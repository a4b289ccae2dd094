"""The base of the codecs of protocol files."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import Grammar
from kiebitz.dissectors.grammar.layout_codec import LayoutCodec
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
from kiebitz.dissectors.protocol_file.specification import Specification


class FileCodec(LayoutCodec):
    """A codec of a protocol file, which describes its format, its envelope, and its codes."""

    def __init__(self, specification: Specification, grammar: Grammar) -> None:
        of = specification.format
        super().__init__(
            grammar,
            FileEnvelope(specification.framing, of),
            encoding=of.encoding,
            codes=specification.codes,
            is_nameless=not of.name,
        )
