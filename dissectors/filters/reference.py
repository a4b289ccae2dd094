"""The reference of the filter language: each of its words and signs in a sentence, and examples."""

from __future__ import annotations

NAMES: dict[str, str] = {
    "number, #, frame.number": "the number in the column #: of a message or, in events, of the event",
    "time, frame.time_relative": "seconds since the beginning of the session",
    "session, game, event, stream": "the number of its session, game, event or stream",
    "msg, name": "the name of the message",
    "altered": "its alteration by Kiebitz: drop, change, insert, double, hold, delay and so on",
    "kind": "the kind of the event, such as rolled",
    "player, actor": "the acting player of the event",
    "named": "any name in the event: who acts, who loses, who is robbed",
    "who": "the client that sent or received it: its player's name, or its address",
    "client, server": "an address with its port",
    "dir": "the direction: c2s from the client to the server, or s2c back",
    "transport, tcp, udp": "the transport protocol; tcp and udp are used alone, transport in comparisons",
    "protocol": "the name of the protocol, which can also be used alone",
    "offset, length": "its position in its direction of the stream, and its length, in bytes",
    "diag": "it has a diagnostic",
    "diag.severity": "error, warning or note",
    "diag.group, diag.code": "malformed, rule and so on; the word in brackets",
    "diag.text, diag.expected, diag.clause": "texts of the diagnostic, as in check",
    "diag.blame": "client, server, network, kiebitz or unknown",
    "diag.offset, diag.length": "the bytes to which the diagnostic refers",
}
"""The language's own names; those with one description share a key."""

FIELDS: dict[str, str] = {
    "dice": "a field of a message, or of an event's data, in any protocol",
    "maexchen": "a protocol",
    "maexchen.dice": "a field in this protocol only; kiebitz protocols NAME lists them",
    "maexchen.ROLLED": "a message",
    "maexchen.ROLLED.dice": "a field of this message",
    "catan.Handel_id": 'a name with a blank has an underscore, or is quoted: catan."Handel id"',
    "resources.Holz": "a part of a field; a list means any of its parts, Wurf[0] the first one",
}
"""Examples of names of the protocols."""

OPERATORS: dict[str, str] = {
    "== eq, != ne": "equal; present, and not equal",
    "< lt, <= le, > gt, >= ge": "in order",
    "in {1, 2}": "one of these values",
    "contains": "contains this text",
    "matches": "matches a regular expression of Python",
    "&& and, || or, ! not, ( )": "both, either, the opposite; ! binds first, then &&",
    "a name alone": "it is present",
    "\"text\" 'text' 12 1.5 true false": "values; in text also \\n \\r \\t \\\\ \\\" \\' \\x41 \\u00e4",
}

EXAMPLES: dict[str, str] = {
    'msg == "ROLL" && stream == 3': "messages by name, of one stream",
    'kind in {"rolled", "lost"} && time < 60': "events of the first minute",
    'named == "alice" && !(player == "alice")': "other players' actions that affect alice",
    'who == "alice" and dir == "c2s"': "messages of alice's client",
    'diag.severity == "error" && diag.blame == "client"': "errors of clients",
    "number >= 30 && number <= 40": "from #30 to #40",
    'dice matches "^6" || points > 8': "fields by their values",
}
