"""Table of Mäxchen datagrams with their fields and diagnostics, with the exact bytes of each."""

from __future__ import annotations

from cases import Case

TOKEN = "d129eeba-89d3-441f-b46f-721750c92225"


def _text(text: str) -> bytes:
    return text.replace("TOK", TOKEN).encode()


SOUND = [
    Case(_text("REGISTER;alice"), "c2s", "REGISTER", {"name": "alice"}),
    Case(_text("REGISTER;alice;geheim"), "c2s", "REGISTER", {"name": "alice", "password": "geheim"}),
    Case(_text("REGISTER_SPECTATOR;zuschauer"), "c2s", "REGISTER_SPECTATOR", {"name": "zuschauer"}),
    Case(_text("REGISTER;🎲 Größe"), "c2s", "REGISTER", {"name": "🎲 Größe"}),
    Case(_text("JOIN;TOK"), "c2s", "JOIN", {"token": TOKEN}),
    Case(_text("ROLL;TOK"), "c2s", "ROLL", {"token": TOKEN}),
    Case(_text("SEE;TOK"), "c2s", "SEE", {"token": TOKEN}),
    Case(_text("ANNOUNCE;5,3;TOK"), "c2s", "ANNOUNCE", {"dice": "5,3", "token": TOKEN}),
    Case(_text("REGISTERED"), "s2c", "REGISTERED", {}),
    Case(_text("REGISTERED;0"), "s2c", "REGISTERED", {"points": 0}),
    Case(_text("REJECTED"), "s2c", "REJECTED", {}),
    Case(_text("REJECTED;INVALID_NAME"), "s2c", "REJECTED", {"reason": "INVALID_NAME"}),
    Case(_text("UNREGISTER"), "c2s", "UNREGISTER", {}),
    Case(_text("UNREGISTERED"), "s2c", "UNREGISTERED", {}),
    Case(_text("HEARTBEAT"), "s2c", "HEARTBEAT", {}),
    Case(_text("ECHO;Hallo: 0"), "c2s", "ECHO", {"text": "Hallo: 0"}),
    Case(_text("ECHOING;Hallo: 0"), "s2c", "ECHOING", {"text": "Hallo: 0"}),
    Case(_text("ROUND STARTING;TOK"), "s2c", "ROUND STARTING", {"token": TOKEN}),
    Case(_text("ROUND STARTING;7;TOK"), "s2c", "ROUND STARTING", {"round": 7, "token": TOKEN}),
    Case(_text("ROUND STARTED;a,b"), "s2c", "ROUND STARTED", {"players": ["a", "b"]}),
    Case(_text("ROUND STARTED;7;a,b"), "s2c", "ROUND STARTED", {"round": 7, "players": ["a", "b"]}),
    Case(_text("ROUND CANCELED;no players"), "s2c", "ROUND CANCELED", {"reason": "no players"}),
    Case(_text("ROUND CANCELED;NO_PLAYERS"), "s2c", "ROUND CANCELED", {"reason": "NO_PLAYERS"}),
    Case(_text("YOUR TURN;TOK"), "s2c", "YOUR TURN", {"token": TOKEN}),
    Case(_text("PLAYER ROLLS;alice"), "s2c", "PLAYER ROLLS", {"name": "alice"}),
    Case(_text("ROLLED;2,1;TOK"), "s2c", "ROLLED", {"dice": "2,1", "token": TOKEN}),
    Case(_text("ANNOUNCED;alice;2,1"), "s2c", "ANNOUNCED", {"name": "alice", "dice": "2,1"}),
    Case(_text("ANNOUNCED;alice;3,-1"), "s2c", "ANNOUNCED", {"name": "alice", "dice": "3,-1"}),
    Case(_text("PLAYER WANTS TO SEE;bob"), "s2c", "PLAYER WANTS TO SEE", {"name": "bob"}),
    Case(_text("ACTUAL DICE;6,6"), "s2c", "ACTUAL DICE", {"dice": "6,6"}),
    Case(_text("PLAYER LOST;a,b;MIA"), "s2c", "PLAYER LOST", {"names": ["a", "b"], "reason": "MIA"}),
    Case(
        _text("PLAYER LOST;bob;saw that the announcement was true"),
        "s2c",
        "PLAYER LOST",
        {"names": ["bob"], "reason": "saw that the announcement was true"},
    ),
    Case(_text("SCORE;alice:1,bob:-2"), "s2c", "SCORE", {"scores": {"alice": 1, "bob": -2}}),
    Case(_text("SCORE;"), "s2c", "SCORE", {"scores": {}}),
]
"""Messages of a conforming peer of some revision, which encode to the same bytes."""

