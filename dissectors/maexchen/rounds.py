"""The rounds of a table: when one begins and ends, what is missing of it, and what the points must be.

Over UDP anything may be missing or come late. What a message of play belongs to is decided here, and a round
with a hole in it accuses nobody.
"""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.broadcast import REORDERED_NS
from kiebitz.dissectors.maexchen.grammar import GRAMMAR
from kiebitz.dissectors.maexchen.points import Points
from kiebitz.dissectors.maexchen.questions import Seat
from kiebitz.dissectors.maexchen.round import Round
from kiebitz.dissectors.maexchen.rules import alone
from kiebitz.dissectors.records import Findings, Ids, Message, TableInfo
from kiebitz.dissectors.table import GameTable

_STRAGGLING_NS = 5_000_000
"""How long after a round's end its other messages may come. Some servers begin the next one soon after."""


class RoundTable(GameTable):
    """A table with one round at a time. The messages' meaning is its subclass's."""

    rules = GRAMMAR.rules

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings)
        self._seats: dict[int, Seat] = {}
        self._round: Round | None = None
        self._unscored: Round | None = None
        """A round that is over and whose points have not come yet, while the next is already starting."""
        self._previous: Round | None = None
        self._points = Points()
        self._last_number: int | None = None
        self._started_ns = 0
        """When a round was last seen to start."""

    def _begin(self, message: Message, number: int | None, *missing: str) -> Round:
        """Open a round; `missing` are the parts of its state that nobody will tell any more."""
        if self._round is not None:
            self._leave(self._round, message.ts_ns)
        label = f"round {number}" if number is not None else "round"
        played = self._round = Round(self.open_game(label, message.ts_ns), number)
        played.whole = not missing
        self._put(played, "starting", "phase")
        if number is not None:
            self._put(played, number, "round")
        if missing:
            self._put(played, sorted(missing), "unknown")
        return played

    def _leave(self, played: Round, ts_ns: int) -> None:
        """Another round begins or the points are told: this one is no longer on."""
        if played.game.ended_ns is None:
            played.game.ended_ns = ts_ns
            self.changed_game(played.game)
        if played.over_ns is None:
            played.over_ns = ts_ns
        if not played.left:
            played.left = True
            self.put(None, "games", played.key)
        if not played.scored and played.phase in ("lost", "canceled"):
            self._unscored = played
        if not played.scored and played.phase == "started":
            # Its loss was not seen, so the points cannot be foretold.
            self._points.forget()
        if self._round is played:
            self._round = None
        self._previous = played

    def _playing(self, message: Message) -> Round:
        """The round that a message of play belongs to; an unknown one if its beginning was not seen."""
        played = self._round
        if played is not None and played.phase == "started":
            return played
        before = self._previous
        if before is not None and self._just_over(before, message.ts_ns):
            # Servers wait for players before they start the next round: this was overtaken by SCORE.
            before.whole = False
            return before
        if played is not None and played.phase == "starting":
            self._missing(played, "players")
            played.started_ns = message.ts_ns
            return self._started_unseen(played)
        if played is not None and self._just_over(played, message.ts_ns):
            played.whole = False
            return played
        return self._started_unseen(self._begin(message, None, "players", "round", "announced"))

    def _started_unseen(self, played: Round) -> Round:
        """A round goes on whose ROUND STARTED was not seen: who has a point for it is not known."""
        played.phase = "started"
        self._put(played, "started", "phase")
        self._points.forget()
        return played

    @staticmethod
    def _just_over(played: Round, ts_ns: int) -> bool:
        """Whether something of a round that is over may still be on its way; its loss, if that is missing."""
        patience_ns = REORDERED_NS if played.game.result is None else _STRAGGLING_NS
        return played.over_ns is not None and ts_ns - played.over_ns < patience_ns

    @staticmethod
    def _overtaken(played: Round, ts_ns: int) -> bool:
        """Whether a round was taken for started just because its first turn overtook ROUND STARTED."""
        return (
            played.phase == "started" and played.players is None and ts_ns - played.started_ns < REORDERED_NS
        )

    def _put(self, played: Round, value: Any, *path: str) -> None:
        """Change a round's part of the state, unless it has left it."""
        if not played.left:
            self.put(value, "games", played.key, *path)

    def _now_known(self, played: Round, name: str, value: Any) -> None:
        """A part of a round's state is told, whether it was unknown before or not."""
        self._put(played, value, name)
        unknown = self.state.get("games", {}).get(played.key, {}).get("unknown", ())
        if name in unknown:
            rest = [other for other in unknown if other != name]
            self._put(played, rest or None, "unknown")

    def _mark_inferred(self, played: Round, name: str, inferred: bool) -> None:
        """Note in a round's state whether one of its parts was told or only worked out."""
        if inferred != (name in played.inferred):
            played.inferred ^= {name}
            self._put(played, sorted(played.inferred) or None, "inferred")

    def _missing(self, played: Round, *parts: str) -> None:
        """Something of a round was not seen: from now on its `parts` are unknown and nobody is accused."""
        played.whole = False
        part = self.state.get("games", {}).get(played.key)
        if part is not None:
            self._put(played, sorted({*part.get("unknown", ()), *parts}), "unknown")
            for name in parts:
                if name in part:
                    self._put(played, None, name)

    def _count_start(self, played: Round) -> None:
        """A point for each player (protocol page: points); what must be told later rests on it."""
        if (
            self._last_number is not None
            and played.number is not None
            and played.number != self._last_number + 1
        ):
            # Rounds have passed that are not in the capture, or were called off before anybody heard of them.
            self._points.forget()
        self._last_number = played.number
        self._started_ns = played.started_ns
        self._points.started(played.players or ())

    def _falls(self, number: int | None, ts_ns: int) -> bool:
        """Whether a round that starts has a lower number than the one before, and was not overtaken by it."""
        last = self._last_number
        return (
            last is not None
            and number is not None
            and number < last
            and ts_ns - self._started_ns >= REORDERED_NS
        )

    def _check_points(self, message: Message, played: Round, scores: dict[str, int]) -> None:
        wrong = self._points.wrong(scores)
        if wrong and played.whole and played.game.result is not None:
            self._accuse(message, "wrong-score", problem="; ".join(wrong))

    def _accuse(self, message: Message, key: str, **values: Any) -> None:
        """Something speaks against the server, or else a datagram is missing from the capture.

        That one is missing from all of several conversations is hardly possible; from the only one it is.
        """
        heard = sum(seat.addressed and not seat.gone for seat in self._seats.values())
        self.flaw(message, key if heard > 1 else alone(key), **values)
