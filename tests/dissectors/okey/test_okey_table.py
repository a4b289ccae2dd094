"""Real Okey servers beyond a plain game: lobbies, returning players, racing deals, foreign statuses."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from conversation import events_of, state_of, violations
from okey_script import Script
from okey_talk import Talk, four, heard
from strength import times

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event, Findings
from kiebitz.dissectors.protocols.okey.dissector import OKEY

NAMES = ("ada", "ben", "cem", "dilek")
DECK = " ".join(f"{number}:{colour}" for colour in ("RED", "BLUE") for number in range(1, 8))
STARTER = f"{DECK} 13:BLACK"
OTHER = " ".join(f"{number}:{colour}" for colour in ("YELLOW", "BLACK") for number in range(1, 8))
EMPTY = r'"\" \" \" \" \" \" \" \" "'


def talk_of(lines: str) -> Findings:
    """`client > line` is a client's message, `client < line` the server's."""
    talk = Talk()
    say(talk, lines)
    return talk.close("end")


def say(talk: Talk, lines: str) -> None:
    talk.send(*(line.strip().replace(" ", "", 1) for line in lines.strip().splitlines()))


def lobby(number: int, *names: str) -> str:
    """Clients log in and join a lobby."""
    return "\n".join(
        f"{name} > LOGI {name}\n{name} < +LOGI {name}\n{name} > JLOB {number}\n{name} < +JLOB t"
        for name in names
    )


def story(found: Findings) -> list[tuple[Any, ...]]:
    return [(event.kind, event.actor) for event in found.events]


def state_before(found: Findings, last: Event) -> State:
    return state_of(found, found.events.index(last))


# Players and lobbies.


def test_the_name_is_the_one_that_the_server_gives() -> None:
    found = talk_of("a > LOGI Istref\na < PING\na < +LOGI Istref_2\na > NAME x\na < +NAME x_1")
    assert [(event.kind, event.data) for event in found.events][:2] == [
        ("logged_in", {"name": "Istref_2"}),
        ("renamed", {"name": "x_1", "before": "Istref_2"}),
    ]
    assert state_before(found, found.events[-1]) == {"players": {"x_1": {}}}


def test_a_response_belongs_to_its_request_although_others_got_none() -> None:
    found = talk_of(
        "a > LOGI a\na < +LOGI a\na > JLOB x\na > DRAW\na > JLOB 3\na > JLOB 4\na < +JLOB t\na < +JLOB f"
    )
    [joined] = events_of(found, "joined_lobby")
    assert joined.data == {"name": "a", "lobby": 3}
    assert [violation.code for violation in violations(found)] == ["bad-number", "missing-field"]


def test_lobbies_and_readiness_of_players() -> None:
    found = talk_of(f"{lobby(42, 'a', 'b')}\n{lobby(-5, 'c')}\na > REDY\na < +REDY\nc > LOGO\nc < +LOGO")
    last = next(event for event in found.events if event.kind == "left" and event.actor != "c")
    assert state_before(found, last) == {
        "players": {"a": {"lobby": 42}, "b": {"lobby": 42}},
        "lobbies": {"42": {"players": ["a", "b", None, None], "ready": ["a"]}},
    }


def test_joining_and_leaving_are_one_event_for_all_receivers() -> None:
    found = talk_of(
        f"""{lobby(1, "a")}
        a < JOND a
        {lobby(1, "b")}
        a < JOND b
        b < JOND b
        b > LLOB
        a < LEFT b
        b < +LLOB t
        """
    )
    assert story(found)[1:6] == [
        ("joined_lobby", "a"),
        ("logged_in", "b"),
        ("joined_lobby", "b"),
        ("left", "b"),
        ("left", "a"),
    ]
    # The last is the end of the capture.
    assert [event.data["reason"] for event in events_of(found, "left")] == ["LEFT", "end", "end"]


def test_an_uncaptured_player_joins_and_leaves() -> None:
    found = talk_of(f"{lobby(1, 'a')}\na < JOND a\na < JOND b\na < LEFT b")
    assert [(event.kind, event.data["name"], event.data["lobby"]) for event in found.events[1:4]] == [
        ("joined_lobby", "a", 1),
        ("joined_lobby", "b", 1),
        ("left", "b", 1),
    ]


def test_a_connection_that_breaks_is_a_player_that_leaves() -> None:
    talk = Talk()
    say(talk, lobby(1, "a"))
    found = talk.close("reset")
    [left] = events_of(found, "left")
    assert left.data == {"name": "a", "lobby": 1, "reason": "reset"}
    assert not any(state_of(found).values())


# Chat.


def test_a_whisper_is_one_event_and_others_do_not_see_it() -> None:
    found = talk_of(
        f"""{lobby(1, "a", "b")}
        a > CATC w hallo b
        b < CATS w hallo a
        a < +CATC w hallo b t
        a > CATC w hallo a
        a < CATS w hallo a
        a < +CATC w hallo a t
        a > CATC w hallo niemand
        a < +CATC w " " niemand f
        """
    )
    to_b, to_a = events_of(found, "chat")
    assert to_b.data == {
        "scope": "w",
        "from": "a",
        "to": "b",
        "text": "hallo",
        "known_to": ["a", "b"],
        "others_see": {"text": None},
    }
    assert (to_a.data["from"], to_a.data["to"]) == ("a", "a")
    told = [message.event_id for message in found.messages if message.name in ("CATS", "+CATC")]
    assert told == [to_b.id, to_b.id, to_a.id, to_a.id, None]


def test_a_repeated_message_is_recorded_twice() -> None:
    lines = "a > CATC b x\nb < CATS b x a\na < +CATC b x\n"
    found = talk_of(lobby(1, "a", "b") + "\n" + 2 * lines)
    assert len(events_of(found, "chat")) == 2


# Games.


def deal(*seats: tuple[str, str]) -> str:
    return "\n".join(f'{name} < STRT "{deck} " {number}' for number, (name, deck) in enumerate(seats))


def test_the_first_put_is_known_to_the_others() -> None:
    found = talk_of(
        f"""{lobby(1, "a")}
        a < STRT "{DECK} " 0
        a < STAT "\\" \\" \\" \\" 5:BLACK \\" \\" " 2
        """
    )
    [put] = events_of(found, "put")
    assert (put.data["seat"], put.data["tile"], put.data["deck"]) == (1, "5:BLACK", None)


def test_one_ready_player_deals_again_and_the_game_before_is_over() -> None:
    talk = Talk()
    say(talk, lobby(1, *NAMES[:2]))
    say(talk, deal(("ada", STARTER), ("ben", OTHER)))
    talk.wait(5)
    say(talk, deal(("ada", DECK), ("ben", OTHER)))
    found = talk.close("end")
    games = {game.id: game for game in found.games}
    assert [games[number].result for number in sorted(games)] == [None, None]
    assert [event.game_id for event in events_of(found, "dealt")] == [1, 1, 2, 2]
    assert games[1].ended_ns == games[2].started_ns


def test_deals_that_race_are_games_of_their_own() -> None:
    found = talk_of(
        f"""{lobby(1, "ada", "ben")}
        ada < STRT "{STARTER} " 0
        ada < STRT "{OTHER} " 0
        ben < STRT "{OTHER} " 1
        ben < STRT "{STARTER} " 1
        ben > PUTT 13:BLACK "{DECK} "
        ben < +PUTT t f
        """
    )
    assert [(event.game_id, event.actor) for event in events_of(found, "dealt")] == [
        (1, "ada"),
        (2, "ada"),
        (1, "ben"),
        (2, "ben"),
    ]
    assert violations(found) == []
    [put] = events_of(found, "put")
    assert put.game_id == 2


@pytest.mark.parametrize("head", [False, True], ids=["seed", "head"])
def test_a_returning_player_has_the_same_deck(head: bool) -> None:
    script = Script(3, head)
    four(script, 1, *NAMES)
    table = script.tables[1]
    script.play(table, 6)
    if head:
        script.leave("cem")
    else:
        script.logout("cem")
        script.at.pop("cem")
        table.players[2] = None
        script.login("cem")
    script.join(1, "cem")
    script.play(table, 6)
    found = heard(script.steps)
    assert violations(found) == []
    [back] = events_of(found, "returned")
    assert (back.actor, back.data["seat"], back.game_id) == ("cem", 2, 1)
    assert len({game.id for game in found.games}) == 1
    assert len(events_of(found, "drew", "put")) == len(script.moves)


def test_a_draw_is_told_to_whoever_receives_of_it() -> None:
    for head in (False, True):
        script = Script(1, head)
        four(script, 1, *NAMES)
        script.play(script.tables[1], 3)
        if len(script.tables[1].decks[script.tables[1].turn]) == 15:
            script.put(script.tables[1])
        script.empty(script.tables[1])
        found = heard(script.steps)
        assert violations(found) == []
        assert len(events_of(found, "drawn_game")) == 1
        assert {game.id: game.result for game in found.games} == {1: {"draw": True}}


def test_the_specifications_server_plays_on_after_a_win() -> None:
    script = Script(2)
    four(script, 1, *NAMES)
    table = script.tables[1]
    script.play(table, 5)
    script.win(table)
    script.draw(table)
    found = heard(script.steps)
    assert [violation.code for violation in violations(found)] == ["after-end"]
    assert [violation.severity for violation in violations(found)] == ["warning"]
    last = events_of(found, "drew")[-1]
    assert last.game_id == events_of(found, "won")[0].game_id


def test_a_client_outside_lobbies_receives_the_turn() -> None:
    """The specification's server sends statuses to all clients, also to those without a game."""
    script = Script(4)
    script.login("watcher")
    four(script, 1, *NAMES)
    script.play(script.tables[1], 6)
    found = heard(script.steps)
    assert violations(found) == []
    watched = [m for m in found.messages if m.name == "STAT" and m.stream.id == 1]
    assert {message.game_id for message in watched} == {1}
    assert {message.event_id for message in watched} <= {event.id for event in events_of(found, "status")}
    alone = heard(script.steps, lambda client: client == "watcher")
    assert (len(alone.games), events_of(alone, "status")) == (0, [])


