"""The table of faults: each is a small change of one program, made only by `--fault NAME`.

`shows` has the codes that `kiebitz check` reports in ordinary play, including notes; without codes, only a
probe finds the fault. The clause is that of the specification which the fault breaks; `SURVIVE` is always
required: an invalid message must not spoil the game of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Literal, NamedTuple

from peers.program import Program

Role = Literal["server", "player"]


class Programs(Mapping[str, type[Program]]):
    """Programs by name, such as `catan-server`, each imported when it is asked for.

    Programs are started by the hundred, and most of the time of a start would go to other protocols' modules.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)

    def __getitem__(self, name: str) -> type[Program]:
        if name not in self._names:
            raise KeyError(name)
        protocol, role = name.split("-")
        program: type[Program] = getattr(
            import_module(f"peers.{protocol}_{role}"), f"{protocol.title()}{role.title()}"
        )
        return program

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


PEERS = Programs(
    f"{protocol}-{role}"
    for protocol in ("maexchen", "schafkopf", "catan", "okey", "cgml")
    for role in ("server", "player")
)

SURVIVE = "every peer must survive, and others' game must go on"


class Fault(NamedTuple):
    """A planted fault: whose it is, its name, what it does, the clause that breaks, the codes it shows as."""

    protocol: str
    role: Role
    name: str
    sentence: str
    clause: str
    shows: tuple[str, ...] = ()

    @property
    def peer(self) -> str:
        return f"{self.protocol}-{self.role}"


def faults(peer: str, rows: Mapping[str, tuple[str, ...]]) -> Iterator[Fault]:
    """Yield the faults of a program by their names: sentence, clause, and the codes each shows as."""
    protocol, _, role = peer.partition("-")
    for name, (sentence, clause, *shows) in rows.items():
        yield Fault(protocol, "server" if role == "server" else "player", name, sentence, clause, (*shows,))


_UTF8 = "utf8-kodierte Strings"
_LOST = "Wann immer ein Spieler nicht rechtzeitig antwortet oder etwas völlig falsch macht"
_REGISTERING = "Anmelden"
_TURNS = "Ablauf einer Spielrunde"

_MAEXCHEN = (
    *faults(
        "maexchen-server",
        {
            "dies-on-bad-utf8": ("ends when a datagram is no UTF-8", SURVIVE),
            "dies-on-an-unknown-word": ("ends at a message it does not know", SURVIVE),
            "dies-on-a-missing-token": ("ends when an answer has no token", SURVIVE),
            "dies-on-odd-dice": ("ends when announced dice are none", SURVIVE),
            "gives-away-names": ("takes a name from another IP address", _REGISTERING),
            "forgets-the-new-port": ("goes on sending to the old port", _REGISTERING),
            "answers-the-first-client": ("REGISTERED goes to who came first", _REGISTERING),
            "confirms-twice": ("sends REGISTERED twice", _REGISTERING),
            "ends-lines": ("puts a line feed behind messages of one word", _REGISTERING, "unknown-message"),
            "waits-for-ever": ("never times a silent player out", _LOST),
            "takes-any-token": ("takes any token from who was asked something", _TURNS),
            "takes-any-address": ("takes a token from any address", _TURNS),
            "takes-used-tokens": ("lets one client join twice", "Start einer Spielrunde"),
            "takes-any-dice": ("passes on dice that there are not", _LOST),
            "shows-rolls": ("tells everybody what was rolled", "server->client: ROLLED"),
            "counts-a-loss-twice": ("takes two points from who loses", "SCORE;spielerpunkte", "wrong-score"),
            "lets-low-dice-pass": ("lets an announcement stand that is too low", "ANNOUNCED_LOSING_DICE"),
            "blames-who-saw": (
                "takes a bluff for the truth, and the truth for a bluff",
                "SEE_FAILED, CAUGHT_BLUFFING",
                "wrong-verdict",
            ),
        },
    ),
    *faults(
        "maexchen-player",
        {
            "dies-on-bad-utf8": ("ends when a datagram is no UTF-8", SURVIVE),
            "dies-on-an-unknown-word": ("ends at a message it does not know", SURVIVE),
            "ends-lines": ("puts CR LF behind each message", "JOIN;token", "bad-token"),
            "keeps-its-token": ("always takes its turn with the first token", _TURNS, "used-token"),
            "forgets-the-token": ("takes its turn without a token", _TURNS, "missing-field"),
            "is-silent-after-the-roll": ("never announces what it rolled", _TURNS, "no-answer"),
            "announces-no-dice": ("announces 7,7", _TURNS, "dice-out-of-range"),
            "answers-twice": ("announces twice", _TURNS, "used-token"),
        },
    ),
)

