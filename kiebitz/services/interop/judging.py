"""The outcome of a cell's run, from the recording and the ends of its programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.api import open as open_session
from kiebitz.services.interop.cell_run import CellRecord, Ended
from kiebitz.services.interop.plan import Plan
from kiebitz.services.interop.results import Attempt, Finding, OutcomeWord
from kiebitz.storage.session.session import Diagnostic, Session

_MAX_FINDINGS = 50
"""Maximum number of different findings of a run."""


def judged(plan: Plan, record: CellRecord, database: str) -> Attempt:
    """Return the outcome of a run. Raises KiebitzError if its recording cannot be read."""
    with open_session(database) as session:
        findings = _findings(session.diagnostics('diag.severity == "error"'))
        has_begun = next(iter(session.games()), None) is not None
        silence = _silence(session, plan) if record.is_timed_out else None
    outcome, culprit, why = _outcome(plan, record, findings, has_begun, silence)
    return Attempt(
        outcome,
        culprit,
        why,
        record.games,
        round(record.seconds, 1),
        findings,
        record.outputs,
        None,
        None,
    )


def _outcome(
    plan: Plan,
    record: CellRecord,
    findings: Sequence[Finding],
    has_begun: bool,
    silence: tuple[str | None, str] | None,
) -> tuple[OutcomeWord, str | None, str]:
    """Return the outcome, the culprit, and the reason."""
    # Whoever first broke the protocol may have brought the other down.
    first = findings[0] if findings else None
    cause = "" if first is None else f"; before that the {first.blame} broke a rule: {first.text}"
    crash = next((each for each in record.ended if each.is_crash), None)
    if record.not_started is not None:
        return "crashed", "server", record.not_started
    if crash is not None:
        return "crashed", _blamed(first, crash.program.role), f"{_who(crash)} crashed ({crash.how}){cause}"
    if record.games >= plan.games:
        if first is not None:
            more = sum(each.count for each in findings) - 1
            also = f", and {more:,} more" if more else ""
            return "violations", first.blame, f"the {first.blame} breaks a rule: {first.text}{also}"
        return "completed", None, _counted_games(record.games)
    left = next(iter(record.ended), None)
    if left is not None and first is not None and has_begun:
        why = f"the {first.blame} breaks a rule: {first.text}; then {_who(left)} ended ({left.how})"
        return "violations", first.blame, why
    if left is not None:
        if not has_begun:
            culprit = _blamed(first, left.program.role)
            return "refused", culprit, f"{_who(left)} ended ({left.how}) before any game began{cause}"
        return (
            "crashed",
            _blamed(first, left.program.role),
            f"{_who(left)} ended ({left.how}) in the game{cause}",
        )
    played = f"{_counted_games(record.games)} of {plan.games} in {plan.timeout_s:g} s"
    if silence is None:
        return "refused", None, f"no client sent anything in {plan.timeout_s:g} s"
    silent, what = silence if record.quiet_s > 1 else (None, "")
    reason = f"{played}; for {record.quiet_s:.0f} s {what}" if what else played
    return "hung", _blamed(first, silent), f"{reason}{cause}"


def _blamed(first: Finding | None, otherwise: str | None) -> str | None:
    """Return the side that broke a rule first, or else another one."""
    return first.blame if first is not None and first.blame in ("server", "client") else otherwise


def _who(ended: Ended) -> str:
    return f"the {ended.program.role} {ended.program.name}"


def _counted_games(count: int) -> str:
    return f"{count} game{'' if count == 1 else 's'}"


def _silence(session: Session, plan: Plan) -> tuple[str | None, str] | None:
    """Return the side that has not answered the last message and a clause; None if there are no messages.

    The side is None if no answer was due. A server reacts to whatever a client sends, a client to a message
    for which the grammar has an answer, and in its turn. Heartbeats do not count.
    """
    rows = (*plan.dissector.grammar.rows, *plan.dissector.grammar.transport_rows)
    heartbeats = {row.name for row in rows if row.heartbeat}
    last = None
    for message in session.messages():
        if message.name not in heartbeats:
            last = message
    if last is None:
        return None
    if last.direction == "c2s":
        return "server", f"the server has not answered {last.name}"
    if any(last.name in row.answers for row in rows if row.direction == "c2s"):
        return "client", f"the client has not answered {last.name}"
    if _is_client_to_move(session):
        return "client", "the client has not made its move"
    return None, f"no message was sent; the last one, {last.name} from the server, needs no answer"


def _is_client_to_move(session: Session) -> bool:
    """Return whether the last game is running, and it is known whose turn it is."""
    games = session.games()
    if not games or games[-1].ended is not None:
        return False
    (table,) = session.state(game=games[-1].number)
    return table.state["games"].get(str(games[-1].number), {}).get("turn") is not None


def _findings(diagnostics: Iterable[Diagnostic]) -> list[Finding]:
    """Return the violations, each kind once with its count, in the order of their first occurrence."""
    found: dict[tuple[Any, ...], list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        if diagnostic.blame in ("server", "client"):
            found.setdefault((diagnostic.blame, diagnostic.code, diagnostic.name), []).append(diagnostic)
    return [
        Finding(
            first.blame,
            first.code,
            first.text,
            first.message,
            first.offset,
            first.clause,
            len(alike),
        )
        for alike in found.values()
        for first in alike[:1]
    ][:_MAX_FINDINGS]
