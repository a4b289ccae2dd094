"""The sentences of events: players by name, cards, tiles and codes in words, in all five games."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from command import CAPTURES
from hypothesis import given
from hypothesis import strategies as st
from imported_databases import database_of
from strength import few_captures
from tables import rows_of

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.registry import BUILT_IN, dissector_of

BY_NAME = {dissector.protocol: dissector for dissector in BUILT_IN}


def event_of(kind: str, data: dict[str, Any]) -> Event:
    return Event(1, 1, None, 1, 0, kind, None, data, [])


X = {"x": 1, "y": 0}
Y = {"x": 2, "y": -1}
TRIO = {"1": "Ann", "2": "Bob", "3": "Cy"}
HIDDEN = [None] * 10

NAMED = {"TRIO": TRIO, "HIDDEN": HIDDEN, "X": X, "Y": Y}


def rows(table: str) -> list[tuple[str, str, dict[str, Any], str]]:
    """Return the rows of a table: protocol, kind and data of an event, and behind "=>" its sentence."""
    found = []
    for row in rows_of(table):
        event, _, sentence = row.partition(" => ")
        protocol, kind, data = event.split(" ", 2)
        for name, value in NAMED.items():
            data = re.sub(rf"\b{name}\b", json.dumps(value), data)
        found.append((protocol, kind, json.loads(data), sentence))
    return found


SENTENCES: list[tuple[str, str, dict[str, Any], str]] = rows("""
# CGML: numbers of players, cards, calls and levels.
cgml connected {"name": "Ann", "id": 1, "role": "human", "called": TRIO} => Ann (human) logs in
cgml connected {"role": "server", "url": "a:7003"} => the game server a:7003 logs in
cgml group_formed {"group": 4, "players": [1, 2, 9], "called": TRIO} => group 4: Ann, Bob, player 9
cgml accepted {"player": 1, "group": 4, "what": "hand", "called": TRIO} => Ann accepts the hand
cgml rejected {"player": 1, "group": 4, "what": "hand", "called": TRIO} => Ann rejects the hand
cgml hand_asked {"group": 4, "players": [2, 1], "called": TRIO} => another hand? Bob, Ann
cgml dealt {"player": 1, "cards": ["B08", "R0A"], "called": TRIO} => Ann gets kule 8, červené eso
cgml dealt {"player": 1, "cards": HIDDEN, "called": TRIO} => Ann gets 10 cards
cgml bid {"player": 1, "call": "B7", "called": TRIO} => Ann bids B7
cgml bid {"player": 1, "call": "PASS", "called": TRIO} => Ann passes
cgml contract {"player": 1, "game": "G", "called": TRIO} => Ann has won the bidding with G
cgml contract {"player": 1, "game": "PASS", "called": TRIO} => all players pass, Ann last
cgml talon_taken {"player": 1, "cards": ["A10", null], "called": TRIO} => Ann takes the talon: žaludy 10, ?
cgml discarded {"player": 1, "cards": ["G0J"], "called": TRIO} => Ann discards zelené spodek
cgml trump {"player": 1, "game": "G", "trump": "R", "second": null, "called": TRIO}
    => Ann plays G, trumps červené
cgml trump {"player": 1, "game": "27", "trump": "R", "second": "B", "called": TRIO}
    => Ann plays 27, trumps červené, second colour kule
cgml trump {"player": 1, "game": "BIG", "trump": null, "called": TRIO} => Ann plays BIG, without trumps
cgml flek {"player": 2, "level": "1", "called": TRIO} => Bob: no flek
cgml flek {"player": 2, "level": "2:4", "called": TRIO} => Bob: flek ×2, against ×4
cgml turn {"player": 2, "called": TRIO} => it is Bob's turn
cgml played {"player": 1, "cards": ["B08"], "called": TRIO} => Ann plays kule 8
cgml played {"player": 9, "cards": ["B0Q"], "called": {}} => player 9 plays kule svršek
# As recorded before events had names.
cgml played {"player": 9, "cards": ["B0K"]} => 9 plays kule král
cgml trick {"number": 2, "cards": ["B07", "B09", "R07"], "winner": 3, "called": TRIO}
    => trick 2 (kule 7, kule 9, červené 7) goes to Cy
cgml result {"game": "7", "winners": [1, 2], "losers": [3], "money": {"1": 4, "2": 4, "3": -8, "9": 0},
    "called": TRIO}
    => 7 is over; Ann, Bob won; money: Ann 4, Bob 4, Cy -8, player 9 0
cgml renonc {"player": 1, "card": "A10", "should": ["G0A", "G10"], "called": TRIO}
    => Ann revokes with žaludy 10 instead of zelené eso, zelené 10
