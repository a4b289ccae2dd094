"""Table of Knobeln datagrams with their fields and diagnostics, with the exact bytes of each."""

from __future__ import annotations

from cases import Case

SOUND = [
    Case(b"HALLO alice", "c2s", "HALLO", {"name": "alice"}),
    Case("HALLO Jörg".encode(), "c2s", "HALLO", {"name": "Jörg"}),
    Case(b"WILLKOMMEN", "s2c", "WILLKOMMEN", {}),
    Case(b"WURF alice 6", "s2c", "WURF", {"name": "alice", "zahl": 6}),
]

MALFORMED = [
    Case(b"hallo alice", "c2s", None, {}, (("unknown-message", 0, 5),)),
    Case(b"WURF alice 6", "c2s", None, {}, (("unknown-message", 0, 4),)),
    Case(b"HALLO J\xf6rg", "c2s", "HALLO", {"name": "J\ufffdrg"}, (("not-utf-8", 7, 1),)),
    Case(b"HALLO", "c2s", "HALLO", {}, (("missing-field", 5, 0),)),
    Case(b"HALLO ", "c2s", "HALLO", {}, (("missing-field", 6, 0),)),
    Case(b"HALLO  alice", "c2s", "HALLO", {}, (("missing-field", 6, 0),)),
    Case(b"HALLO alice bob", "c2s", "HALLO", {"name": "alice"}, (("surplus-fields", 11, 4),)),
    Case(b"WURF alice", "s2c", "WURF", {"name": "alice"}, (("missing-field", 10, 0),)),
    Case("WURF Jörg sechs".encode(), "s2c", "WURF", {"name": "Jörg"}, (("bad-number", 11, 5),)),
]
"""Messages with one error each, for which the sender is to blame."""
