"""CGML's messages, written and cut: an element in lines that end with CR LF, and an empty line behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from xml.etree import ElementTree

_DECLARES = re.compile(rb"<!(DOCTYPE|ENTITY)", re.IGNORECASE)
_ENVELOPE = "cgml"

Element = ElementTree.Element


class Unreadable(Exception):
    """A message is no element of CGML."""


def message(*elements: str) -> bytes:
    """Return a message of these elements; bare, as the specification's examples are."""
    return "".join(f"{element}\r\n" for element in elements).encode() + b"\r\n"


def element(tag: str, *content: str, **attributes: object) -> str:
    """Return an element; `content` is markup already."""
    words = "".join(f' {name}="{escape(str(value))}"' for name, value in attributes.items())
    return f"<{tag}{words}>{''.join(content)}</{tag}>"


def text(said: str) -> str:
    """Return a text as markup."""
    return escape(said, quote=False)


def cards(codes: Iterable[str | None]) -> str:
    return "".join(element("card", code or "") for code in codes)


def player(number: int, name: str) -> str:
    return element("player", element("name", text(name)), element("race", "bot"), id=number)


def read(data: bytes) -> list[Element]:
    """Return the elements of a message, without the envelope. Raises Unreadable."""
    if _DECLARES.search(data):
        raise Unreadable("no declarations here")
    if data.count(b"<") > 1000:
        raise Unreadable("too many elements")
    try:
        parser = ElementTree.XMLParser(encoding=_charset(data))
        parser.feed(b"<all>" + data + b"</all>")
        root = parser.close()
    except (ElementTree.ParseError, ValueError) as problem:
        raise Unreadable("this is no XML") from problem
    found = list(root)
    if len(found) == 1 and found[0].tag == _ENVELOPE:
        found = list(found[0])
    if not found or (root.text or "").strip():
        raise Unreadable("there is no element")
    return found


def _charset(data: bytes) -> str:
    """UTF-8, or what Czech programs used before."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return "iso-8859-2"
    return "utf-8"


def words(one: Element) -> str:
    """Return the text of an element, without blanks around it."""
    return (one.text or "").strip()


def codes(one: Element) -> list[str]:
    return [words(card) for card in one.findall("card")]


def number(one: Element | None, attribute: str = "id") -> int:
    """Return an attribute's number. Raises Unreadable."""
    value = one.get(attribute, "") if one is not None else ""
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise Unreadable(f"{attribute} is no number")
    return int(value)


class Messages:
    """Lines, put together to messages."""

    def __init__(self) -> None:
        self.length = 0
        """Bytes of the message that is not whole yet."""
        self._open: list[bytes] = []

    def line(self, line: bytes) -> bytes | None:
        """Return a message that this line completes; None if there is none."""
        if line.strip():
            self._open.append(line)
            self.length += len(line) + 1
            return None
        whole, self._open, self.length = b"\n".join(self._open), [], 0
        return whole or None