cgml renonc {"player": 1, "card": null, "should": null, "called": TRIO} => Ann revokes
cgml paused {"player": 1, "message": "pivo", "called": TRIO} => Ann pauses: pivo
cgml paused {"player": 1, "message": null, "called": TRIO} => Ann pauses
cgml resumed {"player": 1, "called": TRIO} => Ann ends the pause
cgml cancelled {"why": "pass"} => the hand is cancelled: pass
cgml aborted {"player": 1, "why": "x", "called": TRIO} => the hand is aborted because of Ann: x
cgml load {"load": 3} => a server of bots has a load of 3
cgml left {"player": 1, "why": "closed", "called": TRIO} => Ann is gone: connection closed
cgml left {"player": 1, "why": "end of group", "called": TRIO} => Ann is gone: end of group
# Okey: tiles, stacks, and whether a put is valid.
okey logged_in {"name": "Ann"} => Ann is logged in
okey renamed {"name": "Ann", "before": "A"} => A is now called Ann
okey joined_lobby {"name": "Ann", "lobby": 1} => Ann joins lobby 1
okey ready {"name": "Ann", "lobby": 1} => Ann is ready
okey dealt {"seat": 0, "name": "Ann", "deck": ["9:RED", "0:BLUE"]}
    => Ann gets their tiles at seat 0: red 9, joker
okey dealt {"seat": 0, "name": "Ann", "deck": null} => Ann gets their tiles at seat 0
okey returned {"seat": 1, "name": "Ann", "deck": ["13:BLACK"]} => Ann is back at seat 1 with black 13
okey returned {"seat": 1, "name": "Ann", "deck": null} => Ann is back at seat 1
okey drew {"name": "Ann", "stack": "e", "tile": "9:RED"} => Ann draws red 9 from the left stack
okey drew {"name": "Ann", "stack": "m", "tile": null} => Ann draws a tile from the main stack
okey drew {"name": "Ann", "stack": null, "tile": null} => Ann draws a tile
okey put {"name": "Ann", "tile": "9:RED", "valid": true} => Ann puts red 9
okey put {"name": "Ann", "tile": null, "valid": true} => Ann puts a tile
okey put {"name": "Ann", "tile": "9:RED", "valid": false} => Ann is not allowed to put red 9
okey status {"name": "Ann", "exchange": [null, "4:YELLOW", "0:RED", null]}
    => it is Ann's turn; exchange stacks: –, yellow 4, joker, –
okey status {"name": "Ann", "exchange": [null, null, null, null]}
    => it is Ann's turn; the exchange stacks are empty
okey cheated {"name": "Ann", "deck": ["1:RED"]} => Ann takes a winning deck: red 1
okey cheated {"name": "Ann", "deck": null} => Ann takes a winning deck
okey won {"name": "Ann"} => Ann wins
okey drawn_game {} => the main stack is empty: nobody wins
okey chat {"from": "Ann", "to": "Bob", "text": "hi"} => to Bob: Ann says: hi
okey left {"name": "Ann", "reason": "LEFT"} => Ann leaves the lobby
okey left {"name": "Ann", "reason": "LLOB"} => Ann leaves the lobby
okey left {"name": "Ann", "reason": "LOGO"} => Ann logs out
okey left {"name": "Ann", "reason": "reset"} => Ann leaves: connection reset
# Schafkopf: cards, modes and answers.
schafkopf joined {"name": "Ann"} => Ann joins
schafkopf round_started {"round": 1, "names": ["Ann", "Bob"]} => round 1: Ann, Bob
schafkopf dealt {"name": "Ann", "cards": ["EICHEL OBER", "GRAS ZEHN"]} => Ann gets Eichel-Ober, Gras-10
schafkopf answered {"name": "Ann", "question": "ERSTE3", "answer": "JA"} => Ann knocks
schafkopf answered {"name": "Ann", "question": "ERSTE3", "answer": "NEIN"} => Ann does not knock
schafkopf answered {"name": "Ann", "question": "KONTRA", "answer": "NEIN"} => Ann does not say Kontra
schafkopf answered {"name": "Ann", "question": "HOCHZEIT", "answer": "JA"} => Ann accepts the Hochzeit
schafkopf knocked {"names": []} => knocked: nobody
schafkopf best_bid {"mode": "SOLOherzDU"} => the best bid so far is Solo Herz du
schafkopf best_bid {"mode": "NICHTS"} => there is no bid yet
schafkopf bid {"name": "Ann", "mode": "SAUSPIELgras"} => Ann bids Sauspiel Gras
schafkopf bid {"name": "Ann", "mode": "NICHTS"} => Ann passes
schafkopf hochzeit {"name": "Ann"} => Hochzeit, offered to Ann
schafkopf player {"name": "Ann"} => Ann is to play
schafkopf declared {"player": "Ann", "mode": "GEIERdu"} => Ann plays Geier du
schafkopf kontra {"names": ["Ann"]} => Kontra: Ann
schafkopf turn {"name": "Ann"} => it is Ann's turn
schafkopf played {"name": "Ann", "card": "HERZ KONIG"} => Ann plays Herz-König
schafkopf trick {"number": 1, "cards": ["HERZ SAU", "HERZ NEUN"], "winner": "Ann", "points": 11}
    => trick 1 (Herz-Sau, Herz-9) goes to Ann, 11 points
