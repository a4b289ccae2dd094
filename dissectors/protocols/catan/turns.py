"""Dice, turns, the yield of a roll, and the robber: clauses 10.2, 10.5 and 11.3."""

from __future__ import annotations

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.protocols.catan import building, resources
from kiebitz.dissectors.protocols.catan.board import at, spot_text
from kiebitz.dissectors.protocols.catan.context import CatanContext
from kiebitz.dissectors.protocols.catan.game import CatanGame, Player
from kiebitz.dissectors.protocols.catan.ledger import (
    DISCARD,
    ROBBER,
    ROLL,
    START,
    Claim,
    Entry,
    counts_text,
    total,
)
from kiebitz.dissectors.protocols.catan.words import LAND


def rolled(context: CatanContext, observation: Observation) -> None:
    """Process a roll: for the order of the players, or at the beginning of a turn."""
    game = context.game
    player = context.player(observation.fields["Spieler"])
    dice: list[int] = observation.fields["Wurf"]
    if game is None:
        context.emit_observed(observation, "rolled", player, {"dice": dice})
        return
    if game.in_setup and game.buildings:
        game.in_setup = False
    if not game.in_setup:
        game.moved = None
        _close_ledger(context, game)
        if game.certain:
            building.check_longest(context, game)
        _order(context, observation, game, player)
        for other in game.players.values():
            other.bought, other.played, other.free_roads = {}, 0, 0
        game.trades.clear()
        context.put_in(None, "trades")
        game.roller = player.id
        game.has_turn(player, observation.ts_ns)
        context.put_in(player.id, "turn")
    context.put_in(dice, "dice")
    event = context.emit_observed(observation, "rolled", player, {"dice": dice})
    game.roll = event
    if not game.in_setup:
        game.yielding = True
        _due(context, observation, game, sum(dice))


def _order(context: CatanContext, observation: Observation, game: CatanGame, player: Player) -> None:
    order = game.order
    if not game.order_known:
        if player.id not in order:
            order.append(player.id)
        game.order_known = len(order) == len(game.players) or player.id == order[0] != order[-1]
        return
    if game.roller not in order or player.id not in order:
        return
    expected = order[(order.index(game.roller) + 1) % len(order)]
    if player.id != expected and game.certain:
        whose = context.name(expected)
        context.report_violation_of(
            observation, "out-of-turn/roll", "Spieler", player=player.name, whose=whose, next=expected
        )


