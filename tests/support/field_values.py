"""Values that the fields of the built-in protocols' messages can have, from the types in their grammars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import ListText, Number, Text, Word
from kiebitz.dissectors.grammar.grammar import Field, MessageType
from kiebitz.dissectors.grammar.json.containers import JsonBag, JsonList, JsonObject
from kiebitz.dissectors.grammar.json.layouts import JsonRow
from kiebitz.dissectors.grammar.json.types import JsonBoolean, JsonChoice, JsonEither, JsonNumber, JsonText
from kiebitz.dissectors.grammar.xml.shapes import Compound, ElementList, ElementType, Shape
from kiebitz.dissectors.protocols.catan.words import STRASSE
from kiebitz.dissectors.protocols.cgml import grammar as cgml
from kiebitz.dissectors.protocols.maexchen import grammar as maexchen
from kiebitz.dissectors.protocols.maexchen.dice import ROLLS
from kiebitz.dissectors.protocols.okey import grammar as okey
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, HIGHEST
from kiebitz.dissectors.protocols.schafkopf import grammar as schafkopf
from kiebitz.dissectors.protocols.schafkopf.cards import PACK

Values = st.SearchStrategy[Any]


def _texts(without: str = "", categories: str = "Cs", **how: Any) -> st.SearchStrategy[str]:
    kept = st.characters(exclude_characters=without, exclude_categories=categories.split())  # type: ignore[arg-type]
    return st.text(kept, **how)


_LINES = st.one_of(
    st.sampled_from(["§", "!DRAN", "!MODEL", "Ωmega✓", "x" * 5000, "\t \0"]), _texts("\n", max_size=40)
).filter(lambda name: not name.endswith("\r") and name not in (schafkopf.END, "Â§"))
_NO_MARKUP = ["\r\n\r\n<load>1</load>", "]]>", "&amp;", "<!--", " ", "\t"]
_XML_TEXTS = _texts("\ufffe\uffff", "Cs Cc", min_size=1, max_size=20) | st.sampled_from(_NO_MARKUP)
_LISTED = _texts(",;:", min_size=1, max_size=30)

# Okey's.
_WORDS = _texts("\r\n", max_size=20)
_NAMES = _WORDS.filter(bool)
_TILES = st.builds("{}:{}".format, st.integers(0, HIGHEST), st.sampled_from(COLOURS)) | st.none()
_PLACES = st.lists(_NAMES | st.none(), max_size=4)


def _of_lobbies(**behind: Values) -> Values:
    return st.lists(st.fixed_dictionaries({"lobby": st.integers(-99, 99), **behind}), max_size=3)


_SCORE = {"name": _NAMES, "date": _NAMES, "turns": st.integers(0, 99)}
_OKEY = {
    okey.TYPES[name]: strategy
    for name, strategy in {
        "wanted-name": _WORDS,
        "name": _WORDS,
        "names": _PLACES,
        "lobby": st.integers(-(2**31), 2**31 - 1),
        "seat": st.integers(0, 3),
        "tile": _TILES,
        "deck": st.lists(_TILES, max_size=24),
        "stacks": st.lists(_TILES, min_size=4, max_size=4),
        "titled-lobbies": _of_lobbies(players=_PLACES),
        "lobbies": _of_lobbies(players=_PLACES),
        "open-games": _of_lobbies(players=st.integers(0, 4)),
        "running-games": _of_lobbies(),
        "finished-games": _of_lobbies(winner=_NAMES | st.none()),
        "high-scores": st.lists(st.fixed_dictionaries(_SCORE), max_size=3),
    }.items()
}


def values(kind: FieldType) -> Values:
    """Return a strategy for the values of a field of a type."""
    if kind in _OKEY:
        return _OKEY[kind]
    match kind:
        case JsonObject():
            return _objects(kind.fields, kind.sizes)
        case JsonText():
            free = _texts(max_size=20) if kind.matches is None else st.sampled_from(["a", "Zz"])
            return st.just("1.0") if kind.usual else free
        case JsonBoolean():
            return st.booleans()
        case JsonNumber():
            return st.integers(int(kind.least or 0), int(kind.most or 0))
        case JsonChoice():
            return st.sampled_from(list(kind.values))
        case JsonEither():
            return st.one_of(*map(values, kind.options))
        case JsonList():
            return st.lists(values(kind.item), min_size=kind.least, max_size=min(kind.most or 4, 4))
        case JsonBag():
            counts = st.dictionaries(st.sampled_from(kind.names), st.integers(0, 19))
            return counts if kind.hidden is None else counts | st.integers(0, 95)
        case Compound():
            return _of_shape(kind.shape)
        case ElementList():
            sizes = {"min_size": max(kind.least, 1), "max_size": min(kind.most, 4)}
            unique = (lambda card: card) if isinstance(kind.item, cgml.Card) else None
            return st.lists(values(kind.item), unique_by=unique, **sizes)  # type: ignore[arg-type]
        case schafkopf.Each():
            return st.lists(values(kind.item), min_size=kind.least, max_size=kind.least)
        case schafkopf.Karte():
            return st.none() | st.sampled_from(sorted(PACK))
        case Word():
            return st.sampled_from([kind.decode(word) for word in kind.words if word])
        case schafkopf.Konto():
            return st.integers(-(10**14), 10**14)
        case cgml.Range():
            return st.integers(kind.least, kind.most)
        case Number():
            return st.integers(0, 10**14)
        case cgml.Pattern():
            return st.from_regex(kind.pattern, fullmatch=True)
        case maexchen.Token():
            return st.uuids().map(str)
        case maexchen.Dice():
            return st.sampled_from(ROLLS)
        case maexchen.Scores():
            return st.dictionaries(_LISTED, st.integers(-(10**6), 10**6), max_size=6)
        case ListText():
            return st.lists(_LISTED, min_size=1, max_size=6)
        case schafkopf.String():
            return _LINES
        case Text():
            return _texts(";\r\n", max_size=40)
    raise AssertionError(f"no values are known for {kind.title}: add them here")


def _objects(fields: Iterable[Field], sizes: object = None) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for fields with their values, in any number of those that may be left out.

    With `sizes` they are a building of Catan.
    """
    parts: dict[bool, dict[str, Values]] = {False: {}, True: {}}
    for field in fields:
        parts[field.optional][field.name] = values(field.type)
    found = st.fixed_dictionaries(parts[False], optional=parts[True])
    return found if sizes is None else found.filter(_stands_right)


