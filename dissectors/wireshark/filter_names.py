"""Names of fields in Wireshark's filters: those of Kiebitz's filters, as far as Wireshark allows them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kiebitz.dissectors.wireshark.wire_types import WireType

MAX_FIELDS = 5000
"""Maximum number of fields of a dissector."""

_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
_LARGEST = 2**63 - 1


def ascii_name(name: str) -> str:
    """Return a path as a part of a filter name.

    It has ASCII letters, digits, `_`, `-` and `.` only, and no dot at its ends or beside another.
    """
    plain = unicodedata.normalize("NFKD", name.replace(" ", "_").translate(_GERMAN))
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return ".".join(
        re.sub(r"[^A-Za-z0-9_-]", "_", part) or "_" for part in (plain.strip(".") or "_").split(".")
    )


def paths_of(kind: WireType, path: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of the scalars of a type, with Wireshark's type for each; `object` for a branch."""
    name = kind["kind"]
    if "item" in kind:
        yield from paths_of(kind["item"], path)
    elif "fields" in kind:
        yield path, "object"
        for field in kind["fields"]:
            yield from paths_of(field["type"], f"{path}.{field['name']}")
    if "either" in kind:
        for each in kind["either"]:
            yield from paths_of(each, path)
    elif "counts" in kind:
        yield path, "int"
        for each in dict.fromkeys(kind["counts"].values()):
            yield f"{path}.{each}", "int"
    elif "item" not in kind and "fields" not in kind:
        yield path, _scalar(name, kind)


def _scalar(name: str, kind: Mapping[str, Any]) -> str:
    if "values" in kind:
        found = {{"s": "string", "i": "int", "b": "bool"}.get(t, "null") for t, *_ in kind["values"].values()}
        found.discard("null")
        return found.pop() if len(found) == 1 else "string"
    if name.endswith("number"):
        if not kind.get("whole"):
            return "float"
        return "uint" if (kind.get("max") or 0) > _LARGEST and (kind.get("min") or 0) >= 0 else "int"
    return "bool" if name.endswith("boolean") else "string"


def merged(kinds: Iterable[str]) -> str:
    """Return one type for all values of a field."""
    found = {*kinds} - {"object"}
    if not found:
        return "object"
    if found == {"int", "uint"}:
        return "int"
    if found <= {"int", "float"} and len(found) > 1:
        return "float"
    return found.pop() if len(found) == 1 else "string"
