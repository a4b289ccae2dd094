"""Values as Lua source: nothing in a text can become Lua code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEYWORDS = frozenset(
    (
        *("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in"),
        *("local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while"),
    )
)
_WIDTH = 100
"""Maximum length of a table on one line, in characters."""


def lua_string(text: str) -> str:
    """Return a Lua string literal; all but printable characters is escaped byte by byte."""
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    if character.isprintable() and character not in '"\\':
        return character
    # A byte that is not UTF-8 is half of a surrogate pair.
    errors = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\{byte:03d}" for byte in character.encode("utf-8", errors))


def lua_value(value: Any, indent: int = 0) -> str:
    """Return a Lua expression of a JSON value; an object's keys with None are left out."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return lua_string(value)
    if isinstance(value, int | float):
        return repr(float(value)) if abs(value) >= 2**53 else repr(value)
    if isinstance(value, Mapping):
        parts = [
            f"{_key(key)} = {lua_value(part, indent + 2)}" for key, part in value.items() if part is not None
        ]
    elif isinstance(value, list | tuple):
        parts = [lua_value(part, indent + 2) for part in value]
    else:
        raise TypeError(f"{type(value).__name__} has no Lua table")
    line = f"{{{', '.join(parts)}}}"
    if len(line) + indent <= _WIDTH and "\n" not in line:
        return line
    margin = " " * (indent + 2)
    return "{\n" + "".join(f"{margin}{part},\n" for part in parts) + " " * indent + "}"


def _key(key: str) -> str:
    is_name = key.isascii() and key.isidentifier() and key not in _KEYWORDS
    return key if is_name else f"[{lua_string(key)}]"
