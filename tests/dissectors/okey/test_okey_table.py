"""Real Okey servers beyond a plain game: lobbies, returning players, racing deals, foreign statuses."""

from __future__ import annotations

import tracemalloc

import pytest
from conversation import events_of, violations
from okey_script import Script
from okey_talk import Talk, four, heard
from strength import times

NAMES = ("ada", "ben", "cem", "dilek")


def say(talk: Talk, lines: str) -> None:
    talk.send(*(line.strip().replace(" ", "", 1) for line in lines.strip().splitlines()))


def lobby(number: int, *names: str) -> str:
    """Clients log in and join a lobby."""
    return "\n".join(
        f"{name} > LOGI {name}\n{name} < +LOGI {name}\n{name} > JLOB {number}\n{name} < +JLOB t"
        for name in names
    )


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


# Results.


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
