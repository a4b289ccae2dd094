"""Inference of the formats of messages with keys: JSON, XML, and pairs of keys and values.

A message is an object, in which the tag of XML, or the first word of pairs, has the key `FIRST`. Its name is
the value that best predicts the other keys.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import msgspec

from kiebitz.dissectors.drafting.identifiers import leaves
from kiebitz.dissectors.drafting.traffic import (
    MAX_NAME,
    MAX_NAMES,
    FormatChoice,
    Parsed,
)
from kiebitz.dissectors.grammar.grammar import NAMELESS
from kiebitz.dissectors.grammar.sentences import value_at
from kiebitz.dissectors.grammar.xml.codec import parse as parse_xml
from kiebitz.dissectors.protocol_file.pairs_codec import Pairs
from kiebitz.dissectors.protocol_file.specification import Format, TextEncoding

FIRST = "\0"
"""A key that no XML and no pair has, and hardly any JSON."""

_NAMED = 0.3
"""Least share of messages with a name."""

_MAX_PATHS = 200

_NAME_KEYS = re.compile(
    r"\0|(message|msg|packet|event|cmd|command|action|request)?[_-]?(type|kind|name|cmd|command|action|event|op"
    r"|opcode|method|message|msg|code|id|tag|t|class)",
    re.IGNORECASE,
)
"""Usual keys of the value that is a message's name."""

_KEY = re.compile(r"[A-Za-z_][\w.-]{0,40}")

Object = Mapping[str, Any]
Path = tuple[str, ...]


