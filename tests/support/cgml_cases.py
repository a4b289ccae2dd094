"""Table of CGML's messages with their fields and diagnostics, with the exact bytes of each.

A message is written on one line, with `~` for each line end; the empty line after it is not written.
"""

from __future__ import annotations

import json
import re
from typing import Any

from cases import Case
from tables import rows_of

from kiebitz.dissectors.model import DIRECTIONS, Direction


def message(text: str, line_end: str = "\r\n", charset: str = "utf-8") -> bytes:
    """Return a message's bytes, with the empty line behind it."""
    return f"{text}~~".replace("~", line_end).encode(charset)


def sound(text: str, direction: Direction, name: str, **fields: Any) -> Case:
    return Case(message(text), direction, name, {key.rstrip("_"): value for key, value in fields.items()})


KAREL = '<player id="8678">~    <name>robot Karel</name>~    <race>bot</race>~  </player>'
KAREL_SAID = {"id": 8678, "name": "robot Karel", "race": "bot"}
GAME = "<game>licitovany_marias</game>"
LM = "licitovany_marias"
TRICK = "<card>A0A</card>~  <card>A09</card>~  <card>A0Q</card>"


def rows(table: str) -> list[Case]:
    """Return the cases of a table, one per row: direction, name and text, and its fields as JSON after " = ".

    Names refer to the parts defined above. An indented line continues its row.
    """
    found = []
    for row in rows_of(table):
        direction, name, said = row.split(" ", 2)
        text, _, fields = said.partition(" = ")
        text = re.sub(r"\{([A-Z]+)\}", lambda part: str(globals()[part[1]]), text)
        values = json.loads(fields.replace("KAREL_SAID", json.dumps(KAREL_SAID)))
        found.append(Case(message(text), "c2s" if direction == "c2s" else "s2c", name, values))
    return found


