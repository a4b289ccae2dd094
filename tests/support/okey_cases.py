"""Table of Okey's messages with their fields and diagnostics, with the exact bytes of each.

The marks ⟨ and ⟩ surround the bytes that a diagnostic is about; they are not sent.
"""

from __future__ import annotations

import re
from typing import Any

from cases import Case

from kiebitz.dissectors.model import Direction


def case(direction: Direction, line: str, fields: dict[str, Any], *codes: str, name: str | None = "") -> Case:
    """Return a line, CRLF being left out; its name is its first word, unless another is given."""
    places: list[tuple[int, int]] = []
    opened: list[int] = []
    data = b""
    for part in re.split("([⟨⟩])", line):
        if part == "⟨":
            opened.append(len(data))
        elif part == "⟩":
            start = opened.pop()
            places.append((start, len(data) - start))
        else:
            data += part.encode("utf-8", "surrogateescape")
    if not data.endswith((b"\r", b"\n")):
        data += b"\r\n"
    diagnostics = tuple((code, *place) for code, place in zip(codes, places, strict=True))
    first = re.split("[ \r\n]", data.decode("utf-8", "replace"))[0] if name == "" else name
    return Case(data, direction, first, fields, diagnostics)


def c2s(line: str, fields: dict[str, Any] | None = None, *codes: str, name: str | None = "") -> Case:
    return case("c2s", line, fields or {}, *codes, name=name)


def s2c(line: str, fields: dict[str, Any] | None = None, *codes: str, name: str | None = "") -> Case:
    return case("s2c", line, fields or {}, *codes, name=name)


def text(said: str) -> dict[str, Any]:
    return {"messagetype": "b", "msg": said}


_DECK = ["0:BLACK", "1:RED", *(f"{number}:BLUE" for number in range(1, 13))]
_QUOTED = " ".join(_DECK)
_GAPS = ["8:BLACK", None, "4:YELLOW", *[None] * 21]

