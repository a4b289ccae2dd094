"""Inference of the format: where a message has its name, and how its fields are separated.

Text is split by each candidate delimiter; the right one yields the shortest description of all messages:
columns that repeat few words. In JSON and XML, the name is the value that best predicts which fields a
message has.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec

from kiebitz.dissectors.drafting.framing import content
from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.protocol_file.specification import Format, Framing

MAX_NAMES = 400
"""Maximum number of message names in a file."""

MAX_NAME = 60
"""Maximum length of a message name, in characters."""

_SAMPLE = 4000
_MAX_COLUMNS = 8

Parsed = tuple[str, dict[str, Any]]
"""Name and fields of a message; fields without a name have their position, from `1`."""

Parser = Callable[[bytes], Parsed | None]
"""Function from a frame's content to its name and fields; None if it does not fit the format."""

_NAME_KEYS = re.compile(
    r"(message|msg|packet|event|cmd|command|action|request)?[_-]?(type|kind|name|cmd|command|action|event|op|opcode"
    r"|method|message|msg|code|id|tag|t)",
    re.IGNORECASE,
)
_NAME_LIKE = re.compile(r"[^\w\s]{0,2}[^\W\d][\w .+!?*#/-]*")
_QUOTED = re.compile(r'(?<!\S)"(?:[^"\\]|\\.)*"(?!\S)')
_DELIMITERS = (
    ";",
    "|",
    ",",
    ":",
    "\t",
    "#",
    "/",
    "~",
    "&",
    "$",
    "^",
    "%",
    "::",
    "||",
    ": ",
    "; ",
    ", ",
    " | ",
)
_PAIR = re.compile(r"([A-Za-z_][\w.-]{0,40})(=|: |:)(.*)", re.DOTALL)


class FormatChoice(msgspec.Struct):
    """The chosen format.

    Attributes:
        format: The format.
        parse: The parser of a frame's content.
        is_positional: True if fields have a position instead of a name.
        has_codes: True if numbers stand for message names.
    """

    format: Format
    parse: Parser
    is_positional: bool = False
    has_codes: bool = False


def choose_format(framing: Framing, messages: Sequence[Message]) -> FormatChoice:
    """Return the format that fits best."""
    contents = [found for message in _sampled(messages) if (found := content(framing, message.data)).strip()]
    if _share(contents, _json_object) >= 0.8:
        return _json_format(contents)
    if _share(contents, _element) >= 0.5 and Counter(c[:1] for c in contents).most_common(1)[0][0] == b"<":
        return _xml_format(contents)
    encoding = "utf-8" if _share(contents, _utf8) >= 0.99 else "latin-1"
    texts = [content.rstrip(b"\r\n").decode(encoding, "replace") for content in contents]
    if sum(map(_is_printable, texts)) < 0.8 * len(texts):
        from kiebitz.dissectors.drafting.binary import struct_format

        return struct_format(framing, contents)
    return _text_format(framing, texts, encoding)


