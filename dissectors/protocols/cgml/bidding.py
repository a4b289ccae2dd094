"""Messages from the deal to the first card: cards, bids, talon, trumps, second colour, doubling."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.protocols.cgml.cards import (
    HAND,
    LADDER,
    TALON,
    WITH_A_SEVEN,
    WITH_TWO_SEVENS,
    card_words,
    cards_words,
    has_trumps,
    level_of,
    level_text,
    trumps_words,
)
from kiebitz.dissectors.protocols.cgml.context import CgmlContext, cards_of
from kiebitz.dissectors.protocols.cgml.hand import MAX_HAND_EVENTS, Hand


def dealt(context: CgmlContext, observation: Observation, hand: Hand, player: int | None) -> None:
    """Process cards dealt from the desk, in one packet or in several."""
    cards: list[str | None] = observation.fields["card"]
    if observation.fields["to"] == "talon":
        hand.set_state(len(cards), "talon")
        return
    if player is None or observation.fields["to"] != "hand" or len(hand.dealt) > len(hand.seats):
        return
    for place, card in enumerate(cards):
        if card is not None and hand.certain:
            whose = next((other for other, dealt in hand.dealt.items() if card in dealt), None)
            if whose is not None:
                context.report_violation_of(
                    observation, "dealt-twice", part="text", path=(place,), card=card_words(card)
                )
    held = hand.dealt.setdefault(player, [])
    held += cards[: HAND + TALON]
    if len(held) >= HAND:
        _all_dealt(context, observation, hand, player)


def _all_dealt(context: CgmlContext, observation: Observation, hand: Hand, player: int) -> None:
    key = ("dealt", player)
    if context.known_before(hand, key, observation):
        return
    cards = hand.dealt[player]
    if len(cards) > HAND and hand.certain:
        context.report_violation_of(observation, "wrong-count/more", player=player, count=len(cards))
    hand.set_state(len(cards), "hands", str(player))
    if None not in cards:
        hand.set_state(cards.copy(), "private", str(player), "hand")
    data = cards_of(player, cards)
    hand.events[key] = context.emit_observed(observation, "dealt", player, data, hand)


def deal_is_over(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """End the deal at the next message; players with too few cards get no more."""
    if not hand.dealing:
        return
    for player, cards in hand.dealt.items():
        if len(cards) < HAND and ("dealt", player) not in hand.events:
            if hand.certain:
                context.report_violation_of(observation, "wrong-count/fewer", player=player, count=len(cards))
            _all_dealt(context, observation, hand, player)
    hand.dealing = False


def answers(
    context: CgmlContext, observation: Observation, hand: Hand, player: int, asked: str | None
) -> None:
    """Process a client's bid.

    Another player's bid can only be answered with yes or no. `asked` is None if the question is unknown.
    """
    answer: str = observation.fields["licite"]
    if asked is None and answer == "YES":
        # The server will announce the bid that was accepted.
        return
    if asked and answer not in ("YES", "NO"):
        context.report_violation_of(observation, "wrong-answer/bid", part="text", answer=answer, asked=asked)
        return
    if asked == "" and answer in ("YES", "NO"):
        context.report_violation_of(observation, "wrong-answer/no-bid", part="text", answer=answer)
        return
    call = {"YES": asked or "", "NO": "PASS"}.get(answer, answer)
    if context.known_later(hand, ("bid", player, call), observation):
        return
    standing = _highest_bid(hand)
    if hand.certain and not asked and call != "PASS" and standing and not _is_higher(call, standing):
        higher = ", ".join((*LADDER[LADDER.index(standing) + 1 :], "PASS"))
        context.report_violation_of(
            observation, "bid-not-higher", part="text", call=call, standing=standing, higher=higher
        )
    _bid(context, observation, hand, player, call)


def handle_bid(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Process the server's announcement of a bid."""
    player: int = observation.fields["playerid"]
    said: str = observation.fields["licite"]
    call = {"YES": _highest_bid(hand) or said, "NO": "PASS"}.get(said, said)
    heard = [bid for bid in hand.bids if bid[0] == player]
    if hand.certain and player in hand.awaited and heard and heard[-1] != (player, call):
        bid = heard[-1][1]
        context.report_violation_of(
            observation, "told-otherwise/bid", part="text", call=call, player=player, bid=bid
        )
    hand.awaited.discard(player)
    _bid(context, observation, hand, player, call, by_server=True)


