"""The table of faults: each is one small place in one program, and is there only where `--fault NAME` asks.

`shows` has the codes of what `kiebitz check` finds in ordinary play (notes among them); where there are none,
somebody has to look for the fault. A clause is that of the specification which the fault breaks;
`SURVIVE` is what is demanded always: who says something wrong must not spoil the game of others.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from peers.catan_player import CatanPlayer
from peers.catan_server import CatanServer
from peers.cgml_player import CgmlPlayer
from peers.cgml_server import CgmlServer
from peers.maexchen_player import MaexchenPlayer
from peers.maexchen_server import MaexchenServer
from peers.okey_player import OkeyPlayer
from peers.okey_server import OkeyServer
from peers.program import Program
from peers.schafkopf_player import SchafkopfPlayer
from peers.schafkopf_server import SchafkopfServer

Role = Literal["server", "player"]

PEERS: dict[str, type[Program]] = {
    "maexchen-server": MaexchenServer,
    "maexchen-player": MaexchenPlayer,
    "schafkopf-server": SchafkopfServer,
    "schafkopf-player": SchafkopfPlayer,
    "catan-server": CatanServer,
    "catan-player": CatanPlayer,
    "okey-server": OkeyServer,
    "okey-player": OkeyPlayer,
    "cgml-server": CgmlServer,
    "cgml-player": CgmlPlayer,
}

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


_UTF8 = "utf8-kodierte Strings"
_LOST = "Wann immer ein Spieler nicht rechtzeitig antwortet oder etwas völlig falsch macht"
_REGISTERING = "Anmelden"
_TURNS = "Ablauf einer Spielrunde"

_MAEXCHEN = (
    Fault("maexchen", "server", "dies-on-bad-utf8", "ends when a datagram is no UTF-8", SURVIVE),
    Fault("maexchen", "server", "dies-on-an-unknown-word", "ends at a message it does not know", SURVIVE),
    Fault("maexchen", "server", "dies-on-a-missing-token", "ends when an answer has no token", SURVIVE),
    Fault("maexchen", "server", "dies-on-odd-dice", "ends when announced dice are none", SURVIVE),
    Fault("maexchen", "server", "gives-away-names", "takes a name from another IP address", _REGISTERING),
    Fault("maexchen", "server", "forgets-the-new-port", "goes on sending to the old port", _REGISTERING),
    Fault(
        "maexchen", "server", "answers-the-first-client", "REGISTERED goes to who came first", _REGISTERING
    ),
    Fault("maexchen", "server", "confirms-twice", "sends REGISTERED twice", _REGISTERING),
    Fault(
        "maexchen",
        "server",
        "ends-lines",
        "puts a line feed behind messages of one word",
        _REGISTERING,
        ("unknown-message",),
    ),
    Fault("maexchen", "server", "waits-for-ever", "never times a silent player out", _LOST),
    Fault("maexchen", "server", "takes-any-token", "takes any token from who was asked something", _TURNS),
    Fault("maexchen", "server", "takes-any-address", "takes a token from any address", _TURNS),
    Fault("maexchen", "server", "takes-used-tokens", "lets one client join twice", "Start einer Spielrunde"),
    Fault("maexchen", "server", "takes-any-dice", "passes on dice that there are not", _LOST),
    Fault("maexchen", "server", "shows-rolls", "tells everybody what was rolled", "server->client: ROLLED"),
    Fault(
        "maexchen",
        "server",
        "counts-a-loss-twice",
        "takes two points from who loses",
        "SCORE;spielerpunkte",
        ("wrong-score",),
    ),
    Fault(
        "maexchen",
        "server",
        "lets-low-dice-pass",
        "lets an announcement stand that is too low",
        "ANNOUNCED_LOSING_DICE",
    ),
    Fault(
        "maexchen",
        "server",
        "blames-who-saw",
        "takes a bluff for the truth, and the truth for a bluff",
        "SEE_FAILED, CAUGHT_BLUFFING",
        ("wrong-verdict",),
    ),
    Fault("maexchen", "player", "dies-on-bad-utf8", "ends when a datagram is no UTF-8", SURVIVE),
    Fault("maexchen", "player", "dies-on-an-unknown-word", "ends at a message it does not know", SURVIVE),
    Fault("maexchen", "player", "ends-lines", "puts CR LF behind each message", "JOIN;token", ("bad-token",)),
    Fault(
        "maexchen",
        "player",
        "keeps-its-token",
        "always takes its turn with the first token",
        _TURNS,
        ("used-token",),
    ),
    Fault(
        "maexchen",
        "player",
        "forgets-the-token",
        "takes its turn without a token",
        _TURNS,
        ("missing-field",),
    ),
    Fault(
        "maexchen",
        "player",
        "is-silent-after-the-roll",
        "never announces what it rolled",
        _TURNS,
        ("no-answer",),
    ),
    Fault(
        "maexchen",
        "player",
        "announces-no-dice",
        "announces 7,7",
        _TURNS,
        ("dice-out-of-range",),
    ),
    Fault("maexchen", "player", "answers-twice", "announces twice", _TURNS, ("used-token",)),
)

_RULES = "the rules of the game"
_FARBE, _WERT = 'Farbe = "§" | "EICHEL" …', 'Wert = "§" | "OBER" …'
_MODEL = 'Paket = "!MODEL" Flag Model'

_SCHAFKOPF = (
    Fault("schafkopf", "server", "dies-on-bad-utf8", "ends when a line is no UTF-8", SURVIVE),
    Fault("schafkopf", "server", "dies-on-a-missing-field", "ends when a Paket has no field", SURVIVE),
    Fault("schafkopf", "server", "dies-on-an-unknown-card", "ends at a card that there is not", SURVIVE),
    Fault("schafkopf", "server", "waits-for-the-rest", "hears nobody while a line is unfinished", SURVIVE),
    Fault("schafkopf", "server", "waits-for-who-is-gone", "keeps the seat of who has vanished", SURVIVE),
    Fault("schafkopf", "server", "closes-all", "closes everybody's connection when one errs", SURVIVE),
    Fault("schafkopf", "server", "ignores-half-close", "keeps who says nothing more", SURVIVE),
    Fault("schafkopf", "server", "is-quadratic", "takes time with the square of a line's length", SURVIVE),
    Fault("schafkopf", "server", "takes-any-card", "lets a card be played that is not held", _RULES),
    Fault("schafkopf", "server", "lets-suits-be", "lets a player not follow suit", _RULES),
    Fault("schafkopf", "server", "takes-any-bid", "lets a Sau be called that is held, and SI be bid", _RULES),
    Fault(
        "schafkopf",
        "server",
        "takes-any-flag",
        "takes a MODEL of any flag for a card",
        '"!MODEL" "!SPIEL" Model',
    ),
    Fault(
        "schafkopf",
        "server",
        "takes-turn-from-anyone",
        "takes the right answer from the wrong player",
        '"!DRAN" Integer',
    ),
    Fault(
        "schafkopf",
        "server",
        "writes-latin-1",
        "writes ISO-8859-1",
        "Zeichen = UTF_8",
        ("charset",),
    ),
    Fault("schafkopf", "server", "ends-cards-with-end", "puts !END behind a MODEL", _MODEL, ("stray-end",)),
    Fault("schafkopf", "server", "tells-turns-twice", "tells the next seat's turn, too", '"!DRAN" Integer'),
    Fault(
        "schafkopf",
        "server",
        "numbers-all-alike",
        "tells all that they sit on seat 0",
        '"!ID" Integer',
        ("told-otherwise",),
    ),
    Fault(
        "schafkopf",
        "server",
        "shows-a-hand",
        "shows everybody the hand of who plays",
        "Spielerhand",
        ("hand-changed",),
    ),
    Fault(
        "schafkopf",
        "server",
        "gives-tricks-to-the-first",
        "gives each trick to who led",
        _RULES,
        ("trick-winner",),
    ),
    Fault(
        "schafkopf",
        "server",
        "names-the-losers",
        "says of the winners that they lost",
        '"!SIEGER" Sieger Sieger',
        ("wrong-winner",),
    ),
    Fault("schafkopf", "player", "dies-on-bad-utf8", "ends when a line is no UTF-8", SURVIVE),
    Fault("schafkopf", "player", "dies-on-an-unknown-flag", "ends at a flag it does not know", SURVIVE),
    Fault("schafkopf", "player", "dies-without-money", "ends when its account is below zero", SURVIVE),
    Fault("schafkopf", "player", "forgets-end", "sends KONTRA without !END", 'Paket = Daten "!END"'),
    Fault(
        "schafkopf",
        "player",
        "knocks-undecided",
        "answers VIELLEICHT",
        'Boolean = "JA" | "NEIN"',
        ("bad-field",),
    ),
    Fault("schafkopf", "player", "bids-what-there-is-not", "bids RAMSCH", "Modus = …", ("bad-field",)),
    Fault(
        "schafkopf", "player", "does-not-follow-suit", "does not follow suit", _RULES, ("suit-not-followed",)
    ),
    Fault(
        "schafkopf",
        "player",
        "plays-what-it-has-not",
        "plays a card it does not hold",
        _RULES,
        ("not-in-hand",),
    ),
    Fault(
        "schafkopf",
        "player",
        "keeps-its-card",
        "keeps the card that it plays",
        "Spielerhand",
        ("card-twice",),
    ),
    Fault("schafkopf", "player", "plays-twice", "answers SPIEL twice", _RULES, ("answered-twice",)),
)

_JSON = "2 Grundlagen"
_CONFIRM = "8.1 Bestätigungen und Fehler"
_HIDDEN = "7.5 Spieler"

_CATAN = (
    Fault("catan", "server", "dies-on-bad-utf8", "ends when a line is no UTF-8", SURVIVE),
    Fault("catan", "server", "dies-on-broken-json", "ends when a line is no JSON", SURVIVE),
    Fault("catan", "server", "dies-on-a-missing-attribute", "ends when an attribute is missing", SURVIVE),
    Fault("catan", "server", "dies-on-an-unknown-message", "ends at a message it does not know", SURVIVE),
    Fault(
        "catan",
        "server",
        "waits-for-the-rest",
        "hears nobody while a line is unfinished",
        "4 Hinweise zu JSON",
    ),
    Fault("catan", "server", "closes-all", "closes everybody's connection when one errs", SURVIVE),
    Fault("catan", "server", "ignores-half-close", "keeps who says nothing more", SURVIVE),
    Fault("catan", "server", "is-quadratic", "takes time with the square of a line's length", SURVIVE),
    Fault(
        "catan",
        "server",
        "tells-nobody-who-is-gone",
        "tells nobody that a connection is lost",
        "7.5: Verbindung verloren",
    ),
    Fault("catan", "server", "refuses-in-silence", "sends no Fehler", _CONFIRM),
    Fault("catan", "server", "confirms-twice", "sends two OK", _CONFIRM),
    Fault("catan", "server", "confirms-nothing", "sends no OK", _CONFIRM),
    Fault("catan", "server", "writes-latin-1", "writes ISO-8859-1", _JSON, ("charset",)),
    Fault("catan", "server", "forgets-line-ends", "sends no line feed behind a chat", _JSON),
    Fault(
        "catan", "server", "answers-only-who-asks", "shows a chat to its sender alone", "8.3 Chat empfangen"
    ),
    Fault(
        "catan",
        "server",
        "numbers-all-alike",
        "gives every client the id 1",
        "6: eine eindeutige Spielernummer",
    ),
    Fault(
        "catan",
        "server",
        "lets-colours-be-shared",
        "lets two players have one colour",
        "9.1: Farbe bereits vergeben",
    ),
    Fault("catan", "server", "shows-hands", "shows everybody's resources to all", _HIDDEN),
    Fault(
        "catan",
        "server",
        "shows-what-is-stolen",
        "shows stolen and given up cards to all",
        "11.3 Räuber versetzen",
    ),
    Fault("catan", "server", "counts-points-wrong", "counts a village as two points", _HIDDEN),
    Fault("catan", "server", "lets-anybody-move", "takes moves of whose turn it is not", "10.1 Statusupdate"),
    Fault("catan", "server", "builds-without-paying", "builds for who cannot pay", "11.5 Bauen"),
    Fault("catan", "server", "builds-anywhere", "builds where nothing may stand", "11.5 Bauen"),
    Fault("catan", "server", "charges-too-much", "takes a card too many", "10.4 Kosten", ("wrong-cost",)),
    Fault(
        "catan", "server", "forgets-the-robber", "lets a field yield where the robber stands", "10.3 Ertrag"
    ),
    Fault(
        "catan",
        "server",
        "lets-few-be-discarded",
        "lets less than half be given up",
        "11.2 Rohstoffe abgeben",
    ),
    Fault(
        "catan",
        "server",
        "trades-cheaply",
        "trades one card for one, which no harbour does",
        "11.8 Seehandel",
    ),
    Fault("catan", "player", "dies-on-bad-utf8", "ends when a line is no UTF-8", SURVIVE),
    Fault("catan", "player", "dies-on-broken-json", "ends when a line is no JSON", SURVIVE),
    Fault("catan", "player", "dies-on-an-unknown-message", "ends at a message it does not know", SURVIVE),
    Fault("catan", "player", "dies-when-refused", "ends at a Fehler", _CONFIRM),
    Fault("catan", "player", "writes-latin-1", "writes ISO-8859-1", _JSON, ("charset",)),
    Fault(
        "catan", "player", "breaks-lines", "writes an object on several lines", _JSON, ("line-feed-inside",)
    ),
    Fault("catan", "player", "writes-strasse", "writes Strasse", "7.2 Gebäude"),
    Fault(
        "catan", "player", "wants-an-odd-colour", "wants to be Lila", "9: Zulässige Farben", ("bad-value",)
    ),
    Fault(
        "catan",
        "player",
        "forgets-what-to-build",
        "builds nothing at a place",
        "11.5 Bauen",
        ("missing-attribute",),
    ),
    Fault("catan", "player", "builds-between-two-fields", "builds a village on an edge", "7.2 Gebäude"),
    Fault(
        "catan", "player", "builds-without-cards", "builds what it cannot pay", "10.4 Kosten", ("cannot-pay",)
    ),
    Fault("catan", "player", "rolls-twice", "rolls twice in a turn", "11.1 Würfeln", ("out-of-turn",)),
    Fault(
        "catan",
        "player",
        "ends-others-turns",
        "ends its turn when it is not its own",
        "11.4",
        ("out-of-turn",),
    ),
    Fault("catan", "player", "discards-too-few", "gives up one card too few", "11.2", ("wrong-count",)),
    Fault(
        "catan",
        "player",
        "pays-too-little",
        "trades one card for one, which no harbour does",
        "11.8",
        ("trade-rate",),
    ),
    Fault("catan", "player", "accepts-another-offer", "accepts what nobody offered", "12.2", ("no-trade",)),
)

_NAME = "LOGI: ein Einzigartiger generiert"
_TILE = "PUTT: ob die Konfiguration und der Spielzug gültig ist"

_OKEY = (
    Fault("okey", "server", "dies-on-bad-utf8", "ends when a line is no UTF-8", SURVIVE),
    Fault("okey", "server", "dies-on-an-empty-line", "ends at an empty line", SURVIVE),
    Fault("okey", "server", "dies-on-a-missing-argument", "ends when an argument is missing", SURVIVE),
    Fault("okey", "server", "dies-on-a-bad-number", "ends when a lobby's number is none", SURVIVE),
    Fault("okey", "server", "dies-on-an-unknown-word", "ends at a command it does not know", SURVIVE),
    Fault("okey", "server", "waits-for-the-rest", "hears nobody while a line is unfinished", SURVIVE),
    Fault("okey", "server", "waits-for-who-is-gone", "keeps the turn of who has vanished", SURVIVE),
    Fault("okey", "server", "closes-all", "closes all connections at an empty line", SURVIVE),
    Fault("okey", "server", "ignores-half-close", "keeps who says nothing more", SURVIVE),
    Fault("okey", "server", "is-quadratic", "takes time with the square of a line's length", SURVIVE),
    Fault("okey", "server", "never-times-out", "keeps a client who is silent for 15 seconds", "Ping"),
    Fault("okey", "server", "forgets-nobody", "keeps name and seat of who was reset", SURVIVE),
    Fault("okey", "server", "answers-twice", "answers LPLA twice", "LPLA"),
    Fault("okey", "server", "gives-names-twice", "lets two clients have one name", _NAME),
    Fault("okey", "server", "lets-a-fifth-in", "lets a fifth into a lobby", "JLOB: Ist die Lobby voll"),
    Fault(
        "okey", "server", "whispers-to-all", "tells everybody what is whispered", "CATC: nur an den Spieler"
    ),
    Fault(
        "okey",
        "server",
        "escapes-nothing",
        "writes quotation marks as they are",
        "jedes Anführungszeichen",
        ("bad-deck",),
    ),
    Fault("okey", "server", "deals-too-little", "deals one tile too few", "STRT", ("wrong-deal",)),
    Fault("okey", "server", "numbers-all-alike", "tells all that they sit on seat 0", "STRT: playeridx"),
    Fault("okey", "server", "tells-the-next-but-one", "tells the wrong turn", "STAT: an der Reihe"),
    Fault("okey", "server", "lets-anybody-draw", "lets others draw, and twice", "DRAW: nicht an der Reihe"),
    Fault("okey", "server", "shows-what-is-drawn", "shows all what is drawn", "DRAW", ("unasked",)),
    Fault("okey", "server", "takes-any-tile", "lets a tile be put that is not held", _TILE),
    Fault("okey", "server", "takes-any-deck", "does not look at the deck", _TILE),
    Fault(
        "okey",
        "server",
        "lets-anybody-win",
        "says that somebody has won who has not",
        "PUTT: won",
        ("no-win",),
    ),
    Fault("okey", "player", "dies-on-bad-utf8", "ends when a line is no UTF-8", SURVIVE),
    Fault("okey", "player", "dies-on-quoted-chat", "ends at a quotation mark in the chat", SURVIVE),
    Fault("okey", "player", "answers-no-ping", "does not answer PING", "Ping"),
    Fault(
        "okey",
        "player",
        "writes-in-lower-case",
        "writes draw and putt",
        "vier Grossbuchstaben",
        ("unknown-message",),
    ),
    Fault(
        "okey", "player", "draws-out-of-turn", "draws when it is another's turn", "DRAW", ("not-your-turn",)
    ),
    Fault("okey", "player", "draws-twice", "draws twice in a turn", "DRAW: ein zweites Mal"),
    Fault("okey", "player", "puts-what-it-has-not", "puts a tile it does not hold", "PUTT", ("not-held",)),
    Fault("okey", "player", "keeps-its-tile", "keeps the tile that it puts", "PUTT", ("wrong-deck",)),
    Fault(
        "okey",
        "player",
        "sends-no-deck",
        "puts a tile without its deck",
        "PUTT <tile> <deck>",
        ("missing-field",),
    ),
)

_LICITE = "3 Licitace"
_CARDS = "3 Mariáš: Základní pravidla hraní"
_LAYOUT = "1 Základní struktura datové zprávy"

_CGML = (
    Fault("cgml", "server", "dies-on-bad-utf8", "ends when a message is no UTF-8", SURVIVE),
    Fault("cgml", "server", "dies-on-broken-xml", "ends when a message is no XML", SURVIVE),
    Fault("cgml", "server", "dies-on-a-missing-attribute", "ends when an attribute is missing", SURVIVE),
    Fault("cgml", "server", "dies-on-an-unknown-element", "ends at an element it does not know", SURVIVE),
    Fault("cgml", "server", "waits-for-the-rest", "hears nobody while a line is unfinished", SURVIVE),
    Fault("cgml", "server", "waits-for-who-is-gone", "tells nobody that a player has vanished", "4 ABORT"),
    Fault(
        "cgml", "server", "keeps-groups-of-who-is-gone", "does not see that a player has vanished", "4 ABORT"
    ),
    Fault("cgml", "server", "waits-for-ever", "never times a silent player out", "4 ABORT: timeout"),
    Fault("cgml", "server", "closes-all", "closes everybody's connection when one errs", SURVIVE),
    Fault("cgml", "server", "ignores-half-close", "keeps who says nothing more", SURVIVE),
    Fault("cgml", "server", "is-quadratic", "takes time with the square of a line's length", SURVIVE),
    Fault(
        "cgml",
        "server",
        "gives-ids-twice",
        "takes a second player of the same id",
        "2: id jednoznačně identifikuje hráče",
    ),
    Fault("cgml", "server", "takes-anybody-into-a-group", "lets a stranger accept a group", "2 Potvrzení"),
    Fault(
        "cgml", "server", "takes-turn-from-anyone", "takes the right answer from the wrong player", "3 Průběh"
    ),
    Fault("cgml", "server", "keeps-pauses-to-itself", "does not pass a pause on", "4 PAUSE"),
    Fault(
        "cgml",
        "server",
        "forgets-the-empty-line",
        "sends no empty line behind flek",
        _LAYOUT,
        ("no-empty-line",),
    ),
    Fault("cgml", "server", "shouts", "writes ROUND", f"{_LAYOUT}: malými písmeny", ("upper-case",)),
    Fault("cgml", "server", "says-everything-twice", "sends newgame twice", _LAYOUT, ("unasked",)),
    Fault(
        "cgml",
        "server",
        "deals-a-card-twice",
        "deals a card to two players",
        "2 Rozdávání karet",
        ("dealt-twice",),
    ),
    Fault(
        "cgml", "server", "shows-hands", "shows everybody's cards to all", "2 Rozdávání karet -- informace"
    ),
    Fault("cgml", "server", "shows-discards", "shows all what is discarded", "3 Talon -- informace"),
    Fault("cgml", "server", "takes-any-bid", "lets a bid be lower than the last", _LICITE),
    Fault(
        "cgml",
        "server",
        "takes-any-discard",
        "lets cards be discarded that are not held",
        "3 Talon -- odhození",
    ),
    Fault(
        "cgml", "server", "takes-any-card", "lets a card be played that is not held", "3 Hra -- zahrání karty"
    ),
    Fault("cgml", "server", "lets-colours-be", "lets a player not follow", _CARDS),
    Fault(
        "cgml",
        "server",
        "gives-tricks-to-the-first",
        "gives each trick to who led",
        "3 Štych",
        ("wrong-winner",),
    ),
    Fault(
        "cgml", "server", "pays-too-much", "pays more than is paid in", "3 Zhodnocení a závěr hry", ("money",)
    ),
    Fault("cgml", "player", "dies-on-bad-utf8", "ends when a message is no UTF-8", SURVIVE),
    Fault("cgml", "player", "dies-on-broken-xml", "ends when a message is no XML", SURVIVE),
    Fault("cgml", "player", "dies-on-an-unknown-element", "ends at an element it does not know", SURVIVE),
    Fault("cgml", "player", "answers-for-another", "accepts a group as another player", "2 Potvrzení"),
    Fault(
        "cgml",
        "player",
        "forgets-the-empty-line",
        "sends no empty line behind licite",
        _LAYOUT,
        ("no-empty-line",),
    ),
    Fault("cgml", "player", "shouts", "writes FLEK", f"{_LAYOUT}: malými písmeny", ("upper-case",)),
    Fault(
        "cgml", "player", "leaves-elements-open", "does not close playcard", _LAYOUT, ("unclosed-element",)
    ),
    Fault(
        "cgml",
        "player",
        "repeats-the-bid",
        "says the game where YES or NO is asked for",
        _LICITE,
        ("wrong-answer",),
    ),
    Fault("cgml", "player", "bids-what-there-is-not", "bids 8", "3, Tabulka 3-1", ("bad-field",)),
    Fault("cgml", "player", "discards-too-few", "discards one card", "3 Talon -- odhození", ("wrong-count",)),
    Fault("cgml", "player", "names-no-trumps", "names no trumps", "3 Trumfy -- odpověd"),
    Fault(
        "cgml", "player", "lowers-the-level", "lowers the level of doubling", "3 Flekování", ("flek-lowered",)
    ),
    Fault("cgml", "player", "does-not-follow", "does not follow", _CARDS, ("renonc",)),
    Fault(
        "cgml", "player", "plays-what-it-has-not", "plays a card it does not hold", "3 Hra", ("not-in-hand",)
    ),
    Fault("cgml", "player", "answers-twice", "plays a card twice", "3 Hra", ("unasked",)),
)

FAULTS = (*_MAEXCHEN, *_SCHAFKOPF, *_CATAN, *_OKEY, *_CGML)
