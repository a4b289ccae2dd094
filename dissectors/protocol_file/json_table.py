"""JSON protocols from a TOML table: grammar, layout of messages, beginnings of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.grammar.json.codec import attribute_names, message_names
from kiebitz.dissectors.grammar.json.containers import JsonObject, SizeRule
from kiebitz.dissectors.grammar.json.framer import JsonFraming
from kiebitz.dissectors.grammar.json.layouts import JsonRow, KeyLayout
from kiebitz.dissectors.grammar.json.types import JsonBoolean, JsonChoice, JsonText
from kiebitz.dissectors.grammar.spellings import Spellings
from kiebitz.dissectors.grammar.table_file import FieldEntry, grammar_from, plain_row, table_document
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.json_types import JsonTypes, productions_of
from kiebitz.dissectors.protocol_file.reading.source import Source
from kiebitz.dissectors.protocol_file.reading.type_section import TypeSection


class JsonTable:
    """The content of the TOML file of a protocol whose messages have their name as the only key.

    Args:
        package: Name of the protocol's package.
        identifiers: Kinds of identifiers, by their names in the file.
        more: Further arguments of `Grammar`.
    """

    def __init__(self, package: str, identifiers: Mapping[str, IdentifierKind], **more: Any) -> None:
        document, _ = table_document(package)
        spellings = Spellings(document.get("spelled"), document.get("letters"))
        source = Source("")
        section = TypeSection(source, document["types"], document.get("descriptions", {}), "json")
        section.check()
        assert not source.mistakes, source.mistakes
        make = JsonTypes(spellings, identifiers, is_lenient=False)
        types = {name: make.type(kind) for name, kind in section.named.items()}
        self.productions: Mapping[str, JsonObject] = productions_of(section.named, make)
        self.grammar = grammar_from(
            package,
            types | {"text": JsonText(), "bool": JsonBoolean()},
            choice=lambda *words: JsonChoice(words, spellings),
            make_row=_json_row,
            spellings=spellings.of,
            **more,
        )
        self.layout = KeyLayout(self.grammar, spellings)

    @cached_property
    def framing(self) -> JsonFraming:
        """The beginnings and the ends of messages."""
        return JsonFraming(message_names(self.layout), attribute_names(self.layout))


def _json_row(
    name: str,
    direction: Direction,
    entries: tuple[FieldEntry, ...],
    description: str,
    beside: Sequence[str] = (),
    sizes: Mapping[str, Any] | None = None,
    **more: Any,
) -> MessageType:
    """Return a row with the layout of its fields."""
    more |= {"beside": tuple(beside), "sizes": None if sizes is None else SizeRule(**sizes)}
    return plain_row(name, direction, entries, description, JsonRow, **more)
