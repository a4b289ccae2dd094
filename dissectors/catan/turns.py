"""Dice, whose turn it is, and why resources come and go: yields, costs, the robber, what is given up.

Clauses 10.2 to 10.5, 11.2 and 11.3. What a turn owes is kept in the ledger; at its end come the verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dissectors.catan.board import at
from dissectors.catan.game import CARD_COST, COSTS, CatanGame, Player, Trade
from dissectors.catan.hand import Counts, total
from dissectors.catan.hearing import Fact
from dissectors.catan.ledger import Claim, Entry, plain
from dissectors.catan.phrases import words
from dissectors.catan.play import PlayTable
from dissectors.catan.words import DORF, KARTEN_ABGEBEN, LAND, RÄUBER_VERSETZEN, STADT, STRASSE

_RULES = "14 Hinweise"
_YIELD = {DORF: 1, STADT: 2}
_COSTS = {"road": COSTS[STRASSE], "village": COSTS[DORF], "city": COSTS[STADT], "development card": CARD_COST}
_ROLL, _ROBBER, _DISCARD = "roll", "robber", "discard"


class Turns:
    """Takes the dice, the gains and the payments."""

    def __init__(self, table: PlayTable) -> None:
        self._table = table
        self.at_end: Callable[[CatanGame], None] = lambda game: None
        """What else is looked at when a turn is over."""

    # Dice.

    def rolled(self, fact: Fact) -> None:
        """Somebody has rolled: for the order of the turns, or in his turn."""
        table = self._table
        game = table.game
        player = table.player(fact.fields["Spieler"])
        dice: list[int] = fact.fields["Wurf"]
        if game is None:
            table.tell(fact, "rolled", player, {"dice": dice})
            return
        if game.in_setup and game.buildings:
            game.in_setup = False
        if not game.in_setup:
            self.close(fact)
            self._order(fact, game, player)
            for other in game.players.values():
                other.bought, other.played, other.free_roads = {}, 0, 0
            game.trades.clear()
            table.put_in(None, "trades")
            game.turn = game.roller = player.id
            table.put_in(player.id, "turn")
        game.dice = dice
        table.put_in(dice, "dice")
        event = table.tell(fact, "rolled", player, {"dice": dice})
        game.roll = event
        if not game.in_setup:
            game.yielding = True
            self._due(fact, game, sum(dice))

    def _order(self, fact: Fact, game: CatanGame, player: Player) -> None:
        """A turn belongs to its player: all take turns in the same order."""
        order = game.order
        if not game.order_known:
            if player.id not in order:
                order.append(player.id)
            game.order_known = len(order) == len(game.players) or player.id == order[0] != order[-1]
            return
        if game.roller not in order or player.id not in order:
            return
        expected = order[(order.index(game.roller) + 1) % len(order)]
        if player.id != expected and game.whole:
            self._table.flaw(
                fact,
                "error",
                "rule",
                "out-of-turn",
                f"{player.name} rolls, but it is {self._table.name(expected)}'s turn",
                "Spieler",
                expected=str(expected),
                clause=_RULES,
            )

    def _due(self, fact: Fact, game: CatanGame, number: int) -> None:
        """What the roll makes everybody gain, or give up."""
        board = game.board
        if board is None or not game.whole:
            return
        if number == 7:
            for player in game.players.values():
                held = player.hand.total
                if held is not None and held > 7:
                    self.claim(Claim(fact, player.id, -1, held // 2, _DISCARD, firm=False))
            return
        dues: dict[int, dict[str, int]] = {}
        for where, building in game.buildings.items():
            for place in where if building.typ in _YIELD else ():
                kind = LAND.get(board.fields.get(place, ""))
                if kind is not None and board.numbers.get(place) == number and place != game.robber:
                    due = dues.setdefault(building.owner, {})
                    due[kind] = due.get(kind, 0) + _YIELD[building.typ]
        bank = game.bank()
        short = set()
        for kind in LAND.values():
            wanted = sum(due.get(kind, 0) for due in dues.values())
            left = bank.get(kind)
            if wanted and (left is None or wanted > (left[0] if isinstance(left, list) else left)):
                # There may be too few of them: then how they are shared out is the server's rule.
                short.add(kind)
        for owner, due in dues.items():
            self.claim(Claim(fact, owner, 1, due, _ROLL, partly=True, short=frozenset(short)))

    # Gains and payments.

    def ertrag(self, fact: Fact) -> None:
        """A player gains resources."""
        self._enter(fact, 1)

    def kosten(self, fact: Fact) -> None:
        """A player pays, or loses, resources."""
        self._enter(fact, -1)

    def claim(self, claim: Claim) -> None:
        """Something must, or may, come or go."""
        if self._table.game is not None:
            for entry in self._table.game.ledger.claim(claim):
                self._explained(entry, claim)

    def _enter(self, fact: Fact, sign: int) -> None:
        table = self._table
        player = table.player(fact.fields["Spieler"])
        counts: Counts = fact.fields["Rohstoffe"]
        if not (counts if isinstance(counts, int) else any(counts.values())):
            # Some servers tell every player what he gains, even if it is nothing.
            if table.game is not None:
                fact.event = table.game.roll
            return
        if not isinstance(counts, int):
            counts = plain(counts)
        kind = "gained" if sign > 0 else "paid"
        if table.game is None:
            table.tell(fact, kind, player, {"resources": counts})
            return
        data: dict[str, Any] = {"resources": counts}
        if isinstance(counts, int):
            expected = table.game.ledger.expected(player.id, sign, counts)
            if expected is not None and not isinstance(expected, int):
                counts = dict(expected)
                data = {"resources": counts, "inferred": True}
        if sign < 0:
            table.game.yielding = False
        entry = Entry(fact, player.id, sign, counts, of_roll=table.game.yielding)
        claim = table.game.ledger.enter(entry)
        if sign > 0:
            player.hand.gain(counts)
        elif not player.hand.pay(counts) and table.game.whole:
            table.flaw(
                fact,
                "warning",
                "rule",
                "below-zero",
                f"{player.name} pays {words(counts)}, and has not got as many",
                "Rohstoffe",
                clause=f"{fact.row.clause}; {_RULES}",
            )
        table.put_hand(player)
        why = entry.why or _likely(table.game, player, sign, counts)
        if why == _ROBBER:
            # The two of them see it, nobody else.
            table.game.robbed = player.id if sign < 0 else table.game.robbed
            both = (table.game.turn, table.game.robbed, player.id)
            names = sorted({name for name in map(table.name, both) if name is not None})
            data |= {"known_to": names, "others_see": {"resources": total(counts)}}
        if why == _DISCARD:
            player.discard = None
            data |= {"known_to": [player.name], "others_see": {"resources": total(counts)}}
            table.tell(fact, "discarded", player, data)
        else:
            table.tell(fact, kind, player, {**data, "why": why})
        if claim is not None:
            self._explained(entry, claim)
        else:
            self._overseas(table.game, entry)

    # Trade overseas: no message of the server's says that it was one.

    def _explained(self, entry: Entry, claim: Claim) -> None:
        game = self._table.game
        if claim.why != "sea trade" or game is None:
            return
        if all(other.fact is not claim.fact for other in game.ledger.claims):
            wanted = claim.fact.fields
            self._sea_trade(game, entry, plain(wanted["Angebot"]), plain(wanted["Nachfrage"]))

    def _overseas(self, game: CatanGame, entry: Entry) -> None:
        """Whether this and what was told before are the two halves of a trade overseas."""
        for other in game.ledger.entries:
            if other.player != entry.player or other.sign == entry.sign:
                continue
            given, taken = (entry, other) if entry.sign < 0 else (other, entry)
            if isinstance(given.counts, int) or isinstance(taken.counts, int):
                continue
            if len(given.counts) == 1 and total(given.counts) >= 2 * total(taken.counts) > 0:
                if any(
                    trade.player == entry.player and trade.offer == given.counts and trade.accepted
                    for trade in game.trades.values()
                ):
                    continue
                game.ledger.entries.remove(entry)
                game.ledger.entries.remove(other)
                self._sea_trade(game, entry, given.counts, taken.counts)
                return

    def _sea_trade(
        self, game: CatanGame, entry: Entry, paid: Mapping[str, int], gained: Mapping[str, int]
    ) -> None:
        table = self._table
        player = table.player(entry.player)
        table.tell(entry.fact, "sea_trade", player, {"paid": paid, "gained": gained})
        if game.board is None or not game.whole:
            return
        rates = game.board.rates(game.towns(player.id))
        worth = sum(count // rates[kind] for kind, count in paid.items())
        if total(gained) > worth:
            best = ", ".join(f"{kind} {rates[kind]}:1" for kind in paid)
            table.flaw(
                entry.fact,
                "error",
                "rule",
                "trade-rate",
                f"{player.name} gets {words(gained)} for {words(paid)}",
                "Rohstoffe",
                expected=best,
                clause="11.8 Seehandel",
            )

    # The robber.

    def robber(self, fact: Fact) -> None:
        """The robber was moved; after a 7, or by a knight."""
        table = self._table
        fields = fact.fields
        number = fields.get("Spieler", table.game.turn if table.game is not None else None)
        player = table.player(number) if number is not None else None
        target: int | None = fields.get("Ziel")
        moved = (number, at(fields["Ort"]), target)
        data = {"to": fields["Ort"], "from_player": target, "from_name": table.name(target)}
        if table.game is not None:
            if table.game.moved != moved:
                self.move_robber(fact, player, fields["Ort"], target)
            table.game.moved = None
        table.tell(fact, "robber", player, data)

    def move_robber(self, fact: Fact, player: Player | None, ort: dict[str, int], target: int | None) -> None:
        """The robber goes to a field, and whoever is robbed loses one card to whoever moves it."""
        table = self._table
        game = table.game
        if game is None:
            return
        place = at(ort)
        board = game.board
        if board is not None and game.whole:
            problem = None
            if place == game.robber:
                problem = "it stands there already"
            elif not board.is_land(place):
                problem = "that is no field of the island"
            if problem is not None:
                table.flaw(
                    fact,
                    "warning",
                    "rule",
                    "robber-stays" if place == game.robber else "bad-place",
                    f"the robber goes to ({place[0]},{place[1]}): {problem}",
                    "Ort",
                    expected="another field",
                    clause=_RULES,
                )
            elif target is not None and target >= 0 and not any(place in town for town in game.towns(target)):
                table.flaw(
                    fact,
                    "error",
                    "rule",
                    "bad-target",
                    f"{table.name(target)} is robbed, and has nothing beside ({place[0]},{place[1]})",
                    "Ziel",
                    expected="a player with a village or city there",
                    clause="11.3 Räuber versetzen",
                )
        game.robber = place
        game.robbed_by = player.id if player is not None else None
        table.put_in(list(place), "robber")
        game.robbed = target
        if target is not None and target >= 0 and player is not None:
            # Some servers tell only those two what is stolen, so it need not come.
            self.claim(Claim(fact, target, -1, 1, _ROBBER, firm=False))
            self.claim(Claim(fact, player.id, 1, 1, _ROBBER, firm=False))

    # The end of a turn.

    def close(self, fact: Fact | None) -> None:
        """A turn is over: what was due and did not come, and what came and was not due."""
        game = self._table.game
        if game is None:
            return
        unmet, loose = game.ledger.close()
        game.moved = None
        self._compare_cards(game)
        if not game.whole or fact is None:
            return
        self.at_end(game)
        for claim in unmet:
            if not self._table.is_heard(claim.player):
                # Some servers tell nobody else what he pays.
                continue
            other = next((entry for entry in loose if _meant(claim, entry)), None)
            if other is not None:
                loose.remove(other)
            elif claim.why == "start":
                self._no_start(claim)
                continue
            self._wrong(claim, other)
        for entry in loose:
            if self._may_be_early(entry):
                game.ledger.keep(entry)
                continue
            name = self._table.name(entry.player)
            gains = "gains" if entry.sign > 0 else "pays"
            self._table.flaw(
                entry.fact,
                "warning",
                "rule",
                "unexplained-gain" if entry.sign > 0 else "unexplained-cost",
                f"{name} {gains} {words(entry.counts)}, and no rule says why",
                "Rohstoffe",
                clause=f"{entry.fact.row.clause}; {_RULES}",
            )

    def _may_be_early(self, entry: Entry) -> bool:
        """Whether the dice that it came of were told on its stream, too, but are missing there."""
        talk = self._table.conversations.get(entry.fact.messages[0].stream.id)
        return talk is not None and not talk.whole and not entry.early

    def _no_start(self, claim: Claim) -> None:
        """Some servers give nothing for the second village."""
        assert claim.counts is not None
        self._table.flaw(
            claim.fact,
            "warning",
            "rule",
            "no-start-yield",
            f"{self._table.name(claim.player)} gains nothing for the second village",
            expected=words(claim.counts),
            clause=_RULES,
        )

    def _compare_cards(self, game: CatanGame) -> None:
        """What the server says of development cards is right in the end."""
        for player in game.players.values():
            told, player.cards_told = player.cards_told, None
            ours = player.cards.total
            # Some show a player fewer than he has bought: the victory points are left out.
            if told is not None and (ours is None or ours < total(told) or not game.whole):
                player.cards.tell(told)
                self._table.put_cards(player)

    def _wrong(self, claim: Claim, entry: Entry | None) -> None:
        table = self._table
        name = table.name(claim.player)
        assert claim.counts is not None
        if claim.sign > 0:
            code, right = "yield", f"{name} must gain {words(claim.due)} ({claim.why})"
        else:
            code, right = "cost", f"{name} must pay {words(claim.due)} ({claim.why})"
        if entry is not None:
            text = f"{right}, but it is {words(entry.counts)}"
            fact, code = entry.fact, f"wrong-{code}"
        else:
            text = f"{right}, but nothing came of it"
            fact, code = claim.fact, f"missing-{code}"
        # What yields nothing may do so by a server's own rules: where its robber stands, how much there is.
        table.flaw(
            fact,
            "warning" if code == "missing-yield" else "error",
            "rule",
            code,
            text,
            *(("Rohstoffe",) if entry is not None else ()),
            expected=words(claim.due),
            clause="10.3 Ertrag" if claim.sign > 0 else "10.4 Kosten",
        )


def _meant(claim: Claim, entry: Entry) -> bool:
    """Whether an entry is what was told in place of what is claimed: of the same resources, or as many."""
    if (entry.player, entry.sign) != (claim.player, claim.sign) or claim.counts is None:
        return False
    if claim.why == _ROLL and not entry.of_roll:
        return False
    if isinstance(claim.counts, int) or isinstance(entry.counts, int):
        return True
    return bool({*claim.counts} & {*entry.counts}) or total(claim.counts) == total(entry.counts)


def _likely(game: CatanGame, player: Player, sign: int, counts: Counts) -> str | None:
    """What something is for that is told before what it is for."""
    if game.in_setup:
        return "start" if sign > 0 else None
    if any(_is_traded(trade, player.id, sign, counts) for trade in game.trades.values()):
        return "trade"
    turn = game.players.get(game.turn) if game.turn is not None else None
    if turn is not None and total(counts) == 1:
        # What somebody else pays, and whose turn it is then gains, is stolen.
        stolen = (
            player is not turn if sign < 0 else any(_is_theft(game, entry) for entry in game.ledger.entries)
        )
        if turn.status == RÄUBER_VERSETZEN or stolen:
            return _ROBBER
    if sign < 0:
        if player.status == KARTEN_ABGEBEN:
            return _DISCARD
        return next((why for why, cost in _COSTS.items() if cost == counts), None)
    return None


def _is_theft(game: CatanGame, entry: Entry) -> bool:
    """Whether an entry without a claim is one card that somebody pays whose turn it is not."""
    return entry.sign < 0 and entry.player != game.turn and total(entry.counts) == 1


def _is_traded(trade: Trade, player: int, sign: int, counts: Counts) -> bool:
    """Whether this is what a player pays or gains by a trade that somebody would take."""
    if not trade.accepted or player not in (trade.player, *trade.accepted):
        return False
    gives = (player == trade.player) == (sign < 0)
    return counts == (trade.offer if gives else trade.demand)
