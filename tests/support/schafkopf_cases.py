"""Table of Schafkopf's Pakete with their fields and diagnostics, with the exact bytes of each.

A Paket is written as on the protocol's page, with `|` for each line end.
"""

from __future__ import annotations

from typing import Any

from cases import Case


def paket(text: str, line_end: str = "\n", charset: str = "utf-8") -> bytes:
    """Return a Paket's bytes."""
    return "".join(line + line_end for line in text.split("|")).encode(charset)


HAND = "EICHEL|OBER|GRAS|UNTER|HERZ|SAU|SCHELLEN|ZEHN|EICHEL|KONIG|§|§"
TABLE = "§|§|GRAS|NEUN|HERZ|KONIG|§|§"
LAST = "EICHEL|SAU|EICHEL|ZEHN|EICHEL|UNTER|EICHEL|NEUN"
CARDS = f"{HAND}|{TABLE}|{LAST}"
NO_CARDS = "§|§|§|§|§|§|§|§"
FIRST_THREE = f"HERZ|SAU|GRAS|OBER|SCHELLEN|NEUN|§|§|§|§|§|§|{NO_CARDS}|{NO_CARDS}"


def shown(flag: str) -> dict[str, Any]:
    """Return the fields of a MODEL with `CARDS`."""
    return {
        "flag": flag,
        "spielerhand": ["EICHEL OBER", "GRAS UNTER", "HERZ SAU", "SCHELLEN ZEHN", "EICHEL KONIG", None],
        "tisch": [None, "GRAS NEUN", "HERZ KONIG", None],
        "letzter_stich": ["EICHEL SAU", "EICHEL ZEHN", "EICHEL UNTER", "EICHEL NEUN"],
    }


def three(flag: str) -> dict[str, Any]:
    """Return the fields of a MODEL with `FIRST_THREE`."""
    hand = ["HERZ SAU", "GRAS OBER", "SCHELLEN NEUN", None, None, None]
    return {"flag": flag, "spielerhand": hand, "tisch": [None] * 4, "letzter_stich": [None] * 4}


LONG_NAME = "x" * 5000

