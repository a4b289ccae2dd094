"""Inference of the format: JSON, XML, binary or text, whose right delimiter has the shortest description."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.drafting.binary import struct_format
from kiebitz.dissectors.drafting.framing import code_of, content
from kiebitz.dissectors.drafting.keyed_formats import (
    element_of,
    json_format,
    json_object,
    pairs_format,
    xml_format,
)
from kiebitz.dissectors.drafting.traffic import FormatChoice, Message, Parsed
from kiebitz.dissectors.grammar.tokens import PaddedQuotes, Splitter
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocol_file.specification import (
    BeforePart,
    FieldSpec,
    Format,
    Framing,
    NumberType,
    TextEncoding,
)

_MAX_COLUMNS = 8
_QUOTED = re.compile(r'(?<!\S)"(?:[^"\\]|\\.)*"(?!\S)')

_PADS = " %_"
"""Paddings before a closing quotation mark."""

_MAX_WORDS = 3
"""Number of words of a name after which there may be one more."""

_MAX_SECOND = 60
"""Maximum number of names that begin with the same word."""

_RECURRING = 3
"""Number of messages with a word from which it is no value."""

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

_NUMBERED = re.compile(r"(?:[^\w\s]?\d+[\])}>.:]?){1,3}(?=\s+([^\W\d]\S*))")
_NUMBER_BEFORE = re.compile(r"([^\w\s]?)(\d+)([\])}>.:]?)")
_NUMBER_AFTER_BLANK = re.compile(r"\s\W?\d")
_NAME_WITH_NUMBER = 200
"""Cost of a name with a number as a word of its own, in bytes: it is rather a name and a field."""

_KEYWORD = re.compile(r"[^\W\d_][\w-]+:?")

_BEFORE = ("id", "ref", "number")
"""Names of numbers before the name of a message."""

_LEAST_NUMBERED = 0.3
"""Least share of messages with numbers before their names."""


def numbers_before(texts: Sequence[str]) -> tuple[BeforePart, ...]:
    """Return the numbers that precede the names of many messages: there are more of them than of names."""
    found = [match for text in texts if (match := _NUMBERED.match(text)) is not None]
    first, names = {match[0] for match in found}, {match[1] for match in found}
    if len(first) < 4 or len(found) < _LEAST_NUMBERED * len(texts) or len(names) >= len(first):
        return ()
    parts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for text in sorted(first):
        for place, (opening, _, closing) in enumerate(_NUMBER_BEFORE.findall(text)):
            parts[opening, closing].append(place)
    if len(parts) > len(_BEFORE):
        return ()
    order = sorted(parts, key=lambda part: (max(parts[part]), part))
    return tuple(
        BeforePart(FieldSpec(name, NumberType(), "integer", optional=True), *part)
        for name, part in zip(_BEFORE, order, strict=False)
    )


def text_format(framing: Framing, texts: Sequence[str], encoding: TextEncoding) -> FormatChoice:
    """Return the format of text messages."""
    is_block = framing.kind == "block" or (framing.kind == "send" and any("\n" in text for text in texts))
    pairs = pairs_format(texts, encoding, is_block)
    if pairs is not None:
        return pairs
    if is_block:
        return _with_parser(Format(kind="delimited", delimiter="\n", encoding=encoding))
    form = _best_format([((), text) for text in texts], encoding)
    rows = [words for text in texts if form.kind == "words" and (words := _split(form, text))]
    return _with_parser(form, _long_names(rows))


def text_fields(messages: Sequence[tuple[str, str]]) -> FormatChoice:
    """Return the format of texts with fields alone, each with the number that stands for its name."""
    form = _best_format([((code,), text) for code, text in messages], "utf-8")
    return _with_parser(form, has_codes=True)


def _with_parser(form: Format, long_names: Collection[str] = (), *, has_codes: bool = False) -> FormatChoice:
    """Return a format with its parser."""
    most = max((name.count(" ") + 1 for name in long_names), default=1)

    def parse(content: bytes) -> Parsed | None:
        try:
            words = _split(form, content.rstrip(b"\r\n").decode(form.encoding))
        except UnicodeDecodeError:
            return None
        if not (words or has_codes):
            return None
        size = next((size for size in range(most, 1, -1) if " ".join(words[:size]) in long_names), 1)
        size = 0 if has_codes else size
        values = {str(number): word for number, word in enumerate(words[size:], 1)}
        return " ".join(words[:size]), values

    return FormatChoice(form, parse, is_positional=True, has_codes=has_codes)


def _split(form: Format, text: str) -> list[str]:
    """Return the words of a text."""
    if form.pads:
        return PaddedQuotes(form.quote, form.pads).texts(text)
    if form.kind == "words":
        return Splitter(" ", form.quote, " \t\r\n").texts(text)
    return text.split(form.delimiter) if text else []


def _best_format(rows: Sequence[tuple[tuple[str, ...], str]], encoding: TextEncoding) -> Format:
    """Return the format with the shortest description of texts, of which each may have words before it."""
    quote, pads = _quote([text for _, text in rows])
    forms = [Format(kind="words", quote=quote, pads=pads, encoding=encoding)]
    for delimiter in _DELIMITERS:
        if sum(delimiter in text for _, text in rows) >= 0.02 * len(rows):
            forms.append(Format(kind="delimited", delimiter=delimiter, encoding=encoding))
    return min(forms, key=lambda form: _cost([[*first, *_split(form, text)] for first, text in rows]))


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
    # A name is more than a word: it needs a row of its own, and has no values in it.
    total += 8 * len(names) + 8 * sum(any(map(str.isdigit, name)) for name in names)
    return total + _NAME_WITH_NUMBER * sum(_NUMBER_AFTER_BLANK.search(name) is not None for name in names)


def _quote(texts: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the quotation mark around words with blanks, or an empty text, and the padding before it."""
    with_marks = [text for text in texts if '"' in text]
    if not with_marks or sum('"' in _QUOTED.sub("", text) for text in with_marks) > 0.2 * len(with_marks):
        return "", ()
    ends = Counter(quoted[-2:-1] for text in with_marks for quoted in _QUOTED.findall(text))
    pads = tuple(pad for pad in _PADS if ends[pad] >= 0.9 * ends.total())
    return '"', pads


