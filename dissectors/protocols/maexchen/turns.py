"""The turns of a round: who rolls, announces and wants to see.

The content of missing messages is inferred where possible.
"""

from __future__ import annotations

from kiebitz.dissectors.game.broadcast_dedup import broadcast_key
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.maexchen.answers import Answers
from kiebitz.dissectors.protocols.maexchen.context import MaexchenContext
from kiebitz.dissectors.protocols.maexchen.dice import MIA
from kiebitz.dissectors.protocols.maexchen.questions import ClientConnection
from kiebitz.dissectors.protocols.maexchen.registration import Registration
from kiebitz.dissectors.protocols.maexchen.round_state import Announcement, Round


class Turns:
    """Handlers of the messages between a round's beginning and its loss."""

    def __init__(self, context: MaexchenContext, registration: Registration, answers: Answers) -> None:
        self._context = context
        self._registration = registration
        self._answers = answers

    def your_turn(self, message: Message, connection: ClientConnection) -> None:
        """Handle the server's question to the player whose turn it is."""
        played = self._context.playing(message)
        name = connection.name
        inferred = name is None and not connection.names
        if inferred:
            name = played.due
            if name is not None:
                self._registration.assign(connection, name)
        self._set_turn(played, name, inferred)
        self._context.emit_of(message, "turn", name, {"name": name}, played.game)
        self._answers.asked(connection, "turn", message, played.game.id)

    def takes_turn(self, message: Message, connection: ClientConnection) -> None:
        """Handle `ROLL` or `SEE`."""
        self._answers.answered(connection, "turn", message)

    def announces(self, message: Message, connection: ClientConnection) -> None:
        """Handle a client's announcement."""
        self._answers.answered(connection, "announce", message)

    def _infer(self, message: Message, played: Round, kind: str, name: str, broadcast: str) -> None:
        """Emit an event without a message, and log it for copies of a later one of this name."""
        data = {"name": name}
        event = self._context.emit(kind, message.ts_ns, name, data, played.game)
        self._context.log.expect(broadcast_key(broadcast, to_json(data)), event)

    def _set_turn(self, played: Round, name: str | None, inferred: bool = False) -> None:
        if played.phase == "started":
            if played.due is not None and name is not None and name != played.due:
                played.doubt("announced")
            played.turn = name
            played.set_state(name, "turn")
            played.mark_inferred("turn", inferred and name is not None)

    def player_rolls(self, message: Message, connection: ClientConnection) -> None:
        """Handle the server's message that a player rolls."""
        name: str = message.fields["name"]
        played = self._context.playing(message)
        self._check_order(message, played, name)
        self._rolls(played, name)
        self._context.emit_broadcast(message, "rolls", name, {"name": name}, played)
        self._registration.assign_by_turn(name)

    def _rolls(self, played: Round, name: str | None, inferred: bool = False) -> None:
        self._set_turn(played, name, inferred)
        played.rolling = name
        played.rolled.clear()
        played.set_state(None, "private")
        played.set_state(name, "rolling")
        played.mark_inferred("rolling", inferred)

    def _infer_roll(self, message: Message, played: Round, name: str | None) -> None:
        """Infer who rolls: the oldest servers do not announce it, with others the datagram may be lost."""
        if played.rolling != name and name is not None:
            self._rolls(played, name, inferred=True)
            self._infer(message, played, "rolls", name, "PLAYER ROLLS")

    def rolled(self, message: Message, connection: ClientConnection) -> None:
        """Handle the result of a roll, which only the roller receives."""
        played = self._context.playing(message)
        name = connection.name or played.rolling or played.turn
        dice: str = message.fields["dice"]
        self._infer_roll(message, played, name)
        if name is not None:
            if not connection.names:
                self._registration.assign(connection, name)
            played.rolled[name] = dice
            played.set_state(dice, "private", name, "dice")
        self._context.emit_of(message, "rolled", name, {"name": name, "dice": dice}, played.game)
        self._answers.asked(connection, "announce", message, played.game.id)

    def announced(self, message: Message, connection: ClientConnection) -> None:
        """Handle the server's message that a player announces dice."""
        name: str = message.fields["name"]
        dice: str = message.fields["dice"]
        played = self._context.playing(message)
        if played.rolling != name:
            self._check_order(message, played, name)
            self._infer_roll(message, played, name)
        played.before, played.last = played.last, Announcement(name, dice)
        played.rolling = None
        played.set_state(None, "rolling")
        played.mark_inferred("rolling", False)
        # Mäxchen is uncovered at once; after any other announcement it is the next player's turn.
        self._set_turn(played, played.due if dice != MIA else None, inferred=True)
        played.set_known("announced", {"name": name, "dice": dice})
        if name in played.rolled:
            played.set_state(played.rolled[name] != dice, "private", name, "bluff")
        self._context.emit_broadcast(message, "announced", name, {"name": name, "dice": dice}, played)
        self._check_announcement(message, name, dice)

    def player_wants_to_see(self, message: Message, connection: ClientConnection) -> None:
        """Handle the server's message that a player wants to see."""
        name: str = message.fields["name"]
        played = self._context.playing(message)
        self._check_order(message, played, name)
        self._sees(played, name)
        self._context.emit_broadcast(message, "wants_to_see", name, {"name": name}, played)
        self._registration.assign_by_turn(name)

    def _sees(self, played: Round, name: str, inferred: bool = False) -> None:
        self._set_turn(played, name, inferred)
        played.seer = name
        played.set_state(name, "seer")
        played.mark_inferred("seer", inferred)

    def infer_see(self, message: Message, played: Round) -> None:
        """Infer who wants to see, if the server did not announce it, or that datagram was lost.

        The oldest servers do not announce it. A valid SEE shows it. Otherwise, unless Mäxchen is announced,
        dice are
        uncovered only for the next player.
        """
        if played.seer is not None or (played.last is not None and played.last.dice == MIA):
            return
        name = self._who_sees(played)
        if name is None and message.name == "ACTUAL DICE":
            name = played.due
        if name is not None:
            self._sees(played, name, inferred=True)
            self._infer(message, played, "wants_to_see", name, "PLAYER WANTS TO SEE")

    def _who_sees(self, played: Round) -> str | None:
        """Return the player whose SEE the server has not yet handled."""
        for connection in self._context.connections.values():
            question = connection.open.get("turn")
            if (
                question is not None
                and question.game_id == played.game.id
                and not question.over
                and question.answer is not None
                and question.answer.name == "SEE"
            ):
                return connection.name
        return None

    def actual_dice(self, message: Message, connection: ClientConnection) -> None:
        """Handle the dice that the server uncovers."""
        dice: str = message.fields["dice"]
        played = self._context.playing(message)
        self.infer_see(message, played)
        played.actual = dice
        played.set_state(dice, "actual")
        self._context.emit_broadcast(message, "actual_dice", None, {"dice": dice}, played)
        name = played.last.name if played.last is not None else None
        if played.certain and name is not None and played.rolled.get(name, dice) != dice:
            rolled = played.rolled[name]
            self._context.report_server_violation(
                message, "other-dice/shown", player=name, rolled=rolled, dice=dice
            )

    # Checks.

    def _check_order(self, message: Message, played: Round, name: str) -> None:
        due = played.rolling if played.rolling is not None and played.certain else played.due
        if played.phase == "started" and due is not None and name != due:
            self._context.report_violation(message, "out-of-turn", player=due)
            played.doubt("announced")

    def _check_announcement(self, message: Message, name: str, dice: str) -> None:
        """Check that the server broadcasts the player's announcement unchanged."""
        connection = self._registration.connection_of(name)
        question = connection.open.get("announce") if connection is not None else None
        if question is None or question.over:
            return
        question.over = True
        # The server may have accepted a message that Kiebitz rejects.
        if question.answer is not None and question.certain and question.answer.fields["dice"] != dice:
            announced = question.answer.fields["dice"]
            self._context.report_server_violation(
                message, "other-dice/announced", player=name, announced=announced, dice=dice
            )