_RULES = "the rules of the game"
_FARBE, _WERT = 'Farbe = "§" | "EICHEL" …', 'Wert = "§" | "OBER" …'
_MODEL = 'Paket = "!MODEL" Flag Model'

_SCHAFKOPF = (
    *faults(
        "schafkopf-server",
        {
            "dies-on-bad-utf8": ("ends when a line is no UTF-8", SURVIVE),
            "dies-on-a-missing-field": ("ends when a Paket has no field", SURVIVE),
            "dies-on-an-unknown-card": ("ends at a card that there is not", SURVIVE),
            "waits-for-the-rest": ("serves no client while a line is unfinished", SURVIVE),
            "waits-for-who-is-gone": ("keeps the seat of who has vanished", SURVIVE),
            "closes-all": ("closes everybody's connection when one errs", SURVIVE),
            "ignores-half-close": ("keeps who says nothing more", SURVIVE),
            "is-quadratic": ("takes time with the square of a line's length", SURVIVE),
            "takes-any-card": ("lets a card be played that is not held", _RULES),
            "lets-suits-be": ("lets a player not follow suit", _RULES),
            "takes-any-bid": ("lets a Sau be called that is held, and SI be bid", _RULES),
            "takes-any-flag": ("takes a MODEL of any flag for a card", '"!MODEL" "!SPIEL" Model'),
            "takes-turn-from-anyone": ("takes the right answer from the wrong player", '"!DRAN" Integer'),
            "writes-latin-1": ("writes ISO-8859-1", "Zeichen = UTF_8", "charset"),
            "ends-cards-with-end": ("puts !END behind a MODEL", _MODEL, "stray-end"),
            "tells-turns-twice": ("tells the next seat's turn, too", '"!DRAN" Integer'),
            "numbers-all-alike": ("tells all that they sit on seat 0", '"!ID" Integer', "told-otherwise"),
            "shows-a-hand": ("shows everybody the hand of who plays", "Spielerhand", "hand-changed"),
            "gives-tricks-to-the-first": ("gives each trick to who led", _RULES, "trick-winner"),
            "names-the-losers": (
                "says of the winners that they lost",
                '"!SIEGER" Sieger Sieger',
                "wrong-winner",
            ),
        },
    ),
    *faults(
        "schafkopf-player",
        {
            "dies-on-bad-utf8": ("ends when a line is no UTF-8", SURVIVE),
            "dies-on-an-unknown-flag": ("ends at a flag it does not know", SURVIVE),
            "dies-without-money": ("ends when its account is below zero", SURVIVE),
            "forgets-end": ("sends KONTRA without !END", 'Paket = Daten "!END"'),
            "knocks-undecided": ("answers VIELLEICHT", 'Boolean = "JA" | "NEIN"', "bad-field"),
            "bids-what-there-is-not": ("bids RAMSCH", "Modus = …", "bad-field"),
            "does-not-follow-suit": ("does not follow suit", _RULES, "suit-not-followed"),
            "plays-what-it-has-not": ("plays a card it does not hold", _RULES, "not-in-hand"),
            "keeps-its-card": ("keeps the card that it plays", "Spielerhand", "card-twice"),
            "plays-twice": ("answers SPIEL twice", _RULES, "answered-twice"),
        },
    ),
)

