"""Table of malformed CGML messages, with code and exact place of each error.

Written like `cgml_cases.py`. Each is followed by a message that must be read.
"""

from __future__ import annotations

import re

from cases import Case
from cgml_cases import message
from tables import rows_of

from kiebitz.dissectors.model import Direction


def broken(
    text: str | bytes, direction: Direction, name: str | None, code: str, at: str | int, length: int
) -> Case:
    """Return a message with an error at the first place of a text in it, or at an offset."""
    data = text if isinstance(text, bytes) else message(text)
    offset = at if isinstance(at, int) else data.index(at.encode())
    return Case(data, direction, name, {}, ((code, offset, length),))


def played(card: str, code: str = "bad-card") -> Case:
    """Return a client's card with something wrong in it."""
    text = f'<playcard type="cards" from="hand" to="desk">~  <card>{card}</card>~</playcard>'
    at = card.strip() or "<card>"
    return broken(text, "c2s", "playcard", code, at, len(at.encode()))


INFO = '<playcard type="info" from="hand" to="desk" playerid="6533">'
CARDS = '<playcard type="cards" from="hand" to="desk">'
THREE = "<card>R07</card><card>R08</card><card>R09</card>"
GAME = "<game>licitovany_marias</game>"
KAREL = '<player id="8678"></player>'
START = '<pause type="start"><message>'
END = "</message></pause>"
RESULT = f"<result>{GAME}<licite>100</licite><trumf>g</trumf><flek>4</flek>"
WINER = '<winer playerid="1"><money type="get">4</money></winer>'


def rows(table: str) -> list[Case]:
    """Return the cases of a table, one per row: direction, name or "-", code, message with its error marked.

    Names refer to the parts defined above. An indented line continues its row.
    """
    found = []
    for row in rows_of(table):
        direction, name, code, text = row.split(" ", 3)
        parts = re.split("[⟨⟩]", re.sub(r"\{([A-Z]+)\}", lambda part: globals()[part[1]], text))
        offset, length, _ = (len(message(part)) - len(message("")) for part in parts)
        data = message("".join(parts))
        way: Direction = "c2s" if direction == "c2s" else "s2c"
        found.append(Case(data, way, None if name == "-" else name, {}, ((code, offset, length),)))
    return found


