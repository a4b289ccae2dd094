"""Regular expressions in Python's notation, searched for with a time limit.

Python's own `re` cannot be interrupted, and a short pattern can keep it busy forever. `regex` can, but reads
some notation differently: `a{e}` is any one letter, `[[:alpha:]]` a class, and combining accents belong to
words. So a pattern is parsed by the standard library and rewritten in notation that both read alike.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

try:
    import regex
except ImportError:
    # There is no build of it for browsers.
    regex = None

PATIENCE_S = 1.0
"""Time limit in seconds for the search in one text."""

MAX_PATTERN = 500
"""Characters; also a bound on how deeply a pattern can be nested, as it is read and compiled recursively."""

MAX_SIZE = 50_000
"""Characters of a pattern with its repetitions written out, as `regex` compiles it; that is some 20 ms."""

PARSER: Any = import_module("re._parser")
"""The standard library's reader of patterns. It is no public part of it, but nothing else knows it all."""

# Both know these classes, but draw them a little differently.
_WORD = r"\p{L}\p{Nt=De}\p{Nt=Di}\p{Nt=Nu}_"
_CLASSES = {
    "DIGIT": (r"\p{Nd}", "0-9"),
    "SPACE": (r"\s\x1c-\x1f", r"\t-\r "),
    "WORD": (_WORD, "0-9A-Z_a-z"),
}
"""Character class to its contents in brackets: for all characters, and for ASCII only."""

_KINDS_OF_I = "iI\u0130\u0131"
"""The letter i with and without a dot, upper and lower case: Python's IGNORECASE treats all as equal."""

EMPTY_HAS_NO_EDGE = re.search(r"\B", "") is None
"""Up to Python 3.13 an empty text has no place that is not the edge of a word."""

Search = Callable[[str], bool]


class Alarm:
    """Raises KeyboardInterrupt in the main thread after some seconds.

    `ring_after` is set where `regex` is missing and `re` searches; it is called with 0 to end the alarm.
    """

    ring_after: Callable[[float], None] | None = None


class TookTooLong(Exception):
    """A text could not be looked through in time."""


