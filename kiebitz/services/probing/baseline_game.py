"""A game without anything odd: what is wrong in what the program says by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import msgspec

from kiebitz.dissectors.conformance.expectations import HEARS
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.case import Case
from kiebitz.dissectors.probing.verdict import Verdict, Word
from kiebitz.proxy.peers.connections import PeerError
from kiebitz.services.probing.connection_setup import Conditions, Stage
from kiebitz.storage.read.message_queries import diagnostics, messages
from kiebitz.storage.read.timeline import Timeline

Wrong = Mapping[str, Mapping[str, Sequence[int]]]
"""By message what is wrong in it, a sentence each, with the numbers of those of the session that have it."""

OF_NO_MESSAGE = ""
"""Stands for a message where a flaw belongs to none of the program's."""


class InPlay(msgspec.Struct, frozen=True):
    """What was seen of a program in play.

    `lost` says why the game did not come to its end, `died` how the process has ended; `parted_at` is the
    number of the line of the record up to which it went by that, None if it did to the end.

    The rest is told by the recording (`with_findings`): `said` are the names of its messages, `flaws` is what
    is wrong in them; `lapses` what only departs from the specification's words, as a dialect does. A client
    `takes_part` if it says more than who it is.
    """

    lost: str | None
    died: str | None
    is_heard: bool
    seconds: float
    parted_at: int | None = None
    said: frozenset[str] = frozenset()
    flaws: Wrong = msgspec.field(default_factory=dict)
    lapses: Wrong = msgspec.field(default_factory=dict)
    takes_part: bool = True


class Game(Stage):
    """Plays a game, or as much of one as there is time for."""

    async def run(self, limit_s: float, come_s: float) -> InPlay:
        """Play for so many seconds at the most. A client that is not ours to start may come within `come_s`.

        Raises PeerError, ProgramError, RelayError and StorageError.
        """
        started = time.monotonic()
        lost = parted_at = None
        is_awaited = self._conditions.side == "client" and self._program is None
        async with self._recorded():
            try:
                await self._open()
                try:
                    async with asyncio.timeout(come_s if is_awaited else limit_s) as patience:
                        if is_awaited:
                            self._listening.on_first = lambda: patience.reschedule(_now() + limit_s)
                        await self._actor.play()
                except TimeoutError:
                    if is_awaited and not self._listening.has_come:
                        lost = f"nobody came in {come_s:.3g} s"
                    elif not self.is_heard:
                        lost = f"it said nothing in {limit_s:.3g} s"
                    elif not self._way.has_played:
                        lost = f"in {limit_s:g} s no game came to its end"
                # While a newcomer is greeted, nobody goes by the record any more.
                parted_at = self._way.parted_at
                self._witness.begin()
                if self._conditions.side == "server" and self.is_heard:
                    await self._learn_greeting()
            except PeerError as error:
                if self._program is None:
                    raise
                lost = str(error)
            died = self._died()
        seconds = time.monotonic() - started
        return InPlay(self._way.lost or lost, died, self.is_heard, seconds, parted_at)


def _now() -> float:
    return asyncio.get_running_loop().time()


def verdict_of(case: Case, game: InPlay) -> tuple[Verdict | None, str | None]:
    """The verdict on a case that is in play; None, and why, if it was not seen."""
    wrong = _wrong(case, game)
    if wrong is not None:
        return wrong[0], None
    if case.says is None:
        if game.died is not None:
            return Verdict("FAILED", f"it has ended: {game.died}", ("ignores",)), None
        if game.said and not game.takes_part:
            why = f"it says nothing but {' and '.join(sorted(game.said))}: others play, and it takes no part"
            return Verdict("INFORMATIONAL", why, ("ignores",)), None
        if game.lost is not None:
            return (
                (Verdict("INFORMATIONAL", game.lost, ("ignores",)), None) if game.said else (None, game.lost)
            )
        return Verdict("OK", "it plays a game to its end", ("answers",)), None
    if case.says not in game.said:
        return None, "it did not say this in the game"
    return Verdict("OK", "it says it as the specification has it", ("answers",)), None


def wrong_messages(case: Case, game: InPlay) -> Sequence[int]:
    """The numbers of the messages in which something is wrong by the verdict on a case that is in play."""
    wrong = _wrong(case, game)
    return () if wrong is None else wrong[1]


def _wrong(case: Case, game: InPlay) -> tuple[Verdict, Sequence[int]] | None:
    """The verdict on what is wrong in the messages that a case looks at, and their numbers; None if nothing
    is."""
    # What nobody can read is none of its messages.
    names = (OF_NO_MESSAGE, UNREADABLE) if case.says is None else (case.says,)
    found: Mapping[Word, Wrong] = {"FAILED": game.flaws, "NON-STRICT": game.lapses}
    for word, by_name in found.items():
        flaws = [flaw for name in names for flaw in by_name.get(name, {}).items()]
        if flaws:
            more = f"; and {len(flaws) - 1} more" if len(flaws) > 1 else ""
            verdict = Verdict(word, f"in a game without anything odd: {flaws[0][0]}{more}", ("answers",))
            return verdict, sorted({number for _, numbers in flaws for number in numbers})
    return None


def with_findings(game: InPlay, timeline: Timeline, conditions: Conditions) -> InPlay:
    """The same with what the recording tells of it."""
    side, says = conditions.side, OPPOSITE[HEARS[conditions.side]]
    said = frozenset(row.name for row in messages(timeline) if row.direction == says)
    flaws: dict[str, dict[str, list[int]]] = {}
    lapses: dict[str, dict[str, list[int]]] = {}
    for flaw in diagnostics(timeline):
        if flaw.severity == "note" or flaw.blame != side:
            continue
        # To a client we have said all that there is to know: then to break a rule is no doubtful thing.
        if flaw.severity == "error" or (side == "client" and flaw.group == "rule"):
            kind = flaws
        elif flaw.group != "rule":
            kind = lapses
        else:
            continue
        name = flaw.message if flaw.direction == says else None
        numbers = kind.setdefault(name or OF_NO_MESSAGE, {}).setdefault(flaw.text, [])
        if flaw.message_id is not None:
            numbers.append(flaw.message_id)
    takes_part = side == "server" or not said <= conditions.dissector.identity.login_messages
    return msgspec.structs.replace(game, said=said, flaws=flaws, lapses=lapses, takes_part=takes_part)
