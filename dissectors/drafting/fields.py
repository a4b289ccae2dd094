"""Inference of the types of fields from their values, in the notation of protocol files."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.grammar.fields import INTEGER
from kiebitz.dissectors.grammar.tokens import PaddedQuotes
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.reading.notation import BUILT_IN
from kiebitz.dissectors.protocol_file.specification import Format

MAX_FIELDS = 60
"""Maximum number of fields of a message."""

_MAX_CHOICE = 12
_MAX_WORD = 24
_MAX_DEPTH = 4
_MAX_NAMED = 40
"""Length of a type, in characters, from which it gets a name of its own."""

_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{0,14}[1-9])?")
_BARE = re.compile(r"[^\W\d][\w.-]*")
_CELL = re.compile(r"(?:([A-Z])|([a-z]))\d{1,2}")
_BRACKETS = {("<", ">"), ("(", ")"), ("[", "]"), ("{", "}")}
_SEPARATORS = (",", ";", "|", "/", "+", " ")
_PARTS = re.compile(r"[^:\s]{1,60}(:[^:\s]{1,60}){1,4}")
_KEYS_OF_MAP = re.compile(r"-?\d+(,\s?-?\d+)*")

Identify = Callable[[tuple[str, ...]], str | None]
"""Function from the path of a value to the type of its identifier, None if it is none."""


class Column(msgspec.Struct):
    """A field of a row: its name in the file, its type, and whether it may be absent or is generated."""

    name: str
    type: str
    optional: bool = False
    generated: bool = False
    key: str = ""


class Row(msgspec.Struct):
    """A row of `[messages]`: the messages of one name, direction and variant."""

    name: str
    direction: Direction
    messages: list[Message]
    columns: list[Column]
    answers: list[str] = []
    broadcast: bool = False
    heartbeat: bool = False
    notes: list[str] = []


class TypeInference:
    """Infers types of one format; long ones get a name in `named`."""

    def __init__(self, form: Format, players: Collection[str], named: dict[str, str]) -> None:
        self.is_text = form.kind != "json"
        self._has_elements = form.kind == "xml"
        """True if one value may stand for a list of one."""
        self.named = named
        self._players = players
        self._delimiter = form.delimiter if form.kind in ("delimited", "pairs", "words") else "\0"
        self._padded = PaddedQuotes(form.quote, form.pads) if form.pads else None
        self._words: dict[str, Counter[str]] = {}

    def learn(self, key: str, values: Sequence[Any]) -> None:
        """Note the words of a field, whose type then covers those of all messages with this field."""
        counts = self._words.setdefault(key, Counter())
        for value in values:
            if isinstance(value, str) and len(counts) <= 200:
                counts[value] += 1

    def type_of(self, key: str, values: Sequence[Any], identify: Identify, path: tuple[str, ...] = ()) -> str:
        """Return the type of the values of a field; a long one by its name."""
        return self._name(key, self._infer(key, values, identify, (*path, key)))

    def framed_type_of(self, key: str, values: Sequence[str], identify: Identify) -> str:
        """Return the type of the values of a field in text, which may have brackets around them."""
        ends = {(value[:1], value[-1:]) for value in values if len(value) > 1}
        if len(ends) == 1 and len(min(values, key=len)) > 1 and (pair := ends.pop()) in _BRACKETS:
            inner = self.type_of(key, [value[1:-1] for value in values], identify)
            return f'"{pair[0]}"{inner}"{pair[1]}"'
        return self.type_of(key, values, identify)

    def _infer(self, key: str, values: Sequence[Any], identify: Identify, path: tuple[str, ...]) -> str:
        # An optional value may be null.
        values = [value for value in values if value is not None]
        kinds = {_kind(value) for value in values}
        if self._has_elements and "list" in kinds and len(kinds) > 1:
            values = [value if isinstance(value, list) else [value] for value in values]
            kinds = {"list"}
        identifier = identify(path)
        if identifier is not None and kinds <= {"text", "integer"} and len(kinds) == 1:
            return identifier
        if kinds == {"text"}:
            return self._text_type(key, values, identify, path)
        if kinds == {"bool"}:
            return "bool"
        if kinds == {"integer"}:
            return _range(values)
        if kinds and kinds <= {"integer", "number"}:
            return "number"
        if len(path) + sum(step.count("[]") for step in path) >= _MAX_DEPTH * 2:
            return "any"
        if kinds == {"list"}:
            items = [item for value in values for item in value[:200]][:5000]
            if not items:
                return "list"
            item = self._name(key, self._infer(key, items, identify, (*path[:-1], f"{path[-1]}[]")))
            return "list" if item == "any" else f"[{item}]"
        if kinds == {"object"}:
            return self._object(values, identify, path)
        return "any"

    def _object(self, values: Sequence[Mapping[str, Any]], identify: Identify, path: tuple[str, ...]) -> str:
        keys = Counter(key for value in values for key in value)
        rare = sum(number <= max(1, 0.05 * len(values)) for number in keys.values())
        is_map = len(keys) > 40 or (len(keys) > 6 and rare > 0.6 * len(keys))
        is_map |= bool(keys) and all(_KEYS_OF_MAP.fullmatch(key) for key in keys)
        is_map |= len(keys) > 1 and all(key in self._players for key in keys)
        if is_map or not keys or len(path) > _MAX_DEPTH:
            return "object"
        fields: list[str] = []
        for key in keys:
            name = quoted_name(key)
            if name is None:
                return "object"
            found = [value[key] for value in values if value.get(key) is not None][:5000]
            mark = "?" if len(found) < min(5000, len(values)) else ""
            fields.append(f"{name}{mark}={self.type_of(key, found, identify, path)}")
        return "{" + " ".join(fields) + "}"

    # Text.

    def _text_type(self, key: str, values: Sequence[str], identify: Identify, path: tuple[str, ...]) -> str:
        counts = Counter(values)
        if self._are_players(counts):
            return "player"
        if self.is_text:
            found = self._number_in_text(counts) or self._list_in_text(key, counts, identify, path)
            if found is not None:
                return found
        known = self._words.get(key, counts)
        return _choice(known if known.keys() >= counts.keys() else counts, self.is_text) or "text"

    def _are_players(self, counts: Counter[str]) -> bool:
        known = sum(number for word, number in counts.items() if word in self._players)
        several = sum(word in self._players for word in counts)
        if several and several == len(counts):
            return all(len(word) > 1 for word in counts)
        return known >= 0.4 * counts.total() and several >= 2

    def _number_in_text(self, counts: Counter[str]) -> str | None:
        if all(map(INTEGER.fullmatch, counts)):
            return _range([int(word) for word in counts.elements()])
        # One number with a fraction, such as 2.1, is rather a version.
        if len(counts) > 1 and all(map(_NUMBER.fullmatch, counts)):
            return "number"
        if counts.keys() <= {"true", "false"}:
            return "bool"
        if len(counts) >= 3 and all(map(_CELL.fullmatch, counts)):
            letters = "A-Z" if all(word[0].isupper() for word in counts) else "A-Za-z"
            return f"/[{letters}][0-9]{{1,2}}/"
        return None

    def _list_in_text(
        self, key: str, counts: Counter[str], identify: Identify, path: tuple[str, ...]
    ) -> str | None:
        if self._padded is not None and any(" " in word or '"' in word for word in counts):
            return self._quoted_list(key, counts, identify, path)
        words = [word for word in counts if word]
        if len(words) < 2 or len(path) > _MAX_DEPTH or "" in counts:
            return None
        if all(map(_PARTS.fullmatch, words)) and ":" not in self._delimiter:
            return self._parts_in_text(key, counts, identify, path)
        for separator in _SEPARATORS:
            if separator == self._delimiter or (
                separator == " " and self._delimiter.strip() != self._delimiter
            ):
                continue
            split = {word: word.split(separator) for word in words}
            several = sum(len(items) > 1 for items in split.values())
            if several < 0.5 * len(words):
                continue
            items = Counter(item for word in words for item in split[word] for _ in range(counts[word]))
            if "" in items or any(" " in item or len(item) > 40 for item in items):
                continue
            are_numbers = all(map(INTEGER.fullmatch, items))
            if separator == " " and not (are_numbers or self._are_players(items)):
                # A sentence.
                continue
            if not (are_numbers or len(items) <= max(3, 0.5 * items.total()) or self._are_players(items)):
                continue
            item = self._infer(key, list(items.elements()), identify, (*path[:-1], f"{path[-1]}[]"))
            return f"[{self._name(key, item)}{'' if separator == ',' else separator}]"
        return None

    def _quoted_list(
        self, key: str, counts: Counter[str], identify: Identify, path: tuple[str, ...]
    ) -> str | None:
        """Return the type of texts whose words are quoted once more: a list, also after other values."""
        assert self._padded is not None
        rows = [self._padded.texts(word) for word in counts.elements()]
        path = (*path[:-1], f"{path[-1]}[]")
        parts: list[str] = []
        while all(row and INTEGER.fullmatch(row[0]) for row in rows):
            parts.append(_range([int(row.pop(0)) for row in rows]))
        items = [item for row in rows for item in row if item]
        has_nulls = any("" in row for row in rows)
        kind = self._infer(key, items, identify, path) if items else "text"
        if kind != "player" and (kind.startswith("[text") or not (has_nulls or kind[0] in "[{")):
            return None
        parts.append(f"[{self._name(key, kind)}{'?' * has_nulls} ]")
        if len(parts) == 1:
            return parts[0]
        return f"{{{' '.join(map('='.join, zip(field_names(parts), parts, strict=True)))}}}"

    def _parts_in_text(
        self, key: str, counts: Counter[str], identify: Identify, path: tuple[str, ...]
    ) -> str | None:
        rows = [word.split(":") for word in counts.elements()]
        if len({len(row) for row in rows}) > 1:
            return None
        columns = [[row[index] for row in rows] for index in range(len(rows[0]))]
        types = [
            self._infer(key, column, lambda _: None, (*path, str(index)))
            for index, column in enumerate(columns)
        ]
        if any(kind.startswith(("[", "{")) for kind in types) or all(kind == "text" for kind in types):
            return None
        are_numbers = all(INTEGER.fullmatch(word) for column in columns for word in column)
        names = ("x", "y", "z")[: len(types)] if are_numbers and len(types) <= 3 else field_names(types)
        return (
            "{"
            + " ".join(f"{name}={kind}" for name, kind in zip(names, types, strict=False))
            + ":}"[self._padded is None :]
        )

    # Names of types.

    def _name(self, key: str, kind: str) -> str:
        """Return the name of a long type, which is new or that of the same type."""
        if len(kind) <= _MAX_NAMED:
            return kind
        for name, other in self.named.items():
            if other == kind:
                return name
        if len(self.named) >= 300:
            return "any" if kind[0] in "[{" else "text"
        base = identifier_of(key) or "type"
        base = f"{base}_value" if base in BUILT_IN else base
        name, number = base, 2
        while name in self.named:
            name, number = f"{base}{number}", number + 1
        self.named[name] = kind
        return name


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "integer" if abs(value) < 10**15 else "number"
        case float():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
        case dict():
            return "object"
    return "any"


def _range(values: Sequence[int]) -> str:
    """Return the type of whole numbers: a range if nearly all numbers in it occur."""
    low, high = min(values), max(values)
    counts = Counter(values)
    # Limits that are hardly reached are none.
    ends = min(counts[low], counts[high])
    if (
        len(values) >= 20
        and 0 < high - low <= 12
        and ends >= max(3, 0.03 * len(values))
        and (len(counts) >= 0.8 * (high - low + 1))
    ):
        return f"{low}..{high}"
    return "0.." if low >= 0 else "integer"


def _choice(counts: Counter[str], is_text: bool) -> str | None:
    """Return the choice of a few recurring words, or None."""
    if not 2 <= len(counts) <= _MAX_CHOICE or counts.total() < max(6, 3 * len(counts)):
        return None
    if sum(number == 1 for number in counts.values()) > len(counts) / 3:
        return None
    if any(word.count(" ") > 2 for word in counts):
        # Sentences.
        return None
    words = [quoted_word(word) for word in sorted(counts)]
    if any(word is None or len(word) > _MAX_WORD + 2 for word in words):
        return None
    if any(not any(character.isalpha() for character in word) for word in counts) and not is_text:
        return None
    return "|".join(word for word in words if word is not None)


def quoted_word(word: str) -> str | None:
    """Return a word of a choice, in quotes where needed; None if it cannot be written."""
    if _BARE.fullmatch(word):
        return word
    return f"'{word}'" if word and "'" not in word and word.isprintable() else None


def quoted_name(name: str) -> str | None:
    """Return the name of a field, in quotes where needed; None if it cannot be written."""
    if re.fullmatch(r"[\w.-]{1,60}", name):
        return name
    return f"'{name}'" if 0 < len(name) <= 60 and "'" not in name and name.isprintable() else None


def identifier_of(key: str) -> str:
    """Return a name of small letters, digits and `_` for a key."""
    plain = unicodedata.normalize("NFKD", key).encode("ascii", "ignore").decode()
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")[:30]
    return f"n{name}" if name[:1].isdigit() else name


_NAMES = (
    ("player", "player"),
    ("id:", ""),
    ("id", "id"),
    ("[", "list"),
    ("{", "parts"),
    ("bool", "flag"),
    ("rest", "text"),
    ("text", "text"),
    ("/", "cell"),
    ("bytes", "data"),
)


def field_names(types: Sequence[str]) -> list[str]:
    """Return names for fields that have none, by their types."""
    names: list[str] = []
    for kind in types:
        base = "value"
        for start, name in _NAMES:
            if kind.startswith(start):
                base = name or kind.partition(":")[2].partition(" ")[0]
                break
        else:
            if re.match(r"-?\d|\.\.|integer|number|[uif]\d|varint", kind):
                base = "number"
            elif "|" in kind:
                base = "word"
        name, number = base, 2
        while name in names:
            name, number = f"{base}{number}", number + 1
        names.append(name)
    return names
