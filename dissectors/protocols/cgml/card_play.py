"""The play of a hand's cards, their checks, the winners of tricks, and the end of a hand."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kiebitz.dissectors.game.broadcast_dedup import LATEST_COPY_NS
from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.cards import (
    HAND,
    SEATS,
    WITHOUT_TRUMPS,
    card_words,
    cards_words,
    level_of,
    level_text,
    trumps_words,
)
from kiebitz.dissectors.protocols.cgml.context import CgmlContext, private
from kiebitz.dissectors.protocols.cgml.hand import Group, Hand, Pause, Trick

_MAX_PAUSES = 16


def plays(context: CgmlContext, observation: Observation, hand: Hand, player: int) -> None:
    """Process a client's card, or all remaining cards laid down together."""
    cards: list[str] = observation.fields["card"]
    if context.known_later(hand, ("played", player, *cards), observation):
        return
    if _objection(context, observation, hand, player, cards):
        return
    _played(context, observation, hand, player, cards)


def _objection(
    context: CgmlContext, observation: Observation, hand: Hand, player: int, cards: list[str]
) -> bool:
    """Report the error in a client's card; return True if the card does not count, as far as known."""
    held = hand.cards_of(player)
    if not hand.certain or held is None:
        return False
    for place, card in enumerate(cards):
        if card not in held:
            path, known = (place,), f"one of {cards_words(held)}" if held else "no card"
            context.report_violation_of(
                observation,
                "not-in-hand/played",
                part="text",
                path=path,
                card=card_words(card),
                player=player,
                held=known,
            )
            return True
    if len(cards) > 1 and len(cards) != len(held):
        context.report_violation_of(observation, "not-all-cards", path=(1,), count=len(cards), held=len(held))
        return True
    rules = hand.rules
    if rules is None:
        return False
    table = [card for _, card in hand.table] if len(hand.table) < SEATS else []
    allowed = rules.allowed(table, held)
    if cards[0] in allowed:
        return False
    is_sure = cards[0][0] != table[0][0] or not hand.has_shown_trumps
    context.report_violation_of(
        observation,
        "renonc" if is_sure else "renonc/unsure",
        part="text",
        path=(0,),
        card=card_words(cards[0]),
        player=player,
        allowed=cards_words(allowed),
    )
    hand.refused[player] = cards[0], allowed
    return True