SOUND = [
    Case(paket("!NAME|§|!END"), "s2c", "NAME", {"name": "§"}),
    Case(paket("!ID|3|!END"), "s2c", "ID", {"id": 3}),
    Case(
        paket("!MITSPIELER|Anna|[BOT]-0|[BOT]-1|[BOT]-2|!END"),
        "s2c",
        "MITSPIELER",
        {"namen": ["Anna", "[BOT]-0", "[BOT]-1", "[BOT]-2"]},
    ),
    Case(
        paket("!MITSPIELER|!DRAN|§|Ωmega✓|!MODEL|!END"),
        "s2c",
        "MITSPIELER",
        {"namen": ["!DRAN", "§", "Ωmega✓", "!MODEL"]},
    ),
    Case(paket("!MITSPIELER|||||!END"), "s2c", "MITSPIELER", {"namen": ["", "", "", ""]}),
    Case(paket("!KONTO|1000|!END"), "s2c", "KONTO", {"konto": 1000}),
    Case(paket("!KONTO|1000|0|!END"), "s2c", "KONTO", {"konto": 1000, "stock": 0}),
    Case(paket("!STOCK|40|!END"), "s2c", "STOCK", {"stock": 40}),
    Case(paket("!DRAN|0|!END"), "s2c", "DRAN", {"dran": 0}),
    Case(paket(f"!MODEL|!ERSTE3|{FIRST_THREE}"), "s2c", "MODEL", three("ERSTE3")),
    Case(paket(f"!MODEL|!SPIELSTDU|{CARDS}"), "s2c", "MODEL", shown("SPIELSTDU")),
    Case(paket(f"!MODEL|!SPIEL|{CARDS}"), "s2c", "MODEL", shown("SPIEL")),
    Case(paket(f"!MODEL|!UPDATE|{CARDS}"), "s2c", "MODEL", shown("UPDATE")),
    Case(
        paket("!GEKLOPFT|NEIN|NEIN|JA|NEIN|!END"),
        "s2c",
        "GEKLOPFT",
        {"geklopft": ["NEIN", "NEIN", "JA", "NEIN"]},
    ),
    Case(paket("!BESTESSPIEL|SAUSPIELgras|!END"), "s2c", "BESTESSPIEL", {"modus": "SAUSPIELgras"}),
    Case(paket("!HOCHZEIT|!END"), "s2c", "HOCHZEIT", {}),
    Case(paket("!HOCHZEIT|§|!END"), "s2c", "HOCHZEIT", {"nichts": "§"}),
    Case(paket("!SPIELT|0|4|!END"), "s2c", "SPIELT", {"spieler": 0, "mitspieler": 4}),
    Case(paket("!MODUS|SOLOherzDU|!END"), "s2c", "MODUS", {"modus": "SOLOherzDU"}),
    Case(
        paket("!KONTRA|NEIN|NEIN|NEIN|JA|!END"), "s2c", "KONTRA", {"kontra": ["NEIN", "NEIN", "NEIN", "JA"]}
    ),
    Case(paket("!ENDE|990|!END"), "s2c", "ENDE", {"konto": 990}),
    Case(paket("!ENDE|990|40|!END"), "s2c", "ENDE", {"konto": 990, "stock": 40}),
    Case(paket("!SIEGER|10|12|!END"), "s2c", "SIEGER", {"spieler": 10, "mitspieler": 12}),
    Case(paket("!SIEGER|3|4|!END"), "s2c", "SIEGER", {"spieler": 3, "mitspieler": 4}),
    Case(paket("!BEENDEN|!END"), "s2c", "BEENDEN", {}),
    Case(paket("!BEENDEN|§|!END"), "s2c", "BEENDEN", {"nichts": "§"}),
    Case(paket("!NAME|Anna|!END"), "c2s", "NAME", {"name": "Anna"}),
    Case(paket("!NAME|!DRAN|!END"), "c2s", "NAME", {"name": "!DRAN"}),
    Case(paket("!NAME|!NAME|!END"), "c2s", "NAME", {"name": "!NAME"}),
    Case(paket("!NAME|§|!END"), "c2s", "NAME", {"name": "§"}),
    Case(paket("!NAME|Ωmega✓|!END"), "c2s", "NAME", {"name": "Ωmega✓"}),
    Case(paket("!NAME||!END"), "c2s", "NAME", {"name": ""}),
    Case(paket(f"!NAME|{LONG_NAME}|!END"), "c2s", "NAME", {"name": LONG_NAME}),
    Case(paket("!ERSTE3|NEIN|!END"), "c2s", "ERSTE3", {"klopft": "NEIN"}),
    Case(paket("!SPIELSTDU|WENZ|!END"), "c2s", "SPIELSTDU", {"modus": "WENZ"}),
    Case(paket("!KONTRA|NEIN|!END"), "c2s", "KONTRA", {"kontra": "NEIN"}),
    Case(paket("!HOCHZEIT|NEIN|!END"), "c2s", "HOCHZEIT", {"nimmt": "NEIN"}),
    Case(paket("!HOCHZEIT|JA|!END"), "c2s", "HOCHZEIT", {"nimmt": "JA"}),
    Case(paket("!HOCHZEIT|JA|HERZ|SAU|!END"), "c2s", "HOCHZEIT", {"nimmt": "JA", "karte": "HERZ SAU"}),
    Case(paket("!KARTE|HERZ|SAU|!END"), "c2s", "KARTE", {"karte": "HERZ SAU"}),
    Case(paket(f"!MODEL|!SPIEL|{CARDS}"), "c2s", "MODEL", shown("SPIEL")),
    Case(paket("!BEENDEN|!END"), "c2s", "BEENDEN", {}),
    Case(paket("!BEENDEN|§|!END"), "c2s", "BEENDEN", {"nichts": "§"}),
]
"""Messages of a conforming peer of some release, which encode to the same bytes."""

