"""By which cases of `kiebitz probe` the faults planted in `peers/` are found, and why some are not.

In a row's `cases` a word without `*` is tried and may find the fault; one with `*` names others that find it,
too, where they are tried. The row's program fails no other case.
"""

from __future__ import annotations

from typing import NamedTuple

PLAYED = ("game", "*/said")
"""What is looked at in a game without anything odd."""

CONTROLS = {
    "maexchen-server": "REGISTER/whole JOIN/whole ROLL/whole ANNOUNCE/spelling/surplus-field"
    " ROLL/token/nobodys-token unknown-message empty",
    "maexchen-player": "ROUND_STARTING/whole YOUR_TURN/whole ROLLED/whole ANNOUNCED/doubled unknown-message"
    " ROUND_STARTING/token/nobodys-token",
    "schafkopf-server": "ERSTE3/bytewise ERSTE3/cut/close NAME/name/left-out unknown-message come-and-stay",
    "schafkopf-player": "MODEL/bytewise MODUS/whole NAME/name/left-out DRAN/cut/close unknown-message empty",
    "catan-server": "Würfeln/bytewise Zug_beenden/whole Chatnachricht_senden/whole Bauen/cut/close"
    " Bauen/Typ/left-out unknown-message come-and-go/close come-and-stay",
    "catan-player": "Statusupdate/bytewise Spiel_gestartet/whole Würfelwurf/whole Statusupdate/cut/close"
    " unknown-message empty",
    "okey-server": "LPLA/bytewise JLOB/whole DRAW/whole PUTT/cut/close LOGI/nickname/left-out unknown-message"
    " empty come-and-stay",
    "okey-player": "STRT/bytewise +DRAW/whole PING/whole STAT/cut/close +LOGI/actualname/left-out"
    " unknown-message empty",
    "cgml-server": "licite/bytewise newgroup.accept/whole playcard/whole licite/cut/close rubbish"
    " connect.active/game/left-out come-and-stay",
    "cgml-player": "newgame/whole licite.ask/bytewise playcard.ask/whole round/cut/close"
    " connect/game/left-out unknown-message empty",
}
"""By program cases of different kinds which each row tries, besides those that are to find its fault."""


class Found(NamedTuple):
    """A planted fault, and the cases that find it."""

    peer: str
    fault: str
    cases: str
    alone: bool = False
    """Whether it keeps other cases from their places: then they would only be waited for."""

    @property
    def is_in_play(self) -> bool:
        """Whether it shows in a game in which nothing odd is done."""
        return all(case == "game" or case.endswith("/said") for case in self.cases.split())


_ENDED = "*/cut/close */cut/reset */cut/half-close"
"""Cases in which a player goes in the midst of a message."""

_BAD_UTF8 = "rubbish */latin-1"