def _bid(
    context: CgmlContext,
    observation: Observation,
    hand: Hand,
    player: int,
    call: str,
    by_server: bool = False,
) -> None:
    key = ("bid", player, call)
    if context.known_before(hand, key, observation):
        return
    hand.bids.append((player, call))
    bids = hand.state.get("bidding", ())
    hand.set_state([*bids, {"player": player, "call": call}], "bidding")
    hand.set_state(None, "turn")
    hand.events[key] = context.emit_observed(
        observation, "bid", player, {"player": player, "call": call}, hand
    )
    if by_server:
        hand.known_later.add(key)
    else:
        hand.awaited.add(player)


def result(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Handle the result of the bidding."""
    player: int = observation.fields["playerid"]
    game: str = observation.fields["licite"]
    if context.known_before(hand, "contract", observation):
        return
    # If all pass, a server may still let one of them play.
    if hand.certain and game != "PASS" and _highest_bid(hand) and (player, game) not in hand.bids:
        bids = ", ".join(f"{context.name_of(who)} {what}" for who, what in hand.bids if what != "PASS")
        context.report_violation_of(
            observation, "not-bid", part="text", player=player, game=game, bids=bids or "no bids"
        )
        # Other clients may know the real declarer.
        hand.certain = False
    hand.declarer = player
    _contract(hand, player, game)
    data = {"player": player, "game": game}
    hand.events["contract"] = context.emit_observed(observation, "contract", player, data, hand)


def _contract(hand: Hand, player: int, game: str) -> None:
    hand.contract = game
    hand.set_state(player, "declarer")
    hand.set_state(game, "contract")
    hand.mark_known("contract")


def takes_talon(context: CgmlContext, observation: Observation, hand: Hand, player: int | None) -> None:
    """Handle the cards of the talon that the declarer receives."""
    if player is None or context.known_before(hand, "talon", observation):
        return
    cards: list[str | None] = observation.fields["card"]
    if hand.certain and len(cards) != TALON:
        context.report_violation_of(observation, "wrong-count/talon", count=len(cards))
    if hand.certain and hand.declarer not in (None, player):
        context.report_violation_of(observation, "wrong-player", player=player, declarer=hand.declarer)
    hand.talon = cards.copy()
    hand.set_state(None, "talon")
    hand.put_hands(player)
    hand.events["talon"] = context.emit_observed(
        observation, "talon_taken", player, cards_of(player, cards), hand
    )


def discards(context: CgmlContext, observation: Observation, hand: Hand, player: int) -> None:
    """Process two cards put into the talon; only the player's own message shows them."""
    cards: list[str | None] = observation.fields["card"]
    if context.known_before(hand, "discards", observation):
        if hand.discards is not None and None in hand.discards and None not in cards:
            # The announcement to the others was recorded before the player's own message.
            _put_discards(hand, player, cards)
            hand.put_hands(player)
        return
    held = hand.cards_of(player)
    if len(cards) != TALON:
        context.report_violation_of(observation, "wrong-count/discards", count=len(cards))
        if len(cards) > TALON:
            return
    for place, card in enumerate(cards):
        if hand.certain and held is not None and card is not None and card not in held:
            context.report_violation_of(
                observation,
                "not-in-hand/discarded",
                part="text",
                path=(place,),
                card=card_words(card),
                player=player,
                held=cards_words(held),
            )
            return
    hand.set_state(len(cards), "talon")
    _put_discards(hand, player, cards)
    hand.put_hands(player)
    hand.events["discards"] = context.emit_observed(
        observation, "discarded", player, cards_of(player, cards), hand
    )


def _put_discards(hand: Hand, player: int, cards: list[str | None]) -> None:
    hand.discards = cards.copy()
    if None not in cards:
        hand.set_state(cards.copy(), "private", str(player), "talon")


def names(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Process the declarer's choice of trumps; the server then announces it to all."""
    hand.named = True
    _fits_the_game(context, observation, hand)


def _fits_the_game(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    game: str = observation.fields["licite"]
    trumf: str = observation.fields.get("trumf", "")
    # In the better games red is trumps, which may be omitted.
    if has_trumps(game) and not trumf and not game.startswith("B"):
        broken = "no-trumps"
    elif trumf and not has_trumps(game):
        broken = "needless-trumps"
    elif trumf and (":" in trumf) != (game in WITH_TWO_SEVENS):
        broken = "second-colour/lacking" if game in WITH_TWO_SEVENS else "second-colour/needless"
    else:
        return
    part, path = ("text", (1,)) if trumf else ("tag", (0,))
    context.report_violation_of(observation, broken, part=part, path=path, game=game)


def game(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Process the announcement of the game: when trumps are named, and again before the first card."""
    player: int = observation.fields["playerid"]
    game: str = observation.fields["licite"]
    trump, _, second = observation.fields.get("trumf", "").upper().partition(":")
    said = {"player": player, "game": game, "trump": trump or None, "second": second or None}
    if "flek" in observation.fields:
        _summary(context, observation, hand, said)
    key = "trump"
    before = hand.events.get(key)
    if before is not None and hand.certain and any(before.data[name] != said[name] for name in said):
        now, then = _game_words(context, said), _game_words(context, before.data)
        context.report_violation_of(observation, "told-otherwise/trumps", said=now, before=then)
        # The clients may play either game.
        hand.certain = False
    if context.known_before(hand, key, observation):
        return
    if hand.certain and not hand.named:
        _fits_the_game(context, observation, hand)
    hand.declarer = player
    hand.trump, hand.second = trump or None, second or None
    _contract(hand, player, game)
    hand.set_state(hand.trump, "trump")
    hand.set_state(hand.second, "second")
    hand.mark_known("trump")
    hand.put_hands(player)
    hand.events[key] = context.emit_observed(observation, "trump", player, said, hand)


def _game_words(context: CgmlContext, said: dict[str, Any]) -> str:
    trumps = trumps_words(":".join(filter(None, (said["trump"], said["second"]))))
    return f"{said['game']} of {context.name_of(said['player'])} with {trumps}"


def _summary(context: CgmlContext, observation: Observation, hand: Hand, said: dict[str, Any]) -> None:
    level = level_of(observation.fields["flek"])
    if hand.certain and level != hand.level:
        path = (2 if said["trump"] is not None else 1,)
        told, known = observation.fields["flek"], level_text(hand.level)
        context.report_violation_of(
            observation, "told-otherwise/level", part="text", path=path, level=told, known=known
        )
    hand.level = level
    hand.set_state(observation.fields["flek"], "flek")


def doubles(
    context: CgmlContext, observation: Observation, hand: Hand, player: int, asked: str | None
) -> None:
    """Process a client's answer on doubling the game, and the game against."""
    text: str = observation.fields["flek"]
    level, before = level_of(text), level_of(asked or "0:0")
    if level[0] < before[0] or level[1] < before[1]:
        context.report_violation_of(observation, "flek-lowered", part="text", level=text, asked=asked)
        return
    without = hand.contract is not None and hand.contract not in WITH_A_SEVEN
    if hand.certain and without and ":" in text and ":" not in (asked or ":"):
        context.report_violation_of(observation, "flek-against", part="text", game=hand.contract)
        return
    _level(context, observation, hand, player, text)


def level(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Handle a doubling."""
    _level(context, observation, hand, observation.fields["playerid"], observation.fields["flek"])


def _level(context: CgmlContext, observation: Observation, hand: Hand, player: int, text: str) -> None:
    # A player may repeat a level after the others have answered, so the client's messages and the
    # server's announcements are both counted.
    direction = observation.message.direction
    told = hand.fleks.setdefault((direction, player, text), [])
    by_the_other = hand.fleks.get((OPPOSITE[direction], player, text), [])
    if len(by_the_other) > len(told):
        observation.event = by_the_other[len(told)]
        observation.game_id = observation.event.game_id
    elif hand.ended or len(hand.fleks) >= MAX_HAND_EVENTS or len(told) >= MAX_HAND_EVENTS:
        return
    else:
        hand.level = level_of(text)
        fleks = hand.state.get("fleks", ())
        hand.set_state([*fleks, {"player": player, "level": text}], "fleks")
        hand.set_state(text, "flek")
        hand.set_state(None, "turn")
        context.emit_observed(observation, "flek", player, {"player": player, "level": text}, hand)
    assert observation.event is not None
    told.append(observation.event)


def _highest_bid(hand: Hand) -> str | None:
    return next((call for _, call in reversed(hand.bids) if call != "PASS"), None)


def _is_higher(call: str, standing: str) -> bool:
    return LADDER.index(call) > LADDER.index(standing)