_TWICE = "Â§"

LOOSE = [
    # Other line ends and charsets.
    Case(paket("!DRAN|0|!END", "\r\n"), "s2c", "DRAN", {"dran": 0}),
    Case(paket(f"!MODEL|!UPDATE|{CARDS}", "\r\n"), "s2c", "MODEL", shown("UPDATE")),
    Case(paket("!NAME|Anna|!END", "\r\n"), "c2s", "NAME", {"name": "Anna"}),
    Case(paket("!BEENDEN|§|!END", "\r\n"), "c2s", "BEENDEN", {"nichts": "§"}),
    Case(paket("!NAME|§|!END", charset="latin-1"), "s2c", "NAME", {"name": "§"}, (("charset", 6, 1),)),
    Case(
        paket("!BEENDEN|§|!END", "\r\n", "latin-1"), "s2c", "BEENDEN", {"nichts": "§"}, (("charset", 10, 1),)
    ),
    Case(
        paket(f"!MODEL|!SPIEL|{CARDS}", "\r\n", "latin-1"),
        "c2s",
        "MODEL",
        shown("SPIEL"),
        (("charset", 85, 1),),
    ),
    Case(
        paket(f"!MODEL|!UPDATE|{CARDS}", charset="latin-1"),
        "s2c",
        "MODEL",
        shown("UPDATE"),
        (("charset", 74, 1),),
    ),
    Case(paket(f"!NAME|{_TWICE}|!END"), "s2c", "NAME", {"name": "§"}, (("encoded-twice", 6, 4),)),
    Case(
        paket(f"!MODEL|!SPIEL|{CARDS}".replace("§", _TWICE)),
        "s2c",
        "MODEL",
        shown("SPIEL"),
        (("encoded-twice", 73, 4),),
    ),
    Case(paket("!NAME|Jörg|!END", charset="latin-1"), "c2s", "NAME", {"name": "Jörg"}, (("charset", 7, 1),)),
    Case(b"!NAME\n\xff\x81\xfe\n!END\n", "c2s", "NAME", {"name": "ÿ\ufffdþ"}, (("charset", 6, 1),)),
    Case(
        b"!MITSPIELER\n\xc2\xa7\nJ\xf6rg\n\xce\xa9\nB\n!END\n",
        "s2c",
        "MITSPIELER",
        {"namen": ["§", "Jörg", "Ω", "B"]},
        (("charset", 16, 1),),
    ),
    # Unusual values.
    Case(
        paket("!KONTO|-74335|0|!END"),
        "s2c",
        "KONTO",
        {"konto": -74335, "stock": 0},
        (("unusual-value", 7, 6),),
    ),
    Case(paket("!ENDE|-5|!END"), "s2c", "ENDE", {"konto": -5}, (("unusual-value", 6, 2),)),
    Case(paket("!KONTO|007|!END"), "s2c", "KONTO", {"konto": 7}),
    Case(paket("!NAME|A\0B|!END"), "c2s", "NAME", {"name": "A\0B"}, (("unusual-value", 6, 3),)),
    Case(paket("!NAME|\x1b[31m|!END"), "c2s", "NAME", {"name": "\x1b[31m"}, (("unusual-value", 6, 5),)),
    Case(
        paket("!MITSPIELER|A|B|\r\rC|D|!END"),
        "s2c",
        "MITSPIELER",
        {"namen": ["A", "B", "\r\rC", "D"]},
        (("unusual-value", 16, 3),),
    ),
    # What peers pass over.
    Case(paket("!DRAN|0|x|!END"), "s2c", "DRAN", {"dran": 0}, (("surplus-fields", 8, 1),)),
    Case(paket("!DRAN|0|x|y|z|!END", "\r\n"), "s2c", "DRAN", {"dran": 0}, (("surplus-fields", 10, 7),)),
    Case(paket("!ID|1||!END"), "s2c", "ID", {"id": 1}, (("surplus-fields", 6, 0),)),
    Case(
        paket("!KONTO|1000|0|7|!END"),
        "s2c",
        "KONTO",
        {"konto": 1000, "stock": 0},
        (("surplus-fields", 14, 1),),
    ),
    Case(paket("!BEENDEN|bye|!END"), "s2c", "BEENDEN", {}, (("surplus-fields", 9, 3),)),
    Case(paket("!BEENDEN|§|bye|!END"), "c2s", "BEENDEN", {"nichts": "§"}, (("surplus-fields", 12, 3),)),
    Case(paket("!HOCHZEIT|x|!END"), "s2c", "HOCHZEIT", {}, (("surplus-fields", 10, 1),)),
    Case(paket("!NAME|Anna|Berta|!END"), "c2s", "NAME", {"name": "Anna"}, (("surplus-fields", 11, 5),)),
    Case(paket("!NAME|Anna|!ENDE|!END"), "c2s", "NAME", {"name": "Anna"}, (("surplus-fields", 11, 5),)),
    Case(
        paket("!HOCHZEIT|NEIN|HERZ|SAU|!END"),
        "c2s",
        "HOCHZEIT",
        {"nimmt": "NEIN"},
        (("surplus-fields", 15, 8),),
    ),
    Case(paket("!HOCHZEIT|JA|x|!END"), "c2s", "HOCHZEIT", {"nimmt": "JA"}, (("surplus-fields", 13, 1),)),
    Case(
        paket("!KARTE|HERZ|SAU|NEUN|!END"),
        "c2s",
        "KARTE",
        {"karte": "HERZ SAU"},
        (("surplus-fields", 16, 4),),
    ),
]
"""Real peers take these; they get a note at the most."""