def _due(context: CatanContext, observation: Observation, game: CatanGame, number: int) -> None:
    """Add the claims of a roll: the yield of each player, or the cards to discard."""
    board = game.board
    if board is None or not game.certain:
        return
    if number == 7:
        for player in game.players.values():
            held = player.hand.total
            if held is not None and held > 7:
                resources.claim(context, Claim(observation, player.id, -1, held // 2, DISCARD, firm=False))
        return
    dues = game.buildings.dues(board, number, game.robber)
    if not dues:
        return
    bank = game.bank()
    short = set()
    for kind in LAND.values():
        wanted = sum(due.get(kind, 0) for due in dues.values())
        left = bank.get(kind)
        if wanted and (left is None or wanted > (left[0] if isinstance(left, list) else left)):
            # The bank may have too few; the server's rules determine their distribution.
            short.add(kind)
    for owner, due in dues.items():
        resources.claim(context, Claim(observation, owner, 1, due, ROLL, partly=True, short=frozenset(short)))


def robber(context: CatanContext, observation: Observation) -> None:
    """Process a move of the robber, after a 7 or by a knight."""
    fields = observation.fields
    number = fields.get("Spieler", context.game.turn if context.game is not None else None)
    player = context.player(number) if number is not None else None
    target: int | None = fields.get("Ziel")
    moved = (number, at(fields["Ort"]), target)
    data = {"to": fields["Ort"], "from_player": target, "from_name": context.name(target)}
    if context.game is not None:
        if context.game.moved != moved:
            move_robber(context, observation, player, fields["Ort"], target)
        context.game.moved = None
    context.emit_observed(observation, "robber", player, data)


def move_robber(
    context: CatanContext,
    observation: Observation,
    player: Player | None,
    ort: dict[str, int],
    target: int | None,
) -> None:
    """Move the robber, and expect the theft of one card."""
    game = context.game
    if game is None:
        return
    place = at(ort)
    board = game.board
    if board is not None and game.certain:
        where = spot_text((place,))
        if place == game.robber:
            context.report_violation_of(observation, "robber-stays", "Ort", place=where)
        elif not board.is_land(place):
            context.report_violation_of(observation, "bad-place/robber", "Ort", place=where)
        elif target is not None and target >= 0 and target not in game.buildings.owners_at(place):
            context.report_violation_of(
                observation, "bad-target", "Ziel", player=context.name(target), place=where
            )
    game.robber = place
    game.robbed_by = player.id if player is not None else None
    context.put_in(list(place), "robber")
    game.robbed = target
    if target is None or target < 0 or player is None:
        return
    was_told = any(entry.player == target and entry.sign < 0 for entry in game.ledger.entries)
    if was_told or context.player(target).hand.total != 0:
        # Some servers send the theft only to the two players, so it may be missing.
        resources.claim(context, Claim(observation, target, -1, 1, ROBBER, firm=False))
        resources.claim(context, Claim(observation, player.id, 1, 1, ROBBER, firm=False))


def _close_ledger(context: CatanContext, game: CatanGame) -> None:
    """Check the ledger at the end of a turn."""
    unmet, loose = game.ledger.close()
    unread = game.unread
    game.unread = {player: turns - 1 for player, turns in unread.items() if turns > 1}
    _compare_cards(context, game)
    if not game.certain:
        return
    for claim in unmet:
        if not context.is_heard(claim.player):
            # Some servers do not send this payment to other players.
            continue
        other = next((entry for entry in loose if _is_probable_match(claim, entry)), None)
        if other is not None:
            loose.remove(other)
        elif claim.why == START:
            _no_start(context, claim)
            continue
        _wrong(context, claim, other)
    for entry in loose:
        if _may_be_early(context, entry):
            game.ledger.keep(entry)
            continue
        key = "unexplained-gain" if entry.sign > 0 else "unexplained-cost"
        name, counts = context.name(entry.player), counts_text(entry.counts)
        # An unread request, such as one to trade overseas, may explain it.
        context.report_violation_of(
            entry.observation,
            key,
            "Rohstoffe",
            certain=entry.player not in unread,
            player=name,
            counts=counts,
        )


def _may_be_early(context: CatanContext, entry: Entry) -> bool:
    """Return True if the dice that explain an entry may be missing from its stream."""
    connection = context.connections.get(entry.observation.messages[0].stream.id)
    return connection is not None and not connection.certain and not entry.early


def _no_start(context: CatanContext, claim: Claim) -> None:
    """Report that the second village yielded nothing, as on some servers."""
    assert claim.counts is not None
    name, counts = context.name(claim.player), counts_text(claim.counts)
    context.report_violation_of(claim.observation, "no-start-yield", player=name, counts=counts)


def _compare_cards(context: CatanContext, game: CatanGame) -> None:
    for player in game.players.values():
        told, player.cards_told = player.cards_told, None
        ours = player.cards.total
        # Some servers omit the victory points from a player's own cards.
        if told is not None and (ours is None or ours < total(told) or not game.certain):
            player.cards.apply_counts(total(told) if player.cards_contradicted else told)
            context.put_cards(player)


def _wrong(context: CatanContext, claim: Claim, entry: Entry | None) -> None:
    name, due = context.name(claim.player), counts_text(claim.due)
    of = "yield" if claim.sign > 0 else "cost"
    if entry is None:
        context.report_violation_of(claim.observation, f"missing-{of}", player=name, due=due, why=claim.why)
        return
    key, counts = f"wrong-{of}", counts_text(entry.counts)
    context.report_violation_of(
        entry.observation, key, "Rohstoffe", player=name, due=due, why=claim.why, counts=counts
    )


def _is_probable_match(claim: Claim, entry: Entry) -> bool:
    """Return True if an entry was probably sent in place of the claim: the same kinds, or the same total."""
    if (entry.player, entry.sign) != (claim.player, claim.sign) or claim.counts is None:
        return False
    if claim.why == ROLL and not entry.of_roll:
        return False
    if isinstance(claim.counts, int) or isinstance(entry.counts, int):
        return True
    return bool({*claim.counts} & {*entry.counts}) or total(claim.counts) == total(entry.counts)