SOUND = [
    *rows("""
c2s connect
    <connect status="server">~  {GAME}~  <numplayers>3</numplayers>~  <url>127.0.0.1:7003</url>~</connect>
    = {"status": "server", "game": "licitovany_marias", "numplayers": 3, "url": "127.0.0.1:7003"}
c2s connect
    <connect status="passive">~  {KAREL}~  {GAME}~</connect>
    = {"status": "passive", "player": KAREL_SAID, "game": "licitovany_marias"}
s2c newgroup <newgroup status="init">~  {GAME}~</newgroup> = {"status": "init", "game": "licitovany_marias"}
c2s newgroup <newgroup status="ack">~  {GAME}~</newgroup> = {"status": "ack", "game": "licitovany_marias"}
c2s newgame
    <newgame status="accept">~  {GAME}~  {KAREL}~</newgame>
    = {"status": "accept", "game": "licitovany_marias", "player": KAREL_SAID}
s2c dial
    <dial type="cards" to="hand" from="desk">~  <card>B07</card>~  <card>B10</card>~</dial>
    = {"type": "cards", "to": "hand", "from": "desk", "card": ["B07", "B10"]}
s2c dial
    <dial type="cards" to="talon" from="desk">~  <card></card>~  <card></card>~</dial>
    = {"type": "cards", "to": "talon", "from": "desk", "card": [null, null]}
s2c dial
    <dial type="info" to="hand" from="talon" playerid="8678">~  <card></card>~  <card></card>~</dial>
    = {"type": "info", "to": "hand", "from": "talon", "playerid": 8678, "card": [null, null]}
s2c licite <licite type="ask"></licite> = {"type": "ask"}
s2c licite <licite type="ask">B107</licite> = {"type": "ask", "licite": "B107"}
c2s licite <licite type="answer">NO</licite> = {"type": "answer", "licite": "NO"}
s2c licite
    <licite type="info" playerid="6533">PASS</licite>
    = {"type": "info", "playerid": 6533, "licite": "PASS"}
s2c licite
    <licite type="result" playerid="6533">SMALL</licite>
    = {"type": "result", "playerid": 6533, "licite": "SMALL"}
c2s playcard
    <playcard type="cards" from="hand" to="talon">~  <card>G07</card>~  <card>A07</card>~</playcard>
    = {"type": "cards", "from": "hand", "to": "talon", "card": ["G07", "A07"]}
s2c playcard
    <playcard type="info" from="hand" to="desk" playerid="1216">~  <card>R0J</card>~</playcard>
    = {"type": "info", "from": "hand", "to": "desk", "playerid": 1216, "card": ["R0J"]}
s2c gametype <gametype type="ask">~  <licite>100</licite>~</gametype> = {"type": "ask", "licite": "100"}
c2s gametype
    <gametype type="answer">~  <licite>27</licite>~  <trumf>g:a</trumf>~</gametype>
    = {"type": "answer", "licite": "27", "trumf": "g:a"}
s2c flek <flek type="ask">1</flek> = {"type": "ask", "flek": "1"}
c2s flek <flek type="answer">1:2</flek> = {"type": "answer", "flek": "1:2"}
s2c flek <flek type="info" playerid="6533">4</flek> = {"type": "info", "playerid": 6533, "flek": "4"}
s2c playcard <playcard type="ask"></playcard> = {"type": "ask"}
s2c round
    <round number="1" playerid="6533">~  {TRICK}~</round>
    = {"number": 1, "playerid": 6533, "card": ["A0A", "A09", "A0Q"]}
s2c abort
    <abort>~  <player id="1216"></player>~  <message>timeout</message>~</abort>
    = {"player": {"id": 1216}, "message": "timeout"}
c2s load <load>48</load> = {"load": 48}
s2c disconnect <disconnect>end of group</disconnect> = {"disconnect": "end of group"}
c2s disconnect <disconnect></disconnect> = {}
s2c cancelgame <cancelgame>renonc</cancelgame> = {"cancelgame": "renonc"}
s2c renonc
    <renonc>~  <player id="1216"></player>~  <message>you must play red!</message>~</renonc>
    = {"player": {"id": 1216}, "message": "you must play red!"}
c2s load <cgml version="1.19">~<load>48</load>~</cgml> = {"load": 48, "version": "1.19"}
    """),
    sound(
        f'<connect status="active">~  {KAREL}~  {GAME}~  <opponent>~    <player id="1216"></player>~  '
        "</opponent>~</connect>",
        "c2s",
        "connect",
        status="active",
        player=KAREL_SAID,
        game=LM,
        opponent={"player": [{"id": 1216}]},
    ),
    sound(
        f'<connect status="complete" id="4">~  {GAME}~  {KAREL}~  <player id="1216"></player>~'
        "  <url>192.168.0.1:7002</url>~</connect>",
        "s2c",
        "connect",
        status="complete",
        id=4,
        game=LM,
        player=[KAREL_SAID, {"id": 1216}],
        url="192.168.0.1:7002",
    ),
    *(
        sound(
            f'<newgroup status="{answer}" id="4">~  {GAME}~  {KAREL}~</newgroup>',
            "c2s",
            "newgroup",
            status=answer,
            id=4,
            game=LM,
            player=KAREL_SAID,
        )
        for answer in ("accept", "reject")
    ),
    sound(
        f'<newgame status="ask">~  {KAREL}~  <player id="1216">~    <name></name>~'
        "    <race></race>~  </player>~"
        "</newgame>",
        "s2c",
        "newgame",
        status="ask",
        player=[KAREL_SAID, {"id": 1216, "name": "", "race": None}],
    ),
    *(
        sound(
            f'<newgame status="{answer}">~  {KAREL}~</newgame>',
            "c2s",
            "newgame",
            status=answer,
            player=KAREL_SAID,
        )
        for answer in ("accept", "reject")
    ),
    sound(
        '<gametype type="info" playerid="6533">~  <licite>100</licite>~  <trumf>g</trumf>~'
        "  <flek>4</flek>~</gametype>",
        "s2c",
        "gametype",
        type="info",
        playerid=6533,
        licite="100",
        trumf="g",
        flek="4",
    ),
    sound(
        f"<result>~  {GAME}~  <licite>G</licite>~  <trumf>g</trumf>~  <flek>1</flek>~"
        '  <round number="1" playerid="1">~    <card>A0A</card>~    <card>A09</card>~'
        "    <card>A0Q</card>~  </round>~"
        '  <winer playerid="1">~    <money type="get">2</money>~  </winer>~'
        '  <loser playerid="2">~    <money type="lost">2</money>~  </loser>~</result>',
        "s2c",
        "result",
        game=LM,
        licite="G",
        trumf="g",
        flek="1",
        round=[{"number": 1, "playerid": 1, "card": ["A0A", "A09", "A0Q"]}],
        winer=[{"playerid": 1, "money": {"type": "get", "money": 2}}],
        loser=[{"playerid": 2, "money": {"type": "lost", "money": 2}}],
    ),
    *(
        case
        for direction in DIRECTIONS
        for case in (
            sound(
                '<pause type="start">~  <message>pivo &amp; rohlík</message>~</pause>',
                direction,
                "pause",
                type="start",
                message="pivo & rohlík",
            ),
            sound(
                '<pause type="finish"></pause>',
                direction,
                "pause",
                type="finish",
            ),
        )
    ),
]