_JSON = "2 Grundlagen"
_CONFIRM = "8.1 Bestätigungen und Fehler"
_HIDDEN = "7.5 Spieler"

_CATAN = (
    *faults(
        "catan-server",
        {
            "dies-on-bad-utf8": ("ends when a line is no UTF-8", SURVIVE),
            "dies-on-broken-json": ("ends when a line is no JSON", SURVIVE),
            "dies-on-a-missing-attribute": ("ends when an attribute is missing", SURVIVE),
            "dies-on-an-unknown-message": ("ends at a message it does not know", SURVIVE),
            "waits-for-the-rest": ("serves no client while a line is unfinished", "4 Hinweise zu JSON"),
            "closes-all": ("closes everybody's connection when one errs", SURVIVE),
            "ignores-half-close": ("keeps who says nothing more", SURVIVE),
            "is-quadratic": ("takes time with the square of a line's length", SURVIVE),
            "tells-nobody-who-is-gone": (
                "tells nobody that a connection is lost",
                "7.5: Verbindung verloren",
            ),
            "refuses-in-silence": ("sends no Fehler", _CONFIRM),
            "confirms-twice": ("sends two OK", _CONFIRM),
            "confirms-nothing": ("sends no OK", _CONFIRM),
            "writes-latin-1": ("writes ISO-8859-1", _JSON, "charset"),
            "forgets-line-ends": ("sends no line feed behind a chat", _JSON),
            "answers-only-who-asks": ("shows a chat to its sender alone", "8.3 Chat empfangen"),
            "numbers-all-alike": ("gives every client the id 1", "6: eine eindeutige Spielernummer"),
            "lets-colours-be-shared": ("lets two players have one colour", "9.1: Farbe bereits vergeben"),
            "shows-hands": ("shows everybody's resources to all", _HIDDEN),
            "shows-what-is-stolen": ("shows stolen and given up cards to all", "11.3 Räuber versetzen"),
            "counts-points-wrong": ("counts a village as two points", _HIDDEN),
            "lets-anybody-move": ("takes moves of whose turn it is not", "10.1 Statusupdate"),
            "builds-without-paying": ("builds for who cannot pay", "11.5 Bauen"),
            "builds-anywhere": ("builds where nothing may stand", "11.5 Bauen"),
            "charges-too-much": ("takes a card too many", "10.4 Kosten", "wrong-cost"),
            "forgets-the-robber": ("lets a field yield where the robber stands", "10.3 Ertrag"),
            "lets-few-be-discarded": ("lets less than half be given up", "11.2 Rohstoffe abgeben"),
            "trades-cheaply": ("trades one card for one, which no harbour does", "11.8 Seehandel"),
        },
    ),
    *faults(
        "catan-player",
        {
            "dies-on-bad-utf8": ("ends when a line is no UTF-8", SURVIVE),
            "dies-on-broken-json": ("ends when a line is no JSON", SURVIVE),
            "dies-on-an-unknown-message": ("ends at a message it does not know", SURVIVE),
            "dies-when-refused": ("rolls twice, and ends at a Fehler", _CONFIRM),
            "writes-latin-1": ("writes ISO-8859-1", _JSON, "charset"),
            "breaks-lines": ("writes an object on several lines", _JSON, "line-feed-inside"),
            "writes-strasse": ("writes Strasse", "7.2 Gebäude"),
            "wants-an-odd-colour": ("wants to be Lila", "9: Zulässige Farben", "bad-value"),
            "forgets-what-to-build": ("builds nothing at a place", "11.5 Bauen", "missing-attribute"),
            "builds-between-two-fields": ("builds a village on an edge", "7.2 Gebäude"),
            "builds-without-cards": ("builds what it cannot pay", "10.4 Kosten", "cannot-pay"),
            "rolls-twice": ("rolls twice in a turn", "11.1 Würfeln", "not-now"),
            "ends-others-turns": ("ends its turn when it is not its own", "11.4", "out-of-turn"),
            "discards-too-few": ("gives up one card too few", "11.2", "wrong-count"),
            "pays-too-little": ("trades one card for one, which no harbour does", "11.8", "trade-rate"),
            "accepts-another-offer": ("accepts what nobody offered", "12.2", "no-trade"),
        },
    ),
)

