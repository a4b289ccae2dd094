"""A client's connection: its player, its round, and its open question."""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.model import Stream
from kiebitz.dissectors.protocols.schafkopf.round_state import Question, Round


class ClientConnection(msgspec.Struct, eq=False):
    """A client's connection: its name, its round and seat, and its open question."""

    stream: Stream
    name: str | None = None
    round: Round | None = None
    seat: int | None = None
    certain_question: bool = True
    """True if nothing is missing since the last question."""
    certain_round: bool = True
    """True if nothing is missing since the round began; otherwise this may be the next round."""
    certain_cards: bool = True
    """True if nothing is missing since the server has shown the cards."""
    asked: Question | None = None
    answered: Question | None = None
    """The last answered question, to recognise repeated answers."""
    id: int | None = None
    """A seat announced for a round that has not begun otherwise."""
    dran: int | None = None
    step: int = 0
    """The server's position in the order of a round."""
    tricks: int = 0
    """Number of tricks that this client was shown."""
    lead_due: bool = False
    """True if a trick is over, and the server has not yet announced the next turn."""
    account: int | None = None
    settled: Round | None = None
    """The finished round whose account is not announced yet."""
    certain_account: bool = False
    """True if nothing is missing since the account before that round's result."""
    doubted: bool = False
    """True if the last snapshot contradicted what was known."""
    hand_doubted: bool = False
    """True if the hand in it did."""
    left: bool = False