def json_object(content: bytes) -> dict[str, Any] | None:
    """Return the object that a message is, None if it is none."""
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def element_of(content: bytes) -> Element | None:
    """Return the element that a message is, None if it is none, or has a document type."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        return None
    try:
        return parse_xml(content.decode())
    except (ParseError, ValueError, LookupError):
        return None


def json_format(contents: Sequence[bytes]) -> FormatChoice:
    """Return the format of JSON messages."""
    objects = [found for content in contents if (found := json_object(content)) is not None]
    keys = Counter(next(iter(found)) for found in objects if len(found) == 1)
    is_only_key = keys.total() >= 0.9 * len(objects) and 1 < len(keys) <= MAX_NAMES
    path = None if is_only_key else name_path(objects)
    if path is not None:
        names = [value_at(found, path) for found in objects]
        has_codes = all(isinstance(name, int) for name in names)
        form = Format(kind="json", name=".".join(path), fields=_body(objects, path))
        # Such as answers that have only the number of their request.
        otherwise = NAMELESS if None in names and not has_codes else None
        return _choice(form, json_object, path, otherwise, has_codes)

    def parse(content: bytes) -> Parsed | None:
        found = json_object(content)
        if not found:
            return None
        name = next((key for key in found if key in keys), next(iter(found)))
        value = found[name]
        return name, value if isinstance(value, dict) else {"value": value}

    return FormatChoice(Format(kind="json", name="*"), parse)


def xml_format(contents: Sequence[bytes], root: str = "") -> FormatChoice:
    """Return the format of XML messages, which may be in one element that stays open."""
    outer = re.compile(rb"^\s*(?:<\?[^>]*>\s*)?<%b(?:\s[^<>]*)?>|</%b\s*>\s*$" % ((root.encode(),) * 2))

    def inner(content: bytes) -> Element | None:
        return element_of(outer.sub(b"", content) if root else content)

    def read(content: bytes) -> Object | None:
        return None if (found := inner(content)) is None else {FIRST: found.tag, **_fields(found)}

    elements = [found for content in contents if (found := inner(content)) is not None]
    attributes: set[Path] = {(key,) for each in elements for key in each.attrib}
    attributes |= {(part.tag, key) for each in elements for part in each for key in part.attrib}
    objects = [{FIRST: each.tag, **_fields(each)} for each in elements]
    path = name_path(objects, {(FIRST,), *attributes}) or (FIRST,)
    name = "tag" if path == (FIRST,) else "/".join((*path[:-1], f"@{path[-1]}"))
    form = Format(kind="xml", name=name, envelope=root, stays_open=bool(root))
    return _choice(form, read, path)


def _fields(element: Element, depth: int = 0) -> dict[str, Any]:
    """Return attributes, child elements (as a list if repeated) and the text of an element."""
    fields: dict[str, Any] = dict(element.attrib)
    for child in element:
        value: Any = (child.text or "").strip()
        if child.attrib or len(child):
            value = _fields(child, depth + 1) if depth < 8 else {}
        if child.tag in fields:
            former = fields[child.tag]
            fields[child.tag] = [*former, value] if isinstance(former, list) else [former, value]
        else:
            fields[child.tag] = value
    if element.text and element.text.strip():
        fields["text"] = element.text.strip()
    return fields


def pairs_format(texts: Sequence[str], encoding: TextEncoding, is_block: bool) -> FormatChoice | None:
    """Return the format `pairs` if most messages consist of keys and values."""
    best: tuple[float, _PairsReader] | None = None
    for delimiter in ("\n",) if is_block else (" ", ";", "&", ",", "|", "\t", "; ", ", "):
        for assign in ("=", ": ", ":"):
            form = Format(kind="pairs", delimiter=delimiter, assign=assign, encoding=encoding)
            reader = _PairsReader(form)
            split = [pairs for text in texts if (pairs := reader.read(text)) is not None]
            fitting = len(split)
            many = sum(len({*pairs} - {FIRST}) >= (2 if assign == ":" else 1) for pairs in split)
            is_usual = fitting >= 0.9 * len(texts) and many >= 0.3 * len(texts)
            if is_usual and (best is None or fitting + many > best[0] + 0.01 * len(texts)):
                best = fitting + many, reader
    if best is None:
        return None
    reader = best[1]

    def read(content: bytes) -> Object | None:
        try:
            return reader.read(content.rstrip(b"\r\n").decode(encoding), is_exact=False)
        except UnicodeDecodeError:
            return None

    objects = [found for text in texts if (found := reader.read(text, is_exact=False)) is not None]
    path: Path | None = (FIRST,)
    if sum(FIRST in found for found in objects) < 0.8 * len(objects):
        path = name_path(objects)
    if path is None:
        return None
    name = "first" if path == (FIRST,) else path[0]
    return _choice(msgspec.structs.replace(reader.form, name=name), read, path)


class _PairsReader:
    """Reads texts as pairs of a format, of which each may begin with a word."""

    def __init__(self, form: Format) -> None:
        self.form = form
        self._with_first = Pairs(msgspec.structs.replace(form, name="first"), ())
        self._without_first = Pairs(msgspec.structs.replace(form, name=""), ())

    def read(self, text: str, *, is_exact: bool = True) -> dict[str, Any] | None:
        """Return the pairs of a text; None if something in it is no pair and it `is_exact`."""
        has_first = self.form.assign not in text.partition(self.form.delimiter)[0]
        pairs = [*(self._with_first if has_first else self._without_first).pairs(text)]
        found = {FIRST: pairs[0].text} if has_first else {}
        named = {pair.key: pair.text for pair in pairs[has_first:] if pair.key is not None}
        if is_exact and not (len(named) == len(pairs) - has_first and all(map(_KEY.fullmatch, named))):
            return None
        return found | named


def _choice(
    form: Format,
    read: Callable[[bytes], Object | None],
    path: Path,
    otherwise: str | None = None,
    has_codes: bool = False,
) -> FormatChoice:
    """Return a format with the parser of messages whose name is at `path`; others are named `otherwise`."""

    def parse(content: bytes) -> Parsed | None:
        found = read(content)
        if found is None:
            return None
        name = value_at(found, path)
        name = found.get(FIRST, otherwise) if name is None else name
        if not isinstance(name, int if has_codes else str) or isinstance(name, bool):
            return None
        fields = found.get(form.fields) or {} if form.fields else _without(found, path)
        return (str(name), fields) if isinstance(fields, dict) else None

    return FormatChoice(form, parse, has_codes=has_codes)


def _without(found: Object, path: Path) -> dict[str, Any]:
    """Return the fields of an object without its name, and in XML without an element that has only that."""
    inner = found.get(path[0])
    rest = {key: value for key, value in found.items() if key not in (path[0], FIRST)}
    if len(path) == 2 and FIRST in found and isinstance(inner, dict) and (left := _without(inner, path[1:])):
        rest[path[0]] = left
    return rest


def _scalars(found: Object) -> Iterator[tuple[Path, str | int]]:
    """Yield the texts and whole numbers that are not deep in an object, nor in a list."""
    for path, scalar in leaves(found):
        if len(path) <= 3 and not any(step.endswith("[]") for step in path):
            yield path, scalar


def name_path(objects: Sequence[Object], allowed: Collection[Path] | None = None) -> Path | None:
    """Return the path of the value that best predicts the other keys; `allowed` has the possible ones."""
    values: dict[Path, dict[int, str | int]] = defaultdict(dict)
    for number, found in enumerate(objects):
        for path, scalar in _scalars(found):
            if (len(values) < _MAX_PATHS or path in values) and (allowed is None or path in allowed):
                values[path][number] = scalar
    shapes = [frozenset(_key_paths(found)) for found in objects]
    scores = {path: _score(path, own, objects, shapes, allowed is not None) for path, own in values.items()}
    best = max(scores, key=lambda path: scores[path], default=())
    return best if scores.get(best) else None


def _score(
    path: Path,
    values: Mapping[int, str | int],
    objects: Sequence[Object],
    shapes: Sequence[frozenset[str]],
    has_tags: bool,
) -> float:
    """Return how well the values at a path, or else the tags, predict the other keys; 0.0 if they do not."""
    total, kinds = len(values), {*values.values()}
    is_usual = _NAME_KEYS.fullmatch(path[-1]) is not None
    most = min(MAX_NAMES, len(objects) * (0.8 if is_usual else 0.5))
    if total < _NAMED * len(objects) or len(kinds) > max(3, most):
        return 0.0
    if total < len(objects) and (
        len(path) != 2 if has_tags else len(path) > 1 or not is_usual or len(kinds) < 2
    ):
        # Only a usual key tells that the others have no name; those without an element have their tag.
        return 0.0
    if any(isinstance(value, str) and (len(value) > MAX_NAME or "\n" in value) for value in kinds):
        return 0.0
    by_name: dict[str | int, Counter[frozenset[str]]] = defaultdict(Counter)
    for number, found in enumerate(objects):
        if has_tags or number in values:
            by_name[values[number] if number in values else found[FIRST]][shapes[number]] += 1
    named = sum(map(Counter.total, by_name.values()))
    score = sum(counts.most_common(1)[0][1] for counts in by_name.values()) / named
    score -= 0.2 * (total < len(objects) and not has_tags)
    score -= 0.05 * len(path) + 0.3 * len(kinds) / len(objects) + 0.3 * (len(kinds) == 1)
    score += 0.3 * is_usual + 0.2 * (len(kinds) > 2) - 0.2 * all(isinstance(value, int) for value in kinds)
    return max(score, 1e-9)


def _key_paths(found: Object, depth: int = 0) -> Iterator[str]:
    for key, value in found.items():
        yield key
        if isinstance(value, dict) and depth < 1:
            for path in _key_paths(value, depth + 1):
                yield f"{key}.{path}"


def _body(objects: Sequence[Object], path: Path) -> str:
    """Return the key of the object that has all fields, or an empty text.

    Beside it and the name may be numbers that count the messages, and values that are always the same.
    """
    others = Counter(key for found in objects for key in found if key != path[0])
    bodies = [
        key
        for key, number in others.items()
        if number >= 0.5 * len(objects)
        and all(isinstance(found.get(key, {}) or {}, dict) for found in objects)
    ]
    if len(bodies) != 1 or any(not _is_around(objects, key) for key in others if key != bodies[0]):
        return ""
    return bodies[0]


def _is_around(objects: Sequence[Object], key: str) -> bool:
    """Return True if a value is always the same, or a number that only counts messages."""
    values = [found.get(key) for found in objects]
    if not all(isinstance(value, str | int) for value in values):
        return False
    kinds = len({*values})
    return kinds == 1 or (all(isinstance(value, int) for value in values) and kinds >= 0.7 * len(values))