_NAME = "LOGI: ein Einzigartiger generiert"
_TILE = "PUTT: ob die Konfiguration und der Spielzug gültig ist"

_OKEY = (
    *faults(
        "okey-server",
        {
            "dies-on-bad-utf8": ("ends when a line is no UTF-8", SURVIVE),
            "dies-on-an-empty-line": ("ends at an empty line", SURVIVE),
            "dies-on-a-missing-argument": ("ends when an argument is missing", SURVIVE),
            "dies-on-a-bad-number": ("ends when a lobby's number is none", SURVIVE),
            "dies-on-an-unknown-word": ("ends at a command it does not know", SURVIVE),
            "waits-for-the-rest": ("serves no client while a line is unfinished", SURVIVE),
            "waits-for-who-is-gone": ("keeps the turn of who has vanished", SURVIVE),
            "closes-all": ("closes all connections at an empty line", SURVIVE),
            "ignores-half-close": ("keeps who says nothing more", SURVIVE),
            "is-quadratic": ("takes time with the square of a line's length", SURVIVE),
            "never-times-out": ("keeps a client who is silent for 15 seconds", "Ping"),
            "forgets-nobody": ("keeps name and seat of who was reset", SURVIVE),
            "answers-twice": ("answers LPLA twice", "LPLA"),
            "gives-names-twice": ("lets two clients have one name", _NAME),
            "lets-a-fifth-in": ("lets a fifth into a lobby", "JLOB: Ist die Lobby voll"),
            "whispers-to-all": ("tells everybody what is whispered", "CATC: nur an den Spieler"),
            "escapes-nothing": ("writes quotation marks as they are", "jedes Anführungszeichen", "bad-deck"),
            "deals-too-little": ("deals one tile too few", "STRT", "wrong-deal"),
            "numbers-all-alike": ("tells all that they sit on seat 0", "STRT: playeridx"),
            "tells-the-next-but-one": ("tells the wrong turn", "STAT: an der Reihe"),
            "lets-anybody-draw": ("lets others draw, and twice", "DRAW: nicht an der Reihe"),
            "shows-what-is-drawn": ("shows all what is drawn", "DRAW", "unasked"),
            "takes-any-tile": ("lets a tile be put that is not held", _TILE),
            "takes-any-deck": ("does not look at the deck", _TILE),
            "lets-anybody-win": ("says that somebody has won who has not", "PUTT: won", "no-win"),
        },
    ),
    *faults(
        "okey-player",
        {
            "dies-on-bad-utf8": ("ends when a line is no UTF-8", SURVIVE),
            "dies-on-quoted-chat": ("ends at a quotation mark in the chat", SURVIVE),
            "answers-no-ping": ("does not answer PING", "Ping"),
            "writes-in-lower-case": ("writes draw and putt", "vier Grossbuchstaben", "unknown-message"),
            "draws-out-of-turn": ("draws when it is another's turn", "DRAW", "not-your-turn"),
            "draws-twice": ("draws twice in a turn", "DRAW: ein zweites Mal"),
            "puts-what-it-has-not": ("puts a tile it does not hold", "PUTT", "not-held"),
            "keeps-its-tile": ("keeps the tile that it puts", "PUTT", "wrong-deck"),
            "sends-no-deck": ("puts a tile without its deck", "PUTT <tile> <deck>", "missing-field"),
        },
    ),
)

_LICITE = "3 Licitace"
_CARDS = "3 Mariáš: Základní pravidla hraní"
_LAYOUT = "1 Základní struktura datové zprávy"

