"""Messages of the protocols, in tests/data/messages/PROTOCOL.txt: their bytes, and what they decode to.

A block is a message, then name and fields, other bytes if encoding gives them, and the diagnostics:

    > JOIN;d129eeba-89d3⟨;extra⟩
      JOIN {"token":"d129eeba-89d3"}
      = JOIN;d129eeba-89d3
      note surplus-fields: "extra" is left over | the end of the message | 3.2

The client sends what follows `>`, the server what follows `<`. The marks are around the bytes of the
diagnostics, in their order; they are not sent. `snapshots.as_text` defines how bytes are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from snapshots import DATA, as_bytes, as_text, marked, unmarked

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Violation
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.registry import BUILT_IN


class Case(NamedTuple):
    """A frame, what it must decode to, its diagnostics as (code, offset, length), and the worst severity."""

    data: bytes
    direction: Direction
    name: str | None
    fields: dict[str, Any]
    diagnostics: tuple[tuple[str, int, int], ...] = ()
    severity: str = ""


DISSECTORS: list[Dissector] = [*BUILT_IN, KNOBELN, NOUGHTS]
each_protocol = pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)


def path_of(dissector: Dissector) -> Path:
    return DATA / "messages" / f"{dissector.protocol}.txt"


def _blocks(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the title of a group, or "" for a message, and the lines."""
    for block in re.split(r"\n(?! )", path.read_text().strip("\n")):
        yield (block.removeprefix("== ") if block.startswith("== ") else "", block.split("\n"))


def rewritten(dissector: Dissector, path: Path) -> str:
    """Return the text of the file with all that is read from the messages made anew."""
    text = ""
    for _, lines in _blocks(path):
        is_message = re.match("[<>] ", lines[0])
        text += written(dissector, *read_line(lines[0])) if is_message else "\n".join([*lines, ""])
    return text


def read_line(line: str) -> tuple[Direction, bytes]:
    return "c2s" if line.startswith(">") else "s2c", unmarked(line[2:])[0]


def written(dissector: Dissector, direction: Direction, data: bytes) -> str:
    """Return the block of a message."""
    decoded = dissector.codec.decode(data, direction)
    violations = sorted((_order(violation, data), violation) for violation in decoded.violations)
    sent = marked(data, [violation.place(data) for _, violation in violations])
    lines = [f"{'>' if direction == 'c2s' else '<'} {sent}"]
    if decoded.row is None:
        lines.append("unreadable")
    else:
        fields = as_text(json.dumps(decoded.fields, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        lines.append(f"{'' if decoded.valid else 'invalid '}{decoded.row.name} {fields}")
        encoded = _encoded(dissector, decoded.row.name, direction, decoded.fields) if decoded.valid else data
        if encoded != data:
            lines.append(f"= {encoded if isinstance(encoded, str) else as_text(encoded)}")
    lines += [
        f"{violation.severity} {violation.code}: "
        + as_text(f"{violation.text} | {violation.expected} | {violation.clause}".encode())
        for _, violation in violations
    ]
    return "\n  ".join(lines) + "\n"


def _order(violation: Violation, data: bytes) -> tuple[int, int, str]:
    offset, length = violation.place(data)
    return offset, -length, violation.code


def _encoded(dissector: Dissector, name: str, direction: Direction, fields: dict[str, Any]) -> bytes | str:
    try:
        return dissector.codec.encode(name, direction, fields)
    except ValueError as error:
        return f"cannot be encoded: {error}"


@cache
def groups(dissector: Dissector, path: Path | None = None) -> dict[str, list[Case]]:
    """Return the cases of a protocol, or of another file, by the titles of their groups."""
    found: dict[str, list[Case]] = {}
    group = ""
    for title, lines in _blocks(path or path_of(dissector)):
        group = title or group
        if re.match("[<>] ", lines[0]):
            found.setdefault(group, []).append(_case(lines))
    return found


def _case(lines: list[str]) -> Case:
    direction, data = read_line(lines[0])
    places = unmarked(lines[0][2:])[1]
    found = [re.match("  (error|warning|note) ([a-z0-9-]+): ", line) for line in lines[2:]]
    codes = [each[2] for each in found if each]
    severity = min((each[1] for each in found if each), key=["error", "warning", "note"].index, default="")
    # A new message is a line alone.
    name, _, fields = "".join(lines[1:2]).strip().removeprefix("invalid ").partition(" {")
    diagnostics = tuple((code, *place) for code, place in zip(codes, places, strict=True))
    if not fields:
        return Case(data, direction, None, {}, diagnostics, severity)
    return Case(data, direction, name, json.loads(as_bytes("{" + fields)), diagnostics, severity)


def cases(dissector: Dissector, *titles: str) -> list[Case]:
    """Return the cases of some groups of a protocol, or of all."""
    found = groups(dissector)
    return [case for title in titles or found for case in found[title]]


CASES: dict[Dissector, list[Case]] = {
    dissector: cases(
        dissector,
        *(title for title in ("sound", "dialects", "loose", "malformed") if title in groups(dissector)),
    )
    for dissector in DISSECTORS
}
"""The cases of a protocol's messages, without those in which no message can be recognized."""
