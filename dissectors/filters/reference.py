"""The reference of the filter language: each of its words and signs in a sentence, and examples."""

from __future__ import annotations

NAMES: dict[str, str] = {
    "number, #, frame.number": "what stands under #: a message's number, an event's own in events",
    "time, frame.time_relative": "seconds since the session began",
    "session, game, event, stream": "the number of its session, its game, its event, its stream",
    "msg, name": "the name of the message",
    "altered": "what Kiebitz did to it as it passed: drop, change, insert, double, hold, delay and so on",
    "kind": "the kind of the event, such as rolled",
    "player, actor": "who acts in the event",
    "named": "everybody and everything that the event names: who acts, who loses, who is robbed",
    "who": "the client that spoke or was spoken to: what it calls itself, or its address",
    "client, server": "an address with its port",
    "dir": "c2s from the client to the server, or s2c back",
    "transport, tcp, udp": "what carries it; tcp and udp stand alone, transport is compared",
    "protocol": "the name of the protocol, which stands alone as well",
    "offset, length": "where it begins in its direction of the stream, and how many bytes it has",
    "diag": "something is wrong with it",
    "diag.severity": "error, warning or note",
    "diag.group, diag.code": "malformed, rule and so on; the word in brackets",
    "diag.text, diag.expected, diag.clause": "what check says of it",
    "diag.blame": "client, server, network, kiebitz or unknown",
    "diag.offset, diag.length": "the bytes that are meant",
}
"""The language's own names; those with one description share a key."""

FIELDS: dict[str, str] = {
    "dice": "a field of a message, or of an event's data, in whatever protocol",
    "maexchen": "a protocol",
    "maexchen.dice": "a field in this protocol alone; kiebitz protocols NAME lists them",
    "maexchen.ROLLED": "a message",
    "maexchen.ROLLED.dice": "a field of this message",
    "catan.Handel_id": 'a name with a blank has an underscore, or stands in quotes: catan."Handel id"',
    "resources.Holz": "inside a field; a list stands for its parts, Wurf[0] is the first of them",
}
"""Names of the protocols, by way of example."""

OPERATORS: dict[str, str] = {
    "== eq, != ne": "equal; there, and not equal",
    "< lt, <= le, > gt, >= ge": "in order",
    "in {1, 2}": "one of these",
    "contains": "has this text in it",
    "matches": "has what a regular expression of Python's says",
    "&& and, || or, ! not, ( )": "both, either, the opposite; ! binds first, then &&",
    "a name alone": "it is there",
    "\"text\" 'text' 12 1.5 true false": "values; in text also \\n \\r \\t \\\\ \\\" \\' \\x41 \\u00e4",
}

EXAMPLES: dict[str, str] = {
    'msg == "ROLL" && stream == 3': "messages by name, of one stream",
    'kind in {"rolled", "lost"} && time < 60': "events of the first minute",
    'named == "alice" && !(player == "alice")': "what others do to alice",
    'who == "alice" and dir == "c2s"': "what alice's program says",
    'diag.severity == "error" && diag.blame == "client"': "what clients do wrong",
    "number >= 30 && number <= 40": "from #30 to #40",
    'dice matches "^6" || points > 8': "fields by their values",
}
