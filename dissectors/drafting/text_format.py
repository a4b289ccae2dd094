"""Inference of how fields are separated in text: the right delimiter yields the shortest description."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.dissectors.drafting.format_choice import FormatChoice, Parsed, Parser
from kiebitz.dissectors.drafting.json_format import name_path
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


_NUMBERED = re.compile(r"(?:[^\w\s]?\d+[\])}>.:]?){1,3}(?=\s+([^\W\d]\S*))")
_NUMBER_BEFORE = re.compile(r"([^\w\s]?)(\d+)([\])}>.:]?)")
_NUMBER_AFTER_BLANK = re.compile(r"\s\W?\d")
_NAME_WITH_NUMBER = 200
"""Cost of a name with a number as a word of its own, in bytes: it is rather a name and a field."""

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
    pairs = _pairs_format(texts, encoding, is_block)
    if pairs is not None:
        return pairs
    if is_block:
        form = Format(kind="delimited", delimiter="\n", encoding=encoding)
        return FormatChoice(form, _split_parser("\n", encoding), is_positional=True)
    quote = _quote(texts)
    delimiter = _best_delimiter([((), text) for text in texts], quote)
    if delimiter == " ":
        form = Format(kind="words", quote=quote, encoding=encoding)
        return FormatChoice(form, _words_parser(texts, quote, encoding), is_positional=True)
    form = Format(kind="delimited", delimiter=delimiter, encoding=encoding)
    return FormatChoice(form, _split_parser(delimiter, encoding), is_positional=True)


def text_fields(messages: Sequence[tuple[str, str]]) -> FormatChoice:
    """Return the format of texts with fields alone, each with the number that stands for its name."""
    quote = _quote([text for _, text in messages])
    delimiter = _best_delimiter([((code,), text) for code, text in messages], quote)
    form = Format(kind="words", quote=quote)
    if delimiter != " ":
        form = Format(kind="delimited", delimiter=delimiter)

    def parse(content: bytes) -> Parsed | None:
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return None
        words = _words(text, quote) if delimiter == " " else text.split(delimiter) if text else []
        return "", _by_position(words)

    return FormatChoice(form, parse, is_positional=True, has_codes=True)


def _best_delimiter(rows: Sequence[tuple[tuple[str, ...], str]], quote: str) -> str:
    """Return the delimiter with the shortest description of texts, of which each may have words before it."""
    best = (_cost([[*first, *_words(text, quote)] for first, text in rows]), " ")
    for delimiter in _DELIMITERS:
        if sum(delimiter in text for _, text in rows) >= 0.02 * len(rows):
            cost = _cost([[*first, *text.split(delimiter)] for first, text in rows])
            best = min(best, (cost, delimiter), key=lambda each: each[0])
    return best[1]


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


def _split_parser(delimiter: str, encoding: TextEncoding) -> Parser:
    def parse(content: bytes) -> Parsed | None:
        try:
            name, *values = content.rstrip(b"\r\n").decode(encoding).split(delimiter)
        except UnicodeDecodeError:
            return None
        return name, _by_position(values)

    return parse


def _words_parser(texts: Sequence[str], quote: str, encoding: TextEncoding) -> Parser:
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
        names |= {f"{first} {word}" for word in _second_words(first, group, depth)}
    if names and depth < 3:
        named = [row for row in rows if len(row) > depth and " ".join(row[: depth + 1]) in names]
        names |= _long_names(named, depth + 1)
    return names


def _second_words(first: str, group: Sequence[Sequence[str]], depth: int) -> set[str]:
    """Return the words after `first` that belong to the name; `group` are the rows that begin with it."""
    seconds: dict[str, list[Sequence[str]]] = defaultdict(list)
    for row in group:
        if len(row) > depth:
            seconds[row[depth]].append(row)
    is_sign = depth == 1 and not any(character.isalnum() for character in first)
    keywords = (
        {word for word in seconds if _is_keyword(word, is_sign)} if first.isupper() or is_sign else set()
    )
    if len(keywords) > 60 or not keywords:
        return set()
    if is_sign:
        # Free text after a sign is no name; a keyword is upper case, or recurs.
        upper = {word for word in keywords if word.isupper()}
        return upper or {word for word in keywords if len(seconds[word]) >= 3}
    if len(keywords) < 2 or sum(len(seconds[word]) for word in keywords) < 0.9 * len(group):
        return set()
    usual = {Counter(map(len, seconds[word])).most_common(1)[0][0] for word in keywords}
    return keywords if len(usual) > 1 else set()


def _is_keyword(word: str, is_sign: bool) -> bool:
    return (
        len(word) >= 2 and (word.isupper() or is_sign) and re.fullmatch(r"[^\W\d_][\w-]*:?", word) is not None
    )


# Pairs.


def _pairs_format(texts: Sequence[str], encoding: TextEncoding, is_block: bool) -> FormatChoice | None:
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
        path = name_path([pairs for _, pairs in rows])
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

    form = Format(kind="pairs", name=name, delimiter=delimiter, assign=assign, encoding=encoding)
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