def _sampled(messages: Sequence[Message]) -> Sequence[Message]:
    """Return at most `_SAMPLE` messages, taken evenly."""
    return messages if len(messages) <= _SAMPLE else messages[:: -(-len(messages) // _SAMPLE)]


def _share(contents: Sequence[bytes], test: Callable[[bytes], Any]) -> float:
    return sum(test(content) is not None for content in contents) / len(contents) if contents else 0.0


def _utf8(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _is_printable(text: str) -> bool:
    return not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]", text)


# JSON.


def _json_object(content: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _json_format(contents: Sequence[bytes]) -> FormatChoice:
    objects = [found for content in contents if (found := _json_object(content)) is not None]
    keys = Counter(next(iter(found)) for found in objects if len(found) == 1)
    if keys.total() >= 0.9 * len(objects) and 1 < len(keys) <= MAX_NAMES:
        return FormatChoice(Format(kind="json", name="*"), _only_key_parser(keys))
    path = _name_path(objects)
    if path is None:
        return FormatChoice(Format(kind="json", name="*"), _only_key_parser(keys))
    has_codes = all(isinstance(_at(found, path), int) for found in objects)
    body = _body(objects, path)

    def parse(content: bytes) -> Parsed | None:
        found = _json_object(content)
        name = None if found is None else _at(found, path)
        if found is None or not isinstance(name, int if has_codes else str) or isinstance(name, bool):
            return None
        fields = (
            found.get(body) or {} if body else {key: value for key, value in found.items() if key != path[0]}
        )
        return (str(name), fields) if isinstance(fields, dict) else None

    return FormatChoice(Format(kind="json", name=".".join(path), fields=body), parse, has_codes=has_codes)


def _only_key_parser(known: Collection[str]) -> Parser:
    def parse(content: bytes) -> Parsed | None:
        found = _json_object(content)
        if not found:
            return None
        name = next((key for key in found if key in known), next(iter(found)))
        value = found[name]
        return name, value if isinstance(value, dict) else {"value": value}

    return parse


def _at(found: Any, path: Sequence[str]) -> Any:
    for key in path:
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found


def _scalars(found: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[tuple[str, ...], str | int]]:
    for key, value in found.items():
        if isinstance(value, dict) and depth < 2:
            for path, scalar in _scalars(value, depth + 1):
                yield (key, *path), scalar
        elif isinstance(value, str | int) and not isinstance(value, bool):
            yield (key,), value


def _name_path(objects: Sequence[Mapping[str, Any]]) -> tuple[str, ...] | None:
    """Return the path of the value that best predicts the other keys of a message."""
    values: dict[tuple[str, ...], Counter[str | int]] = defaultdict(Counter)
    shapes: dict[tuple[str, ...], dict[str | int, Counter[frozenset[str]]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    for found in objects:
        shape = frozenset(_key_paths(found))
        for path, scalar in _scalars(found):
            if len(values) < 200 or path in values:
                values[path][scalar] += 1
                if len(values[path]) <= MAX_NAMES:
                    shapes[path][scalar][shape] += 1
    best: tuple[float, tuple[str, ...]] | None = None
    for path, counts in values.items():
        if counts.total() < 0.95 * len(objects) or len(counts) > max(3, min(MAX_NAMES, len(objects) / 2)):
            continue
        if any(isinstance(value, str) and (len(value) > MAX_NAME or "\n" in value) for value in counts):
            continue
        usual = sum(shape.most_common(1)[0][1] for shape in shapes[path].values()) / counts.total()
        score = usual - 0.05 * len(path) - 0.3 * len(counts) / len(objects)
        score += 0.3 * bool(_NAME_KEYS.fullmatch(path[-1])) + 0.2 * (len(counts) > 2)
        score -= 0.2 * all(isinstance(value, int) for value in counts)
        if best is None or score > best[0]:
            best = score, path
    return None if best is None else best[1]


def _key_paths(found: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    for key, value in found.items():
        yield key
        if isinstance(value, dict) and depth < 1:
            for path in _key_paths(value, depth + 1):
                yield f"{key}.{path}"


def _body(objects: Sequence[Mapping[str, Any]], path: tuple[str, ...]) -> str:
    """Return the key of the object that has all fields, or an empty text."""
    others = Counter(key for found in objects for key in found if key != path[0])
    if len(others) != 1:
        return ""
    ((key, number),) = others.items()
    are_objects = all(isinstance(found.get(key, {}) or {}, dict) for found in objects)
    return key if are_objects and number >= 0.5 * len(objects) else ""


# XML.


def _element(content: bytes) -> ElementTree.Element | None:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        return None
    try:
        return ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError):
        return None


def _xml_format(contents: Sequence[bytes]) -> FormatChoice:
    elements = [found for content in contents if (found := _element(content)) is not None]
    tags = Counter(found.tag for found in elements)
    attribute = None
    if len(tags) <= 2:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for found in elements:
            for key, value in found.attrib.items():
                counts[key][value] += 1
        fitting = [
            (bool(_NAME_KEYS.fullmatch(key)), len(values), key)
            for key, values in counts.items()
            if values.total() >= 0.95 * len(elements) and 2 <= len(values) <= max(3, len(elements) / 4)
        ]
        attribute = max(fitting)[2] if fitting else None

    def parse(content: bytes) -> Parsed | None:
        found = _element(content)
        name = None if found is None else found.get(attribute) if attribute else found.tag
        if found is None or name is None:
            return None
        fields = _xml_fields(found)
        if attribute:
            fields.pop(attribute, None)
        return name, fields

    return FormatChoice(Format(kind="xml", name=f"@{attribute}" if attribute else "tag"), parse)


def _xml_fields(element: ElementTree.Element, depth: int = 0) -> dict[str, Any]:
    """Return attributes, child elements (as a list if repeated) and the text of an element."""
    fields: dict[str, Any] = dict(element.attrib)
    for child in element:
        value: Any = (child.text or "").strip()
        if child.attrib or len(child):
            value = _xml_fields(child, depth + 1) if depth < 8 else {}
        if child.tag in fields:
            former = fields[child.tag]
            fields[child.tag] = [*former, value] if isinstance(former, list) else [former, value]
        else:
            fields[child.tag] = value
    if element.text and element.text.strip():
        fields["text"] = element.text.strip()
    return fields


# Text.


def _text_format(framing: Framing, texts: Sequence[str], encoding: str) -> FormatChoice:
    is_block = framing.kind == "block"
    pairs = _pairs_format(texts, encoding, is_block)
    if pairs is not None:
        return pairs
    if is_block:
        form = Format(kind="delimited", delimiter="\n", encoding=encoding)  # type: ignore[arg-type]
        return FormatChoice(form, _split_parser("\n", encoding), is_positional=True)
    quote = _quote(texts)
    best = (_cost([_words(text, quote) for text in texts]), " ")
    for delimiter in _DELIMITERS:
        if sum(delimiter in text for text in texts) < 0.02 * len(texts):
            continue
        cost = _cost([text.split(delimiter) for text in texts])
        if cost < best[0]:
            best = cost, delimiter
    delimiter = best[1]
    if delimiter == " ":
        form = Format(kind="words", quote=quote, encoding=encoding)  # type: ignore[arg-type]
        return FormatChoice(form, _words_parser(texts, quote, encoding), is_positional=True)
    form = Format(kind="delimited", delimiter=delimiter, encoding=encoding)  # type: ignore[arg-type]
    return FormatChoice(form, _split_parser(delimiter, encoding), is_positional=True)


def _cost(rows: Sequence[Sequence[str]]) -> float:
    """Return the length of a description of rows by columns of words, in bytes."""
    columns: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    names = Counter(row[0] if row else "" for row in rows)
    for row in rows:
        for index, word in enumerate(row[1:_MAX_COLUMNS]):
            columns[row[0], index][word] += 1
        if len(row) > _MAX_COLUMNS:
            columns[row[0], _MAX_COLUMNS][" ".join(row[_MAX_COLUMNS:])] += 1
    total = 0.0
    for counts in (names, *columns.values()):
        size = counts.total()
        total += 4 + sum(len(word) + 1 for word in counts)
        total += sum(-number * math.log2(number / size) for number in counts.values()) / 8
    # A name is more than a word: it needs a row of its own.
    return total + 8 * len(names)


def _quote(texts: Sequence[str]) -> str:
    """Return the quotation mark around words with blanks, or an empty text."""
    with_marks = [text for text in texts if '"' in text]
    if not with_marks:
        return ""
    fitting = sum('"' not in _QUOTED.sub("", text) for text in with_marks)
    return '"' if fitting >= 0.8 * len(with_marks) else ""


def _words(text: str, quote: str) -> list[str]:
    """Return the words of a text; of quoted ones the content."""
    if not quote or quote not in text:
        return text.split()
    words: list[str] = []
    at = 0
    for found in _QUOTED.finditer(text):
        words += text[at : found.start()].split()
        words.append(re.sub(r"\\(.)", r"\1", found[0][1:-1]))
        at = found.end()
    return words + text[at:].split()


def _by_position(values: Iterable[str]) -> dict[str, Any]:
    return {str(number): value for number, value in enumerate(values, 1)}


def _split_parser(delimiter: str, encoding: str) -> Parser:
    def parse(content: bytes) -> Parsed | None:
        try:
            name, *values = content.rstrip(b"\r\n").decode(encoding).split(delimiter)
        except UnicodeDecodeError:
            return None
        return name, _by_position(values)

    return parse


def _words_parser(texts: Sequence[str], quote: str, encoding: str) -> Parser:
    long_names = _long_names([_words(text, quote) for text in texts])
    most = max((name.count(" ") + 1 for name in long_names), default=1)

    def parse(content: bytes) -> Parsed | None:
        try:
            text = content.rstrip(b"\r\n").decode(encoding)
        except UnicodeDecodeError:
            return None
        words = _words(text, quote)
        if not words:
            return None
        for size in range(min(most, len(words)), 1, -1):
            name = " ".join(words[:size])
            if name in long_names:
                return name, _by_position(words[size:])
        return words[0], _by_position(words[1:])

    return parse


def _long_names(rows: Sequence[Sequence[str]], depth: int = 1) -> set[str]:
    """Return names of several words: the first alone does not determine how many words follow."""
    groups: dict[str, list[Sequence[str]]] = defaultdict(list)
    for row in rows:
        if len(row) >= depth:
            groups[" ".join(row[:depth])].append(row)
    names: set[str] = set()
    for first, group in sorted(groups.items()):
        seconds: dict[str, list[Sequence[str]]] = defaultdict(list)
        for row in group:
            if len(row) > depth:
                seconds[row[depth]].append(row)
        is_sign = depth == 1 and not any(character.isalnum() for character in first)
        keywords = {
            word
            for word in seconds
            if re.fullmatch(r"[^\W\d_][\w-]*:?", word)
            and (word.isupper() or is_sign)
            and (first.isupper() or is_sign)
            and len(word) >= 2
        }
        if len(keywords) > 60 or not keywords:
            continue
        if is_sign:
            # Free text after a sign is no name; a keyword is upper case, or recurs.
            upper = {word for word in keywords if word.isupper()}
            chosen = upper or {word for word in keywords if len(seconds[word]) >= 3}
        else:
            if len(keywords) < 2 or sum(len(seconds[word]) for word in keywords) < 0.9 * len(group):
                continue
            usual = {Counter(map(len, seconds[word])).most_common(1)[0][0] for word in keywords}
            if len(usual) < 2:
                continue
            chosen = keywords
        names |= {f"{first} {word}" for word in chosen}
    if names and depth < 3:
        named = [row for row in rows if len(row) > depth and " ".join(row[: depth + 1]) in names]
        names |= _long_names(named, depth + 1)
    return names


# Pairs.


def _pairs_format(texts: Sequence[str], encoding: str, is_block: bool) -> FormatChoice | None:
    """Return the format `pairs` if most messages consist of keys and values."""
    best: tuple[float, str, str] | None = None
    delimiters = ("\n",) if is_block else (" ", ";", "&", ",", "|", "\t", "; ", ", ")
    for delimiter in delimiters:
        for assign in ("=", ": ", ":"):
            fitting = with_pairs = 0
            for text in texts:
                first, *rest = text.split(delimiter)
                rest = rest if assign not in first else [first, *rest]
                keys = [found[1] for part in rest if (found := _pair(part, assign)) is not None]
                fitting += len(keys) == len(rest) and len({*keys}) == len(keys)
                with_pairs += len(keys) >= (2 if assign == ":" else 1)
            share = fitting / len(texts) if texts else 0.0
            many = with_pairs / len(texts) if texts else 0.0
            if share >= 0.9 and many >= 0.3 and (best is None or (share + many) > best[0] + 0.01):
                best = share + many, delimiter, assign
    if best is None:
        return None
    _, delimiter, assign = best
    rows = [_split_pairs(text, delimiter, assign) for text in texts]
    if sum(first is not None for first, _ in rows) >= 0.8 * len(rows):
        name = "first"
    else:
        path = _name_path([pairs for _, pairs in rows])
        if path is None:
            return None
        name = path[0]

    def parse(content: bytes) -> Parsed | None:
        try:
            first, pairs = _split_pairs(content.rstrip(b"\r\n").decode(encoding), delimiter, assign)
        except UnicodeDecodeError:
            return None
        found = first if name == "first" else pairs.pop(name, None)
        return None if found is None else (found, pairs)

    form = Format(kind="pairs", name=name, delimiter=delimiter, assign=assign, encoding=encoding)  # type: ignore[arg-type]
    return FormatChoice(form, parse)


def _pair(text: str, assign: str) -> re.Match[str] | None:
    found = _PAIR.fullmatch(text)
    if found is None or found[2].strip() != assign.strip():
        return None
    return found if assign != ": " or found[2] == ": " or not found[3] else None


def _split_pairs(text: str, delimiter: str, assign: str) -> tuple[str | None, dict[str, Any]]:
    first, *rest = text.split(delimiter)
    name: str | None = first
    if assign in first:
        name, rest = None, [first, *rest]
    pairs: dict[str, Any] = {}
    for part in rest:
        key, found, value = part.partition(assign)
        if found:
            pairs[key] = value
        elif part.strip():
            pairs[part.strip()] = ""
    return name, pairs


# Names.


def known_names(messages: Iterable[Message]) -> set[tuple[str, str]]:
    """Return the names, with directions, that are no garbled forms of others."""
    counts: Counter[tuple[str, str]] = Counter((message.direction, message.name) for message in messages)
    folded: dict[tuple[str, str], int] = {}
    for (direction, name), number in counts.items():
        key = direction, _fold(name)
        folded[key] = max(folded.get(key, 0), number)
    found: list[tuple[str, str]] = []
    style = _usual_style(counts)
    for (direction, name), number in counts.most_common():
        if not name or len(name) > MAX_NAME or not name.isprintable():
            continue
        if number < folded[direction, _fold(name)] / 5 and number < 5:
            continue
        if number < 3 and style is not None and not style.fullmatch(name):
            continue
        found.append((direction, name))
    return {*found[:MAX_NAMES]}


def _fold(name: str) -> str:
    return re.sub(r"\W", "", name).casefold() or name


def _usual_style(counts: Mapping[tuple[str, str], int]) -> re.Pattern[str] | None:
    """Return the pattern of nearly all frequent names, or None."""
    names = {name for (_, name), number in counts.items() if number >= 3}
    for pattern in (
        r"[^\w\s]{0,2} ?[A-Z][A-Z0-9_ -]*",
        r"[^\w\s]{0,2}[a-z][a-z0-9_ .-]*",
        _NAME_LIKE.pattern,
    ):
        style = re.compile(pattern)
        if len(names) >= 4 and sum(bool(style.fullmatch(name)) for name in names) >= 0.95 * len(names):
            return style
    return None
