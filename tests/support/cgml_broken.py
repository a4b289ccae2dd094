"""What is wrong in broken CGML messages, to the byte: the flaw's code and place, and nothing else said.

Written like `cgml_cases.py`. Each is followed by a message that must be read.
"""

from __future__ import annotations

from cases import Case
from cgml_cases import message

from kiebitz.dissectors.model import Direction


def broken(
    text: str | bytes, direction: Direction, name: str | None, code: str, at: str | int, length: int
) -> Case:
    """A message with a flaw at the first place of a text in it, or at an offset."""
    data = text if isinstance(text, bytes) else message(text)
    offset = at if isinstance(at, int) else data.index(at.encode())
    return Case(data, direction, name, {}, ((code, offset, length),))


def played(card: str, code: str = "bad-card") -> Case:
    """A client's card with something wrong in it."""
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

BROKEN = [
    # Tags.
    broken(f"{INFO}~  <card>R07~</playcard>", "s2c", None, "unclosed-element", "<card>R07", 9),
    broken("<disconnect>overload", "s2c", None, "unclosed-element", 0, 20),
    broken("<disconnect", "s2c", None, "unclosed-tag", 0, 15),
    broken(f"{CARDS}<card>R07</playcard></card>", "c2s", None, "crossed-tags", "</playcard>", 11),
    broken("</playcard>", "c2s", None, "stray-end-tag", 0, 11),
    broken("<load>48</laod>", "c2s", None, "stray-end-tag", "</laod>", 7),
    broken("<load>48</load></load>", "c2s", None, "stray-end-tag", 15, 7),
    broken("<Load>48</load>", "c2s", None, "stray-end-tag", 8, 7),
    broken(f"{CARDS}<card>R07</card ></playcard", "c2s", None, "unclosed-tag", "</playcard", 14),
    broken("<!-- never closed~<load>48</load>", "c2s", None, "unclosed-comment", 0, 4),
    broken("<a><a><a>" * 20, "c2s", None, "too-deep", 0, 3),
    # Elements.
    broken('<smile playerid="6533">:-)</smile>', "s2c", None, "unknown-message", 0, 23),
    broken("<chat><message>ahoj</message></chat>", "c2s", None, "unknown-message", 0, 6),
    broken("<playcrad></playcrad>", "c2s", None, "unknown-message", 0, 10),
    broken(
        f"{INFO}<card>R07</card><sound>plink.wav</sound></playcard>",
        "s2c",
        "playcard",
        "unknown-element",
        "<sound>",
        7,
    ),
    broken(
        '<round number="1" playerid="6533"><crad>R07</crad></round>',
        "s2c",
        "round",
        "unknown-element",
        "<crad>",
        6,
    ),
    broken(f"{CARDS}<card><b>R07</b></card></playcard>", "c2s", "playcard", "unknown-element", "<b>", 3),
    broken("<load><percent>4</percent></load>", "c2s", "load", "unknown-element", "<percent>", 9),
    broken(f"{RESULT}</result>", "s2c", "result", "missing-element", 0, 8),
    broken(f"<result>{GAME}<licite>100</licite></result>", "s2c", "result", "missing-element", 0, 8),
    broken(
        f'<newgroup status="accept" id="4">{GAME}</newgroup>', "c2s", "newgroup", "missing-element", 0, 33
    ),
    broken(f'<newgroup status="ack">{GAME}{GAME}</newgroup>', "c2s", "newgroup", "too-many", 53, 6),
    broken(f"{CARDS}</playcard>", "c2s", "playcard", "missing-element", 0, 45),
    broken('<round number="1" playerid="6533"></round>', "s2c", "round", "missing-element", 0, 34),
    broken(
        f'<round number="1" playerid="6533">{THREE}<card>R10</card></round>',
        "s2c",
        "round",
        "too-many",
        82,
        6,
    ),
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
    # Attributes.
    broken(f"<connect>{KAREL}{GAME}</connect>", "c2s", "connect", "missing-attribute", 0, 9),
    broken(
        f'<connect status="active"><player></player>{GAME}</connect>',
        "c2s",
        "connect",
        "missing-attribute",
        "<player>",
        8,
    ),
    broken('<dial to="hand"><card>R07</card></dial>', "s2c", "dial", "missing-attribute", 0, 16),
    broken('<dial type="cards" to="hand"><card>R07</card></dial>', "s2c", "dial", "missing-attribute", 0, 29),
    broken(f'<round playerid="6533">{THREE}</round>', "s2c", "round", "missing-attribute", 0, 23),
    broken("<licite>100</licite>", "c2s", "licite", "missing-attribute", 0, 8),
    broken('<licite type="anwser">100</licite>', "c2s", "licite", "bad-field", "anwser", 6),
    broken(
        f'<connect status="sleeping">{KAREL}{GAME}</connect>', "c2s", "connect", "bad-field", "sleeping", 8
    ),
    broken(
        f'<connect status="passive active">{KAREL}{GAME}</connect>',
        "c2s",
        "connect",
        "bad-field",
        "passive active",
        14,
    ),
    broken(
        '<dial type="cards" to="hand desk talon" from="desk talon">~...~</dial>',
        "s2c",
        "dial",
        "bad-field",
        "hand desk talon",
        15,
    ),
    broken(
        '<playcard type="ask" colour="R"></playcard>',
        "s2c",
        "playcard",
        "unknown-attribute",
        'colour="R"',
        10,
    ),
    broken(
        '<playcard type="ask"><card wild="yes">R07</card></playcard>',
        "s2c",
        "playcard",
        "unknown-element",
        "<card",
        17,
    ),
    broken(
        f'{CARDS}<card wild="yes">R07</card></playcard>',
        "c2s",
        "playcard",
        "unknown-attribute",
        'wild="yes"',
        10,
    ),
    broken("<playcard type=ask></playcard>", "s2c", None, "unquoted-value", "type=ask", 8),
    broken('<playcard type="info" type="ask"></playcard>', "s2c", None, "attribute-twice", "type=", 22),
    broken(
        '<playcard type="info playerid="6533"><card>R07</card></playcard>',
        "s2c",
        None,
        "unterminated-value",
        "type=",
        26,
    ),
    broken("<playcard type></playcard>", "s2c", None, "no-value", "type", 4),
    # Values.
    broken(
        f'<round number="eleven" playerid="6533">{THREE}</round>', "s2c", "round", "bad-number", "eleven", 6
    ),
    broken(f'<round number="11" playerid="6533">{THREE}</round>', "s2c", "round", "out-of-range", "11", 2),
    broken(f'<round number="1" playerid="-6533">{THREE}</round>', "s2c", "round", "bad-number", "-6533", 5),
    broken(
        f'<round number="1" playerid="9999999999999999">{THREE}</round>',
        "s2c",
        "round",
        "bad-number",
        "9999",
        16,
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
    broken('<licite type="answer">200</licite>', "c2s", "licite", "bad-field", "200", 3),
    broken('<licite type="answer">yes</licite>', "c2s", "licite", "bad-field", "yes", 3),
    broken('<licite type="answer">100 YES NO</licite>', "c2s", "licite", "bad-field", "100 YES NO", 10),
    broken('<licite type="answer"></licite>', "c2s", "licite", "bad-field", 0, 22),
    broken(
        '<gametype type="answer"><licite>100</licite><trumf>x</trumf></gametype>',
        "c2s",
        "gametype",
        "bad-field",
        "x</t",
        1,
    ),
    broken(
        '<gametype type="answer"><licite>27</licite><trumf>G:B</trumf></gametype>',
        "c2s",
        "gametype",
        "bad-field",
        "G:B",
        3,
    ),
    broken(
        '<gametype type="answer"><licite>27</licite><trumf>g:</trumf></gametype>',
        "c2s",
        "gametype",
        "bad-field",
        "g:",
        2,
    ),
    broken('<flek type="answer">dva</flek>', "c2s", "flek", "bad-field", "dva", 3),
    broken('<flek type="answer">1:2:4</flek>', "c2s", "flek", "bad-field", "1:2:4", 5),
    broken("<load>150</load>", "c2s", "load", "out-of-range", "150", 3),
    broken("<load>mnoho</load>", "c2s", "load", "bad-number", "mnoho", 5),
    broken("<load></load>", "c2s", "load", "bad-number", 0, 6),
    broken(
        f'<connect status="complete" id="4">{GAME}{KAREL}<url>nowhere</url></connect>',
        "s2c",
        "connect",
        "bad-field",
        "nowhere",
        7,
    ),
    broken('<newgroup status="init"><game>prsi</game></newgroup>', "s2c", "newgroup", "bad-field", "prsi", 4),
    broken(
        f'{RESULT}<winer playerid="1"><money type="get">1e9</money></winer></result>',
        "s2c",
        "result",
        "bad-number",
        "1e9",
        3,
    ),
    broken(
        f'{RESULT}{WINER}<loser playerid="2"><money type="get">4</money></loser></result>',
        "s2c",
        "result",
        "bad-field",
        176,
        3,
    ),
    # Text and references.
    broken(f"{START}R & B{END}", "c2s", None, "bare-ampersand", "&", 1),
    broken(f"{START}1 < 2{END}", "c2s", None, "bare-less-than", "< 2", 3),
    broken(f"{START}&zcaron;lu{END}", "c2s", None, "undefined-entity", "&zcaron;", 8),
    broken(f"{START}&#0;{END}", "c2s", None, "bad-reference", "&#0;", 4),
    broken(f"{START}&#xD800;{END}", "c2s", None, "bad-reference", "&#xD800;", 8),
    broken('<pause type="start&">~</pause>', "c2s", None, "bare-ampersand", "&", 1),
    broken(f"{CARDS}hello<card>R07</card></playcard>", "c2s", "playcard", "stray-text", "hello", 5),
    broken(f"{CARDS}<card>R07</card>hello</playcard>", "c2s", "playcard", "stray-text", "hello", 5),
    broken('<playcard type="ask"></playcard>garbage', "s2c", None, "text-outside", "garbage", 7),
    broken("hello", "s2c", None, "no-element", 0, 5),
    broken("GET / HTTP/1.1~Host: localhost", "c2s", None, "no-element", 0, 31),
    # Document types, never followed.
    broken(
        '<!DOCTYPE x [<!ENTITY a "haha">]>~<disconnect>&a;</disconnect>', "s2c", None, "document-type", 0, 9
    ),
    broken(
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/hostname">]>~<disconnect>&f;</disconnect>',
        "s2c",
        None,
        "external-entity",
        "SYSTEM",
        6,
    ),
    broken(
        '<!DOCTYPE x PUBLIC "a" "b">~<disconnect>f</disconnect>', "s2c", None, "external-entity", "PUBLIC", 6
    ),
    # Characters.
    broken('<licite type="answer">1\x0000</licite>', "c2s", None, "control-character", "\0", 1),
    broken(b"\0\0\0\0\r\n\r\n", "c2s", None, "control-character", 0, 4),
    broken(f"{START}\x07\x1b[31mred{END}", "c2s", None, "control-character", "\x07", 2),
    broken(START.encode() + b"\xc0\xaf\x80" + message(END), "c2s", None, "charset", 29, 1),
    broken(START.encode() + b"\x9elu\x9d" + message(END), "c2s", None, "charset", 29, 1),
    broken("\ufeff<pause/>\r\n\r\n".encode("utf-16-le"), "c2s", None, "charset", 0, 2),
    # Empty lines and envelopes.
    broken(f"{INFO}~~  <card>R07</card>~</playcard>", "s2c", "playcard", "empty-line-inside", 60, 4),
    broken(
        '<playcard type="info" from="hand"~~to="desk" playerid="6533"><card>R07</card></playcard>',
        "s2c",
        "playcard",
        "empty-line-inside",
        33,
        4,
    ),
    broken(
        '<cgml version="1.19">~<playcard type="ask"></playcard>',
        "s2c",
        "playcard",
        "unclosed-envelope",
        0,
        21,
    ),
    broken(
        '<cgml><cgml version="1.0"><playcard type="ask"></playcard></cgml></cgml>',
        "s2c",
        None,
        "envelope-twice",
        6,
        20,
    ),
    broken('<cgml version="1.19">~</cgml>', "s2c", None, "empty-envelope", "</cgml>", 7),
    # What only looks like a blank is none to XML.
    broken('<cgml\xa0version="1.19">~', "s2c", None, "unclosed-element", 0, 22),
    broken('<cgml version="1.19">~<disconnect/></cgml\u2003>', "s2c", None, "stray-end-tag", "</cgml", 10),
    # Said by the wrong side.
    broken(f'<round number="1" playerid="6533">{THREE}</round>', "c2s", None, "wrong-direction", 0, 34),
    broken('<licite type="answer">100</licite>', "s2c", "licite", "wrong-direction", 0, 22),
    broken('<licite type="ask">100</licite>', "c2s", "licite", "wrong-direction", 0, 19),
    broken("<load>4</load>", "s2c", None, "wrong-direction", 0, 6),
]