def test_a_win_is_told_to_other_lobbies_and_is_not_theirs() -> None:
    script = Script(6)
    four(script, 1, *NAMES)
    four(script, 2, "esra", "fred", "gül", "hans")
    script.play(script.tables[1], 4)
    script.play(script.tables[2], 4)
    script.win(script.tables[1])
    script.play(script.tables[2], 2)
    found = heard(script.steps)
    assert violations(found) == []
    [won] = events_of(found, "won")
    assert (won.game_id, won.actor) == (1, NAMES[script.tables[1].turn - 1])
    assert {game.id: game.result for game in found.games}[2] is None


def test_a_joker_of_another_colour_does_nothing_and_the_right_one_is_taken() -> None:
    rest = " ".join(f"{number}:{colour}" for colour in ("RED", "BLUE") for number in range(1, 8))
    found = talk_of(
        f"""{lobby(1, "ada")}
        ada < STRT "{rest} 0:YELLOW " 0
        ada > PUTT 0:RED "{rest} "
        ada < +PUTT t f
        ada > PUTT 0:YELLOW "{rest} "
        ada < +PUTT t f
        ada < STAT "\\" \\" 0:YELLOW \\" \\" \\" \\" " 1
        """
    )
    assert [(violation.code, violation.severity) for violation in violations(found)] == [
        ("joker-colour", "warning")
    ]