def _stands_right(building: dict[str, Any]) -> bool:
    return len(building["Ort"]) == (2 if building["Typ"] == STRASSE else 3)


def _of_shape(shape: Shape, *more: Field) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the fields of an element of CGML."""
    parts: dict[bool, dict[str, Values]] = {False: {}, True: {}}
    for field in (*shape.attributes, *([shape.text] if shape.text is not None else [])):
        kind = _XML_TEXTS if type(field.type) is Text else values(field.type)
        # Nothing but blanks between two tags is nothing.
        kept = kind.filter(lambda value: value is None or str(value).strip()) if field.optional else kind
        parts[field.optional][field.name] = kept
    for field in shape.children:
        may_lack = field.optional or (isinstance(field.type, ElementList) and not field.type.least)
        kind = _XML_TEXTS if type(field.type) is Text else values(field.type)
        parts[may_lack][field.name] = kind
    parts[True] |= {field.name: st.sampled_from(["1.0", "1.19"]) for field in more}
    return st.fixed_dictionaries(parts[False], optional=parts[True])


def fields_of(row: MessageType) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the fields of a message."""
    if isinstance(row, ElementType):
        return _of_shape(row.shape, row.fields[-1])
    return _objects(row.fields, row.sizes if isinstance(row, JsonRow) else None)