schafkopf won {"names": ["Ann", "Bob"]} => won: Ann, Bob
schafkopf lost {"names": ["Ann"]} => lost: Ann
schafkopf round_ended {"reason": "played"} => the round is over: played
schafkopf settled {"accounts": {"Ann": 990}, "stock": 40} => accounts: Ann 990; stock 40
schafkopf left {"name": "Ann", "reason": "BEENDEN"} => Ann leaves
schafkopf left {"name": "Ann", "reason": "idle"} => Ann leaves: no traffic
# Mäxchen: dice and reasons.
maexchen registered {"name": "ann"} => ann is registered
maexchen rejected {"name": "ann", "reason": null} => ann is refused
maexchen rejected {"name": "ann", "reason": "NAME_ALREADY_TAKEN"} => ann is refused: the name is taken
maexchen unregistered {"name": "ann"} => ann is no longer registered
maexchen round_starting {"round": 1} => a round is about to start
maexchen joined {"name": "ann"} => ann joins the round
maexchen round_started {"round": 1, "players": ["ann", "bob"]} => round 1 starts with ann, bob
maexchen round_canceled {"reason": "NO_PLAYERS"} => the round is canceled: nobody joined
maexchen turn {"name": "ann"} => it is ann's turn
maexchen rolls {"name": "ann"} => ann rolls
maexchen rolled {"name": "ann", "dice": "2,1"} => ann has rolled Mäxchen (2,1)
maexchen announced {"name": "ann", "dice": "6,5"} => ann announces 6,5
maexchen wants_to_see {"name": "ann"} => ann wants to see
maexchen actual_dice {"dice": "3,3"} => the dice were 3,3
maexchen lost {"names": ["ann"], "reason": "CAUGHT_BLUFFING"} => ann lost: was caught bluffing
maexchen lost {"names": ["ann", "bob"], "reason": "in words"} => ann, bob lost: in words
maexchen score {"scores": {"ann": 1}} => score: ann 1
# Catan: resources, places, and what a card is played for.
catan joined {"name": "Ann"} => Ann joins
catan configured {"name": "Ann", "colour": "Rot"} => Ann plays Rot
catan ready {"name": "Ann"} => Ann is ready
catan started {"map": {}} => the game begins
catan rolled {"name": "Ann", "dice": [2, 5]} => Ann rolls 2+5
catan gained {"name": "Ann", "resources": {"Erz": 1, "Holz": 2}, "why": "roll"}
    => Ann gains 1 Erz, 2 Holz (roll)
catan gained {"name": "Ann", "resources": 1, "why": "robber"} => Ann gains 1 card (robber)
catan gained {"name": "Ann", "resources": {"Erz": 1}, "why": null} => Ann gains 1 Erz
catan paid {"name": "Ann", "resources": 2, "why": null} => Ann pays 2 cards
catan discarded {"name": "Ann", "resources": 4} => Ann discards 4 cards
catan robber {"name": "Ann", "to": Y} => Ann moves the robber to (2,-1)
catan robber {"name": "Ann", "to": Y, "from_name": "Bob"} => Ann moves the robber to (2,-1) and robs Bob
catan built {"name": "Ann", "type": "Dorf", "place": [X, Y]} => Ann builds Dorf at (1,0) (2,-1)
catan built {"name": "Ann", "type": "Dorf", "place": null} => Ann builds Dorf
catan bought_card {"name": "Ann", "card": "Ritter"} => Ann buys a development card: Ritter
catan bought_card {"name": "Ann", "card": null} => Ann buys a development card
catan played_card {"name": "Ann", "card": "Ritter", "to": Y}
    => Ann plays Ritter and moves the robber to (2,-1)
catan played_card {"name": "Ann", "card": "Monopol", "resource": "Erz"} => Ann plays Monopol for Erz
catan played_card {"name": "Ann", "card": "Erfindung", "resources": {"Erz": 2}}
    => Ann plays Erfindung for 2 Erz
catan played_card {"name": "Ann", "card": "Straßenbau", "roads": [[X, Y], [Y]]}
    => Ann plays Straßenbau: (1,0) (2,-1), (2,-1)