SEED = [
    c2s("LOGI Istref", {"nickname": "Istref"}),
    s2c("+LOGI Istref_1", {"actualname": "Istref_1"}),
    c2s("NAME Zoë", {"nickname": "Zoë"}),
    s2c('+NAME "has space "', {"actualname": "has space"}),
    c2s("LPLA"),
    s2c('+LPLA "istref robin boran pascal "', {"playerlist": ["istref", "robin", "boran", "pascal"]}),
    s2c("+LPLA Istref", {"playerlist": ["Istref"]}),
    c2s("LLPL"),
    s2c('+LLPL " "', {"lobbieswithplayerlist": []}),
    s2c(
        r'+LLPL "\"\\"Lobby 5 \\" \" \"boran istref \\" \\" robin \" "',
        {"lobbieswithplayerlist": [{"lobby": 5, "players": ["boran", "istref", None, "robin"]}]},
    ),
    s2c(
        r'+LLPL "\"\\"Lobby 42 \\" \" \"\\"has space \\" Zoë \\"q\\\"uote \\" back\slash \" '
        r'\"\\"Lobby 3 \\" \" Zoë_1 "',
        {
            "lobbieswithplayerlist": [
                {"lobby": 42, "players": ["has space", "Zoë", 'q"uote', "back\\slash"]},
                {"lobby": 3, "players": ["Zoë_1"]},
            ]
        },
    ),
    c2s("LGAM o", {"gamestatus": "o"}),
    s2c('+LGAM o " "', {"gamestatus": "o", "games": []}),
    s2c(
        '+LGAM o "42:4 -5:1 "',
        {"gamestatus": "o", "games": [{"lobby": 42, "players": 4}, {"lobby": -5, "players": 1}]},
    ),
    s2c("+LGAM r 1", {"gamestatus": "r", "games": [{"lobby": 1}]}),
    s2c(
        '+LGAM f "22:robin 4: "',
        {"gamestatus": "f", "games": [{"lobby": 22, "winner": "robin"}, {"lobby": 4, "winner": None}]},
    ),
    c2s("JLOB 42", {"n": 42}),
    s2c('+JLOB t "Created new Lobby 42 "', {"joinsuccessful": True, "debugmessage": "Created new Lobby 42"}),
    s2c("+JLOB f", {"joinsuccessful": False}),
    c2s("LOGO"),
    s2c("+LOGO"),
    c2s("REDY"),
    s2c("+REDY"),
    s2c(f'STRT "{_QUOTED} " 3', {"startdeck": _DECK, "playeridx": 3}),
    c2s("+STRT"),
    s2c(
        r'STAT "\" \" 4:BLACK 5:RED 3:YELLOW " 1',
        {"exchangestacks": [None, "4:BLACK", "5:RED", "3:YELLOW"], "currentplayeridx": 1},
    ),
    c2s("+STAT"),
    c2s("DRAW m", {"drawstack": "m"}),
    c2s("DRAW e", {"drawstack": "e"}),
    s2c("+DRAW 9:YELLOW", {"tile": "9:YELLOW"}),
    s2c('+DRAW " "', {"tile": None}),
    s2c('+DRAW " " "You shall not draw! "', {"tile": None, "debugmessage": "You shall not draw!"}),
    c2s(
        r'PUTT 4:RED "\" \" 3:RED \" \" 0:BLUE "', {"tile": "4:RED", "deck": [None, "3:RED", None, "0:BLUE"]}
    ),
    c2s("PUTT 1:RED 2:RED", {"tile": "1:RED", "deck": ["2:RED"]}),
    s2c("+PUTT t f", {"valid": True, "won": False}),
    s2c(
        '+PUTT f f "You shall not put a tile! "',
        {"valid": False, "won": False, "debugmessage": "You shall not put a tile!"},
    ),
    s2c("PWIN istref", {"nickname": "istref"}),
    c2s("+PWIN"),
    s2c("EMPT"),
    c2s("+EMPT"),
    c2s("CATC b hallo", text("hallo")),
    c2s(r'CATC b "Hallo \"Leute\", wie gehts? "', text('Hallo "Leute", wie gehts?')),
    c2s(r'CATC b "\\" "', text('\\"')),
    c2s(r"CATC b C:\Users\boran" + "\\", text("C:\\Users\\boran\\")),
    c2s(r'CATC b "ends with backslash\ "', text("ends with backslash\\")),
    c2s('CATC l " "', {"messagetype": "l", "msg": ""}),
    c2s(
        r'CATC w "Nick ist \"mühsam\" " robin',
        {"messagetype": "w", "msg": 'Nick ist "mühsam"', "whisperrecipient": "robin"},
    ),
    s2c("+CATC b hallo", text("hallo")),
    s2c(
        '+CATC w " " niemand f',
        {"messagetype": "w", "msg": "", "whisperrecipient": "niemand", "nicknameexists": False},
    ),
    s2c("CATS b 100% pascal", {"messagetype": "b", "msg": "100%", "sender": "pascal"}),
    c2s("+CATS"),
    c2s("PING"),
    s2c("+PING"),
    s2c("PING"),
    c2s("+PING"),
    c2s("WINC"),
    s2c(f'+WINC "{_QUOTED} "', {"deck": _DECK}),
]
"""The specification's messages, as its own programs write them."""

HEAD = [
    s2c(r'+LPLA "istref boran%"', {"playerlist": ["istref", "boran"]}),
    s2c('+LLPL "%"', {"lobbieswithplayerlist": []}),
    s2c(
        r'+LLPL "\"5 boran istref pascal \\"%\\"%\"%"',
        {"lobbieswithplayerlist": [{"lobby": 5, "players": ["boran", "istref", "pascal", None]}]},
    ),
    s2c(f'STRT "{_QUOTED}%" 3', {"startdeck": _DECK, "playeridx": 3}),
    s2c(
        'STRT "8:BLACK ' + r"\"%\" 4:YELLOW " + " ".join([r"\"%\""] * 21) + '%" 0',
        {"startdeck": _GAPS, "playeridx": 0},
    ),
    s2c(
        r'STAT "\"%\" 4:YELLOW \"%\" \"%\"%" 1',
        {"exchangestacks": [None, "4:YELLOW", None, None], "currentplayeridx": 1},
    ),
    s2c('+DRAW "%"', {"tile": None}),
    c2s('CATC b "50 %%"', text("50 %")),
    c2s(r'CATC b "Hallo \"Leute\", wie gehts?%"', text('Hallo "Leute", wie gehts?')),
    c2s(r'CATC b "\\"%"', text('\\"')),
    c2s(r'CATC b "ends with backslash\%"', text("ends with backslash\\")),
    s2c("LEFT robin", {"name": "robin"}),
    c2s("+LEFT"),
    s2c("JOND robin", {"name": "robin"}),
    c2s("+JOND"),
    s2c(r'NAMS "boran \"%\" \"%\" \"%\"%"', {"playerlist": ["boran", None, None, None]}),
    c2s("+NAMS"),
    c2s("RNAM"),
    s2c('+RNAM "boran istref pascal robin%"', {"playerlist": ["boran", "istref", "pascal", "robin"]}),
    c2s("LLOB"),
    s2c("+LLOB t", {"left": True}),
    c2s("HIGH"),
    s2c(
        r'+HIGH "\"pascal 2026-11-21,01:02 4%\"%"',
        {"highscores": [{"name": "pascal", "date": "2026-11-21,01:02", "turns": 4}]},
    ),
    c2s("RSTA"),
    s2c(
        r'+RSTA "\"%\" \"%\" \"%\" \"%\"%" 0',
        {"exchangestacks": [None] * 4, "currentplayeridx": 0},
    ),
]
"""Messages of the last dialect's programs."""