IGNORED = [
    Case(b"\n", "c2s", None, {}, (("empty-line", 0, 0),)),
    Case(b"\r\n", "s2c", None, {}, (("empty-line", 0, 0),)),
    Case(b"!END\n", "c2s", None, {}, (("stray-end", 0, 4),)),
    Case(b"!END\r\n", "s2c", None, {}, (("stray-end", 0, 4),)),
]
"""Lines that say nothing, and that real peers pass over."""

_SPIEL = f"!MODEL|!SPIEL|{CARDS}"


_UP_TO_THE_TABLE = {field: shown("SPIEL")[field] for field in ("flag", "spielerhand")}


def _replaced(old: str, new: str, text: str = _SPIEL) -> bytes:
    assert text.count(old) == 1
    return paket(text.replace(old, new))


MALFORMED = [
    # Values.
    Case(paket("!DRAN|4|!END"), "s2c", "DRAN", {}, (("bad-field", 6, 1),)),
    Case(paket("!DRAN| 0|!END"), "s2c", "DRAN", {}, (("bad-field", 6, 2),)),
    Case(paket("!DRAN||!END"), "s2c", "DRAN", {}, (("bad-field", 6, 0),)),
    Case(paket("!DRAN||0|!END"), "s2c", "DRAN", {}, (("bad-field", 6, 0),)),
    Case(paket("!ID|eins|!END"), "s2c", "ID", {}, (("bad-field", 4, 4),)),
    Case(paket("!SPIELT|0|5|!END"), "s2c", "SPIELT", {"spieler": 0}, (("bad-field", 10, 1),)),
    Case(paket("!SIEGER|14|4|!END"), "s2c", "SIEGER", {}, (("bad-field", 8, 2),)),
    Case(paket("!SIEGER|1|5|!END"), "s2c", "SIEGER", {"spieler": 1}, (("bad-field", 10, 1),)),
    Case(paket("!KONTO|1.000|0|!END"), "s2c", "KONTO", {}, (("bad-number", 7, 5),)),
    Case(paket("!KONTO|1000|viel|!END"), "s2c", "KONTO", {"konto": 1000}, (("bad-number", 12, 4),)),
    Case(paket("!ENDE|١٢|!END"), "s2c", "ENDE", {}, (("bad-number", 6, 4),)),
    Case(paket("!MODUS|SOLOHERZ|!END"), "s2c", "MODUS", {}, (("bad-field", 7, 8),)),
    Case(paket("!BESTESSPIEL||!END"), "s2c", "BESTESSPIEL", {}, (("bad-field", 13, 0),)),
    Case(paket("!GEKLOPFT|NEIN|NEIN|NO|NEIN|!END"), "s2c", "GEKLOPFT", {}, (("bad-field", 20, 2),)),
    Case(paket("!KONTRA|JA|ja|NEIN|NEIN|!END", "\r\n"), "s2c", "KONTRA", {}, (("bad-field", 13, 2),)),
    Case(paket("!ERSTE3|Ja|!END"), "c2s", "ERSTE3", {}, (("bad-field", 8, 2),)),
    Case(paket("!KONTRA|TRUE|!END"), "c2s", "KONTRA", {}, (("bad-field", 8, 4),)),
    Case(paket("!SPIELSTDU|SAUSPIEL|!END"), "c2s", "SPIELSTDU", {}, (("bad-field", 11, 8),)),
    Case(paket("!SPIELSTDU|WENZ |!END"), "c2s", "SPIELSTDU", {}, (("bad-field", 11, 5),)),
    Case(paket("!HOCHZEIT|JAA|!END"), "c2s", "HOCHZEIT", {}, (("bad-field", 10, 3),)),
    Case(paket("!HOCHZEIT|JA|HERZ|SAUU|!END"), "c2s", "HOCHZEIT", {"nimmt": "JA"}, (("bad-field", 18, 4),)),
    Case(paket("!HOCHZEIT|JA|HERZ|!END"), "c2s", "HOCHZEIT", {"nimmt": "JA"}, (("missing-field", 18, 4),)),
    Case(paket("!HOCHZEIT|JA|HERZ|§|!END"), "c2s", "HOCHZEIT", {"nimmt": "JA"}, (("bad-field", 18, 2),)),
    Case(paket("!KARTE|HERZ|DAME|!END"), "c2s", "KARTE", {}, (("bad-field", 12, 4),)),
    Case(paket("!KARTE|PIK|SAU|!END"), "c2s", "KARTE", {}, (("bad-field", 7, 3),)),
    Case(paket("!KARTE|SAU|HERZ|!END"), "c2s", "KARTE", {}, (("bad-field", 7, 3),)),
    Case(paket("!KARTE|HERZ|KÖNIG|!END"), "c2s", "KARTE", {}, (("bad-field", 12, 6),)),
    Case(paket("!KARTE|EICHEL|§|!END"), "c2s", "KARTE", {}, (("bad-field", 14, 2),)),
    Case(paket("!KARTE|§|SAU|!END"), "c2s", "KARTE", {}, (("bad-field", 10, 3),)),
    # Fields that are not there.
    Case(paket("!DRAN|!END"), "s2c", "DRAN", {}, (("missing-field", 6, 4),)),
    Case(paket("!NAME|!END"), "c2s", "NAME", {}, (("missing-field", 6, 4),)),
    Case(paket("!MITSPIELER|A|B|C|!END"), "s2c", "MITSPIELER", {}, (("missing-field", 18, 4),)),
    Case(paket("!GEKLOPFT|NEIN|NEIN|NEIN|!END"), "s2c", "GEKLOPFT", {}, (("missing-field", 25, 4),)),
    Case(paket("!SPIELT|0|!END"), "s2c", "SPIELT", {"spieler": 0}, (("missing-field", 10, 4),)),
    Case(paket("!SIEGER|0|!END"), "s2c", "SIEGER", {"spieler": 0}, (("missing-field", 10, 4),)),
    Case(paket("!KONTO|!END"), "s2c", "KONTO", {}, (("missing-field", 7, 4),)),
    Case(paket("!KARTE|HERZ|!END"), "c2s", "KARTE", {}, (("missing-field", 12, 4),)),
    Case(paket("!HOCHZEIT|!END"), "c2s", "HOCHZEIT", {}, (("missing-field", 10, 4),)),
    # MODELs.
    Case(
        _replaced("ZEHN|EICHEL|K", "ZEHN|EICHLE|K"),
        "c2s",
        "MODEL",
        {"flag": "SPIEL"},
        (("bad-field", 60, 6),),
    ),
    Case(_replaced("§|GRAS|NEUN", "§|GRAS|ACHT"), "s2c", "MODEL", _UP_TO_THE_TABLE, (("bad-field", 90, 4),)),
    Case(_replaced("|HERZ|KONIG|", "|HERZ|§|"), "s2c", "MODEL", _UP_TO_THE_TABLE, (("bad-field", 100, 2),)),
    Case(_replaced("!SPIEL", "SPIEL"), "s2c", "MODEL", {}, (("bad-field", 7, 5),)),
    Case(_replaced("!SPIEL", "!SPIELE"), "s2c", "MODEL", {}, (("bad-field", 7, 7),)),
    Case(_replaced("!SPIEL", "!UPDATE"), "c2s", "MODEL", {}, (("bad-field", 7, 7),)),
    Case(_replaced("!SPIEL", "!ERSTE3"), "c2s", "MODEL", {}, (("bad-field", 7, 7),)),
]
"""Messages with one error each, for which the sender is to blame. Fields before the error are decoded."""

