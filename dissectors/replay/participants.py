"""Which player speaks in which role of a script, by what he calls himself.

The first message of a client with a name in it is the one by which he says who he is; what the server makes
up for him (`Field.fresh`) is his, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.replay.script import Line, Script


def names_of_roles(script: Script, dissectors: Mapping[str, Dissector]) -> dict[int, set[str]]:
    """Role to all that its client is called, numbers as text."""
    names: dict[int, set[str]] = {role.number: set() for role in script.roles}
    introduced: dict[int, str] = {}
    for step in script.steps:
        if not isinstance(step, Line):
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
        # What is good for one conversation only, such as a token, is nobody's name.
        found = {str(name) for identifier, name in named if not identifier.per_stream}
        if found and introduces:
            introduced[number] = step.name
        names[number] |= found
    return names