BROKEN = [
    *rows("""
# Tags.
s2c - unclosed-element {INFO}~  ⟨<card>R07⟩~</playcard>
s2c - unclosed-element ⟨<disconnect>overload⟩
c2s - crossed-tags {CARDS}<card>R07⟨</playcard>⟩</card>
c2s - stray-end-tag ⟨</playcard>⟩
c2s - stray-end-tag <load>48⟨</laod>⟩
c2s - stray-end-tag <load>48</load>⟨</load>⟩
c2s - stray-end-tag <Load>48⟨</load>⟩
c2s - unclosed-comment ⟨<!--⟩ never closed~<load>48</load>
# Elements.
s2c - unknown-message ⟨<smile playerid="6533">⟩:-)</smile>
c2s - unknown-message ⟨<chat>⟩<message>ahoj</message></chat>
c2s - unknown-message ⟨<playcrad>⟩</playcrad>
s2c playcard unknown-element {INFO}<card>R07</card>⟨<sound>⟩plink.wav</sound></playcard>
s2c round unknown-element <round number="1" playerid="6533">⟨<crad>⟩R07</crad></round>
c2s playcard unknown-element {CARDS}<card>⟨<b>⟩R07</b></card></playcard>
c2s load unknown-element <load>⟨<percent>⟩4</percent></load>
s2c result missing-element ⟨<result>⟩{GAME}<licite>100</licite></result>
c2s newgroup missing-element ⟨<newgroup status="accept" id="4">⟩{GAME}</newgroup>
c2s playcard missing-element ⟨{CARDS}⟩</playcard>
s2c round missing-element ⟨<round number="1" playerid="6533">⟩</round>
s2c round too-many <round number="1" playerid="6533">{THREE}⟨<card>⟩R10</card></round>
# Attributes.
c2s connect missing-attribute ⟨<connect>⟩{KAREL}{GAME}</connect>
c2s connect missing-attribute <connect status="active">⟨<player>⟩</player>{GAME}</connect>
s2c dial missing-attribute ⟨<dial to="hand">⟩<card>R07</card></dial>
s2c dial missing-attribute ⟨<dial type="cards" to="hand">⟩<card>R07</card></dial>
s2c round missing-attribute ⟨<round playerid="6533">⟩{THREE}</round>
c2s licite missing-attribute ⟨<licite>⟩100</licite>
c2s licite bad-field <licite type="⟨anwser⟩">100</licite>
c2s connect bad-field <connect status="⟨sleeping⟩">{KAREL}{GAME}</connect>
c2s connect bad-field <connect status="⟨passive active⟩">{KAREL}{GAME}</connect>
s2c dial bad-field <dial type="cards" to="⟨hand desk talon⟩" from="desk talon">~...~</dial>
s2c playcard unknown-attribute <playcard type="ask" ⟨colour="R"⟩></playcard>
s2c playcard unknown-element <playcard type="ask">⟨<card wild="yes">⟩R07</card></playcard>
c2s playcard unknown-attribute {CARDS}<card ⟨wild="yes"⟩>R07</card></playcard>
s2c - unquoted-value <playcard ⟨type=ask⟩></playcard>
s2c - attribute-twice <playcard ⟨type="info" type="ask"⟩></playcard>
s2c - unterminated-value <playcard ⟨type="info playerid="6533"⟩><card>R07</card></playcard>
s2c - no-value <playcard ⟨type⟩></playcard>
# Values.
s2c round bad-number <round number="⟨eleven⟩" playerid="6533">{THREE}</round>
s2c round out-of-range <round number="⟨11⟩" playerid="6533">{THREE}</round>
s2c round bad-number <round number="1" playerid="⟨-6533⟩">{THREE}</round>
s2c round bad-number <round number="1" playerid="⟨9999999999999999⟩">{THREE}</round>
c2s licite bad-field <licite type="answer">⟨200⟩</licite>
c2s licite bad-field <licite type="answer">⟨yes⟩</licite>
c2s licite bad-field <licite type="answer">⟨100 YES NO⟩</licite>
c2s licite bad-field ⟨<licite type="answer">⟩</licite>
c2s gametype bad-field <gametype type="answer"><licite>100</licite><trumf>⟨x⟩</trumf></gametype>
c2s gametype bad-field <gametype type="answer"><licite>27</licite><trumf>⟨G:B⟩</trumf></gametype>
c2s gametype bad-field <gametype type="answer"><licite>27</licite><trumf>⟨g:⟩</trumf></gametype>
c2s flek bad-field <flek type="answer">⟨dva⟩</flek>
c2s flek bad-field <flek type="answer">⟨1:2:4⟩</flek>
c2s load out-of-range <load>⟨150⟩</load>
c2s load bad-number <load>⟨mnoho⟩</load>
c2s load bad-number ⟨<load>⟩</load>
s2c connect bad-field <connect status="complete" id="4">{GAME}{KAREL}<url>⟨nowhere⟩</url></connect>
s2c newgroup bad-field <newgroup status="init"><game>⟨prsi⟩</game></newgroup>
s2c result bad-number {RESULT}<winer playerid="1"><money type="get">⟨1e9⟩</money></winer></result>
s2c result bad-field {RESULT}{WINER}<loser playerid="2"><money type="⟨get⟩">4</money></loser></result>
# Text and references.
c2s - bare-ampersand {START}R ⟨&⟩ B{END}
c2s - bare-less-than {START}1 ⟨< 2⟩{END}
c2s - undefined-entity {START}⟨&zcaron;⟩lu{END}
c2s - bad-reference {START}⟨&#0;⟩{END}
c2s - bad-reference {START}⟨&#xD800;⟩{END}
c2s - bare-ampersand <pause type="start⟨&⟩">~</pause>
c2s playcard stray-text {CARDS}⟨hello⟩<card>R07</card></playcard>
c2s playcard stray-text {CARDS}<card>R07</card>⟨hello⟩</playcard>
s2c - text-outside <playcard type="ask"></playcard>⟨garbage⟩
s2c - no-element ⟨hello⟩
c2s - no-element ⟨GET / HTTP/1.1~Host: localhost⟩
# Document types, never followed.
s2c - document-type ⟨<!DOCTYPE⟩ x [<!ENTITY a "haha">]>~<disconnect>&a;</disconnect>
s2c - external-entity
    <!DOCTYPE x [<!ENTITY f ⟨SYSTEM⟩ "file:///etc/hostname">]>~<disconnect>&f;</disconnect>
s2c - external-entity <!DOCTYPE x ⟨PUBLIC⟩ "a" "b">~<disconnect>f</disconnect>
# Empty lines and envelopes.
s2c playcard empty-line-inside {INFO}⟨~~⟩  <card>R07</card>~</playcard>
s2c playcard empty-line-inside
    <playcard type="info" from="hand"⟨~~⟩to="desk" playerid="6533"><card>R07</card></playcard>
s2c playcard unclosed-envelope ⟨<cgml version="1.19">⟩~<playcard type="ask"></playcard>
s2c - envelope-twice <cgml>⟨<cgml version="1.0">⟩<playcard type="ask"></playcard></cgml></cgml>
s2c - empty-envelope <cgml version="1.19">~⟨</cgml>⟩
# Said by the wrong side.
c2s - wrong-direction ⟨<round number="1" playerid="6533">⟩{THREE}</round>
s2c licite wrong-direction ⟨<licite type="answer">⟩100</licite>
c2s licite wrong-direction ⟨<licite type="ask">⟩100</licite>
s2c - wrong-direction ⟨<load>⟩4</load>
    """),
    broken("<disconnect", "s2c", None, "unclosed-tag", 0, 15),
    broken(f"{CARDS}<card>R07</card ></playcard", "c2s", None, "unclosed-tag", "</playcard", 14),
    broken("<a><a><a>" * 20, "c2s", None, "too-deep", 0, 3),
    broken(f"{RESULT}</result>", "s2c", "result", "missing-element", 0, 8),
    broken(f'<newgroup status="ack">{GAME}{GAME}</newgroup>', "c2s", "newgroup", "too-many", 53, 6),
    broken(
        f'<round number="1" playerid="6533"><card>R07</card>{THREE}</round>',
        "s2c",
        "round",
        "twice",
        "<card>",
        32,
    ),
    broken(
        '<dial type="cards" to="hand" from="desk">' + "<card>R07</card>" * 33 + "</dial>",
        "s2c",
        "dial",
        "too-many",
        0,
        41,
    ),
    *(
        played(card)
        for card in (
            "X07",
            "R11",
            "R7",
            "r07",
            "G0j",
            "R0J0",
            "",
            "T18",
            "J00",
            "07R",
            "R 07",
            "♥07",
            "R06",
            "RJ",
        )
    ),
    # Characters.
    broken('<licite type="answer">1\x0000</licite>', "c2s", None, "control-character", "\0", 1),
    broken(b"\0\0\0\0\r\n\r\n", "c2s", None, "control-character", 0, 4),
    broken(f"{START}\x07\x1b[31mred{END}", "c2s", None, "control-character", "\x07", 2),
    broken(START.encode() + b"\xc0\xaf\x80" + message(END), "c2s", None, "charset", 29, 1),
    broken(START.encode() + b"\x9elu\x9d" + message(END), "c2s", None, "charset", 29, 1),
    broken("\ufeff<pause/>\r\n\r\n".encode("utf-16-le"), "c2s", None, "charset", 0, 2),
    # What only looks like a blank is none to XML.
    broken('<cgml\xa0version="1.19">~', "s2c", None, "unclosed-element", 0, 22),
    broken('<cgml version="1.19">~<disconnect/></cgml\u2003>', "s2c", None, "stray-end-tag", "</cgml", 10),
]
