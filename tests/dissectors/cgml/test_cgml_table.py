"""The CGML table: hands that are played at random, and messages without end."""

from __future__ import annotations

import itertools

import pytest
from cgml_play import (
    ANNA,
    BEDA,
    CYRIL,
    LM,
    LOGIN,
    PLAYERS,
    Cgml,
    Hand,
    player,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times

from kiebitz.dissectors.protocols.cgml.cards import (
    LADDER,
    WITH_TWO_SEVENS,
    WITHOUT_TRUMPS,
    Rules,
)
from kiebitz.dissectors.protocols.cgml.dissector import CGML


def seated(seen: tuple[int, ...] = PLAYERS) -> Cgml:
    table = Cgml(seen)
    table.log_in()
    table.join()
    return table


@given(
    seed=st.integers(0, 10_000),
    contract=st.sampled_from([game for game in LADDER if game != "PASS"]),
    trumf=st.sampled_from("rgba"),
    seen=st.sampled_from([PLAYERS, (ANNA,), (CYRIL,), (ANNA, BEDA)]),
)
@settings(max_examples=times(60))
def test_rule_abiding_players_cause_no_violations(
    seed: int, contract: str, trumf: str, seen: tuple[int, ...]
) -> None:
    table = seated(seen)
    if contract in WITHOUT_TRUMPS:
        trumf = ""
    elif contract in WITH_TWO_SEVENS:
        trumf += ":" + "rgba"["rgba".index(trumf) - 1]
    hand = Hand(table, seed, contract, trumf)
    hand.whole()
    assert table.diagnostics == []
    (game,) = table.games
    assert game.label == "group 4, hand 1"
    assert game.result == {
        "contract": contract,
        "declarer": ANNA,
        "money": dict(zip(map(str, PLAYERS), hand.due(), strict=True)),
    }
    assert [(data["winner"], data["cards"]) for data in table.data("trick")] == hand.tricks
    assert len(table.data("played")) == 30
    assert "games" not in table.state() or table.state()["games"] == {}


def test_only_his_own_cards_are_shown_as_a_player() -> None:
    table = seated()
    Hand(table).deal()
    dealt = [event for event in table.events if event.kind == "dealt"]
    for event in dealt:
        for who in PLAYERS:
            seen = CGML.identity.seen_by(event, str(who))
            assert seen is not None
            assert (seen.data["cards"] == [None] * 10) == (event.data["player"] != who)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("count", [1, 3, 10])
@pytest.mark.parametrize("contract", sorted(WITHOUT_TRUMPS))
def test_the_tricks_decide_a_game_without_trumps(contract: str, count: int) -> None:
    reported = set()
    for seed, has_won in itertools.product(range(times(100, 20)), (True, False)):
        table = seated()
        hand = Hand(table, seed, contract, "")
        hand.until("double")
        for _ in range(count):
            hand.trick()
        hand.result(*((4, -2, -2) if has_won else (-4, 2, 2)))
        taken = sum(winner == ANNA for winner, _ in hand.tricks)
        is_lost = taken > 0 if contract == "SMALL" else taken < count
        # Only the last trick shows that a declarer has won; before, the players may give up.
        is_wrong = has_won if is_lost else not has_won and count == 10
        assert table.codes == ([("wrong-result", "error", "server")] if is_wrong else [])
        reported.add((has_won, is_wrong))
    assert (True, True) in reported


@pytest.mark.parametrize(
    ("table", "hand", "trump", "allowed"),
    [
        ([], ["R07", "B0A"], "R", ["R07", "B0A"]),
        # The colour that was led: higher, if possible.
        (["G0Q"], ["G07", "G0K", "G0A", "R07"], "R", ["G0K", "G0A"]),
        (["G0A"], ["G07", "G0K", "R07"], "R", ["G07", "G0K"]),
        # The ten is above the king.
        (["G0K"], ["G10", "G0Q"], "R", ["G10"]),
        # Trumps have been played: any card of the colour.
        (["G0Q", "R07"], ["G07", "G0K"], "R", ["G07", "G0K"]),
        (["R0Q", "R07"], ["R0K", "R08"], "R", ["R0K"]),
        # Without the colour: a trump, a higher one if possible.
        (["G0Q"], ["R07", "B0A"], "R", ["R07"]),
        (["G0Q", "R0J"], ["R07", "R0K", "B0A"], "R", ["R0K"]),
        (["G0Q", "R0A"], ["R07", "R0K", "B0A"], "R", ["R07", "R0K"]),
        (["G0Q"], ["B0A", "A07"], "R", ["B0A", "A07"]),
        # Without trumps the ten ranks below the jack.
        (["G0J"], ["G10", "G0Q", "R0A"], None, ["G0Q"]),
    ],
)
def test_the_eleven_steps(table: list[str], hand: list[str], trump: str | None, allowed: list[str]) -> None:
    rules = Rules("7" if trump else "SMALL", trump)
    assert rules.allowed(table, hand) == allowed


@pytest.mark.full
def test_the_state_is_bounded_for_any_messages() -> None:
    table = seated()
    hand = Hand(table)
    hand.deal()
    for number in range(times(3000, 1100)):
        table.tells(ANNA, f'<licite type="info" playerid="{number}">G</licite>')
        table.tells(ANNA, f'<flek type="info" playerid="{number}">2</flek>')
        table.says(
            100 + number % 3, f'<newgroup status="accept" id="{number}">{LM}{player(number)}</newgroup>'
        )
        table.says(ANNA, f'<pause type="start"><message>{number}</message></pause>')
        table.says(ANNA, f'<connect status="active">{player(number)}{LM}</connect>', LOGIN)
    state = table.state()
    assert len(str(state)) < 200_000
    assert len(state["groups"]) <= 101
    assert len(state["players"]) <= 1000
    assert len(table.state(LOGIN)["players"]) <= 1000