def test_a_win_that_is_none() -> None:
    found = talk_of(
        f"""{lobby(1, "ada")}
        ada < STRT "{DECK.replace("7:BLUE", "13:BLACK")} 9:YELLOW " 0
        ada > PUTT 9:YELLOW "{DECK.replace("7:BLUE", "13:BLACK")} "
        ada < +PUTT t t
        """
    )
    [violation] = violations(found)
    assert (violation.code, violation.severity, violation.blame) == ("no-win", "error", "server")


# Results.


def won_game(head: bool = True) -> Script:
    """Return a game that ends with a win."""
    script = Script(5, head)
    four(script, 1, *NAMES)
    script.play(script.tables[1], 6)
    script.win(script.tables[1])
    return script


def announce_another(script: Script, *copies: int) -> None:
    """Let these copies of PWIN name the player after the winner."""
    steps = script.steps
    places = [number for number, step in enumerate(steps) if step.name == "PWIN"]
    for place in [places[copy] for copy in copies] if copies else places:
        winner = NAMES.index(steps[place].fields["nickname"])
        fields = {"nickname": NAMES[winner - 1]}
        steps[place] = steps[place]._replace(fields=fields, data=OKEY.codec.encode("PWIN", "s2c", fields))


@pytest.mark.parametrize("head", [True, False])
@pytest.mark.parametrize(
    ("copies", "codes"), [((), ["no-win"]), ((0,), ["no-win"]), ((2,), ["other-winner"])]
)
def test_another_player_is_announced_as_the_winner(
    copies: tuple[int, ...], codes: list[str], head: bool
) -> None:
    script = won_game(head)
    assert violations(heard(script.steps)) == []
    announce_another(script, *copies)
    found = violations(heard(script.steps))
    assert [(one.code, one.severity, one.blame) for one in found] == [
        (code, "error", "server") for code in codes
    ]
    # A missing message may explain it: the tiles of the announced player are not known then.
    name = script.steps[-1].client
    alone = heard(script.steps, lambda client: client == name)
    assert {one.code for one in violations(alone)} <= {"other-winner"}


