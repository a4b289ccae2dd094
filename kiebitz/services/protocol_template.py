"""The template of a protocol file, for `kiebitz protocols --new`."""

from __future__ import annotations

import re
from pathlib import PurePath

from kiebitz.dissectors.protocol_file.reading.reader import problem_of_name

_NAME = "game"
"""Name of the protocol if the file's is none."""

_TEMPLATE = """\
# A protocol file. All keys and types: docs/protocol-files.md
# Check it:  kiebitz protocols --check FILE [CAPTURE...]
# Use it:    kiebitz events CAPTURE -P FILE

protocol = "{name}"          # name in filters: small letters, digits and _
title = "{title}"            # name for people
port = 4711                  # usual port of servers; leave it out if there is none
framing = "lines"            # datagrams, delimiter, block, length, json, xml
format = "words"             # delimited, pairs, json, xml, struct

# Types of fields: text, rest, number, integer, bool, 1..6, red|blue, /[A-Z][0-9]/, [text],
# {{x=integer y=integer}}, player (a player's name), id (a player's number), id:KIND (another identifier).
[types]
pips = "1..6"

# NAME = "DIRECTION: FIELDS < ANSWERED": c from a client, s from the server, s* a copy to each client,
# ~ a heartbeat. name?=type may be absent; name=type! is generated anew for each game.
[messages]
JOIN = "c: name=player"
JOINED = "s*: name=player < JOIN"
STARTED = "s*: first=player"
ROLL = "c:"
ROLLED = "s*: name=player pips=pips < ROLL"
WON = "s*: name=player"
ERROR = "s: reason=rest < JOIN ROLL"
PING = "s~:"
PONG = "c~: < PING"

# Messages in which a client gives its name; also given, named, left, id and name.
[identity]
login = "JOIN"

# What happens, in sentences. put changes the state: values in quotes are expressions.
[events]
joined = {{ on = "JOINED", say = "{{name}} joins", put = {{ "players.{{name}}.rolls" = 0 }} }}
started = {{ on = "STARTED", opens = true, say = "{{first}} begins", put = {{ turn = "first" }} }}
won = {{ on = "WON", ends = true, say = "{{name}} wins", result = {{ winner = "name" }} }}
refused = {{ on = "ERROR", say = "{{who}} is refused: {{reason}}" }}

[events.rolled]
on = "ROLLED"
say = "{{name}} rolls {{pips}}"
put = {{ dice = "pips", "players.{{name}}.rolls" = "players.{{name}}.rolls + 1" }}

# What must hold. In the sentence, {{known}} is the other side of the comparison.
[rules]
out-of-turn = {{ on = "ROLLED", unless = "name == turn", say = "{{name}} rolls, and it is {{known}}'s turn" }}

# The picture of a table: title, text, scores, figures, hand, dice, piles, and [board.grid].
[board]
turn = "turn"
dice = "dice"
scores = "players.{{player}}.rolls"
unit = "rolls"
"""


def template(path: str) -> str:
    """Return a commented protocol file that is named after its path."""
    stem = PurePath(path).stem
    name = re.sub(r"\W+", "_", stem.lower(), flags=re.ASCII).strip("_0123456789")[:30]
    if problem_of_name(name) is not None:
        name = _NAME
    return _TEMPLATE.format(name=name, title=name.replace("_", " ").capitalize())