NO_PAKET = [
    Case(paket("!DRNA|0|!END"), "s2c", None, {}, (("unknown-flag", 0, 5),)),
    Case(paket("DRAN|0|!END"), "s2c", None, {}, (("unknown-flag", 0, 4),)),
    Case(paket("!dran|0|!END"), "s2c", None, {}, (("unknown-flag", 0, 5),)),
    Case(paket("!DRAN |0|!END"), "s2c", None, {}, (("unknown-flag", 0, 6),)),
    Case(paket(" !DRAN|0|!END"), "s2c", None, {}, (("unknown-flag", 0, 6),)),
    Case(paket("! DRAN|0|!END"), "s2c", None, {}, (("unknown-flag", 0, 6),)),
    Case(paket("!DRAN\0|0|!END"), "s2c", None, {}, (("unknown-flag", 0, 6),)),
    Case(paket("!ERSTE|NEIN|!END"), "c2s", None, {}, (("unknown-flag", 0, 6),)),
    Case(paket("!Karte|HERZ|SAU|!END"), "c2s", None, {}, (("unknown-flag", 0, 6),)),
    Case(paket("\ufeff!NAME|Anna|!END"), "c2s", None, {}, (("byte-order-mark", 0, 3),)),
    Case("!NAME\nAnna\n!END\n".encode("utf-16-le"), "c2s", None, {}, (("utf-16", 0, 10),)),
    Case("!NAME\nAnna\n!END\n".encode("utf-16-be"), "c2s", None, {}, (("utf-16", 0, 11),)),
    Case(paket("0|!END"), "s2c", None, {}, (("stray-lines", 0, 1),)),
    Case(paket("NEIN|!END"), "c2s", None, {}, (("stray-lines", 0, 4),)),
    Case(paket("§"), "c2s", None, {}, (("stray-lines", 0, 2),)),
]
"""Unrecognizable messages; each is an error of its sender."""

UNKNOWN = [
    Case(paket("!CHAT|hallo|!END"), "c2s", None, {}, (("unknown-flag", 0, 5),)),
    Case(paket("!GEKLOPFT|JA|JA|JA|JA|!END"), "c2s", None, {}, (("unknown-flag", 0, 9),)),
    Case(paket("!PING|!END"), "s2c", None, {}, (("unknown-flag", 0, 5),)),
]
"""Flags that are like none: real peers pass over them, so it is a note."""
