"""The baseline game: violations in the messages that the program sends in an undisturbed game."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import msgspec

from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.case import Case
from kiebitz.dissectors.probing.verdict import Verdict, VerdictWord
from kiebitz.proxy.peers.connections import PeerError
from kiebitz.services.probing.connection_setup import ProbeSetup, TargetSession
from kiebitz.storage.read.message_queries import diagnostics, messages
from kiebitz.storage.read.timeline import Timeline

Violations = Mapping[str, Mapping[str, Sequence[int]]]
"""Sentences about violations by message name, each with the numbers of the messages concerned."""

OF_NO_MESSAGE = ""
"""Message of a violation that belongs to no message of the program."""


class GameObservation(msgspec.Struct, frozen=True):
    """The observed behaviour of a program in play.

    `lost` says why the game was not finished, `died` how the process ended; `diverged_at` is the number of
    the recorded line at which it departed from the record, None if it never did.

    The rest comes from the recording (`add_findings`): `sent_messages` are the names of its messages,
    `violations` the violations in them; `lapses` are mere departures from the specification's wording, as in
    a dialect. A client `takes_part` if it sends more than its introduction.
    """

    lost: str | None
    died: str | None
    is_responsive: bool
    seconds: float
    diverged_at: int | None = None
    sent_messages: frozenset[str] = frozenset()
    violations: Violations = msgspec.field(default_factory=dict)
    lapses: Violations = msgspec.field(default_factory=dict)
    takes_part: bool = True


class BaselineGame(TargetSession):
    """An undisturbed game, or as much of one as there is time for."""

    async def run(self, limit_s: float, come_s: float) -> GameObservation:
        """Play for at most `limit_s` seconds.

        A client that Kiebitz does not start may connect within `come_s` seconds. Raises PeerError,
        ProgramError, RelayError and StorageError.
        """
        started = time.monotonic()
        lost = diverged_at = None
        is_awaited = self._setup.target_role == "client" and self._program is None
        async with self._recorded():
            try:
                await self._open()
                try:
                    async with self._timeout(come_s if is_awaited else limit_s) as timeout:
                        if is_awaited:
                            self._monitor.on_first = lambda: timeout.reschedule(
                                asyncio.get_running_loop().time() + limit_s
                            )
                        await self._driver.play()
                except TimeoutError:
                    if is_awaited and not self._monitor.has_client:
                        lost = f"no client connected in {round(come_s, 1):g} s"
                    elif not self.is_responsive:
                        lost = f"it sent nothing in {round(limit_s, 1):g} s"
                    elif not self._route.has_finished_game:
                        lost = f"no game was finished in {round(limit_s, 1):g} s"
                # While a newcomer is greeted, nothing follows the record any more.
                diverged_at = self._route.diverged_at
                self._observer.start_collecting()
                baseline = self._setup.baseline
                if self._setup.target_role == "server" and self.is_responsive and not baseline.is_complete:
                    await self._learn_greeting()
                baseline.complete(self._observer.delays_s, self._route.offered)
            except PeerError as error:
                if self._program is None:
                    raise
                lost = str(error)
            died = self._died()
        seconds = time.monotonic() - started
        return GameObservation(self._route.lost or lost, died, self.is_responsive, seconds, diverged_at)


def game_verdict(case: Case, game: GameObservation) -> tuple[Verdict | None, str | None]:
    """Return the verdict on a case in play; or None, and why it was not observed."""
    wrong = _wrong(case, game)
    if wrong is not None:
        return wrong[0], None
    if case.checked_message is None:
        if game.died is not None:
            return Verdict("FAILED", f"it has ended: {game.died}", ("ignores",)), None
        if game.sent_messages and not game.takes_part:
            names = " and ".join(sorted(game.sent_messages))
            why = f"it says nothing but {names}: it takes no part in the game"
            return Verdict("INFORMATIONAL", why, ("ignores",)), None
        if game.lost is not None:
            if not game.sent_messages:
                return None, game.lost
            return Verdict("INFORMATIONAL", game.lost, ("ignores",)), None
        return Verdict("OK", "it plays a game to its end", ("answers",)), None
    if case.checked_message not in game.sent_messages:
        return None, "it did not send this in the game"
    return Verdict("OK", "it sends it as specified", ("answers",)), None


def violating_messages(case: Case, game: GameObservation) -> Sequence[int]:
    """Return the numbers of the messages that the verdict on a case in play is about."""
    wrong = _wrong(case, game)
    return () if wrong is None else wrong[1]


def _wrong(case: Case, game: GameObservation) -> tuple[Verdict, Sequence[int]] | None:
    """Return the verdict on violations in the messages that a case checks, with their numbers.

    None if there are none.
    """
    # Unreadable bytes belong to none of its messages.
    names = (OF_NO_MESSAGE, UNREADABLE) if case.checked_message is None else (case.checked_message,)
    found: Mapping[VerdictWord, Violations] = {"FAILED": game.violations, "NON-STRICT": game.lapses}
    for word, by_name in found.items():
        violations = [diagnostic for name in names for diagnostic in by_name.get(name, {}).items()]
        if violations:
            more = f"; and {len(violations) - 1} more" if len(violations) > 1 else ""
            verdict = Verdict(word, f"in an undisturbed game: {violations[0][0]}{more}", ("answers",))
            return verdict, sorted({number for _, numbers in violations for number in numbers})
    return None


def correct_messages(timeline: Timeline, until_ns: int, setup: ProbeSetup) -> set[str]:
    """Return the names of the target's correct messages up to a time, of all if that is 0."""
    sent_by_program = OPPOSITE[INPUT_DIRECTION[setup.target_role]]
    wrong = {diagnostic.message_id for diagnostic in diagnostics(timeline) if diagnostic.severity != "note"}
    return {
        row.name
        for row in messages(timeline)
        if row.direction == sent_by_program and row.id not in wrong and (not until_ns or row.ts_ns < until_ns)
    }


def add_findings(game: GameObservation, timeline: Timeline, setup: ProbeSetup) -> GameObservation:
    """Return the observations, complemented by those of the recording."""
    target_role = setup.target_role
    sent_by_program = OPPOSITE[INPUT_DIRECTION[target_role]]
    sent_messages = frozenset(row.name for row in messages(timeline) if row.direction == sent_by_program)
    violations: dict[str, dict[str, list[int]]] = {}
    lapses: dict[str, dict[str, list[int]]] = {}
    for diagnostic in diagnostics(timeline):
        if diagnostic.severity == "note" or diagnostic.blame != target_role:
            continue
        # A client has got all information from us, so that a broken rule is no doubtful case.
        if diagnostic.severity == "error" or (target_role == "client" and diagnostic.group == "rule"):
            kind = violations
        elif diagnostic.group != "rule":
            kind = lapses
        else:
            continue
        name = diagnostic.message if diagnostic.direction == sent_by_program else None
        numbers = kind.setdefault(name or OF_NO_MESSAGE, {}).setdefault(diagnostic.text, [])
        if diagnostic.message_id is not None:
            numbers.append(diagnostic.message_id)
    takes_part = target_role == "server" or not sent_messages <= setup.dissector.identity.login_messages
    return msgspec.structs.replace(
        game, sent_messages=sent_messages, violations=violations, lapses=lapses, takes_part=takes_part
    )