def _long_names(rows: Sequence[Sequence[str]], depth: int = 1) -> set[str]:
    """Return names of several words: the first word alone does not determine what follows."""
    groups: dict[str, list[Sequence[str]]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    found: set[str] = set()
    for first, group in sorted(groups.items()):
        words = _second_words(first, group) if depth <= _MAX_WORDS else ()
        longer = [[f"{first} {row[1]}", *row[2:]] for row in group if len(row) > 1 and row[1] in words]
        found |= {row[0] for row in longer} | (_long_names(longer, depth + 1) if longer else set())
    return found


def _second_words(first: str, group: Sequence[Sequence[str]]) -> Collection[str]:
    """Return the words after `first` that belong to the name; `group` are the rows that begin with it."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for row in group:
        if len(row) > 1 and _KEYWORD.fullmatch(row[1]):
            sizes[row[1]].append(len(row))
    if not any(map(str.isalnum, first)):
        # Free text after a sign is no name; a keyword is upper case, or recurs.
        upper = {word for word in sizes if word.isupper()}
        return upper or {word for word, found in sizes.items() if len(found) >= _RECURRING}
    style = next((test for test in (str.isupper, str.islower, str.istitle) if test(first)), str.isupper)
    words = {word for word in sizes if style(word)}
    is_whole = sum(len(sizes[word]) for word in words) >= 0.9 * len(group)
    if not is_whole or not 1 < len(words) <= _MAX_SECOND:
        return ()
    usual = {word: Counter(sizes[word]).most_common(1)[0] for word in words}
    # Small words may be values, such as names of players.
    is_certain = first.isupper() or all(
        number >= max(_RECURRING, 0.9 * len(sizes[word])) for word, (_, number) in usual.items()
    )
    return words if is_certain and len({size for size, _ in usual.values()}) > 1 else ()


_SAMPLE = 4000
"""Number of messages by which a format is inferred."""


def with_numbers(framing: Framing, messages: Sequence[Message]) -> Framing:
    """Return the framing with the numbers before the names of messages in text."""
    if framing.has_name or framing.kind in ("size", "fields", "json", "xml", "length"):
        return framing
    texts = [text for data in _contents(framing, messages) if (text := _utf8(data)) is not None]
    return msgspec.structs.replace(framing, before=numbers_before(texts))


def choose_formats(
    framing: Framing, messages: Sequence[Message], root: str = ""
) -> dict[Direction, FormatChoice]:
    """Return the format of each direction: the same, unless one side speaks JSON and the other does not."""
    if root:
        return dict.fromkeys(DIRECTIONS, xml_format(_contents(framing, messages), root))
    sides = [[message for message in messages if message.direction == each] for each in DIRECTIONS]
    are_objects = [_share(_contents(framing, own), json_object) >= 0.8 for own in sides]
    if all(sides) and are_objects[0] != are_objects[1] and not framing.has_name and framing.kind != "json":
        found = [_choose_format(framing, own) for own in sides]
    else:
        found = [_choose_format(framing, messages)] * 2
    return dict(zip(DIRECTIONS, found, strict=True))


def _choose_format(framing: Framing, messages: Sequence[Message]) -> FormatChoice:
    """Return the format that fits best."""
    contents = _contents(framing, messages)
    encoding: TextEncoding = "utf-8" if _share(contents, _utf8) >= 0.99 else "latin-1"
    texts = [content.rstrip(b"\r\n").decode(encoding, "replace") for content in contents]
    is_binary = sum(map(_is_printable, texts)) < (0.95 if framing.has_name else 0.8) * len(texts)
    if framing.has_name:
        return _format_after_header(framing, messages, contents, is_binary)
    if _share(contents, json_object) >= 0.8:
        return json_format(contents)
    if _share(contents, element_of) >= 0.5 and Counter(c[:1] for c in contents).most_common(1)[0][0] == b"<":
        return xml_format(contents)
    if is_binary:
        return struct_format(framing, [content(framing, message.data) for message in _sampled(messages)])
    return text_format(framing, texts, encoding)


def _format_after_header(
    framing: Framing, messages: Sequence[Message], contents: Sequence[bytes], is_binary: bool
) -> FormatChoice:
    """Return the format of messages whose names are in their headers: it is that of the fields alone."""
    if _share(contents, json_object) >= 0.8:
        return FormatChoice(
            Format(kind="json", name=""), lambda data: ("", json_object(data) or {}), has_codes=True
        )
    if is_binary or not contents or _share(contents, _utf8) < 1:
        form = Format(kind="struct", name="", order=framing.order)
        return FormatChoice(form, lambda data: ("", {"": data}), is_positional=True, has_codes=True)
    rows = [(code_of(framing, each.data), content(framing, each.data)) for each in _sampled(messages)]
    return text_fields([(code, data.decode()) for code, data in rows])


def _contents(framing: Framing, messages: Sequence[Message]) -> list[bytes]:
    found = (content(framing, message.data, True) for message in _sampled(messages))
    return [data for data in found if data.strip()]


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
