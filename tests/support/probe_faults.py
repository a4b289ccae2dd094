"""The test cases of `kiebitz probe` that find the faults planted in `peers/`, and the faults that none finds.

In a row's `cases` a word without `*` is tried and may find the fault; one with `*` names others that find it,
too, where they are tried. The row's program fails no other case.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tables import rows_of

PLAYED = ("game", "*/said")
"""The cases of a game without anything unusual."""

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
"""Program -> cases of different kinds that each row tries in addition to those that should find its fault."""


class Found(NamedTuple):
    """A planted fault, and the cases that find it."""

    peer: str
    fault: str
    cases: str
    alone: bool = False
    """True if the fault keeps other cases from their setup, so that they would time out."""

    @property
    def is_in_play(self) -> bool:
        """Return whether it shows in a game in which nothing odd is done."""
        return all(case == "game" or case.endswith("/said") for case in self.cases.split())


_ENDED = "*/cut/close */cut/reset */cut/half-close"
"""Cases in which a player goes in the midst of a message."""

_BAD_UTF8 = "rubbish */latin-1"


def _found(table: str) -> Iterator[Found]:
    """Yield the rows of a table: program, fault, if it is tried alone, and the cases that find it."""
    for row in rows_of(table):
        head, _, cases = row.partition(": ")
        peer, fault, *alone = head.split()
        cases = cases.replace("ENDED", _ENDED).replace("BAD_UTF8", _BAD_UTF8)
        yield Found(peer, fault, cases, bool(alone))


FOUND = tuple(
    _found("""
maexchen-server dies-on-bad-utf8: REGISTER/name/latin-1 BAD_UTF8
maexchen-server dies-on-an-unknown-word: unknown-message empty rubbish */byte-order-mark
maexchen-server dies-on-a-missing-token: JOIN/token/left-out ROLL/token/left-out
maexchen-server dies-on-odd-dice: ANNOUNCE/dice/out-of-range ANNOUNCE/dice/empty ANNOUNCE/dice/*
maexchen-server answers-the-first-client: REGISTER/whole REGISTER/doubled REGISTER/spelling/*
    REGISTER/name/*
maexchen-server ends-lines: game REGISTER/whole REGISTER/*
maexchen-server waits-for-ever: ROLL/lost SEE/cut */late ROLL/token/* SEE/token/*
maexchen-server takes-any-token: ROLL/token/nobodys-token ROLL/token/others-token */token/*
maexchen-server takes-any-dice: ANNOUNCE/dice/one-die ANNOUNCE/dice/empty ANNOUNCE/dice/*
maexchen-server counts-a-loss-twice: SCORE/said
maexchen-server blames-who-saw: PLAYER_LOST/said
maexchen-player dies-on-bad-utf8: ROUND_STARTING/token/latin-1 BAD_UTF8
maexchen-player dies-on-an-unknown-word: unknown-message rubbish
maexchen-player ends-lines: */said
maexchen-player keeps-its-token: */said
maexchen-player forgets-the-token: */said
maexchen-player is-silent-after-the-roll: ROLLED/whole ROLLED/doubled ROLLED/spelling/*
maexchen-player announces-no-dice: ANNOUNCE/said
maexchen-player answers-twice: ANNOUNCE/said
schafkopf-server dies-on-bad-utf8: NAME/name/latin-1 BAD_UTF8
schafkopf-server dies-on-a-missing-field: NAME/name/left-out ERSTE3/klopft/left-out */left-out
schafkopf-server dies-on-an-unknown-card: MODEL/spielerhand.wert/unknown MODEL/tisch.farbe/unknown MODEL/*
schafkopf-server waits-for-the-rest: come-and-stay
schafkopf-server waits-for-who-is-gone (alone): ERSTE3/cut/close MODEL/cut/reset ENDED
schafkopf-server closes-all: SPIELSTDU/modus/unknown ERSTE3/klopft/unknown */left-out
schafkopf-server ignores-half-close (alone): ERSTE3/cut/half-close MODEL/cut/half-close
schafkopf-server writes-latin-1: MODEL/said */cut/close
schafkopf-server numbers-all-alike: GEKLOPFT/said MODEL/said */cut/close
schafkopf-server shows-a-hand: MODEL/said
schafkopf-server gives-tricks-to-the-first: SIEGER/said DRAN/said
schafkopf-server names-the-losers: SIEGER/said
schafkopf-player dies-on-bad-utf8: NAME/name/latin-1 MITSPIELER/namen/latin-1 BAD_UTF8
schafkopf-player dies-on-an-unknown-flag: unknown-message */utf-16
schafkopf-player forgets-end (alone): MODUS/whole MODUS/*
schafkopf-player knocks-undecided: ERSTE3/said
schafkopf-player bids-what-there-is-not: SPIELSTDU/said
schafkopf-player does-not-follow-suit: MODEL/said
schafkopf-player plays-what-it-has-not: MODEL/said
schafkopf-player keeps-its-card: MODEL/said
schafkopf-player plays-twice: MODEL/said
catan-server dies-on-bad-utf8: Chatnachricht_senden/Nachricht/latin-1 BAD_UTF8
catan-server dies-on-broken-json: rubbish Bauen/Typ/latin-1 */latin-1 */utf-16
catan-server dies-on-a-missing-attribute: Chatnachricht_senden/Nachricht/left-out Bauen/Ort/left-out
    */left-out
