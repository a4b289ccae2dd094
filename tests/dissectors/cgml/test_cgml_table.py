"""The CGML table: scripted conversations, what becomes of them, and which rule was broken by whom."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from cgml_play import (
    ANNA,
    BEDA,
    CYRIL,
    GAME_SERVER,
    LM,
    LOGIN,
    PLAYERS,
    Cgml,
    Hand,
    cards,
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
    card_words,
    cards_words,
)
from kiebitz.dissectors.protocols.cgml.dissector import CGML


def seated(seen: tuple[int, ...] = PLAYERS) -> Cgml:
    table = Cgml(seen)
    table.log_in()
    table.join()
    return table


# What is played by the rules.


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


def test_known_cards_in_the_middle_of_a_hand() -> None:
    table = seated()
    hand = Hand(table)
    hand.until("double")
    hand.trick()
    first = hand.order()[0]
    card = hand.rules.allowed([], hand.hands[first])[0]
    hand.plays(first, card)
    (part,) = table.state()["games"].values()
    assert part["seats"] == [ANNA, BEDA, CYRIL]
    assert part["contract"] == "7"
    assert part["declarer"] == ANNA
    assert part["trump"] == "R"
    assert part["flek"] == "2"
    assert part["fleks"] == [{"player": who, "level": "2"} for who in (BEDA, CYRIL, ANNA)]
    assert part["bidding"][-1] == {"player": CYRIL, "call": "PASS"}
    assert part["talon"] == 2
    assert part["private"][str(ANNA)]["talon"] == hand.discarded
    assert part["table"] == [{"player": first, "card": card}]
    assert part["hands"] == {str(who): 9 - (who == first) for who in PLAYERS}
    for who in PLAYERS:
        held = [held for held in hand.hands[who] if held != card or who != first]
        assert part["private"][str(who)]["hand"] == held
    _, played = hand.tricks[0]
    assert [one["card"] for one in part["tricks"][0]["cards"]] == played
    assert part["turn"] == hand.order()[1]
    assert part["inferred"] == ["turn"]


def test_only_his_own_cards_are_shown_as_a_player() -> None:
    table = seated()
    Hand(table).deal()
    dealt = [event for event in table.events if event.kind == "dealt"]
    for event in dealt:
        for who in PLAYERS:
            seen = CGML.identity.seen_by(event, str(who))
            assert seen is not None
            assert (seen.data["cards"] == [None] * 10) == (event.data["player"] != who)


def test_one_conversation_shows_the_others_cards_once_played() -> None:
    table = seated((BEDA,))
    hand = Hand(table)
    hand.until("double")
    hand.trick()
    (part,) = table.state()["games"].values()
    assert {*part["private"]} == {str(BEDA)}
    assert part["hands"] == {str(who): 9 for who in PLAYERS}
    assert [one["card"] for one in part["tricks"][0]["cards"]] == hand.tricks[0][1]
    assert table.data("talon_taken") == [{"player": ANNA, "cards": [None, None]}]
    assert table.data("discarded") == [{"player": ANNA, "cards": [None, None]}]


def test_all_cards_that_are_left_may_be_laid_down_at_once() -> None:
    table = seated()
    hand = Hand(table)
    hand.until("double")
    for _ in range(7):
        hand.trick()
    leader = hand.leader
    laid = hand.hands[leader].copy()
    hand.plays(leader, *laid)
    for place, card in enumerate(laid):
        others = [hand.hands[who][place] for who in hand.order()[1:]]
        hand.tricks.append((leader, [card, *others]))
        hand.tells_trick(winner=leader)
    assert [code for code, _, _ in table.codes if code != "wrong-winner"] == []
    assert table.data("played")[-1] == {"player": leader, "cards": laid}
    (part,) = table.state()["games"].values()
    assert [one["player"] for one in part["tricks"][-1]["cards"]] == hand.order()


def test_a_pause_is_reported_once_with_that_wants_it() -> None:
    table = seated()
    hand = Hand(table)
    hand.deal()
    for who, others in ((ANNA, (BEDA, CYRIL)), (BEDA, (ANNA, CYRIL))):
        start = '<pause type="start"><message>pivo</message></pause>'
        table.says(who, start)
        table.tells(others, start)
        assert table.state()["games"]["1"]["pause"] == {"player": who, "message": "pivo"}
        table.wait(60)
        table.says(who, '<pause type="finish"></pause>')
        table.tells(others, '<pause type="finish"></pause>')
    assert table.data("paused") == [{"player": who, "message": "pivo"} for who in (ANNA, BEDA)]
    assert table.data("resumed") == [{"player": who} for who in (ANNA, BEDA)]
    assert "pause" not in table.state()["games"]["1"]
    assert table.diagnostics == []


def test_a_card_that_waits_for_the_end_of_a_pause_is_played_once() -> None:
    table = seated()
    hand = Hand(table)
    hand.until("double")
    card = hand.hands[ANNA][0]
    table.tells(ANNA, '<playcard type="ask"></playcard>')
    table.says(ANNA, f'<playcard type="cards" from="hand" to="desk">{cards([card])}</playcard>')
    table.wait(30)
    hand.shows(ANNA, card)
    assert table.data("played") == [{"player": ANNA, "cards": [card]}]
    assert table.diagnostics == []


@pytest.mark.parametrize(
    ("text", "kind", "result"),
    [
        ("<cancelgame>pass</cancelgame>", "cancelled", {"cancelled": "pass"}),
        (
            f"<abort>{player(BEDA)}<message>timeout</message></abort>",
            "aborted",
            {"aborted": "timeout"},
        ),
    ],
)
def test_a_hand_may_end_early(text: str, kind: str, result: dict[str, str]) -> None:
    table = seated()
    hand = Hand(table)
    hand.deal()
    table.tells(PLAYERS, text)
    assert len(table.data(kind)) == 1
    assert table.games[0].result == result
    Hand(table, 2).whole()
    assert [game.label for game in table.games] == ["group 4, hand 1", "group 4, hand 2"]
    assert table.diagnostics == []


def test_a_group_that_a_player_rejects() -> None:
    table = Cgml()
    table.log_in()
    table.says(ANNA, f'<newgroup status="accept" id="4">{LM}{player(ANNA)}</newgroup>')
    table.says(BEDA, f'<newgroup status="reject" id="4">{LM}{player(BEDA)}</newgroup>')
    table.tells(ANNA, "<cancelgame>reject</cancelgame>")
    table.tells(ANNA, "<disconnect>group canceled</disconnect>")
    assert table.data("rejected") == [{"player": BEDA, "group": 4, "what": "group"}]
    assert table.data("cancelled") == [{"why": "reject"}]
    assert table.data("left") == [{"player": ANNA, "why": "group canceled"}]
    assert table.games == []


def test_a_hand_without_players_is_aborted() -> None:
    table = seated()
    hand = Hand(table)
    hand.until("double")
    for who in PLAYERS:
        table.closes(who)
    assert table.games[0].result == {"aborted": "closed"}
    assert table.data("left") == [{"player": who, "why": "closed"} for who in PLAYERS]
    assert table.state() == {"groups": {}, "games": {}, "players": {}}


def test_the_login_server_s_players_are_known_at_the_game_server() -> None:
    table = Cgml()
    table.log_in()
    table.says(ANNA, f'<newgroup status="accept" id="4">{LM}{player(ANNA)}</newgroup>')
    group = table.state()["groups"]["4"]
    assert {*group["players"]} == {*PLAYERS}
    assert group["accepted"] == [ANNA]
    assert table.state()["players"][str(CYRIL)] == {"name": f"p{CYRIL}", "race": "human"}
    assert table.data("group_formed")[0]["group"] == 4
    assert table.state(LOGIN)["groups"]["4"]["url"] == f"127.0.0.1:{GAME_SERVER}"


def test_without_the_login_server_no_violation_is_reported() -> None:
    table = Cgml()
    table.join(7)
    Hand(table).whole()
    assert table.diagnostics == []
    assert table.games[0].label == "group 7, hand 1"


def test_one_server_may_be_both() -> None:
    table = Cgml()
    for who in PLAYERS:
        table.says(who, f'<connect status="active">{player(who)}{LM}</connect>')
    for who in PLAYERS:
        others = "".join(player(other) for other in PLAYERS if other != who)
        url = f"<url>127.0.0.1:{GAME_SERVER}</url>"
        table.tells(who, f'<connect status="complete" id="4">{LM}{others}{url}</connect>')
    table.join()
    Hand(table).whole()
    assert table.diagnostics == []
    assert table.games[0].label == "group 4, hand 1"


def test_two_groups_at_one_server_are_kept_apart() -> None:
    others = (21, 22, 23)
    table = seated((*PLAYERS, *others))
    for who in others:
        table.says(who, f'<newgroup status="accept" id="5">{LM}{player(who)}</newgroup>')
    Hand(table).deal()
    table.ask_for_hand(others)
    table.tells(others, '<licite type="info" playerid="21">G</licite>')
    table.tells(PLAYERS, f'<licite type="info" playerid="{BEDA}">G</licite>')
    assert table.data("hand_asked") == [
        {"group": 4, "players": [*PLAYERS]},
        {"group": 5, "players": [*others]},
    ]
    assert [data["player"] for data in table.data("bid")] == [BEDA]


# What is not.


def bids_instead_of_yes(hand: Hand) -> None:
    hand.deal()
    hand.bids(BEDA, "", "G")
    hand.bids(ANNA, "G", "100")


def says_yes_to_nothing(hand: Hand) -> None:
    hand.deal()
    hand.bids(BEDA, "", "YES", told="PASS")


def bids_lower(hand: Hand) -> None:
    hand.deal()
    hand.bids(BEDA, "", "100")
    hand.bids(ANNA, "100", "NO")
    hand.bids(CYRIL, "", "G")


def bid_told_otherwise(hand: Hand) -> None:
    hand.deal()
    hand.bids(BEDA, "", "G", told="7")


def contract_nobody_bid(hand: Hand) -> None:
    hand.deal()
    hand.bids(BEDA, "", "G")
    hand.table.tells(PLAYERS, f'<licite type="result" playerid="{BEDA}">100</licite>')


def card_dealt_twice(hand: Hand) -> None:
    hand.dealt[BEDA][0] = hand.dealt[ANNA][0]
    hand.deal()


def too_few_dealt(hand: Hand) -> None:
    del hand.dealt[CYRIL][9]
    hand.deal()
    hand.bids(BEDA, "", "G")


def too_many_dealt(hand: Hand) -> None:
    hand.dealt[CYRIL].append(hand.talon[0])
    hand.deal()
    hand.bids(BEDA, "", "G")


def talon_for_the_wrong_one(hand: Hand) -> None:
    hand.until("bid")
    hand.table.tells(BEDA, f'<dial type="cards" from="talon" to="hand">{cards(hand.talon)}</dial>')


def talon_of_three(hand: Hand) -> None:
    hand.until("bid")
    three = cards([*hand.talon, hand.dealt[BEDA][0]])
    hand.table.tells(ANNA, f'<dial type="cards" from="talon" to="hand">{three}</dial>')


def discards_one(hand: Hand) -> None:
    hand.until("take_talon")
    card = hand.hands[ANNA][0]
    hand.table.says(ANNA, f'<playcard type="cards" from="hand" to="talon">{cards([card])}</playcard>')


def discards_what_he_has_not(hand: Hand) -> None:
    hand.until("take_talon")
    wrong = cards([hand.hands[ANNA][0], hand.hands[BEDA][0]])
    hand.table.says(ANNA, f'<playcard type="cards" from="hand" to="talon">{wrong}</playcard>')


def no_trumps(hand: Hand) -> None:
    hand.until("discard")
    hand.name_trumps(trumf="")


def second_colour(hand: Hand) -> None:
    hand.until("discard")
    hand.name_trumps(trumf="r:g")


def one_colour(hand: Hand) -> None:
    hand.until("discard")
    hand.contract = "27"
    hand.name_trumps(trumf="r", told="r:g")


def needless_trumps(hand: Hand) -> None:
    hand.contract = "SMALL"
    hand.until("name_trumps")


def no_trumps_told(hand: Hand) -> None:
    hand.until("discard")
    game = "<licite>7</licite>"
    hand.table.tells(PLAYERS, f'<gametype type="info" playerid="{ANNA}">{game}</gametype>')


def flek_against_nothing(hand: Hand) -> None:
    hand.contract = "100"
    hand.until("name_trumps")
    hand.table.tells(BEDA, '<flek type="ask">1</flek>')
    hand.table.says(BEDA, '<flek type="answer">1:2</flek>')


def flek_lowered(hand: Hand) -> None:
    hand.until("double")
    hand.table.tells(BEDA, '<flek type="ask">4:2</flek>')
    hand.table.says(BEDA, '<flek type="answer">4</flek>')


def level_told_otherwise(hand: Hand) -> None:
    hand.until("name_trumps")
    hand.doubles(BEDA, "1", "2")
    hand.sum_up("4")


def game_told_otherwise(hand: Hand) -> None:
    hand.until("name_trumps")
    hand.trumf = "g"
    hand.sum_up("1")


def plays_what_he_has_not(hand: Hand) -> None:
    hand.until("double")
    hand.table.tells(ANNA, '<playcard type="ask"></playcard>')
    wrong = cards([hand.hands[BEDA][0]])
    hand.table.says(ANNA, f'<playcard type="cards" from="hand" to="desk">{wrong}</playcard>')


def does_not_follow(hand: Hand) -> None:
    """The first player who has the colour that was led plays another one."""
    hand.until("double")
    for led in hand.hands[ANNA]:
        held = hand.hands[BEDA]
        other = [card for card in held if card[0] != led[0]]
        if other and len(other) < len(held):
            hand.plays(ANNA, led)
            hand.table.tells(BEDA, '<playcard type="ask"></playcard>')
            hand.table.says(
                BEDA, f'<playcard type="cards" from="hand" to="desk">{cards(other[:1])}</playcard>'
            )
            return
    raise AssertionError("with these cards nobody can break the rule")


def plays_two(hand: Hand) -> None:
    hand.until("double")
    hand.table.tells(ANNA, '<playcard type="ask"></playcard>')
    two = cards(hand.hands[ANNA][:2])
    hand.table.says(ANNA, f'<playcard type="cards" from="hand" to="desk">{two}</playcard>')


def plays_unasked(hand: Hand) -> None:
    hand.until("double")
    one = cards(hand.hands[CYRIL][:1])
    hand.table.says(CYRIL, f'<playcard type="cards" from="hand" to="desk">{one}</playcard>')


def bids_twice(hand: Hand) -> None:
    hand.deal()
    hand.bids(BEDA, "", "G")
    hand.table.says(BEDA, '<licite type="answer">7</licite>')


def shown_of_two(hand: Hand) -> None:
    hand.until("double")
    card = hand.hands[ANNA][0]
    hand.plays(ANNA, card)
    hand.shows(BEDA, card)


def wrong_winner(hand: Hand) -> None:
    hand.until("double")
    hand.trick(tell=False)
    winner = hand.tricks[-1][0]
    hand.tells_trick(winner=next(who for who in PLAYERS if who != winner))


def trick_told_otherwise(hand: Hand) -> None:
    hand.until("double")
    hand.trick(tell=False)
    table = hand.tricks[-1][1]
    hand.tells_trick(codes=[table[0], table[1], hand.hands[ANNA][0]])


def wrong_number(hand: Hand) -> None:
    hand.until("double")
    hand.trick(tell=False)
    hand.tells_trick(number=5)


def money_for_nothing(hand: Hand) -> None:
    hand.until("double")
    for _ in range(10):
        hand.trick()
    hand.result(5, -2, -2)


def money_for_both_sides(hand: Hand) -> None:
    hand.until("double")
    for _ in range(10):
        hand.trick()
    hand.result(2, 2, -4)


def result_of_another_game(hand: Hand) -> None:
    hand.until("double")
    for _ in range(10):
        hand.trick()
    hand.result(licite="100")


def result_with_other_trumps(hand: Hand) -> None:
    hand.until("double")
    hand.trick()
    hand.result(trumf="g")


def result_with_another_level(hand: Hand) -> None:
    hand.until("double")
    hand.trick()
    hand.result(flek="8")


def result_with_another_trick(hand: Hand) -> None:
    hand.until("double")
    hand.trick()
    winner, table = hand.tricks[0]
    hand.tricks[0] = winner, [table[1], table[0], table[2]]
    hand.result()


def won_and_lost(hand: Hand) -> None:
    hand.until("double")
    both = "".join(
        f'<{tag} playerid="{ANNA}"><money type="{word}">2</money></{tag}>'
        for tag, word in (("winer", "get"), ("loser", "lost"))
    )
    game = "<licite>7</licite><trumf>r</trumf><flek>2</flek>"
    hand.table.tells(PLAYERS, f"<result>{LM}{game}{both}</result>")


def won_twice(hand: Hand) -> None:
    hand.until("double")
    twice = f'<winer playerid="{ANNA}"><money type="get">2</money></winer>' * 2
    game = "<licite>7</licite><trumf>r</trumf><flek>2</flek>"
    hand.table.tells(PLAYERS, f"<result>{LM}{game}{twice}</result>")


def plays_to_the_login_server(hand: Hand) -> None:
    hand.deal()
    hand.table.says(ANNA, '<playcard type="cards" from="hand" to="desk"><card>R07</card></playcard>', LOGIN)


def logs_in_at_the_game_server(hand: Hand) -> None:
    hand.deal()
    hand.table.says(ANNA, f'<connect status="active">{player(ANNA)}{LM}</connect>')


def joins_a_group_that_is_none(hand: Hand) -> None:
    hand.table.says(ANNA, f'<newgroup status="accept" id="777">{LM}{player(ANNA)}</newgroup>')


@pytest.mark.full(but=10)
@pytest.mark.parametrize(
    ("breaks", "code", "severity", "blame"),
    [
        (bids_instead_of_yes, "wrong-answer", "error", "client"),
        (says_yes_to_nothing, "wrong-answer", "error", "client"),
        (bids_lower, "bid-not-higher", "warning", "client"),
        (bid_told_otherwise, "told-otherwise", "error", "server"),
        (contract_nobody_bid, "not-bid", "error", "server"),
        (card_dealt_twice, "dealt-twice", "error", "server"),
        (too_few_dealt, "wrong-count", "warning", "server"),
        (too_many_dealt, "wrong-count", "warning", "server"),
        (talon_for_the_wrong_one, "wrong-player", "error", "server"),
        (talon_of_three, "wrong-count", "error", "server"),
        (discards_one, "wrong-count", "error", "client"),
        (discards_what_he_has_not, "not-in-hand", "error", "client"),
        (no_trumps, "no-trumps", "error", "client"),
        (second_colour, "second-colour", "warning", "client"),
        (one_colour, "second-colour", "warning", "client"),
        (needless_trumps, "needless-trumps", "error", "client"),
        (no_trumps_told, "no-trumps", "error", "server"),
        (flek_against_nothing, "flek-against", "error", "client"),
        (flek_lowered, "flek-lowered", "error", "client"),
        (level_told_otherwise, "told-otherwise", "error", "server"),
        (game_told_otherwise, "told-otherwise", "error", "server"),
        (plays_what_he_has_not, "not-in-hand", "error", "client"),
        (does_not_follow, "renonc", "error", "client"),
        (plays_two, "not-all-cards", "error", "client"),
        (plays_unasked, "unasked", "error", "client"),
        (bids_twice, "unasked", "error", "client"),
        (shown_of_two, "played-twice", "error", "server"),
        (wrong_winner, "wrong-winner", "error", "server"),
        (trick_told_otherwise, "told-otherwise", "error", "server"),
        (wrong_number, "wrong-number", "error", "server"),
        (money_for_nothing, "money", "error", "server"),
        (money_for_both_sides, "wrong-party", "error", "server"),
        (result_of_another_game, "told-otherwise", "error", "server"),
        (result_with_other_trumps, "told-otherwise", "error", "server"),
        (result_with_another_level, "told-otherwise", "error", "server"),
        (result_with_another_trick, "told-otherwise", "error", "server"),
        (won_and_lost, "twice-in-result", "error", "server"),
        (won_twice, "twice-in-result", "error", "server"),
        (plays_to_the_login_server, "wrong-server", "error", "client"),
        (logs_in_at_the_game_server, "wrong-server", "error", "client"),
        (joins_a_group_that_is_none, "unknown-group", "warning", "client"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_violation_is_reported_once_at_its_place(
    breaks: Callable[[Hand], None], code: str, severity: str, blame: str
) -> None:
    table = seated()
    breaks(Hand(table))
    assert table.codes == [(code, severity, blame)]
    (violation,) = table.diagnostics
    said = next(message for message in table.found().messages if message.id == violation.message_id)
    assert said.offset <= violation.offset < violation.offset + violation.length <= said.offset + said.length
    assert violation.clause


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


def test_a_result_that_no_message_explains_has_a_note() -> None:
    table = seated()
    hand = Hand(table)
    hand.until("double")
    for _ in range(3):
        hand.trick()
    hand.result()
    assert [(one.code, one.severity, one.blame, one.text) for one in table.found().diagnostics] == [
        (
            *("tricks-missing", "note", "unknown"),
            "the result comes after 3 of 10 tricks: no message has shown the others",
        )
    ]


def test_a_renonc_is_named_with_the_cards_that_could_have_been_played() -> None:
    table = seated()
    hand = Hand(table)
    does_not_follow(hand)
    (violation,) = table.diagnostics
    culprit = f"{player(BEDA)}<message>you must play something else!</message>"
    table.tells(PLAYERS, f"<renonc>{culprit}</renonc>")
    table.tells(PLAYERS, "<cancelgame>renonc</cancelgame>")
    (renonc,) = table.data("renonc")
    assert renonc["player"] == BEDA
    assert renonc["known_to"] == [str(BEDA)]
    assert renonc["others_see"] == {"card": None, "should": None}
    led = table.data("played")[0]["cards"]
    assert renonc["should"] == Rules("7", "R").allowed(led, hand.hands[BEDA])
    assert card_words(renonc["card"]) in violation.text
    assert violation.expected == f"one of {cards_words(renonc['should'])}"
    assert table.games[0].result == {"cancelled": "renonc"}
    assert len(table.data("played")) == 1


def test_a_lower_card_after_trumps_were_played_is_only_doubtful() -> None:
    """The specification leaves open whether trumps must have been played in the trick or in the hand."""
    for seed in range(400):
        table = seated()
        hand = Hand(table, seed)
        hand.until("double")
        hand.trick()
        first, second = hand.order()[:2]
        for led in hand.hands[first]:
            same = [card for card in hand.hands[second] if card[0] == led[0]]
            allowed = hand.rules.allowed([led], hand.hands[second])
            lower = [card for card in same if card not in allowed]
            trumps = any(card[0] == "R" for card in hand.tricks[0][1])
            if lower and trumps and led[0] != "R":
                hand.plays(first, led)
                hand.plays(second, lower[0])
                assert table.codes == [("renonc", "warning", "client")]
                # The server has shown it: it counts.
                assert table.data("played")[-1] == {"player": second, "cards": [lower[0]]}
                return
    raise AssertionError("no such hand")


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


def test_several_players_on_one_connection_are_not_accused() -> None:
    """A server of bots may use one connection for all of them; the asked player is unknown then."""
    table = Cgml()
    for who in PLAYERS:
        table.says(ANNA, f'<newgroup status="accept" id="4">{LM}{player(who)}</newgroup>')
    table.tells(ANNA, '<licite type="ask"></licite>')
    table.tells(ANNA, '<licite type="ask"></licite>')
    table.says(ANNA, '<licite type="answer">PASS</licite>')
    table.says(ANNA, '<licite type="answer">PASS</licite>')
    assert table.diagnostics == []
    assert [data["player"] for data in table.data("accepted")] == [*PLAYERS]


def test_if_all_pass_a_player_may_have_to_play() -> None:
    table = seated()
    hand = Hand(table)
    hand.deal()
    for who in (BEDA, CYRIL, ANNA):
        hand.bids(who, "", "PASS")
    table.tells(PLAYERS, f'<licite type="result" playerid="{ANNA}">G</licite>')
    assert table.diagnostics == []
    assert table.data("contract") == [{"player": ANNA, "game": "G"}]


# What is missing.


def test_after_a_gap_the_hand_is_judged_no_more_but_the_next_one_is() -> None:
    table = seated((BEDA,))
    hand = Hand(table)
    hand.until("double")
    table.loses(BEDA)
    hand.trick()
    hand.result(5, -2, -2, licite="100")
    assert [violation.code for violation in table.diagnostics] == ["gap", "money"]
    second = Hand(table, 2)
    second.until("double")
    second.trick(tell=False)
    second.tells_trick(number=3)
    assert [violation.code for violation in table.diagnostics] == ["gap", "money", "wrong-number"]


def test_a_deal_whose_question_is_missing_is_one_hand() -> None:
    table = seated((BEDA,))
    Hand(table).whole()
    table.loses(BEDA)
    second = Hand(table, 2)
    table.ask_for_hand = lambda order=PLAYERS: None  # type: ignore[method-assign]  # it is in the gap
    second.until("double")
    second.trick()
    assert [game.label for game in table.games] == ["group 4, hand 1", "group 4, hand 2"]
    assert [data["player"] for data in table.data("dealt")][3:] == [*PLAYERS]
    assert table.data("dealt")[4]["cards"] == second.dealt[BEDA]
    assert [violation.code for violation in table.diagnostics] == ["gap"]


def test_in_mid_stream_a_hand_has_unknown_cards() -> None:
    table = Cgml()
    hand = Hand(table)
    for who in PLAYERS:
        table.loses(who)
    hand.tricks = [(BEDA, ["R07", "R0A", "R08"])]
    hand.shows(CYRIL, "R08")
    hand.tells_trick(number=4)
    (part,) = table.state()["games"].values()
    assert part["unknown"] == ["bidding", "contract", "hands", "talon", "trump", "tricks"]
    assert [data["number"] for data in table.data("trick")] == [4]
    Hand(table, 2).whole()
    assert [game.label for game in table.games] == ["group ?, hand 1", "group ?, hand 2"]
    assert [violation.group for violation in table.diagnostics] == ["network"] * 3


# What hostile peers say.


def test_login_server_messages_within_a_hand_are_no_cards() -> None:
    table = seated()
    hand = Hand(table)
    hand.deal()
    before = table.state()
    # Nothing forbids that a server is both.
    table.tells(ANNA, f'<newgroup status="init">{LM}</newgroup>')
    assert table.state() == before


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
