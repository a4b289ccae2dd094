"""The one table of CGML's messages: what each says, and what is wrong with it, to the byte.

A message is written on one line, with `~` for each line end; the empty line behind it is not written.
"""

from __future__ import annotations

from typing import Any

from cases import Case

from kiebitz.dissectors.model import DIRECTIONS, Direction


def message(text: str, line_end: str = "\r\n", charset: str = "utf-8") -> bytes:
    """A message's bytes, with the empty line behind it."""
    return f"{text}~~".replace("~", line_end).encode(charset)


def sound(text: str, direction: Direction, name: str, **fields: Any) -> Case:
    return Case(message(text), direction, name, {key.rstrip("_"): value for key, value in fields.items()})


KAREL = '<player id="8678">~    <name>robot Karel</name>~    <race>bot</race>~  </player>'
KAREL_SAID = {"id": 8678, "name": "robot Karel", "race": "bot"}
GAME = "<game>licitovany_marias</game>"
LM = "licitovany_marias"
TRICK = "<card>A0A</card>~  <card>A09</card>~  <card>A0Q</card>"

SOUND = [
    sound(
        f'<connect status="server">~  {GAME}~  <numplayers>3</numplayers>~'
        "  <url>127.0.0.1:7003</url>~</connect>",
        "c2s",
        "connect",
        status="server",
        game=LM,
        numplayers=3,
        url="127.0.0.1:7003",
    ),
    sound(
        f'<connect status="passive">~  {KAREL}~  {GAME}~</connect>',
        "c2s",
        "connect",
        status="passive",
        player=KAREL_SAID,
        game=LM,
    ),
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
    sound(f'<newgroup status="init">~  {GAME}~</newgroup>', "s2c", "newgroup", status="init", game=LM),
    sound(f'<newgroup status="ack">~  {GAME}~</newgroup>', "c2s", "newgroup", status="ack", game=LM),
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
        f'<newgame status="accept">~  {GAME}~  {KAREL}~</newgame>',
        "c2s",
        "newgame",
        status="accept",
        game=LM,
        player=KAREL_SAID,
    ),
    sound(
        '<dial type="cards" to="hand" from="desk">~  <card>B07</card>~  <card>B10</card>~</dial>',
        "s2c",
        "dial",
        type="cards",
        to="hand",
        from_="desk",
        card=["B07", "B10"],
    ),
    sound(
        '<dial type="cards" to="talon" from="desk">~  <card></card>~  <card></card>~</dial>',
        "s2c",
        "dial",
        type="cards",
        to="talon",
        from_="desk",
        card=[None, None],
    ),
    sound(
        '<dial type="info" to="hand" from="talon" playerid="8678">~  <card></card>~  <card></card>~</dial>',
        "s2c",
        "dial",
        type="info",
        to="hand",
        from_="talon",
        playerid=8678,
        card=[None, None],
    ),
    sound('<licite type="ask"></licite>', "s2c", "licite", type="ask"),
    sound('<licite type="ask">B107</licite>', "s2c", "licite", type="ask", licite="B107"),
    sound('<licite type="answer">NO</licite>', "c2s", "licite", type="answer", licite="NO"),
    sound(
        '<licite type="info" playerid="6533">PASS</licite>',
        "s2c",
        "licite",
        type="info",
        playerid=6533,
        licite="PASS",
    ),
    sound(
        '<licite type="result" playerid="6533">SMALL</licite>',
        "s2c",
        "licite",
        type="result",
        playerid=6533,
        licite="SMALL",
    ),
    sound(
        '<playcard type="cards" from="hand" to="talon">~  <card>G07</card>~  <card>A07</card>~</playcard>',
        "c2s",
        "playcard",
        type="cards",
        from_="hand",
        to="talon",
        card=["G07", "A07"],
    ),
    sound(
        '<playcard type="info" from="hand" to="desk" playerid="1216">~  <card>R0J</card>~</playcard>',
        "s2c",
        "playcard",
        type="info",
        from_="hand",
        to="desk",
        playerid=1216,
        card=["R0J"],
    ),
    sound(
        '<gametype type="ask">~  <licite>100</licite>~</gametype>',
        "s2c",
        "gametype",
        type="ask",
        licite="100",
    ),
    sound(
        '<gametype type="answer">~  <licite>27</licite>~  <trumf>g:a</trumf>~</gametype>',
        "c2s",
        "gametype",
        type="answer",
        licite="27",
        trumf="g:a",
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
    sound('<flek type="ask">1</flek>', "s2c", "flek", type="ask", flek="1"),
    sound('<flek type="answer">1:2</flek>', "c2s", "flek", type="answer", flek="1:2"),
    sound('<flek type="info" playerid="6533">4</flek>', "s2c", "flek", type="info", playerid=6533, flek="4"),
    sound('<playcard type="ask"></playcard>', "s2c", "playcard", type="ask"),
    sound(
        f'<round number="1" playerid="6533">~  {TRICK}~</round>',
        "s2c",
        "round",
        number=1,
        playerid=6533,
        card=["A0A", "A09", "A0Q"],
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
    sound(
        '<abort>~  <player id="1216"></player>~  <message>timeout</message>~</abort>',
        "s2c",
        "abort",
        player={"id": 1216},
        message="timeout",
    ),
    sound("<load>48</load>", "c2s", "load", load=48),
    sound("<disconnect>end of group</disconnect>", "s2c", "disconnect", disconnect="end of group"),
    sound("<disconnect></disconnect>", "c2s", "disconnect"),
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
    sound("<cancelgame>renonc</cancelgame>", "s2c", "cancelgame", cancelgame="renonc"),
    sound(
        '<renonc>~  <player id="1216"></player>~  <message>you must play red!</message>~</renonc>',
        "s2c",
        "renonc",
        player={"id": 1216},
        message="you must play red!",
    ),
    sound(
        '<cgml version="1.19">~<load>48</load>~</cgml>',
        "c2s",
        "load",
        load=48,
        version="1.19",
    ),
]


def loose(
    text: str | bytes, direction: Direction, name: str, fields: dict[str, Any], *flaws: tuple[str, int, int]
) -> Case:
    data = text if isinstance(text, bytes) else message(text)
    return Case(data, direction, name, fields, flaws)


PASS = {"type": "answer", "licite": "PASS"}
ASK = {"type": "ask"}
LOOSE = [
    # How XML may be written without a difference in what it says.
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