def parse_pattern(pattern: str) -> Any:
    """Return a regular expression as `PARSER` parses it.

    Raises ValueError with a sentence if it is not one, or too long, and RecursionError.
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a regular expression is at most {MAX_PATTERN} characters long")
    with warnings.catch_warnings():
        # Python warns of patterns whose meaning may change; the user has no place to read that.
        warnings.simplefilter("ignore")
        try:
            re.compile(pattern)
            return PARSER.parse(pattern)
        except (re.error, OverflowError) as error:
            raise ValueError(f"not a regular expression: {error}") from None


@lru_cache(maxsize=100)
def searching(pattern: str) -> Search:
    """Return a predicate of texts that `re.search` would find `pattern` in; it may raise TookTooLong.

    Raises ValueError with a sentence if it is not a regular expression, or beyond bounds.
    """
    parsed = parse_pattern(pattern)
    writer = PatternWriter()
    written = writer.write(parsed, parsed.state.flags)
    if writer.size(parsed) > MAX_SIZE:
        raise ValueError(f"with its repetitions written out this pattern has over {MAX_SIZE:,} characters")
    if regex is None:
        return _interruptible(re.compile(pattern))
    compiled = regex.compile(written, regex.VERSION0)

    def search(text: str) -> bool:
        try:
            return compiled.search(text, timeout=PATIENCE_S) is not None
        except (TimeoutError, MemoryError):
            raise TookTooLong from None

    return search


def _interruptible(compiled: re.Pattern[str]) -> Search:
    """Return a predicate that an alarm ends: `re`, too, looks for signals in the main thread."""
    ring_after = Alarm.ring_after
    if ring_after is None:
        raise ValueError("regular expressions need the module regex")

    def search(text: str) -> bool:
        ring_after(PATIENCE_S)
        try:
            return compiled.search(text) is not None
        except (KeyboardInterrupt, MemoryError):
            raise TookTooLong from None
        finally:
            ring_after(0)

    return search


class PatternWriter:
    """Writes what `re` has parsed in the notation of `regex`; flags are those of the standard library."""

    def write(self, nodes: Iterable[Any], flags: int) -> str:
        """Return parsed parts in the notation of `regex`."""
        return "".join(self._node(str(kind), value, flags) for kind, value in nodes)

    def size(self, nodes: Iterable[Any]) -> int:
        """Return the length of a pattern whose repetitions are written out."""
        return sum(self._size(str(kind), value) for kind, value in nodes)

    def _size(self, kind: str, value: Any) -> int:
        if kind.endswith("_REPEAT"):
            least, most, repeated = value
            return int(least + (most > least)) * self.size(repeated) + 1
        if kind == "BRANCH":
            return sum(map(self.size, value[1])) + 1
        if kind == "IN":
            return len(value)
        parts = value if isinstance(value, tuple) else (value,)
        return 1 + sum(self.size(part) for part in parts if isinstance(part, PARSER.SubPattern))

    def _node(self, kind: str, value: Any, flags: int) -> str:
        if kind == "LITERAL":
            return self._one_of([("LITERAL", value)], flags)
        if kind == "NOT_LITERAL":
            return self._one_of([("NEGATE", None), ("LITERAL", value)], flags)
        if kind == "ANY":
            return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
        if kind == "IN":
            return self._one_of([(str(inner), of) for inner, of in value], flags)
        if kind == "AT":
            return self._place(str(value), flags)
        if kind == "BRANCH":
            return f"(?:{'|'.join(self.write(branch, flags) for branch in value[1])})"
        if kind == "SUBPATTERN":
            group, added, removed, inner = value
            return f"({'?:' if group is None else ''}{self.write(inner, (flags | added) & ~removed)})"
        if kind.endswith("_REPEAT"):
            least, most, repeated = value
            upper = "" if most == PARSER.MAXREPEAT else int(most)
            how = {"MAX_REPEAT": "", "MIN_REPEAT": "?", "POSSESSIVE_REPEAT": "+"}[kind]
            return f"(?:{self.write(repeated, flags)}){{{int(least)},{upper}}}{how}"
        if kind in ("ASSERT", "ASSERT_NOT"):
            way, inner = value
            return f"(?{'<' if way < 0 else ''}{'=' if kind == 'ASSERT' else '!'}{self.write(inner, flags)})"
        if kind == "GROUPREF":
            return f"(?{'i' if flags & re.IGNORECASE else ''}:\\{value})"
        if kind == "GROUPREF_EXISTS":
            group, yes, no = value
            otherwise = f"|{self.write(no, flags)}" if no is not None else ""
            return f"(?({group}){self.write(yes, flags)}{otherwise})"
        if kind == "ATOMIC_GROUP":
            return f"(?>{self.write(value, flags)})"
        if kind == "FAILURE":
            return "(?!)"
        raise ValueError(f"this Python's {kind} in regular expressions is not known here")

    def _one_of(self, members: Iterable[tuple[str, Any]], flags: int) -> str:
        folds, is_ascii = bool(flags & re.IGNORECASE), bool(flags & re.ASCII)
        negated = False
        inside = ""
        without: list[str] = []
        for kind, value in members:
            if kind == "NEGATE":
                negated = True
            elif kind == "LITERAL":
                inside += _range(value, value, folds, is_ascii)
            elif kind == "RANGE":
                first, last = value
                inside += _range(first, last, folds, is_ascii)
            else:
                words = str(value).removeprefix("CATEGORY_").split("_")
                spelt = _CLASSES[words[-1]][is_ascii]
                if words[0] == "NOT":
                    without.append(spelt)
                else:
                    inside += spelt
        # Nested sets are not read in the same way everywhere: choices are.
        sets = [f"[{inside}]"] if inside else []
        sets += [f"[^{spelt}]" for spelt in without]
        chosen = sets[0] if len(sets) == 1 else f"(?:{'|'.join(sets)})"
        if negated:
            chosen = f"[^{inside}]" if not without else f"(?:(?!{chosen})(?s:.))"
        return f"(?i:{chosen})" if folds and not is_ascii else chosen

    def _place(self, name: str, flags: int) -> str:
        by_line = "(?m:{})" if flags & re.MULTILINE else "{}"
        word = f"[{_CLASSES['WORD'][bool(flags & re.ASCII)]}]"
        inner = f"(?<!{word})(?!{word})|(?<={word})(?={word})"
        return {
            "AT_BEGINNING": by_line.format("^"),
            "AT_BEGINNING_STRING": r"\A",
            "AT_BOUNDARY": f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))",
            "AT_NON_BOUNDARY": rf"(?:(?!\A\Z)(?:{inner}))" if EMPTY_HAS_NO_EDGE else f"(?:{inner})",
            "AT_END": by_line.format("$"),
            "AT_END_STRING": r"\Z",
        }[name]


def _range(first: int, last: int, folds: bool, is_ascii: bool) -> str:
    """Return the range from `first` to `last` for a character class."""
    spelt = _escape(first) if first == last else f"{_escape(first)}-{_escape(last)}"
    if not folds:
        return spelt
    if is_ascii:
        # Only these letters have another case.
        other = ((chr(code).swapcase(), code) for code in range(first, min(last, 127) + 1))
        return spelt + "".join(letter for letter, code in other if letter != chr(code))
    return spelt + (_KINDS_OF_I if any(first <= ord(letter) <= last for letter in _KINDS_OF_I) else "")


def _escape(code: int) -> str:
    """Escape a character so that it is literal in any context."""
    return f"\\U{code:08x}" if not chr(code).isalnum() else chr(code)