LOOSE = [
    c2s("LOGI ⟨" + "x" * 31 + "⟩", {"nickname": "x" * 31}, "loose-nickname"),
    c2s('NAME ⟨"has space "⟩', {"nickname": "has space"}, "loose-nickname"),
    c2s('NAME ⟨" "⟩', {"nickname": ""}, "loose-nickname"),
    c2s("JLOB ⟨-5⟩", {"n": -5}, "loose-n"),
    c2s('CATC b ⟨"no pad"⟩', text("no pad"), "unpadded"),
    c2s('CATC b ⟨""⟩ x', text("x"), "vanished"),
    c2s("CATC⟨   ⟩b many", text("many"), "loose"),
    c2s("⟨ ⟩CATC b leading", text("leading"), "loose", name="CATC"),
    c2s("REDY⟨ ⟩", {}, "loose"),
    c2s('CATC b ⟨glued"in side "tail⟩', text("gluedin side tail"), "unpadded"),
    c2s("CATC b x⟨ debug words⟩", text("x"), "surplus-fields"),
    c2s('CATC b x ⟨"unended⟩', text("x"), "unended"),
    c2s("PING⟨ extra⟩", {}, "surplus-fields"),
    c2s("+PING⟨ x y⟩", {}, "surplus-fields"),
    c2s("CATC b gr⟨\udcfc⟩\udcdfe", text("grüße"), "charset"),
    c2s("CATC b nul⟨\0⟩byte", text("nul\0byte"), "control-character"),
    c2s("CATC b ü⟨\x1b⟩[31mred", text("ü\x1b[31mred"), "control-character"),
    c2s("CATC b lf-only⟨\n⟩", text("lf-only"), "line-end"),
    c2s("CATC b cr-only⟨\r⟩", text("cr-only"), "line-end"),
]
"""Deviations that real servers accept."""

