"""The outcome of a cell's run, from the recording and the ends of its programs."""

from __future__ import annotations

from typing import Any

import msgspec

from kiebitz.services.interop.cell_run import CellRecord, Ended
from kiebitz.services.interop.participation import Client, Participation, Presence
from kiebitz.services.interop.plan import Plan, Program
from kiebitz.services.interop.results import Attempt, Finding, OutcomeWord, open_recording
from kiebitz.services.wording import counted
from kiebitz.storage.session.session import Session

_MAX_FINDINGS = 50
"""Maximum number of different findings of a run."""


def judged(plan: Plan, record: CellRecord, database: str) -> Attempt:
    """Return the outcome of a run. Raises KiebitzError if its recording cannot be read."""
    with open_recording(database) as session:
        judge = _Judge(plan, record, session)
        outcome, culprit, why = judge.outcome()
    return Attempt(
        outcome,
        culprit,
        why,
        judge.part.played,
        round(record.seconds, 1),
        judge.findings,
        record.outputs,
        None,
        None,
        [each.record() for each in judge.part.clients],
    )


Outcome = tuple[OutcomeWord, str | None, str]
"""An outcome, the culprit, and the reason."""


class _Judge:
    """The judge of one run."""

    def __init__(self, plan: Plan, record: CellRecord, session: Session) -> None:
        self._plan = plan
        self._record = record
        self._session = session
        self._is_mixed = len({client.program for client in record.clients}) > 1
        self.part = Participation(session, plan.dissector, record.clients, record.until_ns)
        self.findings = self._findings()

    def outcome(self) -> Outcome:
        """Return the outcome. A side that broke the protocol first may have brought the other down."""
        record, first = self._record, self._first
        crash = next((each for each in record.ended if each.is_crash), None)
        if record.not_started is not None:
            return "crashed", "server", record.not_started
        if crash is not None:
            why = f"{_who(crash)} crashed ({crash.how}){self._cause}"
            return "crashed", self._blamed(self._culprit_of(crash.program)), why
        if self.part.has_completed(self._plan.games):
            if first is None:
                return "completed", None, counted(self.part.played, "game")
            more = sum(each.count for each in self.findings) - 1
            also = f", and {more:,} more" if more else ""
            return "violations", first.blame, f"{_named(first.blame)} breaks a rule: {first.text}{also}"
        left = next(iter(record.ended), None)
        return self._unfinished() if left is None else self._left(left)

    def _left(self, left: Ended) -> Outcome:
        """Return the outcome if a program has ended too early."""
        first, culprit = self._first, self._blamed(self._culprit_of(left.program))
        if not self.part.begun:
            return "refused", culprit, f"{_who(left)} ended ({left.how}) before any game began{self._cause}"
        if first is not None:
            why = f"{_named(first.blame)} breaks a rule: {first.text}; then {_who(left)} ended ({left.how})"
            return "violations", first.blame, why
        return "left", culprit, f"{_who(left)} ended ({left.how}) after {self._played}"

    def _unfinished(self) -> Outcome:
        """Return the outcome if all programs still ran when the time was over."""
        clients, part, first = self.part.clients, self.part, self._first
        if first is not None and part.played + part.partly + part.timed_out >= self._plan.games:
            # Games are played until the timeout, and a violation explains why none counts.
            return (
                "violations",
                first.blame,
                f"{_named(first.blame)} breaks a rule: {first.text}; {self._played}",
            )
        played = f"{self._played} in {self._plan.timeout_s:g} s{self._cause}"
        for client in clients:
            if not client.streams:
                culprit = self._blamed(self._client(client))
                return "idle", culprit, f"client {client.client.label} has not connected; {played}"
        if not any(client.sent for client in clients):
            return "refused", None, f"no client sent anything in {self._plan.timeout_s:g} s"
        for client in clients:
            if self.part.has_left(client):
                culprit = None if self._is_waiting(client) else self._client(client)
                why = f"client {client.client.label} has no connection any more; {played}"
                return "left", self._blamed(culprit), why
        for client in clients:
            # Without a question, it is not known whose turn it is.
            if client.ignored and not (client.joined and client.moves):
                what = "makes no move" if client.joined else "takes no part in a game"
                why = (
                    f"client {client.client.label} {what}: it has never answered {_ignored(client)}; {played}"
                )
                return "idle", self._blamed(self._client(client)), why
        if self.part.timed_out or self.part.cancelled:
            for client in clients:
                if client.ignored:
                    why = f"client {client.client.label} has never answered {_ignored(client)}; {played}"
                    return "hung", self._blamed(self._client(client)), why
        return self._hung(played)

    def _hung(self, played: str) -> Outcome:
        lazy = next((each for each in self.part.clients if not each.moves), None)
        if self.part.played >= self._plan.games and lazy is not None:
            why = f"client {lazy.client.label} has never made a move; {played}"
            return "idle", self._blamed(None), why
        silent, what = self._silence() if self._record.quiet_s > 1 else (None, "")
        reason = f"{self._played} in {self._plan.timeout_s:g} s"
        if what:
            reason += f"; for {self._record.quiet_s:.0f} s {what}"
        return "hung", self._blamed(silent), f"{reason}{self._cause}"

    @property
    def _first(self) -> Finding | None:
        return self.findings[0] if self.findings else None

    @property
    def _cause(self) -> str:
        first = self._first
        return "" if first is None else f"; before that {_named(first.blame)} broke a rule: {first.text}"

    @property
    def _played(self) -> str:
        others = f" ({self.part.not_counted})" if self.part.not_counted else ""
        return f"{counted(self.part.played, 'game')} of {self._plan.games}{others}"

    def _blamed(self, otherwise: str | None) -> str | None:
        """Return the side that broke a rule first, or else another one."""
        return otherwise if self._first is None else self._first.blame

    def _culprit_of(self, program: Program) -> str:
        return program.name if self._is_mixed and program.role == "client" else program.role

    def _client(self, client: Presence) -> str:
        return client.client.program if self._is_mixed else "client"

    def _is_waiting(self, client: Presence) -> bool:
        """Return True if the last message of a client's connections is its own, which got no answer."""
        streams = {stream.number for stream in client.streams}
        last = None
        for message in self._session.messages():
            if message.stream in streams:
                last = message
        return last is not None and last.direction == "c2s"

    def _silence(self) -> tuple[str | None, str]:
        """Return the side that has not answered the last message, and a clause.

        The side is None if no answer was due. A server reacts to whatever a client sends, a client to a
        message for which the grammar has an answer, and in its turn. Heartbeats do not count.
        """
        grammar = self._plan.dissector.grammar
        rows = (*grammar.rows, *grammar.transport_rows)
        heartbeats = {row.name for row in rows if row.heartbeat}
        last = None
        for message in self._session.messages():
            if message.name not in heartbeats and message.ts_ns <= self._record.until_ns:
                last = message
        assert last is not None
        if last.direction == "c2s":
            return "server", f"the server has not answered {last.name}"
        row = next((row for row in rows if row.direction == "s2c" and row.name == last.name), None)
        if any(last.name in row.answers for row in rows if row.direction == "c2s"):
            # Of a broadcast, it is not known who has not answered.
            is_to_one = row is not None and not row.broadcast
            client = self.part.on_stream(last.stream) if is_to_one else None
            return self._side(client), f"the client has not answered {last.name}"
        mover = self._player_to_move()
        if mover is not None:
            return self._side(self.part.with_name(mover)), "the client has not made its move"
        return None, f"no message was sent; the last one, {last.name} from the server, needs no answer"

    def _side(self, client: Client | None) -> str | None:
        if not self._is_mixed:
            return "client"
        return None if client is None else client.program

    def _player_to_move(self) -> str | None:
        """Return the player whose turn it is in the last game, if that is running."""
        games = self._session.games()
        if not games or games[-1].ended is not None:
            return None
        (table,) = self._session.state(game=games[-1].number)
        turn = table.state["games"].get(str(games[-1].number), {}).get("turn")
        return None if turn is None else str(turn)

    def _findings(self) -> list[Finding]:
        """Return the violations, each kind once with its count, in the order of their first occurrence."""
        found: dict[tuple[Any, ...], list[Finding]] = {}
        for each in self._session.diagnostics('diag.severity == "error"'):
            if each.blame not in ("server", "client") or each.ts_ns > self._record.until_ns:
                continue
            blame: str = each.blame
            if blame == "client" and self._is_mixed:
                client = self.part.on_stream(each.stream)
                blame = blame if client is None else client.program
            finding = Finding(blame, each.code, each.text, each.message, each.offset, each.clause, 1)
            found.setdefault((blame, each.code, each.name), []).append(finding)
        alike = [*found.values()][:_MAX_FINDINGS]
        return [msgspec.structs.replace(each[0], count=len(each)) for each in alike]


def _named(blame: str) -> str:
    """Return a culprit in a sentence."""
    return f"the {blame}" if blame in ("server", "client") else f"the client of {blame}"


def _who(ended: Ended) -> str:
    return f"the {ended.program.role} {ended.program.name}"


def _ignored(client: Presence) -> str:
    return ", ".join(f"{name} ({counted(count, 'time')})" for name, count in client.ignored.items())
