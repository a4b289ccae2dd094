"""The test of single cases on one target: attempts on each route, and the confirmation of failures.

A failure counts only if it repeats on a target that was started again, and if the same game without the case
does not fail.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import ExitStack
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import msgspec

from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.probing.case import Case, control_of
from kiebitz.dissectors.probing.routes import NO_POINT
from kiebitz.services.probing.baseline_game import correct_messages
from kiebitz.services.probing.case_runner import CaseOutcome, CaseRun
from kiebitz.services.probing.connection_setup import ProbeSetup
from kiebitz.services.probing.results import (
    NOT_TRIED,
    UNSTABLE,
    Renderer,
    Result,
    in_need,
    result_of,
    unstable_result,
    untried_result,
)
from kiebitz.services.probing.route_selection import RouteChoice, routes_to
from kiebitz.services.probing.session_store import RunRecorder, SessionStore

PROBE = "probe"
"""The first word of the names of cases' sessions: `probe server maexchen/JOIN/lost: OK`."""

BAD = ("FAILED", "NON-STRICT")
"""The verdicts that must be confirmed."""

_CONTROLS = 2
"""Number of control runs, all of which must succeed."""

_SEEDS = (1, 2, 3, 4, 5, 6)
"""Seeds of the attempts to reach an injection point."""

_MAX_ATTEMPTS = 3
"""Maximum number of attempts, other than at unsuitable moments."""

_MAX_SEARCHES = 2
"""Maximum number of attempts if the message does not come up, which takes long."""

_MAX_SEARCHES_AGAIN = 4
"""The same for a message that has come up in other cases: then it depends on dice and cards."""

_ENOUGH_POINTS = 3
"""Number of unsuitable points after which no other attempt is made."""

_ENOUGH_MOMENTS = 80
"""The same number if only the moment was unsuitable, in all attempts together."""

_NEEDED_NEXT = {
    False: "a protocol or a state in which two messages follow each other without an answer",
    True: "a game in which the same connection sends it again",
}
"""Needs of cases that include the next message, by `Case.next_waits`."""

_BETWEEN_S = {"tcp": 0.1, "udp": 0.0}
"""Seconds between two runs on the same server, which over TCP deals with the end of the last connections."""

_ENOUGH_DIVERGENCES = 4
"""Number of runs that depart from the record at the same line after which no others are tried beyond it."""

_ENOUGH_RESTARTS = 4
"""Number of necessary restarts after which a server is started for each case."""

_CONFIRMATION_S = 180.0
"""Maximum number of seconds to reach the injection point when a failure is confirmed."""

_Observed = TypeVar("_Observed")


class SharedFindings:
    """Knowledge of the target, shared by all testers of a run."""

    def __init__(self) -> None:
        self.unreachable: dict[tuple[str, MessageType | None], str] = {}
        """The reason why a message never came up, by the kind of route and the message."""
        self.reached: set[tuple[str, MessageType | None]] = set()
        """The messages at which a case was injected, with the kind of route."""
        self.obstacles: set[tuple[str, MessageType | None, str]] = set()
        """Reasons why no attempt could inject a case, other than moments, by kind of route and message."""
        self.correct_messages: set[str] = set()
        """The names of the target's messages that were correct before the cases' actions."""
        self.is_responsive = False
        """True if the target has ever sent anything."""
        self.divergences: Counter[tuple[int, str]] = Counter()
        """How often the target departed from the record at a line, for a reason."""
        self.reused = 0
        """Number of cases that were injected at a server that had played before."""
        self.restarted = 0
        """Number of cases that were injected only after the server was started again."""
        self.is_over = False
        """True if the server accepts no more clients, and Kiebitz cannot start it again."""

    def divergence_before(self, line: int) -> str | None:
        """Return why the target never follows the record up to a line; None if it may."""
        for (number, why), count in self.divergences.items():
            if number < line and count >= _ENOUGH_DIVERGENCES:
                return why
        return None

    @property
    def needs_restarts(self) -> bool:
        """True if a server that has played before is hardly ever of use."""
        return self.restarted >= _ENOUGH_RESTARTS and self.restarted > self.reused


class _Run(NamedTuple):
    """One run of a case, and another one if both have different verdicts.

    It is settled if no other route could change the result.
    """

    result: Result
    recorder: RunRecorder
    outcome: CaseOutcome
    other: _Run | None = None
    is_settled: bool = False


class TestedCase(NamedTuple):
    """The result of a case, with the recordings of its runs, the decisive one last, by session name.

    `capture` is that one as a pcapng file, if it failed.
    """

    result: Result
    runs: tuple[tuple[str, RunRecorder], ...] = ()
    capture: bytes = b""


class StoppedError(Exception):
    """The tester was stopped from another thread."""


