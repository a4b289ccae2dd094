"""The names of the players in a script's roles.

A client introduces itself by its first message that contains a name. A name that the server generates for it
(`Field.fresh`) belongs to it, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.replay.script import RecordedLine, Script


def names_of_roles(script: Script, dissectors: Mapping[str, Dissector]) -> dict[int, set[str]]:
    """Return all names of each role's client, by the role's number; numbers are given as text."""
    names: dict[int, set[str]] = {role.number: set() for role in script.roles}
    introduced: dict[int, str] = {}
    for step in script.steps:
        if not isinstance(step, RecordedLine):
            continue
        number = step.role.number
        introduces = step.direction == "c2s" and introduced.get(number, step.name) == step.name
        dissector = dissectors[step.role.protocol]
        rows = dissector.grammar.rows_named(step.direction, step.name)
        if not introduces and not any(row.is_generated for row in rows):
            continue
        decoded = dissector.codec.decode(step.data, step.direction)
        if decoded.row is None:
            continue
        fresh = {field.name for field in decoded.row.fields if field.generated}
        fields = (
            decoded.fields
            if introduces
            else {name: decoded.fields[name] for name in fresh & decoded.fields.keys()}
        )
        named = decoded.row.identifiers(fields)
        # An identifier that is valid in one conversation only, such as a token, is no player's name.
        found = {str(name) for handle, name in named if not handle.per_stream}
        if found and introduces:
            introduced[number] = step.name
        names[number] |= found
    return names