def shown(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Process the server's announcement of a played card."""
    cards: list[str | None] = observation.fields["card"]
    _played(
        context,
        observation,
        hand,
        observation.fields["playerid"],
        [card for card in cards if card is not None],
    )


def _played(
    context: CgmlContext, observation: Observation, hand: Hand, player: int, cards: list[str]
) -> None:
    if not cards or context.known_before(hand, ("played", player, *cards), observation):
        return
    for place, card in enumerate(cards):
        whose = hand.played.get(card)
        if whose == player:
            # The trick was announced before the card.
            return
        if whose is not None and hand.certain:
            context.report_violation_of(
                observation, "played-twice", part="text", path=(place,), card=card_words(card), player=whose
            )
            return
    if len(hand.table) >= SEATS:
        hand.waiting.append(hand.table)
        del hand.waiting[:-1]
        hand.table = []
    hand.table.append((player, cards[0]))
    for card in cards:
        hand.played[card] = player
    if len(cards) > 1:
        hand.laid |= dict.fromkeys(cards, player)
        hand.set_state({"player": player, "cards": cards.copy()}, "laid")
    hand.refused.pop(player, None)
    _put_table(hand)
    _next_turn(hand, player, len(cards) > 1)
    hand.put_hands(player)
    data = {"player": player, "cards": cards.copy()}
    key = ("played", player, *cards)
    hand.events[key] = context.emit_observed(observation, "played", player, data, hand)
    if observation.message.direction == "s2c":
        hand.known_later.add(key)


def _put_table(hand: Hand) -> None:
    table = [{"player": player, "card": card} for player, card in hand.table]
    hand.set_state(table or None, "table")


def _next_turn(hand: Hand, player: int, laid: bool) -> None:
    following = hand.order_from(player)
    if laid or len(hand.table) >= SEATS or len(following) < SEATS:
        _infer_turn(hand, None)
    else:
        _infer_turn(hand, following[1])


def _infer_turn(hand: Hand, player: int | None) -> None:
    hand.set_state(player, "turn")
    hand.set_state(None if player is None else ["turn"], "inferred")


def turn(context: CgmlContext, observation: Observation, hand: Hand, player: int) -> None:
    """Process the server's request to bid, name trumps, double or play."""
    hand.set_state(player, "turn")
    hand.set_state(None, "inferred")
    context.emit_observed(observation, "turn", player, {"player": player}, hand)


def trick(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Handle a complete trick, as the server announces it."""
    number: int = observation.fields["number"]
    winner: int = observation.fields["playerid"]
    cards: list[str] = observation.fields["card"]
    if context.known_before(hand, ("trick", number), observation):
        return
    table = hand.waiting.pop(0) if hand.waiting else hand.table
    players = _players(hand, table, cards)
    if hand.certain and _is_as_played(context, observation, hand, number, table, cards):
        _check_winner(context, observation, hand, table, players, cards, winner)
    if table is hand.table:
        hand.table = []
    _put_table(hand)
    for player, card in zip(players, cards, strict=True):
        if player is None:
            continue
        refused = hand.refused.get(player)
        if refused is not None and refused[0] == card:
            # The card was accepted after all.
            del hand.refused[player]
            data = {"player": player, "cards": [card]}
            context.emit("played", observation.ts_ns, str(player), data, hand.game)
        hand.played.setdefault(card, player)
    played = list(zip(players, cards, strict=True))
    hand.tricks.append(Trick(number, played, winner))
    trick = {
        "number": number,
        "cards": [{"player": player, "card": card} for player, card in played],
        "winner": winner,
    }
    hand.set_state([*hand.state.get("tricks", ()), trick], "tricks")
    _infer_turn(hand, winner if winner in hand.seats else None)
    hand.put_hands(*(player for player in players if player is not None))
    data = {"number": number, "cards": cards.copy(), "winner": winner}
    hand.events["trick", number] = context.emit_observed(observation, "trick", winner, data, hand)


def _is_as_played(
    context: CgmlContext,
    observation: Observation,
    hand: Hand,
    number: int,
    table: list[tuple[int, str]],
    cards: list[str],
) -> bool:
    known = [card for _, card in table]
    expected = len(hand.tricks) + 1
    if len(known) == SEATS and not hand.laid and known != cards:
        place = next(place for place in range(SEATS) if known[place] != cards[place])
        context.report_violation_of(
            observation,
            "told-otherwise/trick",
            part="text",
            path=(place,),
            number=number,
            card=card_words(cards[place]),
            played=card_words(known[place]),
            cards=cards_words(known),
        )
    elif number != expected:
        context.report_violation_of(
            observation, "wrong-number", part="=number", number=number, before=len(hand.tricks), next=expected
        )
    else:
        return True
    return False


def _players(hand: Hand, table: list[tuple[int, str]], cards: list[str]) -> list[int | None]:
    """Return the players of a trick's cards: those recorded, or else by the seats, if known."""
    seen = {card: player for player, card in table} | hand.laid
    leader = seen.get(cards[0], hand.leader)
    order = hand.order_from(leader) if leader is not None else []
    if len(order) < SEATS:
        return [leader, *(seen.get(card) for card in cards[1:])]
    return [seen.get(card, player) for card, player in zip(cards, order, strict=True)]


def _check_winner(
    context: CgmlContext,
    observation: Observation,
    hand: Hand,
    table: list[tuple[int, str]],
    players: list[int | None],
    cards: list[str],
    winner: int,
) -> None:
    rules = hand.rules
    if rules is None:
        return
    place = rules.winner(cards)
    seen = {card for _, card in table} | {*hand.laid}
    if players[place] == winner or cards[place] not in seen or len({*players}) < SEATS:
        return
    card, player = card_words(cards[place]), players[place]
    context.report_violation_of(
        observation, "wrong-winner", part="=playerid", winner=winner, card=card, player=player
    )


def result(context: CgmlContext, observation: Observation, hand: Hand, group: Group) -> None:
    """Handle the result of a hand."""
    if context.known_before(hand, "result", observation):
        return
    winners = {one["playerid"]: one["money"]["money"] for one in observation.fields["winer"]}
    losers = {one["playerid"]: one["money"]["money"] for one in observation.fields.get("loser", ())}
    _check_money(context, observation, winners, losers)
    if hand.certain:
        _check_result(context, observation, hand)
        check_outcome(context, observation, hand, winners, losers)
    note_missing_tricks(context, observation, hand)
    money = {str(player): amount for player, amount in winners.items()}
    money |= {str(player): -amount for player, amount in losers.items()}
    for player, amount in money.items():
        if player in group.money or len(group.money) < SEATS:
            group.money[player] = group.money.get(player, 0) + amount
    game: str = observation.fields["licite"]
    result = {"contract": game, "declarer": hand.declarer, "money": money}
    context.close_hand(group, result, observation.ts_ns)
    context.set_state(group.money.copy(), "groups", group.key, "money")
    data = {"game": game, "winners": [*winners], "losers": [*losers], "money": money}
    hand.events["result"] = context.emit_observed(observation, "result", None, data, hand)


def _check_money(
    context: CgmlContext, observation: Observation, winners: dict[int, int], losers: dict[int, int]
) -> None:
    first = sum(name in observation.fields for name in ("game", "licite", "trumf", "flek"))
    first += len(observation.fields.get("round", ()))
    both = [player for player in winners if player in losers]
    won, lost = sum(winners.values()), sum(losers.values())
    if both:
        context.report_violation_of(observation, "twice-in-result", path=(first,), player=both[0])
    elif len(winners) < len(observation.fields["winer"]) or len(losers) < len(
        observation.fields.get("loser", ())
    ):
        context.report_violation_of(observation, "twice-in-result/player", path=(first,))
    elif won != lost:
        context.report_violation_of(observation, "money", path=(first,), won=won, lost=lost)


def _check_result(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    fields = observation.fields
    trumf = fields.get("trumf")
    told = (hand.trump or "").lower() + (f":{hand.second.lower()}" if hand.second else "")
    at = 2
    problem: tuple[str, str, tuple[int, ...]] | None = None
    if fields["licite"] != hand.contract and hand.contract is not None:
        problem = fields["licite"], hand.contract, (1,)
    elif (trumf or "") != told and "trump" in hand.events:
        problem = trumps_words(trumf or ""), trumps_words(told), (2,) if trumf else (1,)
    at += trumf is not None
    if problem is None and level_of(fields["flek"]) != hand.level:
        problem = f"level {fields['flek']}", f"level {level_text(hand.level)}", (at,)
    tricks = {trick.number: trick for trick in hand.tricks}
    for place, told_trick in enumerate(fields.get("round", ()), at + 1):
        trick = tricks.get(told_trick["number"])
        if problem is None and trick is not None:
            cards = [card for _, card in trick.cards]
            if (cards, trick.winner) != (told_trick["card"], told_trick["playerid"]):
                said = _trick_words(context, told_trick["card"], told_trick["playerid"])
                problem = said, _trick_words(context, cards, trick.winner), (place,)
    if problem is not None:
        said, was, path = problem
        part = "text" if len(path) == 1 and path[0] <= at else "tag"
        context.report_violation_of(
            observation, "told-otherwise/result", part=part, path=path, said=said, known=was
        )


def _trick_words(context: CgmlContext, cards: list[str], winner: int) -> str:
    return f"{cards_words(cards)} for {context.name_of(winner)}"


def renonc(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Process the server's report that a player has broken the rule of play."""
    player: int | None = observation.fields.get("player", {}).get("id")
    if context.known_before(hand, ("renonc", player), observation):
        return
    card, should = hand.refused.get(player, (None, None)) if player is not None else (None, None)
    data: dict[str, Any] = {"player": player, "card": card, "should": should}
    if player is not None and card is not None:
        # The others do not see the card, and do not know the player's other cards.
        data |= private(player, card=None, should=None)
    hand.events["renonc", player] = context.emit_observed(observation, "renonc", player, data, hand)


def cancelled(context: CgmlContext, observation: Observation, hand: Hand | None, group: Group) -> None:
    """Handle the cancellation of a hand."""
    why = label(observation.fields.get("cancelgame", ""))
    _breaks_off(context, observation, hand, group, "cancelled", {"why": why}, {"cancelled": why}, None)


def aborted(context: CgmlContext, observation: Observation, hand: Hand | None, group: Group) -> None:
    """Handle the abortion of a hand by the server."""
    why = label(observation.fields.get("message", ""))
    player: int | None = observation.fields.get("player", {}).get("id")
    _breaks_off(
        context, observation, hand, group, "aborted", {"player": player, "why": why}, {"aborted": why}, player
    )


def _breaks_off(
    context: CgmlContext,
    observation: Observation,
    hand: Hand | None,
    group: Group,
    kind: str,
    data: dict[str, Any],
    result: dict[str, Any],
    player: int | None,
) -> None:
    if hand is None or (hand.ended and kind not in hand.events):
        # Between two hands, the group itself ends.
        context.emit_observed(observation, kind, player, data, None)
        return
    if context.known_before(hand, kind, observation):
        return
    context.close_hand(group, result, observation.ts_ns)
    hand.events[kind] = context.emit_observed(observation, kind, player, data, hand)


def pauses(
    context: CgmlContext, observation: Observation, hand: Hand | None, group: Group, player: int | None
) -> None:
    """Process a player's pause, or the server's announcement of it to the others."""
    message = label(observation.fields["message"]) if "message" in observation.fields else None
    if player is None:
        untold = (pause for pause in group.pauses if not pause.announced and pause.message == message)
        known = next((pause for pause in untold if _may_announce(observation, pause, pause.event)), None)
        if known is not None:
            known.announced = True
            observation.event, observation.game_id = known.event, known.event.game_id
            return
    if hand is not None:
        hand.set_state({"player": player, "message": message}, "pause")
    data = {"player": player, "message": message}
    event = context.emit_observed(observation, "paused", player, data, hand)
    stream_id = observation.message.stream.id if player is not None else None
    group.pauses.append(Pause(stream_id, player, message, event, announced=player is None))
    del group.pauses[:-_MAX_PAUSES]


def resumes(
    context: CgmlContext, observation: Observation, hand: Hand | None, group: Group, player: int | None
) -> None:
    """Process the end of a player's pause; the server may announce the end of another one."""
    on = [pause for pause in group.pauses if pause.over is None and pause.player == player]
    if player is None:
        over = (
            pause
            for pause in group.pauses
            if pause.over is not None
            and (not on or pause.stream_id != observation.message.stream.id)
            and _may_announce(observation, pause, pause.over)
        )
        ended = next(over, None)
        if ended is not None and ended.over is not None:
            group.pauses.remove(ended)
            observation.event, observation.game_id = ended.over, ended.over.game_id
            return
    if hand is not None:
        hand.set_state(None, "pause")
    event = context.emit_observed(observation, "resumed", player, {"player": player}, hand)
    if on and player is not None:
        on[0].over = event
    elif on:
        group.pauses.remove(on[0])


def _may_announce(observation: Observation, pause: Pause, event: Event) -> bool:
    """Return True if the server may announce an event here: to the others, or to the player at once."""
    is_his_own = pause.stream_id == observation.message.stream.id
    return not is_his_own or (
        pause.over in (None, event) and observation.ts_ns - event.ts_ns < LATEST_COPY_NS
    )


def check_outcome(
    context: CgmlContext,
    observation: Observation,
    hand: Hand,
    winners: Collection[int],
    losers: Collection[int],
) -> None:
    """Report a result whose winners contradict the declarer's game; one violation is enough."""
    declarer, game = hand.declarer, hand.contract
    if (
        declarer is None
        or game is None
        or len(hand.seats) < SEATS
        or context.has_violation(observation.message)
    ):
        return
    if not {declarer} < {*winners, *losers} <= {*hand.seats}:
        return
    side = winners if declarer in winners else losers
    other = next((player for player in side if player != declarer), None)
    if other is not None:
        context.report_violation_of(observation, "wrong-party", declarer=declarer, player=other)
        return
    has_won = declarer in winners
    taken = sum(trick.winner == declarer for trick in hand.tricks)
    if _can_end_like_this(game, has_won, taken, len(hand.tricks)):
        return
    said, right = ("won", "lost") if has_won else ("lost", "won")
    context.report_violation_of(
        observation,
        "wrong-result",
        declarer=declarer,
        said=said,
        game=game,
        taken=taken,
        shown=len(hand.tricks),
        right=right,
    )


def _can_end_like_this(game: str, has_won: bool, taken: int, shown: int) -> bool:
    """Return True if the tricks allow an outcome; with trumps, points that are not announced count, too."""
    if game not in WITHOUT_TRUMPS:
        return True
    is_lost = taken > 0 if game == "SMALL" else taken < shown
    return not is_lost if has_won else is_lost or shown < HAND


def note_missing_tricks(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Note a result that the tricks do not explain; games without trumps may end before the last trick."""
    fields = observation.fields
    shown = max(len(hand.tricks), len(fields.get("round", ())))
    is_whole = shown >= HAND or bool(hand.laid) or fields["licite"] in WITHOUT_TRUMPS
    if not is_whole and not context.has_violation(observation.message):
        context.report_violation_of(observation, "tricks-missing", shown=shown, tricks=HAND)
