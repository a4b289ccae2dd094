"""One message's bytes without anything that tells who somebody is: as many bytes, and the same message.

Texts that the grammar knows to be free, and names, are replaced where they stand. After that no word is left
in the bytes, read or not, that is neither the protocol's own nor a stand-in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from kiebitz.dissectors.anonymizing.pseudonyms import StandIns
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import UNWRITABLE
from kiebitz.dissectors.model import Direction

_CHARSETS = ("utf-8", "cp1252", "iso-8859-2")
"""In which a protocol's words may be written."""

_TOKEN = re.compile(
    rb"\xef\xbb\xbf|(?P<escape>\\u[0-9A-Fa-f]{4})|\\[bfnrt]|(?P<entity>&#?[0-9A-Za-z]{1,8};)"
    rb"|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    rb"|(?P<word>[A-Za-z\x80-\xff][0-9A-Za-z\x80-\xff]*)"
)
_MARKS = re.compile(rb"(\A(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf))|[0-9A-Za-z\x80-\xff]")
"""A byte order mark, and what is replaced where nothing can be read."""
_ENTITY = re.compile(rb"&#(x?)([0-9A-Fa-f]+);", re.IGNORECASE)
_XML_OWN = frozenset((b"&amp;", b"&lt;", b"&gt;", b"&quot;", b"&apos;"))
_SHORT = 3
"""A number of no more digits names nobody."""

_JSON_WORDS = ("true", "false", "null")


def anonymized(frame: bytes, direction: Direction, dissector: Dissector, stand_ins: StandIns) -> bytes:
    """The bytes of a message, or of what ought to be one. Never raises."""
    decoded = dissector.codec.decode(frame, direction)
    row, written = decoded.row, frame
    known = _own_words(dissector)
    if row is not None:
        fields = row.anonymized(decoded.fields, stand_ins.text, stand_ins.rename)
        known = known | words_as_bytes(_texts(fields))
        written = _rewritten(frame, direction, dissector, decoded.fields, fields)
    elif b"\0" in frame:
        # As in UTF-16: letters that stand alone are no words that one could tell from others.
        return _MARKS.sub(lambda found: found[1] or b"x", frame)
    return masked(written, known, stand_ins)


def _rewritten(
    frame: bytes,
    direction: Direction,
    dissector: Dissector,
    before: Mapping[str, Any],
    fields: Mapping[str, Any],
) -> bytes:
    """A message with other values in its fields; those stay that cannot be written in as many bytes."""
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


def masked(data: bytes, known: frozenset[bytes], stand_ins: StandIns) -> bytes:
    """Bytes in which each word that is not known, and each long number, has a stand-in."""

    def other(found: re.Match[bytes]) -> bytes:
        token = found[0]
        if found.lastgroup is None or token.lower() in known:
            return token
        if found.lastgroup == "escape":
            return rb"\u0078"
        if found.lastgroup == "entity":
            return _other_entity(token, known, stand_ins)
        if found.lastgroup == "number" and len(token) <= _SHORT:
            return token
        return _other_word(token, stand_ins)

    return _TOKEN.sub(other, data)


def blank(data: bytes) -> bytes:
    """Bytes of which nothing is known, with nothing left of them but their line ends."""
    return re.sub(rb"[^\r\n]", b"?", data)


def _other_word(token: bytes, stand_ins: StandIns) -> bytes:
    """A stand-in for a word; for bytes that are no UTF-8 some that are none either."""
    is_utf_8 = _is_utf_8(token)
    for charset in _CHARSETS if not is_utf_8 else _CHARSETS[:1]:
        with suppress(UnicodeError):
            other = stand_ins.text(token.decode(charset)).encode(charset)
            if len(other) == len(token) and _is_utf_8(other) == is_utf_8:
                return other
    return (b"x" if is_utf_8 else b"\xff") * len(token)


def _is_utf_8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _other_entity(token: bytes, known: frozenset[bytes], stand_ins: StandIns) -> bytes:
    """A character that XML writes as a number is an x from now on, in as many bytes."""
    if token in _XML_OWN:
        return token
    found = _ENTITY.fullmatch(token)
    if found is None:
        return b"&" + masked(token[1:], known, stand_ins)
    mark, number = found[1], found[2]
    # Of one place there are only blanks, and of two no letters but capitals.
    other = b"78" if mark else b"120" if len(number) > 2 else b"88"
    return token if len(number) < 2 else b"&#%b%b;" % (mark, other.zfill(len(number)))


@lru_cache(maxsize=64)
def _own_words(dissector: Dissector) -> frozenset[bytes]:
    return words_as_bytes((*dissector.grammar.words, *_JSON_WORDS))


def words_as_bytes(texts: Iterable[str]) -> frozenset[bytes]:
    """The words of texts as they may stand in bytes, in small letters, with escapes and without."""
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
    """A text in ASCII, as JSON escapes it."""
    units = text.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return b"".join(b"%c" % code if code < 0x80 else b"\\u%04x" % code for code in codes)


def _texts(value: object) -> Iterable[str]:
    """The texts and numbers in a JSON value, keys among them."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif value is not None:
        yield str(value)