MALFORMED = [
    c2s("⟨FOOO⟩", {}, "unknown-message", name=None),
    c2s("⟨logi⟩ istref", {}, "unknown-message", name=None),
    c2s("⟨PINGPONG⟩", {}, "unknown-message", name=None),
    c2s("⟨GET⟩ / HTTP/1.1", {}, "unknown-message", name=None),
    c2s("⟨\udcff\udcfe\udc80⟩ bad", {}, "unknown-message", name=None),
    c2s("CATC⟨\t⟩b\thi", {}, "unknown-message", name=None),
    c2s("⟨+FOOO⟩", {}, "unknown-message", name=None),
    c2s("⟨+⟩", {}, "unknown-message", name=None),
    c2s("⟨STRT⟩ x 0", {}, "unknown-message", name=None),
    s2c("⟨LOGI⟩ x", {}, "unknown-message", name=None),
    c2s("⟨⟩\r\n", {}, "empty-line", name=None),
    c2s("⟨   ⟩", {}, "empty-line", name=None),
    c2s('⟨""⟩', {}, "empty-line", name=None),
    c2s('⟨"LOGI x⟩', {}, "empty-line", name=None),
    c2s("LOGI⟨⟩", {}, "missing-field"),
    c2s("LGAM⟨⟩", {}, "missing-field"),
    c2s("LGAM ⟨x⟩", {}, "bad-field"),
    c2s("JLOB ⟨abc⟩", {}, "bad-number"),
    c2s("JLOB ⟨99999999999⟩", {}, "bad-number"),
    c2s("JLOB ⟨2147483648⟩", {}, "bad-number"),
    c2s("CATC⟨⟩", {}, "missing-field"),
    c2s("CATC b⟨⟩", {"messagetype": "b"}, "missing-field"),
    c2s("CATC ⟨z⟩ hi", {}, "bad-field"),
    c2s("CATC w hi⟨⟩", {"messagetype": "w", "msg": "hi"}, "missing-field"),
    c2s('CATC b ⟨"unterminated⟩', {"messagetype": "b"}, "missing-field"),
    c2s(r'CATC b esc\⟨"outside⟩', {"messagetype": "b"}, "missing-field"),
    c2s('CATC b ⟨""⟩', {"messagetype": "b"}, "missing-field"),
    c2s("DRAW⟨⟩", {}, "missing-field"),
    c2s("DRAW ⟨q⟩", {}, "bad-field"),
    c2s("PUTT ⟨99⟩:RED 1:RED", {}, "bad-tile"),
    c2s("PUTT ⟨14⟩:RED 1:RED", {}, "bad-tile"),
    c2s("PUTT ⟨-1⟩:RED 1:RED", {}, "bad-tile"),
    c2s("PUTT ⟨04⟩:RED 1:RED", {}, "bad-tile"),
    c2s("PUTT 5:⟨GREEN⟩ 1:RED", {}, "bad-tile"),
    c2s("PUTT 5:⟨red⟩ 1:RED", {}, "bad-tile"),
    c2s("PUTT ⟨5⟩ 1:RED", {}, "bad-tile"),
    c2s("PUTT ⟨:RED⟩ 1:RED".replace("⟨:RED⟩", "⟨⟩:RED"), {}, "bad-tile"),
    c2s("PUTT 1:RED⟨⟩", {"tile": "1:RED"}, "missing-field"),
    c2s('PUTT 1:RED "2:RED ⟨X⟩ 3:RED "', {"tile": "1:RED"}, "bad-tile"),
    c2s(r'PUTT 1:RED "\" \" ü 3:⟨PINK⟩ "'.replace("ü ", ""), {"tile": "1:RED"}, "bad-tile"),
    c2s('PUTT 1:RED "2:RED 3:⟨⟩"', {"tile": "1:RED"}, "bad-tile"),
    c2s('PUTT 1:RED "' + "1:RED " * 24 + "⟨" + "1:RED " * 5 + '1:RED⟩ "', {"tile": "1:RED"}, "bad-deck"),
    s2c("+LOGI⟨⟩", {}, "missing-field"),
    s2c("+JLOB ⟨yes⟩", {}, "bad-field"),
    s2c("+PUTT t⟨⟩", {"valid": True}, "missing-field"),
    s2c("+PUTT t ⟨T⟩", {"valid": True}, "bad-field"),
    s2c("+DRAW ⟨x⟩", {}, "bad-tile"),
    s2c("STRT 1:RED ⟨4⟩", {"startdeck": ["1:RED"]}, "bad-number"),
    s2c('STAT ⟨"1:RED 2:RED 3:RED "⟩ 0', {}, "bad-deck"),
    s2c(r'STAT "\" \" \" \" \" \" 2:BLU⟨⟩ " 3'.replace("BLU⟨⟩", "⟨BLU⟩"), {}, "bad-tile"),
    s2c(
        r'STAT "\" \" \" \" \" \" 2:BLUE " ⟨-1⟩',
        {"exchangestacks": [None, None, None, "2:BLUE"]},
        "bad-number",
    ),
    s2c('+LGAM o "1:2 ⟨3⟩ "', {"gamestatus": "o"}, "bad-list"),
    s2c("+LGAM ⟨x⟩ 1", {}, "bad-field"),
    s2c(r'+LLPL "⟨\"\\"Lobby \\" \"⟩ boran "', {}, "bad-list"),
    s2c(r'+HIGH ⟨"\"pascal x y%\"%"⟩', {}, "bad-list"),
    s2c("CATS b hallo⟨⟩", {"messagetype": "b", "msg": "hallo"}, "missing-field"),
]