LOOSE = [
    Case(_text("JOIN;TOK;extra"), "c2s", "JOIN", {"token": TOKEN}, (("surplus-fields", 41, 6),)),
    Case(_text("UNREGISTER;"), "c2s", "UNREGISTER", {}, (("surplus-fields", 10, 1),)),
    Case(_text("ROLL;TOK;"), "c2s", "ROLL", {"token": TOKEN}, (("surplus-fields", 41, 1),)),
    Case(
        _text("REGISTER;semi;kolon;rest"), "c2s", "REGISTER", {"name": "semi"}, (("surplus-fields", 13, 11),)
    ),
    Case(
        _text("ANNOUNCE; 1 , 6 ;TOK"),
        "c2s",
        "ANNOUNCE",
        {"dice": "6,1", "token": TOKEN},
        (("loose-spelling", 9, 7),),
    ),
    Case(
        _text("ANNOUNCE;04,3x;TOK"),
        "c2s",
        "ANNOUNCE",
        {"dice": "4,3", "token": TOKEN},
        (("loose-spelling", 9, 5),),
    ),
    Case(
        _text("ANNOUNCE;6,5,5;TOK"),
        "c2s",
        "ANNOUNCE",
        {"dice": "6,5", "token": TOKEN},
        (("loose-spelling", 9, 5),),
    ),
    Case(_text("ANNOUNCE;1,6;TOK"), "c2s", "ANNOUNCE", {"dice": "6,1", "token": TOKEN}),
]
"""Real servers take these; they get a note at the most."""

MALFORMED = [
    Case(b"", "c2s", None, {}, (("empty-datagram", 0, 0),)),
    Case(b"\0", "c2s", None, {}, (("unknown-message", 0, 1),)),
    Case(b";", "c2s", None, {}, (("unknown-message", 0, 0),)),
    Case(b"HELLO;world", "c2s", None, {}, (("unknown-message", 0, 5),)),
    Case(b"roll;x", "c2s", None, {}, (("unknown-message", 0, 4),)),
    Case(b" ROLL;x", "c2s", None, {}, (("leading-blank", 0, 1),)),
    Case(b"\xef\xbb\xbfREGISTER;bom", "c2s", None, {}, (("byte-order-mark", 0, 3),)),
    Case("REGISTER;u16".encode("utf-16-le"), "c2s", None, {}, (("utf-16", 0, 24),)),
    Case(b"\xff\xfegarbage", "c2s", None, {}, (("not-utf-8", 0, 1),)),
    Case(b"REGISTER;M\xe4xchen", "c2s", "REGISTER", {"name": "M\ufffdxchen"}, (("not-utf-8", 10, 1),)),
    Case(b"REGISTER", "c2s", "REGISTER", {}, (("missing-field", 8, 0),)),
    Case(b"ROLL", "c2s", "ROLL", {}, (("missing-field", 4, 0),)),
    Case(b"ROLL;", "c2s", "ROLL", {}, (("bad-token", 5, 0),)),
    Case(_text("ROLL;TOK\n"), "c2s", "ROLL", {}, (("bad-token", 41, 1),)),
    Case(_text("ROLL;TOK\r\n"), "c2s", "ROLL", {}, (("bad-token", 41, 2),)),
    Case(b"ANNOUNCE;6,6", "c2s", "ANNOUNCE", {"dice": "6,6"}, (("missing-field", 12, 0),)),
    Case(_text("ANNOUNCE;;TOK"), "c2s", "ANNOUNCE", {}, (("bad-dice", 9, 0),)),
    Case(_text("ANNOUNCE;66;TOK"), "c2s", "ANNOUNCE", {}, (("bad-dice", 9, 2),)),
    Case(_text("ANNOUNCE;x,y;TOK"), "c2s", "ANNOUNCE", {}, (("bad-dice", 9, 1),)),
    Case(_text("ANNOUNCE;6,x;TOK"), "c2s", "ANNOUNCE", {}, (("bad-dice", 11, 1),)),
    Case(_text("ANNOUNCE;TOK;6,6"), "c2s", "ANNOUNCE", {}, (("bad-dice", 9, 36),)),
    Case(_text("ANNOUNCE;7,7;TOK"), "c2s", "ANNOUNCE", {}, (("dice-out-of-range", 9, 1),)),
    Case(_text("ANNOUNCE;6,0;TOK"), "c2s", "ANNOUNCE", {}, (("dice-out-of-range", 11, 1),)),
    Case(_text("ANNOUNCE;-1,3;TOK"), "c2s", "ANNOUNCE", {}, (("dice-out-of-range", 9, 2),)),
    Case(b"PLAYER LOST;bob", "s2c", "PLAYER LOST", {"names": ["bob"]}, (("missing-field", 15, 0),)),
    Case(b"SCORE;alice", "s2c", "SCORE", {}, (("bad-score", 6, 5),)),
    Case(_text("ROUND STARTING;x;TOK"), "s2c", "ROUND STARTING", {}, (("bad-number", 15, 1),)),
]
"""Messages with one error each, for which the sender is to blame."""
