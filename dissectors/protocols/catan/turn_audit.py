"""Checks at the end of a turn: gains and payments that were due but missing, or that no rule explains."""

from __future__ import annotations

from kiebitz.dissectors.protocols.catan.context import CatanContext
from kiebitz.dissectors.protocols.catan.game import CatanGame
from kiebitz.dissectors.protocols.catan.hand import total
from kiebitz.dissectors.protocols.catan.ledger import ROLL, START, Claim, Entry
from kiebitz.dissectors.protocols.catan.phrases import counts_text


class TurnAudit:
    """Reports what is left in the ledger at the end of a turn."""

    def __init__(self, context: CatanContext) -> None:
        self._context = context

    def close(self, game: CatanGame) -> None:
        """Check the ledger at the end of a turn."""
        unmet, loose = game.ledger.close()
        unread = game.unread
        game.unread = {player: turns - 1 for player, turns in unread.items() if turns > 1}
        self._compare_cards(game)
        if not game.certain:
            return
        for claim in unmet:
            if not self._context.is_heard(claim.player):
                # Some servers do not send this payment to other players.
                continue
            other = next((entry for entry in loose if _is_probable_match(claim, entry)), None)
            if other is not None:
                loose.remove(other)
            elif claim.why == START:
                self._no_start(claim)
                continue
            self._wrong(claim, other)
        for entry in loose:
            if self._may_be_early(entry):
                game.ledger.keep(entry)
                continue
            key = "unexplained-gain" if entry.sign > 0 else "unexplained-cost"
            name, counts = self._context.name(entry.player), counts_text(entry.counts)
            # An unread request, such as one to trade overseas, may explain it.
            self._context.report_violation_of(
                entry.observation,
                key,
                "Rohstoffe",
                certain=entry.player not in unread,
                player=name,
                counts=counts,
            )

    def _may_be_early(self, entry: Entry) -> bool:
        """Return True if the dice that explain an entry may be missing from its stream."""
        connection = self._context.connections.get(entry.observation.messages[0].stream.id)
        return connection is not None and not connection.certain and not entry.early

    def _no_start(self, claim: Claim) -> None:
        """Report that the second village yielded nothing, as on some servers."""
        assert claim.counts is not None
        name, counts = self._context.name(claim.player), counts_text(claim.counts)
        self._context.report_violation_of(claim.observation, "no-start-yield", player=name, counts=counts)

    def _compare_cards(self, game: CatanGame) -> None:
        for player in game.players.values():
            told, player.cards_told = player.cards_told, None
            ours = player.cards.total
            # Some servers omit the victory points from a player's own cards.
            if told is not None and (ours is None or ours < total(told) or not game.certain):
                player.cards.apply_counts(total(told) if player.cards_contradicted else told)
                self._context.put_cards(player)

    def _wrong(self, claim: Claim, entry: Entry | None) -> None:
        context = self._context
        name, due = context.name(claim.player), counts_text(claim.due)
        of = "yield" if claim.sign > 0 else "cost"
        if entry is None:
            context.report_violation_of(
                claim.observation, f"missing-{of}", player=name, due=due, why=claim.why
            )
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