FOUND = (
    Found("maexchen-server", "dies-on-bad-utf8", f"REGISTER/name/latin-1 {_BAD_UTF8}"),
    Found("maexchen-server", "dies-on-an-unknown-word", "unknown-message empty rubbish */byte-order-mark"),
    Found("maexchen-server", "dies-on-a-missing-token", "JOIN/token/left-out ROLL/token/left-out"),
    Found(
        "maexchen-server",
        "dies-on-odd-dice",
        "ANNOUNCE/dice/out-of-range ANNOUNCE/dice/empty ANNOUNCE/dice/*",
    ),
    Found(
        "maexchen-server",
        "answers-the-first-client",
        "REGISTER/whole REGISTER/doubled REGISTER/spelling/* REGISTER/name/*",
    ),
    Found("maexchen-server", "ends-lines", "game REGISTER/whole REGISTER/*"),
    Found("maexchen-server", "waits-for-ever", "ROLL/lost SEE/cut */late ROLL/token/* SEE/token/*"),
    Found("maexchen-server", "takes-any-token", "ROLL/token/nobodys-token ROLL/token/others-token */token/*"),
    Found("maexchen-server", "takes-any-dice", "ANNOUNCE/dice/one-die ANNOUNCE/dice/empty ANNOUNCE/dice/*"),
    Found("maexchen-server", "counts-a-loss-twice", "SCORE/said"),
    Found("maexchen-server", "blames-who-saw", "PLAYER_LOST/said"),
    Found("maexchen-player", "dies-on-bad-utf8", f"ROUND_STARTING/token/latin-1 {_BAD_UTF8}"),
    Found("maexchen-player", "dies-on-an-unknown-word", "unknown-message rubbish"),
    Found("maexchen-player", "ends-lines", "*/said"),
    Found("maexchen-player", "keeps-its-token", "*/said"),
    Found("maexchen-player", "forgets-the-token", "*/said"),
    Found("maexchen-player", "is-silent-after-the-roll", "ROLLED/whole ROLLED/doubled ROLLED/spelling/*"),
    Found("maexchen-player", "announces-no-dice", "ANNOUNCE/said"),
    Found("maexchen-player", "answers-twice", "ANNOUNCE/said"),
    Found("schafkopf-server", "dies-on-bad-utf8", f"NAME/name/latin-1 {_BAD_UTF8}"),
    Found(
        "schafkopf-server", "dies-on-a-missing-field", "NAME/name/left-out ERSTE3/klopft/left-out */left-out"
    ),
    Found(
        "schafkopf-server",
        "dies-on-an-unknown-card",
        "MODEL/spielerhand.wert/unknown MODEL/tisch.farbe/unknown MODEL/*",
    ),
    Found("schafkopf-server", "waits-for-the-rest", "come-and-stay"),
    Found(
        "schafkopf-server", "waits-for-who-is-gone", f"ERSTE3/cut/close MODEL/cut/reset {_ENDED}", alone=True
    ),
    Found("schafkopf-server", "closes-all", "SPIELSTDU/modus/unknown ERSTE3/klopft/unknown */left-out"),
    Found("schafkopf-server", "ignores-half-close", "ERSTE3/cut/half-close MODEL/cut/half-close", alone=True),
    Found("schafkopf-server", "writes-latin-1", "MODEL/said */cut/close"),
    Found("schafkopf-server", "numbers-all-alike", "GEKLOPFT/said */cut/close"),
    Found("schafkopf-server", "shows-a-hand", "MODEL/said"),
    Found("schafkopf-server", "gives-tricks-to-the-first", "SIEGER/said DRAN/said"),
    Found("schafkopf-server", "names-the-losers", "SIEGER/said"),
    Found("schafkopf-player", "dies-on-bad-utf8", f"NAME/name/latin-1 MITSPIELER/namen/latin-1 {_BAD_UTF8}"),
    Found("schafkopf-player", "dies-on-an-unknown-flag", "unknown-message */utf-16"),
    Found("schafkopf-player", "forgets-end", "MODUS/whole MODUS/*", alone=True),
    Found("schafkopf-player", "knocks-undecided", "ERSTE3/said"),
    Found("schafkopf-player", "bids-what-there-is-not", "SPIELSTDU/said"),
    Found("schafkopf-player", "does-not-follow-suit", "MODEL/said"),
    Found("schafkopf-player", "plays-what-it-has-not", "MODEL/said"),
    Found("schafkopf-player", "keeps-its-card", "MODEL/said"),
    Found("schafkopf-player", "plays-twice", "MODEL/said"),
    Found("catan-server", "dies-on-bad-utf8", f"Chatnachricht_senden/Nachricht/latin-1 {_BAD_UTF8}"),
    Found("catan-server", "dies-on-broken-json", "rubbish Bauen/Typ/latin-1 */latin-1 */utf-16"),
    Found(
        "catan-server",
        "dies-on-a-missing-attribute",
        "Chatnachricht_senden/Nachricht/left-out Bauen/Ort/left-out */left-out",
    ),
    Found("catan-server", "dies-on-an-unknown-message", "unknown-message"),
    Found("catan-server", "waits-for-the-rest", "come-and-stay"),
    Found(
        "catan-server",
        "closes-all",
        "unknown-message Bauen/Typ/unknown rubbish */left-out */unknown */rule/*",
    ),
    Found("catan-server", "ignores-half-close", "Würfeln/cut/half-close Bauen/cut/half-close */cut/close"),
    Found("catan-server", "tells-nobody-who-is-gone", f"Würfeln/cut/close Bauen/cut/reset {_ENDED}"),
    Found(
        "catan-server",
        "refuses-in-silence",
        "Bauen/Ort/apart Würfeln/twice */left-out */unknown */from-other */rule/*",
    ),
    Found(
        "catan-server",
        "confirms-nothing",
        "Spieler/whole Chatnachricht_senden/whole */whole */bytewise",
        alone=True,
    ),
    Found("catan-server", "answers-only-who-asks", "Chatnachricht_senden/whole"),
    Found("catan-server", "lets-anybody-move", "Würfeln/from-other Zug_beenden/from-other */from-other"),
    Found("catan-server", "builds-without-paying", "Zug_beenden/rule/cannot-pay"),
    Found("catan-server", "builds-anywhere", "Bauen/Ort/apart"),
    Found("catan-server", "charges-too-much", "Kosten/said"),
    Found("catan-server", "trades-cheaply", "Zug_beenden/rule/trade-rate/asked"),
    Found("catan-server", "lets-few-be-discarded", "Karten_abgeben/rule/wrong-count"),
    Found("catan-server", "writes-latin-1", "game"),
    Found("catan-player", "dies-on-bad-utf8", f"rubbish Statusupdate/Spieler/latin-1 {_BAD_UTF8}"),
    Found("catan-player", "dies-on-broken-json", "rubbish */latin-1 */utf-16 empty"),
    Found("catan-player", "dies-on-an-unknown-message", "unknown-message"),
    Found("catan-player", "dies-when-refused", "Fehler/whole Fehler/Meldung/left-out Fehler/*"),
    Found("catan-player", "writes-latin-1", "game"),
    Found("catan-player", "wants-an-odd-colour", "Spieler/said"),
    Found("catan-player", "forgets-what-to-build", "Bauen/said"),
    Found("catan-player", "builds-between-two-fields", "Bauen/said"),
    Found("catan-player", "builds-without-cards", "Bauen/said Entwicklungskarte_kaufen/said"),
    Found("catan-player", "rolls-twice", "Würfeln/said */said"),
    Found("catan-player", "ends-others-turns", "Zug_beenden/said"),
    Found("catan-player", "pays-too-little", "Seehandel/said"),
    Found("catan-player", "accepts-another-offer", "Handel_annehmen/said"),
    Found("okey-server", "dies-on-bad-utf8", f"LOGI/nickname/latin-1 {_BAD_UTF8}"),
    Found("okey-server", "dies-on-an-empty-line", "empty */joined"),
    Found(
        "okey-server",
        "dies-on-a-missing-argument",
        "LOGI/nickname/left-out JLOB/n/left-out */left-out */cut/*",
    ),
    Found("okey-server", "dies-on-a-bad-number", "JLOB/n/other-type JLOB/n/*"),
    Found("okey-server", "dies-on-an-unknown-word", "unknown-message rubbish */utf-16"),
    Found("okey-server", "waits-for-the-rest", "come-and-stay LOGI/cut/silence */cut/silence"),
    Found("okey-server", "waits-for-who-is-gone", f"DRAW/cut/close PUTT/cut/reset {_ENDED}"),
    Found("okey-server", "closes-all", "empty"),
    Found("okey-server", "ignores-half-close", "DRAW/cut/half-close PUTT/cut/half-close */cut/close"),
    Found("okey-server", "forgets-nobody", f"DRAW/cut/reset PUTT/cut/reset {_ENDED}"),
    Found("okey-server", "answers-twice", "+LPLA/said"),
    Found("okey-server", "whispers-to-all", "CATC.w/whisperrecipient/nobodys-name"),
    Found("okey-server", "escapes-nothing", "+LLPL/said STAT/said"),
    Found("okey-server", "deals-too-little", "STRT/said"),
    Found("okey-server", "lets-anybody-draw", "PUTT/rule/must-put DRAW/twice DRAW/from-other"),
    Found("okey-server", "shows-what-is-drawn", "+DRAW/said"),
    Found("okey-server", "takes-any-tile", "PUTT/rule/not-held"),
    Found("okey-server", "takes-any-deck", "PUTT/rule/wrong-deck/surplus PUTT/rule/wrong-deck/lacking"),
    Found("okey-server", "lets-anybody-win", "+PUTT/said"),
    Found("okey-player", "dies-on-bad-utf8", f"+LOGI/actualname/latin-1 {_BAD_UTF8}"),
    Found("okey-player", "dies-on-quoted-chat", "CATS/msg/markup CATS/sender/markup */markup"),
    Found("okey-player", "answers-no-ping", "PING/whole PING/bytewise PING/*", alone=True),
    Found("okey-player", "writes-in-lower-case", "game"),
    Found("okey-player", "puts-what-it-has-not", "PUTT/said"),
    Found("okey-player", "keeps-its-tile", "PUTT/said"),
    Found("okey-player", "sends-no-deck", "PUTT/said"),
    Found("cgml-server", "dies-on-bad-utf8", f"connect.active/player/latin-1 {_BAD_UTF8}"),
    Found("cgml-server", "dies-on-broken-xml", "rubbish */latin-1 */utf-16 */left-out"),
    Found(
        "cgml-server", "dies-on-a-missing-attribute", "connect.active/status/left-out licite/type/left-out"
    ),
    Found("cgml-server", "waits-for-the-rest", "come-and-stay"),
    Found("cgml-server", "waits-for-who-is-gone", f"licite/cut/close playcard/cut/reset {_ENDED}"),
    Found(
        "cgml-server",
        "keeps-groups-of-who-is-gone",
        f"licite/cut/close playcard/cut/reset {_ENDED}",
        alone=True,
    ),
    Found("cgml-server", "ignores-half-close", "licite/cut/half-close playcard/cut/half-close", alone=True),
    Found("cgml-server", "keeps-pauses-to-itself", "pause.start/whole"),
    Found("cgml-server", "deals-a-card-twice", "dial/said playcard/said round/said"),
    Found("cgml-server", "gives-tricks-to-the-first", "round/said"),
    Found("cgml-server", "pays-too-much", "result/said"),
    Found("cgml-player", "dies-on-bad-utf8", f"newgame/player/latin-1 connect/game/latin-1 {_BAD_UTF8}"),
    Found("cgml-player", "dies-on-broken-xml", "rubbish */latin-1 */utf-16"),
    Found("cgml-player", "dies-on-an-unknown-element", "unknown-message"),
    Found("cgml-player", "leaves-elements-open", "playcard.ask/whole playcard.ask/*", alone=True),
    Found("cgml-player", "repeats-the-bid", "licite/said"),
    Found("cgml-player", "bids-what-there-is-not", "licite/said"),
    Found("cgml-player", "discards-too-few", "playcard/said"),
    Found("cgml-player", "names-no-trumps", "gametype/said"),
    Found("cgml-player", "lowers-the-level", "flek/said"),
    Found("cgml-player", "does-not-follow", "playcard/said"),
    Found("cgml-player", "plays-what-it-has-not", "playcard/said"),
    Found("cgml-player", "answers-twice", "playcard/said"),
)

