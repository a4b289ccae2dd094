"""What a turn owes when it is over: what was due and did not come, and what came and was not due."""

from __future__ import annotations

from kiebitz.dissectors.protocols.catan.context import Play
from kiebitz.dissectors.protocols.catan.game import CatanGame
from kiebitz.dissectors.protocols.catan.hand import total
from kiebitz.dissectors.protocols.catan.ledger import ROLL, START, Claim, Entry
from kiebitz.dissectors.protocols.catan.phrases import words


class Verdicts:
    """Gives the verdicts on what is left in the ledger."""

    def __init__(self, play: Play) -> None:
        self._play = play

    def close(self, game: CatanGame) -> None:
        """A turn is over."""
        unmet, loose = game.ledger.close()
        self._compare_cards(game)
        if not game.whole:
            return
        for claim in unmet:
            if not self._play.is_heard(claim.player):
                # Some servers tell nobody else what he pays.
                continue
            other = next((entry for entry in loose if _meant(claim, entry)), None)
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
            name, counts = self._play.name(entry.player), words(entry.counts)
            self._play.flaw_of(entry.observation, key, "Rohstoffe", player=name, counts=counts)

    def _may_be_early(self, entry: Entry) -> bool:
        """Whether the dice that it came of were told on its stream, too, but are missing there."""
        talk = self._play.conversations.get(entry.observation.messages[0].stream.id)
        return talk is not None and not talk.whole and not entry.early

    def _no_start(self, claim: Claim) -> None:
        """Some servers give nothing for the second village."""
        assert claim.counts is not None
        name, counts = self._play.name(claim.player), words(claim.counts)
        self._play.flaw_of(claim.observation, "no-start-yield", player=name, counts=counts)

    def _compare_cards(self, game: CatanGame) -> None:
        """What the server says of development cards is right in the end."""
        for player in game.players.values():
            told, player.cards_told = player.cards_told, None
            ours = player.cards.total
            # Some show a player fewer than he has bought: the victory points are left out.
            if told is not None and (ours is None or ours < total(told) or not game.whole):
                player.cards.tell(told)
                self._play.put_cards(player)

    def _wrong(self, claim: Claim, entry: Entry | None) -> None:
        play = self._play
        name, due = play.name(claim.player), words(claim.due)
        of = "yield" if claim.sign > 0 else "cost"
        if entry is None:
            play.flaw_of(claim.observation, f"missing-{of}", player=name, due=due, why=claim.why)
            return
        key, counts = f"wrong-{of}", words(entry.counts)
        play.flaw_of(entry.observation, key, "Rohstoffe", player=name, due=due, why=claim.why, counts=counts)


def _meant(claim: Claim, entry: Entry) -> bool:
    """Whether an entry is what was told in place of what is claimed: of the same resources, or as many."""
    if (entry.player, entry.sign) != (claim.player, claim.sign) or claim.counts is None:
        return False
    if claim.why == ROLL and not entry.of_roll:
        return False
    if isinstance(claim.counts, int) or isinstance(entry.counts, int):
        return True
    return bool({*claim.counts} & {*entry.counts}) or total(claim.counts) == total(entry.counts)