def test_a_result_that_no_message_explains_has_a_note() -> None:
    script = won_game()
    winner = next(step.fields["nickname"] for step in script.steps if step.name == "PWIN")
    for client in NAMES:
        alone = heard(script.steps, client.__eq__)
        codes = [one.code for one in alone.diagnostics if one.code.endswith("-missing")]
        assert codes == ([] if client == winner else ["tiles-missing"])


@pytest.mark.parametrize("turns", [8, 40, 400])
def test_an_empty_main_stack(turns: int) -> None:
    script = Script(7, True)
    four(script, 1, *NAMES)
    table = script.tables[1]
    while turns and table.main:
        script.play(table, 1)
        turns -= 1
    if len(table.decks[table.turn]) == 15:
        script.put(table)
    is_empty = not table.main
    script.empty(table)
    found = heard(script.steps)
    assert violations(found) == []
    notes = [one.text.partition(",")[0] for one in found.diagnostics if one.code == "draws-missing"]
    drawn = sum(move.kind == "drew" and move.stack == "m" for move in script.moves)
    assert notes == ([] if is_empty else [f"the main stack is empty: {drawn} of its 49 tiles were drawn"])


def test_a_tile_from_an_exchange_stack_that_was_not_on_top() -> None:
    found = talk_of(
        f"""{lobby(1, "ada")}
        ada < NAMS ada
        ada < STRT "{DECK} " 0
        ada < STAT "5:BLACK \\" \\" \\" \\" \\" \\" " 0
        ada > DRAW e
        ada < +DRAW 6:BLACK
        """
    )
    [violation] = violations(found)
    assert (violation.code, violation.expected, violation.blame) == ("other-tile", "5:BLACK", "server")


def test_a_tile_is_put_too_many_where_it_is_not_known_whose_turn_it_is() -> None:
    rest = DECK.replace("7:BLUE", "").strip()
    found = talk_of(
        f"""{lobby(1, "ada")}
        ada < STRT "{DECK} " 0
        ada < STAT "5:BLACK \\" \\" \\" \\" \\" \\" " 1
        ada < STAT "5:BLACK 6:BLACK 7:BLACK 8:BLACK " 0
        ada > PUTT 7:BLUE "{rest} "
        """
    )
    [violation] = violations(found)
    assert (violation.code, violation.expected, violation.blame) == (
        "must-draw",
        "DRAW, in this player's turn",
        "client",
    )


# Bounds.


@pytest.mark.full
def test_hostile_talk_is_bounded() -> None:
    """Unanswered requests, invented lobbies, and long chats leave little behind."""
    talk = Talk()
    say(talk, lobby(1, "a"))
    tracemalloc.start()
    try:
        for number in range(times(2000, quick=400)):
            talk.say("a", "c2s", b"CATC b " + b"x" * 20_000 + b"\r\n")
            talk.say("a", "c2s", f"JLOB {number}\r\n".encode())
            talk.say("a", "s2c", f'+LGAM o "{number}:1 "\r\n'.encode())
            talk.say("a", "s2c", b"CATS b " + b"x" * 20_000 + f"{number} b\r\n".encode())
            if number % 20 == 0:
                talk.inspector.drain()
        talk.inspector.drain()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 4 << 20
