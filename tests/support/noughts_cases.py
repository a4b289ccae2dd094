"""Table of lines of noughts and crosses with fields and diagnostics, with the exact bytes of each."""

from __future__ import annotations

from cases import Case

SOUND = [
    Case(b"HELLO alice\r\n", "c2s", "HELLO", {"name": "alice"}),
    Case("HELLO Jörg\n".encode(), "c2s", "HELLO", {"name": "Jörg"}),
    Case(b"WELCOME\r\n", "s2c", "WELCOME", {}),
    Case(b"BYE\r\n", "c2s", "BYE", {}),
    Case(b"PUT 5\r\n", "c2s", "PUT", {"square": "5"}),
    Case(b"REFUSED taken\r\n", "s2c", "REFUSED", {"why": "taken"}),
    Case(b"START alice bob\r\n", "s2c", "START", {"x": "alice", "o": "bob"}),
    Case(b"MARK alice 5\r\n", "s2c", "MARK", {"name": "alice", "square": "5"}),
    Case(b"WON alice\r\n", "s2c", "WON", {"name": "alice"}),
    Case(b"DRAW\r\n", "s2c", "DRAW", {}),
]

MALFORMED = [
    Case(b"hello alice\r\n", "c2s", None, {}, (("unknown-message", 0, 5),)),
    Case(b"MARK alice 5\r\n", "c2s", None, {}, (("unknown-message", 0, 4),)),
    Case(b"HELLO J\xf6rg\r\n", "c2s", "HELLO", {"name": "J\ufffdrg"}, (("not-utf-8", 7, 1),)),
    Case(b"HELLO\r\n", "c2s", "HELLO", {}, (("missing-field", 5, 0),)),
    Case(b"HELLO \r\n", "c2s", "HELLO", {}, (("missing-field", 6, 0),)),
    Case(b"PUT 10\r\n", "c2s", "PUT", {}, (("bad-field", 4, 2),)),
    Case(b"BYE bye\r\n", "c2s", "BYE", {}, (("surplus-fields", 3, 4),)),
    Case(b"MARK alice\r\n", "s2c", "MARK", {"name": "alice"}, (("missing-field", 10, 0),)),
    Case("MARK Jörg fünf\r\n".encode(), "s2c", "MARK", {"name": "Jörg"}, (("bad-field", 11, 5),)),
]
"""Messages with one error each, for which the sender is to blame."""