def loose(
    text: str | bytes,
    direction: Direction,
    name: str,
    fields: dict[str, Any],
    *diagnostics: tuple[str, int, int],
) -> Case:
    data = text if isinstance(text, bytes) else message(text)
    return Case(data, direction, name, fields, diagnostics)


PASS = {"type": "answer", "licite": "PASS"}
ASK = {"type": "ask"}
LOOSE = [
    # Equivalent spellings in XML.
    loose("<playcard type='ask'/>", "s2c", "playcard", ASK),
    loose('<playcard  type = "ask" ></playcard >', "s2c", "playcard", ASK),
    loose(
        '<playcard to="desk" from="hand" type="cards"><card>R10</card ></playcard>',
        "c2s",
        "playcard",
        {"type": "cards", "from": "hand", "to": "desk", "card": ["R10"]},
    ),
    loose('<licite type="answer">&#80;ASS</licite>', "c2s", "licite", PASS),
    loose('<licite type="answer">~  PASS~</licite>', "c2s", "licite", PASS),
    loose('<cgml><licite type="answer">PASS</licite></cgml>', "c2s", "licite", PASS),
    loose('<licite type="answer" version="1.15">PASS</licite>', "c2s", "licite", {**PASS, "version": "1.15"}),
    # What the specification does not have.
    loose(
        '<!-- <licite> & co --><licite type="answer">PASS</licite>', "c2s", "licite", PASS, ("comment", 0, 4)
    ),
    loose(
        '<?xml version="1.0"?>~<licite type="answer">PASS</licite>',
        "c2s",
        "licite",
        PASS,
        ("xml-declaration", 0, 5),
    ),
    loose(
        '<pause type="start"><message><![CDATA[R & B < 3]]></message></pause>',
        "c2s",
        "pause",
        {"type": "start", "message": "R & B < 3"},
        ("cdata", 29, 9),
    ),
    loose(message('<licite type="answer">PASS</licite>', "\n"), "c2s", "licite", PASS, ("line-feed", 35, 1)),
    loose(
        message('<licite type="answer">PASS</licite>', "\r"),
        "c2s",
        "licite",
        PASS,
        ("carriage-return", 35, 1),
    ),
    loose(b'<playcard type="ask">\n</playcard>\r\n\n', "s2c", "playcard", ASK, ("lf-then-crlf", 33, 3)),
    loose(b'<playcard type="ask">\r\n</playcard>\n\r\n', "s2c", "playcard", ASK, ("crlf-then-lf", 34, 3)),
    loose(b'\r\n\r\n<playcard type="ask"></playcard>\r\n\r\n', "s2c", "playcard", ASK, ("empty-lines", 0, 4)),
    loose(b'<playcard type="ask"></playcard>\r\n \t\r\n', "s2c", "playcard", ASK, ("blanks", 34, 4)),
    loose(
        message('<pause type="start"><message>žluť</message></pause>', charset="iso-8859-2"),
        "c2s",
        "pause",
        {"type": "start", "message": "žluť"},
        ("iso-8859-2", 29, 1),
    ),
    loose(
        b"\xef\xbb\xbf" + message('<licite type="answer">PASS</licite>'),
        "c2s",
        "licite",
        PASS,
        ("byte-order-mark", 0, 3),
    ),
    loose('<LICITE TYPE="answer">PASS</LICITE>', "c2s", "licite", PASS, ("upper-case", 0, 22)),
    loose(
        '<cgml version="9.99"><playcard type="ask"/></cgml>',
        "s2c",
        "playcard",
        {**ASK, "version": "9.99"},
        ("unknown-version", 15, 4),
    ),
    # The specification's misprints.
    loose(
        '<licite type="info "playerid="6533">100</licite>',
        "s2c",
        "licite",
        {"type": "info", "playerid": 6533, "licite": "100"},
        ("misprint-quote", 13, 7),
    ),
    loose(
        '<dial type="cards" from "talon" to="hand"><card>R0A</card></dial>',
        "s2c",
        "dial",
        {"type": "cards", "to": "hand", "from": "talon", "card": ["R0A"]},
        ("misprint-equals", 19, 12),
    ),
    loose(
        '<playcard type="info" playerid="6533"...><card></card><card></card></playcard>',
        "s2c",
        "playcard",
        {"type": "info", "playerid": 6533, "card": [None, None]},
        ("misprint-dots", 31, 9),
    ),
]