catan-server dies-on-an-unknown-message: unknown-message
catan-server waits-for-the-rest: come-and-stay
catan-server closes-all: unknown-message Bauen/Typ/unknown rubbish */left-out */unknown */rule/*
catan-server ignores-half-close: Würfeln/cut/half-close Bauen/cut/half-close */cut/close
catan-server tells-nobody-who-is-gone: Würfeln/cut/close Bauen/cut/reset ENDED
catan-server refuses-in-silence: Bauen/Ort/apart Würfeln/twice */left-out */unknown */from-other */rule/*
catan-server confirms-nothing (alone): Spieler/whole Chatnachricht_senden/whole */whole */bytewise
catan-server answers-only-who-asks: Chatnachricht_senden/whole
catan-server lets-anybody-move: Würfeln/from-other Zug_beenden/from-other */from-other
catan-server builds-without-paying: Zug_beenden/rule/cannot-pay
catan-server builds-anywhere: Bauen/Ort/apart
catan-server charges-too-much: Kosten/said
catan-server trades-cheaply: Zug_beenden/rule/trade-rate/asked
catan-server lets-few-be-discarded: Karten_abgeben/rule/wrong-count
catan-server writes-latin-1: game
catan-player dies-on-bad-utf8: rubbish Statusupdate/Spieler/latin-1 BAD_UTF8
catan-player dies-on-broken-json: BAD_UTF8 */utf-16 empty
catan-player dies-on-an-unknown-message: unknown-message
catan-player dies-when-refused (alone): Fehler/whole Fehler/Meldung/left-out Fehler/*
catan-player writes-latin-1: game
catan-player wants-an-odd-colour: Spieler/said
catan-player forgets-what-to-build: Bauen/said
catan-player builds-between-two-fields: Bauen/said
catan-player builds-without-cards: Bauen/said Entwicklungskarte_kaufen/said
catan-player rolls-twice: Würfeln/said */said
catan-player ends-others-turns: Zug_beenden/said
catan-player pays-too-little: Seehandel/said
catan-player accepts-another-offer: Handel_annehmen/said
okey-server dies-on-bad-utf8: LOGI/nickname/latin-1 BAD_UTF8
okey-server dies-on-an-empty-line: empty */joined
okey-server dies-on-a-missing-argument: LOGI/nickname/left-out JLOB/n/left-out */left-out */cut/*
okey-server dies-on-a-bad-number: JLOB/n/other-type JLOB/n/*
okey-server dies-on-an-unknown-word: unknown-message rubbish */utf-16
okey-server waits-for-the-rest: come-and-stay LOGI/cut/silence */cut/silence
okey-server waits-for-who-is-gone: DRAW/cut/close PUTT/cut/reset ENDED
okey-server closes-all: empty
okey-server ignores-half-close: DRAW/cut/half-close PUTT/cut/half-close */cut/close
okey-server forgets-nobody: DRAW/cut/reset PUTT/cut/reset ENDED
okey-server answers-twice: +LPLA/said
okey-server whispers-to-all: CATC.w/whisperrecipient/nobodys-name
okey-server escapes-nothing: +LLPL/said STAT/said
okey-server deals-too-little: STRT/said
okey-server lets-anybody-draw: PUTT/rule/must-put DRAW/twice DRAW/from-other
okey-server shows-what-is-drawn: +DRAW/said
okey-server takes-any-tile: PUTT/rule/not-held
okey-server takes-any-deck: PUTT/rule/wrong-deck/surplus PUTT/rule/wrong-deck/lacking
okey-server lets-anybody-win: +PUTT/said PWIN/said
okey-player dies-on-bad-utf8: +LOGI/actualname/latin-1 BAD_UTF8
okey-player dies-on-quoted-chat: CATS/msg/markup CATS/sender/markup */markup
okey-player answers-no-ping (alone): PING/whole PING/bytewise PING/*
okey-player writes-in-lower-case: game
okey-player puts-what-it-has-not: PUTT/said
okey-player keeps-its-tile: PUTT/said
okey-player sends-no-deck: PUTT/said
cgml-server dies-on-bad-utf8: connect.active/player/latin-1 BAD_UTF8
cgml-server dies-on-broken-xml: BAD_UTF8 */utf-16 */left-out
cgml-server dies-on-a-missing-attribute: connect.active/status/left-out licite/type/left-out
cgml-server waits-for-the-rest: come-and-stay
cgml-server waits-for-who-is-gone: licite/cut/close playcard/cut/reset ENDED
cgml-server keeps-groups-of-who-is-gone (alone): licite/cut/close playcard/cut/reset ENDED
cgml-server ignores-half-close (alone): licite/cut/half-close playcard/cut/half-close
cgml-server keeps-pauses-to-itself: pause.start/whole
cgml-server deals-a-card-twice: dial/said playcard/said round/said result/said
cgml-server gives-tricks-to-the-first: round/said
cgml-server pays-too-much: result/said
cgml-player dies-on-bad-utf8: newgame/player/latin-1 connect/game/latin-1 BAD_UTF8
cgml-player dies-on-broken-xml: BAD_UTF8 */utf-16 */left-out
cgml-player dies-on-an-unknown-element: unknown-message
cgml-player leaves-elements-open (alone): playcard.ask/whole playcard.ask/*
cgml-player repeats-the-bid: licite/said
cgml-player bids-what-there-is-not: licite/said
cgml-player discards-too-few: playcard/said
cgml-player names-no-trumps: gametype/said
cgml-player lowers-the-level: flek/said
cgml-player does-not-follow: playcard/said
cgml-player plays-what-it-has-not: playcard/said
cgml-player answers-twice: playcard/said
    """)
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
        "says-everything-twice": "the answer to the second question is taken for the player's error",
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
"""Program -> the faults that no case finds, with the reason."""