class CaseTester:
    """A tester with a target of its own.

    `command` is the beginning of the shell command that runs a case again. `render` renders messages for the
    report.
    """

    def __init__(
        self,
        setup: ProbeSetup,
        shared: SharedFindings,
        store: SessionStore,
        command: str,
        render: Renderer,
    ) -> None:
        self.setup = setup
        self._shared = shared
        self._store = store
        self._command = command
        self._render = render
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._is_stopped = False
        self._stopping = Lock()

    def test(self, case: Case, left_s: float) -> TestedCase:
        """Try a case on one route after the other until it can be injected, within `left_s` seconds.

        Raises PeerError, ProgramError, RelayError, StorageError and StoppedError.
        """
        if case.of is not None and not self.setup.baseline.is_spoken(case.of):
            why = f"{case.of.name} belongs to a dialect that nothing led to in the undisturbed game"
            return TestedCase(self._untried(case, in_need(why, "a target that speaks this dialect")))
        if case.of is not None and case.next_waits is not None:
            no_next = self.setup.baseline.why_no_next(case.of, case.next_waits)
            if no_next is not None:
                return TestedCase(self._untried(case, in_need(no_next, _NEEDED_NEXT[case.next_waits])))
        reasons: list[str] = []
        latest: _Run | None = None
        with ExitStack() as recorders:
            for choice in routes_to(case, self.setup):
                known = self._shared.unreachable.get((choice.kind, case.of))
                if known is None and choice.kind == "recorded":
                    known = self._why_not_recorded(case, choice)
                if known is not None:
                    reasons.append(known)
                    continue
                latest = self._on_route(case, choice, left_s, recorders)
                if latest.result.verdict != NOT_TRIED or latest.is_settled:
                    return _tested(latest)
                reasons.append(latest.result.why)
            # The first route is the better one, and its obstacle says more.
            why = reasons[0] if reasons else in_need("no game reaches its injection point", "--via-session")
            if latest is None:
                return TestedCase(self._untried(case, why))
            return _tested(latest._replace(result=msgspec.structs.replace(latest.result, why=why)))

    def _untried(self, case: Case, why: str) -> Result:
        return untried_result(case, why, self.repeat_command(case))

    def _why_not_recorded(self, case: Case, choice: RouteChoice) -> str | None:
        """Return why the record does not lead to a case, as is known without replaying it; None if it may."""
        line = choice.make(_SEEDS[0]).first_line
        if line is None:
            return NO_POINT
        # The beginning of a conversation is within reach of any record.
        return None if case.at_start else self._shared.divergence_before(line)

    # Runs.

    def _on_route(self, case: Case, choice: RouteChoice, left_s: float, recorders: ExitStack) -> _Run:
        """Try a case on one route, once more with another game if it cannot be injected; confirm failures."""
        program, shared = self.setup.program, self._shared
        points = 0
        for seed in _SEEDS if program is not None else _SEEDS[:1]:
            is_used = seed == _SEEDS[0] and not shared.needs_restarts
            if program is not None and not (is_used and program.is_running):
                self._start_again()
            else:
                time.sleep(_BETWEEN_S[self.setup.dissector.transport])
            run = self._run_once(case, choice, seed, left_s, recorders, points=points)
            if run.result.verdict != NOT_TRIED:
                shared.reached.add((choice.kind, case.of))
                shared.reused += is_used
                shared.restarted += seed != _SEEDS[0]
            if run.result.verdict in BAD and not self._shared.is_over:
                return self._confirmed(case, choice, run, recorders)
            if run.result.verdict != NOT_TRIED:
                return run
            # What a server does after earlier games says nothing about a new one.
            if run.outcome.diverged_at is not None and (program is None or not is_used):
                shared.divergences[run.outcome.diverged_at, run.result.why] += 1
            points += run.outcome.unsuitable_points
            obstacle = choice.kind, case.of, run.result.why
            was_reached = (choice.kind, case.of) in shared.reached
            most = _MAX_SEARCHES
            if choice.kind == "played":
                most = self._max_attempts(run.outcome, points, was_reached)
            if seed >= most or obstacle in shared.obstacles:
                break
        if run.outcome.never_came_up and not was_reached:
            shared.unreachable[choice.kind, case.of] = run.result.why
        if run.outcome.unsuitable_points and not run.outcome.is_moment_unsuitable:
            # No game has it otherwise.
            shared.obstacles.add(obstacle)
        return run

    def _confirmed(self, case: Case, choice: RouteChoice, hasty: _Run, recorders: ExitStack) -> _Run:
        """Repeat a run with a bad verdict on targets that were started again, with the whole timeout."""
        first = self._fresh_run(case, choice, recorders)
        if first.result.verdict not in (*BAD, NOT_TRIED):
            # The target was slower than usual, or in a state that earlier cases had left.
            return first
        second = self._fresh_run(case, choice, recorders)
        if first.result.verdict == NOT_TRIED:
            first = hasty
        failing = self._failing_controls(case, choice, recorders)
        if len(failing) == _CONTROLS:
            control = failing[0].result
            why = f"the same without anything unusual is {control.verdict}, too: {control.why}"
            why = in_need(why, "a target that masters the unchanged message")
            result = msgspec.structs.replace(second.result, verdict=NOT_TRIED, why=why)
            return second._replace(result=result, is_settled=True)
        if second.result.verdict != first.result.verdict:
            result = unstable_result(first.result, second.result)
            return first._replace(result=result, other=second)
        if failing:
            control = failing[0].result
            why = f"{second.result.why}; at times the same without anything unusual is {control.verdict}, too"
            result = msgspec.structs.replace(second.result, verdict=UNSTABLE, why=why, other=control)
            return second._replace(result=result, other=failing[0])
        return second

    def _failing_controls(self, case: Case, choice: RouteChoice, recorders: ExitStack) -> list[_Run]:
        """Return the runs without anything unusual that do not succeed."""
        control = control_of(case)
        if control is None:
            return []
        runs = [self._fresh_run(control, choice, recorders) for _ in range(_CONTROLS)]
        return [run for run in runs if run.result.verdict in (*BAD, NOT_TRIED)]

    def _fresh_run(self, case: Case, choice: RouteChoice, recorders: ExitStack) -> _Run:
        """Run a case patiently on a target that was started again, with other play if it is not reached."""
        points = 0
        for seed in _SEEDS:
            self._start_again()
            run = self._run_once(
                case, choice, seed, _CONFIRMATION_S, recorders, points=points, is_patient=True
            )
            points += run.outcome.unsuitable_points
            if run.result.verdict != NOT_TRIED:
                break
        return run

    def _start_again(self) -> None:
        """Start a server again; a client is started for each run."""
        if self.setup.program is not None and self.setup.target_role == "server":
            self.setup.program.start()

    def _run_once(
        self,
        case: Case,
        choice: RouteChoice,
        seed: int,
        left_s: float,
        recorders: ExitStack,
        *,
        points: int,
        is_patient: bool = False,
    ) -> _Run:
        """Run a case once; `points` unsuitable points were found in the games before."""
        recorder = recorders.enter_context(self._store.recorder(case.name, self.setup.decode_as))
        # In a second attempt, what an overloaded machine has kept from happening may happen after all.
        self.setup.clock.is_patient = is_patient or seed != _SEEDS[0]
        route = choice.make(seed)
        route.points_before = points
        case_run = CaseRun(case, route, self.setup, recorder, is_patient)
        outcome = self.run(case_run.run(left_s), recorder)
        shared, observed = self._shared, outcome.observed
        shared.is_responsive = shared.is_responsive or outcome.is_responsive
        shared.is_over = self.setup.program is None and observed is not None and observed.lets_in is False
        shared.correct_messages |= correct_messages(recorder.timeline, outcome.begun_ns, self.setup)
        return _Run(self.result(outcome, recorder), recorder, outcome)

    def run(self, doing: Coroutine[None, None, _Observed], recorder: RunRecorder) -> _Observed:
        """Run a game to its end. Raises StoppedError."""
        try:
            return asyncio.run(self._stoppable(doing))
        except asyncio.CancelledError:
            raise StoppedError from None
        finally:
            recorder.finish()
            recorder.write()

    async def _stoppable(self, doing: Coroutine[None, None, _Observed]) -> _Observed:
        task = asyncio.current_task()
        assert task is not None
        with self._stopping:
            self._task = asyncio.get_running_loop(), task
            if self._is_stopped:
                task.cancel()
        try:
            return await doing
        finally:
            with self._stopping:
                self._task = None

    def stop(self) -> None:
        """Stop the current run, from any thread, and let no other begin."""
        with self._stopping:
            self._is_stopped = True
            if self._task is not None:
                loop, task = self._task
                loop.call_soon_threadsafe(task.cancel)

    def _max_attempts(self, outcome: CaseOutcome, points: int, was_reached: bool) -> int:
        """Return the number of attempts to inject a case, given the outcome of the latest one that failed to.

        Args:
            outcome: The outcome.
            points: The number of unsuitable points in all attempts so far.
            was_reached: True if the message has come up in another case.
        """
        if outcome.unsuitable_points and outcome.case.message in self.setup.dissector.identity.login_messages:
            # Every game begins alike.
            return 1
        if outcome.is_moment_unsuitable:
            return len(_SEEDS) if points < _ENOUGH_MOMENTS else 1
        if outcome.unsuitable_points >= _ENOUGH_POINTS:
            return 1
        if outcome.never_came_up:
            return _MAX_SEARCHES_AGAIN if was_reached else _MAX_SEARCHES
        return _MAX_ATTEMPTS

    # Results.

    def result(self, outcome: CaseOutcome, recorder: RunRecorder) -> Result:
        """Return the result of a run."""
        program = self.setup.program
        output = program.output if program is not None else None
        command = self.repeat_command(outcome.case)
        return result_of(outcome, recorder.timeline, output, command, self._render)

    def repeat_command(self, case: Case) -> str:
        """Return the shell command that runs a case again."""
        return f"{self._command} --only {shlex.quote(case.name)}"


def _tested(run: _Run) -> TestedCase:
    """Return the result of a case with its recordings; the recorders are still open."""
    runs = [run] if run.other is None else [run.other, run]
    named = (
        (f"{PROBE} {each.result.role} {each.result.case}: {each.result.verdict}", each.recorder)
        for each in runs
    )
    return TestedCase(run.result, tuple(named), run.recorder.capture() if run.result.is_failed else b"")