# One server sends the whole hand there.
catan played_card {"name": "Ann", "card": "Erfindung", "resources": {"Erz": 5}} => Ann plays Erfindung
catan trade_offered {"name": "Ann", "offer": {"Erz": 1}, "demand": {"Holz": 2}, "trade": 3}
    => Ann offers 1 Erz for 2 Holz (trade 3)
catan trade_accepted {"name": "Ann", "trade": 3} => Ann accepts trade 3
catan trade_declined {"name": "Ann", "trade": 3} => Ann rejects trade 3
catan trade_done {"name": "Ann", "partner_name": "Bob", "trade": 3} => Ann and Bob trade (trade 3)
catan trade_cancelled {"name": "Ann", "trade": 3} => Ann withdraws from trade 3
catan sea_trade {"name": "Ann", "paid": {"Erz": 4}, "gained": {"Holz": 1}}
    => Ann trades 4 Erz overseas for 1 Holz
catan longest_road {"name": "Ann"} => longest road: Ann
catan largest_army {"name": "Ann"} => largest army: Ann
catan status {"name": "Ann", "status": "Warten"} => Ann: Warten
catan chat {"name": "Ann", "text": "hi"} => Ann: hi
catan refused {"name": "Ann", "what": "Bauen", "why": "nein"} => Ann is refused Bauen: nein
catan refused {"name": "Ann", "what": null, "why": "nein"} => Ann is refused: nein
catan ended {"name": "Ann", "winner": 1} => the game is over; Ann wins
catan ended {"name": null, "winner": null} => the game is over
catan left {"name": "Ann", "reason": "end"} => Ann is gone: the recording ends
""")


@pytest.mark.full(but=34)
@pytest.mark.parametrize(("protocol", "kind", "data", "sentence"), SENTENCES)
def test_an_event_in_words(protocol: str, kind: str, data: dict[str, Any], sentence: str) -> None:
    assert BY_NAME[protocol].presentation.describe(event_of(kind, data)) == sentence


@pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)
def test_each_kind_of_event_has_a_sentence_here(dissector: Dissector) -> None:
    listed = {kind for protocol, kind, _, _ in SENTENCES if protocol == dissector.protocol}
    assert listed == {*dissector.grammar.events}


_ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(["B08", "9:RED", "2:1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)
@given(data=st.data())
def test_whatever_a_damaged_database_has_is_rendered(dissector: Dissector, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(dissector.grammar.events)))
    fields = [*dissector.grammar.events[kind].fields, CALLED]
    values = data.draw(st.dictionaries(st.sampled_from(fields), _ANY))
    assert isinstance(dissector.presentation.describe(event_of(kind, values)), str)


CODES = {
    "cgml": r"\b[RBGA](?:0[789JQKA]|10)\b|PASS",
    "okey": r"\d:(?:RED|BLUE|YELLOW|BLACK)|valid|from [em]\b|LLOB|LEFT|LOGO",
    "schafkopf": r"EICHEL|GRAS|HERZ|SCHELLEN|SOLO|SAUSPIEL|WENZ|GEIER|NICHTS|ERSTE3|BEENDEN|\b(?:JA|NEIN)\b",
    "maexchen": r"\b[A-Z]+_[A-Z_]+\b|\bMIA\b",
    "catan": r"'x'|\"x\"",
}

NO_WORDS = r"\b(?:[Hh]e|[Hh]is|[Hh]im|None|True|False)\b|\{|\bplayer \{"
FREE = {"text", "message", "why", "what"}
"""Fields in which people and programs write what they like."""


@pytest.mark.parametrize("capture", few_captures(sorted(path.name for path in CAPTURES.glob("*.pcap*"))))
def test_no_sentence_has_a_code_of_the_wire(capture: str) -> None:
    timeline = open_session(database_of(capture))
    for table in timeline.tables():
        dissector = dissector_of(table.protocol)
        assert dissector is not None
        codes = re.compile(f"{CODES[table.protocol]}|{NO_WORDS}")
        for event in timeline.events("e.table_id = ?", [table.id]):
            if FREE & {*dissector.grammar.events[event.kind].fields} and event.kind not in ("gained", "paid"):
                continue
            # From the perspective of all players, and of one without secrets.
            views = [event, dissector.identity.seen_by(event, "somebody else")]
            for sentence in [dissector.presentation.describe(view) for view in views if view is not None]:
                assert codes.search(sentence) is None, sentence
                games = {event.data.get("call"), event.data.get("game"), event.data.get("group")}
                games |= {abs(amount) for amount in event.data.get("money", {}).values()}
                for number, name in event.data.get(CALLED, {}).items():
                    assert name in sentence
                    is_other = number in map(str, games) or number in name
                    assert is_other or re.search(rf"\b{number}\b", sentence) is None, sentence