_LEFT_OPEN = "the specification has no word on what is done then, so the case is INFORMATIONAL"
_DIALECT = "real programs write so, and it is told as a note"
_RECOMMENDED = "the specification only recommends it, so the case is NON-STRICT"
_NOT_COMPARED = "each message is right by itself, and what others are told is not compared with it"
_NO_RULE = "no rule of the table is broken that is looked at in play"
_UNSTEADY = "a newcomer is let in between two pieces of the long message"
_NO_PLACE = "no case leads to the place where it shows"

NOT_FOUND: dict[str, dict[str, str]] = {
    "maexchen-server": {
        "gives-away-names": "it takes a client at another IP address, and a probe has one",
        "forgets-the-new-port": "REGISTER is answered rightly, and where later messages go is not looked at",
        "confirms-twice": "datagrams may come twice, and both say the same",
        "takes-any-address": _LEFT_OPEN,
        "takes-used-tokens": _LEFT_OPEN,
        "shows-rolls": _NOT_COMPARED,
        "lets-low-dice-pass": _NO_PLACE,
    },
    "schafkopf-server": {
        "is-quadratic": _UNSTEADY,
        "takes-any-card": _LEFT_OPEN,
        "lets-suits-be": _LEFT_OPEN,
        "takes-any-bid": _LEFT_OPEN,
        "takes-any-flag": _LEFT_OPEN,
        "takes-turn-from-anyone": _LEFT_OPEN,
        "ends-cards-with-end": _DIALECT,
        "tells-turns-twice": _NO_RULE,
    },
    "schafkopf-player": {
        "dies-without-money": "an account below zero is a sound one, and no case has another sound value",
    },
    "catan-server": {
        "is-quadratic": _UNSTEADY,
        "confirms-twice": _NO_RULE,
        "forgets-line-ends": _DIALECT,
        "numbers-all-alike": _NO_RULE,
        "lets-colours-be-shared": _NO_PLACE,
        "shows-hands": _NOT_COMPARED,
        "shows-what-is-stolen": _NOT_COMPARED,
        "counts-points-wrong": _NO_RULE,
        "forgets-the-robber": "what real servers leave out is a warning, and the probed server's word counts",
    },
    "catan-player": {
        "breaks-lines": _DIALECT,
        "discards-too-few": "it takes a hand of more than seven cards, to which a short game seldom leads",
        "writes-strasse": _DIALECT,
    },
    "okey-server": {
        "is-quadratic": _UNSTEADY,
        "never-times-out": "a server that pings has exchanged something, so it is no more than advice",
        "gives-names-twice": "it is answered, and the name in the answer is not compared with others'",
        "lets-a-fifth-in": _NO_PLACE,
        "numbers-all-alike": _NOT_COMPARED,
        "tells-the-next-but-one": "nobody knows whose turn it is but by STAT",
    },
    "okey-player": {
        "draws-out-of-turn": _NO_RULE,
        "draws-twice": _NO_RULE,
    },
    "cgml-server": {
        "dies-on-an-unknown-element": "it shows before a group is joined, and the case is tried in a game",
        "waits-for-ever": "the specification knows a timeout, but not how long it is",
        "closes-all": "a group is at its end when one of its players is put out",
        "is-quadratic": _UNSTEADY,
        "gives-ids-twice": _LEFT_OPEN,
        "takes-anybody-into-a-group": _LEFT_OPEN,
        "takes-turn-from-anyone": _LEFT_OPEN,
        "forgets-the-empty-line": _DIALECT,
        "shouts": _DIALECT,
        "says-everything-twice": "the answer to the second question is taken for the player's flaw",
        "shows-hands": _NOT_COMPARED,
        "shows-discards": _NOT_COMPARED,
        "takes-any-bid": _LEFT_OPEN,
        "takes-any-discard": _RECOMMENDED,
        "takes-any-card": _RECOMMENDED,
        "lets-colours-be": _RECOMMENDED,
    },
    "cgml-player": {
        "answers-for-another": "nobody answers it then, and a client that plays no game is INFORMATIONAL",
        "forgets-the-empty-line": _DIALECT,
        "shouts": _DIALECT,
    },
}
"""By program the faults that no case finds, and why."""
