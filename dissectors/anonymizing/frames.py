"""Anonymization of one message: the same number of bytes and the same kind of message.

Free texts, as the grammar declares them, and names are replaced in place. After that, no word remains in the
bytes, decoded or not, that is neither the protocol's own nor a pseudonym.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache

import msgspec

from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import UNWRITABLE, Fields
from kiebitz.dissectors.grammar.fields import PartsText
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction

_CHARSETS = ("utf-8", "cp1252", "iso-8859-2")
"""Charsets in which a protocol's words may be encoded."""

_TOKEN = re.compile(
    rb"\xef\xbb\xbf|(?P<escape>\\u[0-9A-Fa-f]{4})|\\[bfnrt]|(?P<entity>&#?[0-9A-Za-z]{1,8};)"
    rb"|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    rb"|(?P<word>[A-Za-z\x80-\xff][0-9A-Za-z\x80-\xff]*)"
)
_MARKS = re.compile(rb"(\A(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf))|[0-9A-Za-z\x80-\xff]")
"""A byte order mark, and the bytes to replace in an unreadable message."""
_ENTITY = re.compile(rb"&#(x?)([0-9A-Fa-f]+);", re.IGNORECASE)
_XML_OWN = frozenset((b"&amp;", b"&lt;", b"&gt;", b"&quot;", b"&apos;"))
_MAX_SHORT_DIGITS = 3
"""Maximum number of digits of a number that is not personal."""

_JSON_WORDS = ("true", "false", "null")


def anonymized(frame: bytes, direction: Direction, dissector: Dissector, pseudonyms: Pseudonyms) -> bytes:
    """Return the replacement of a message, or of bytes that should be one. Never raises."""
    decoded = dissector.codec.decode(frame, direction)
    row, written = decoded.row, frame
    known = own_words(dissector)
    carrier = dissector.encapsulation
    start = carrier.content_start(frame) if carrier is not None else 0
    if row is not None:
        fields = row.anonymized(decoded.fields, pseudonyms.text, pseudonyms.rename)
        known = known | words_as_bytes((*_texts(fields), *_joined(row, fields)))
        written = _rewritten(frame, direction, dissector, decoded.fields, fields)
    elif b"\0" in frame:
        # As in UTF-16: words cannot be recognised in single letters.
        return frame[:start] + _MARKS.sub(lambda found: found[1] or b"x", frame[start:])
    return written[:start] + masked(written[start:], known, pseudonyms)


def _joined(row: MessageType, fields: Fields) -> Iterator[str]:
    """Yield the texts of values with parts, between which there may be nothing."""
    for field in row.fields:
        if isinstance(field.type, PartsText) and field.name in fields:
            with suppress(*UNWRITABLE):
                yield field.type.encode(fields[field.name])


def _rewritten(
    frame: bytes,
    direction: Direction,
    dissector: Dissector,
    before: Fields,
    fields: Fields,
) -> bytes:
    """Return a message with replaced fields, except those that cannot be encoded in as many bytes."""
    written, now = frame, dict(before)
    changed = [name for name in fields if fields[name] != before[name]]
    for names in (changed, *([name] for name in changed)):
        wanted = now | {name: fields[name] for name in names}
        with suppress(*UNWRITABLE):
            other = dissector.codec.rewrite(written, direction, wanted)
            if len(other) == len(frame):
                written, now = other, wanted
                if len(names) == len(changed):
                    break
    return written


def masked(data: bytes, known: frozenset[bytes], pseudonyms: Pseudonyms) -> bytes:
    """Replace each word that is not in `known`, and each long number, by a pseudonym."""

    def other(found: re.Match[bytes]) -> bytes:
        token = found[0]
        if found.lastgroup is None or token.lower() in known:
            return token
        if found.lastgroup == "escape":
            return rb"\u0078"
        if found.lastgroup == "entity":
            return _other_entity(token, known, pseudonyms)
        if found.lastgroup == "number" and len(token) <= _MAX_SHORT_DIGITS:
            return token
        return _other_word(token, pseudonyms)

    return _TOKEN.sub(other, data)


def blank(data: bytes) -> bytes:
    """Replace unknown bytes, except line ends."""
    return re.sub(rb"[^\r\n]", b"?", data)


def _other_word(token: bytes, pseudonyms: Pseudonyms) -> bytes:
    """Return the pseudonym of a word; bytes that are not UTF-8 get bytes that are not UTF-8 either."""
    is_utf_8 = _is_utf_8(token)
    for charset in _CHARSETS if not is_utf_8 else _CHARSETS[:1]:
        with suppress(UnicodeError):
            other = pseudonyms.text(token.decode(charset)).encode(charset)
            if len(other) == len(token) and _is_utf_8(other) == is_utf_8:
                return other
    return (b"x" if is_utf_8 else b"\xff") * len(token)


def _is_utf_8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _other_entity(token: bytes, known: frozenset[bytes], pseudonyms: Pseudonyms) -> bytes:
    """Replace a character reference of XML by one for an x, in as many bytes."""
    if token in _XML_OWN:
        return token
    found = _ENTITY.fullmatch(token)
    if found is None:
        return b"&" + masked(token[1:], known, pseudonyms)
    mark, number = found[1], found[2]
    # One digit encodes only blanks, and two digits no letters but capitals.
    other = b"78" if mark else b"120" if len(number) > 2 else b"88"
    return token if len(number) < 2 else b"&#%b%b;" % (mark, other.zfill(len(number)))


@lru_cache(maxsize=64)
def own_words(dissector: Dissector) -> frozenset[bytes]:
    """Return the words of a protocol, which remain."""
    return words_as_bytes((*dissector.grammar.words, *_JSON_WORDS))


def words_as_bytes(texts: Iterable[str]) -> frozenset[bytes]:
    """Return the words of texts in all encodings and escapes, in lower case."""
    found: set[bytes] = set()
    for text in texts:
        spellings = {text.encode("utf-8", "ignore"), msgspec.json.encode(text)}
        if not text.isascii():
            spellings |= {text.encode(charset, "ignore") for charset in _CHARSETS}
            spellings |= {text.encode("ascii", "xmlcharrefreplace"), _escaped(text)}
            spellings.add("".join(f"&#x{ord(char):x};" for char in text).encode())
        for spelt in spellings:
            found.update(match[0].lower() for match in _TOKEN.finditer(spelt))
    return frozenset(found)


def _escaped(text: str) -> bytes:
    """Return a text in ASCII with JSON escapes."""
    units = text.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return b"".join(b"%c" % code if code < 0x80 else b"\\u%04x" % code for code in codes)


def _texts(value: object) -> Iterable[str]:
    """Yield the texts and numbers in a JSON value, including keys."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif value is not None:
        yield str(value)