_CGML = (
    *faults(
        "cgml-server",
        {
            "dies-on-bad-utf8": ("ends when a message is no UTF-8", SURVIVE),
            "dies-on-broken-xml": ("ends when a message is no XML", SURVIVE),
            "dies-on-a-missing-attribute": ("ends when an attribute is missing", SURVIVE),
            "dies-on-an-unknown-element": ("ends at an element it does not know", SURVIVE),
            "waits-for-the-rest": ("serves no client while a line is unfinished", SURVIVE),
            "waits-for-who-is-gone": ("tells nobody that a player has vanished", "4 ABORT"),
            "keeps-groups-of-who-is-gone": ("does not see that a player has vanished", "4 ABORT"),
            "waits-for-ever": ("never times a silent player out", "4 ABORT: timeout"),
            "closes-all": ("closes everybody's connection when one errs", SURVIVE),
            "ignores-half-close": ("keeps who says nothing more", SURVIVE),
            "is-quadratic": ("takes time with the square of a line's length", SURVIVE),
            "gives-ids-twice": (
                "takes a second player of the same id",
                "2: id jednoznačně identifikuje hráče",
            ),
            "takes-anybody-into-a-group": ("lets a stranger accept a group", "2 Potvrzení"),
            "takes-turn-from-anyone": ("takes the right answer from the wrong player", "3 Průběh"),
            "keeps-pauses-to-itself": ("does not pass a pause on", "4 PAUSE"),
            "forgets-the-empty-line": ("sends no empty line behind flek", _LAYOUT, "no-empty-line"),
            "shouts": ("writes ROUND", f"{_LAYOUT}: malými písmeny", "upper-case"),
            "says-everything-twice": ("sends newgame twice", _LAYOUT, "unasked"),
            "deals-a-card-twice": ("deals a card to two players", "2 Rozdávání karet", "dealt-twice"),
            "shows-hands": ("shows everybody's cards to all", "2 Rozdávání karet -- informace"),
            "shows-discards": ("shows all what is discarded", "3 Talon -- informace"),
            "takes-any-bid": ("lets a bid be lower than the last", _LICITE),
            "takes-any-discard": ("lets cards be discarded that are not held", "3 Talon -- odhození"),
            "takes-any-card": ("lets a card be played that is not held", "3 Hra -- zahrání karty"),
            "lets-colours-be": ("lets a player not follow", _CARDS),
            "gives-tricks-to-the-first": ("gives each trick to who led", "3 Štych", "wrong-winner"),
            "pays-too-much": ("pays more than is paid in", "3 Zhodnocení a závěr hry", "money"),
        },
    ),
    *faults(
        "cgml-player",
        {
            "dies-on-bad-utf8": ("ends when a message is no UTF-8", SURVIVE),
            "dies-on-broken-xml": ("ends when a message is no XML", SURVIVE),
            "dies-on-an-unknown-element": ("ends at an element it does not know", SURVIVE),
            "answers-for-another": ("accepts a group as another player", "2 Potvrzení"),
            "forgets-the-empty-line": ("sends no empty line behind licite", _LAYOUT, "no-empty-line"),
            "shouts": ("writes FLEK", f"{_LAYOUT}: malými písmeny", "upper-case"),
            "leaves-elements-open": ("does not close playcard", _LAYOUT, "unclosed-element"),
            "repeats-the-bid": ("says the game where YES or NO is asked for", _LICITE, "wrong-answer"),
            "bids-what-there-is-not": ("bids 8", "3, Tabulka 3-1", "bad-field"),
            "discards-too-few": ("discards one card", "3 Talon -- odhození", "wrong-count"),
            "names-no-trumps": ("names no trumps", "3 Trumfy -- odpověd"),
            "lowers-the-level": ("lowers the level of doubling", "3 Flekování", "flek-lowered"),
            "does-not-follow": ("does not follow", _CARDS, "renonc"),
            "plays-what-it-has-not": ("plays a card it does not hold", "3 Hra", "not-in-hand"),
            "answers-twice": ("plays a card twice", "3 Hra", "unasked"),
        },
    ),
)

FAULTS = (*_MAEXCHEN, *_SCHAFKOPF, *_CATAN, *_OKEY, *_CGML)
