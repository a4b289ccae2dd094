"""A test run: an undisturbed game, then many cases on one or more targets, with limits on number and time."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from queue import SimpleQueue

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.probing.case import Case
from kiebitz.proxy.peers.connections import PeerError
from kiebitz.proxy.relay.modes import endpoint
from kiebitz.proxy.system.clock import now_ns
from kiebitz.proxy.system.deferred_signals import ignored_signals
from kiebitz.services.probing.baseline_game import (
    BaselineGame,
    add_findings,
    correct_messages,
    game_verdict,
    violating_messages,
)
from kiebitz.services.probing.case_runner import CaseOutcome
from kiebitz.services.probing.case_tester import PROBE, CaseTester, SharedFindings, StoppedError, TestedCase
from kiebitz.services.probing.connection_setup import ProbeSetup
from kiebitz.services.probing.results import (
    NOT_TRIED,
    WORDS,
    Renderer,
    Result,
    unstable_result,
)
from kiebitz.services.probing.route_selection import baseline_route
from kiebitz.services.probing.session_store import RunRecorder, SessionStore
from kiebitz.services.wording import counted

MAX_GAME_S = 10.0
"""Maximum duration in seconds of the games in which the program's own messages are checked."""

MAX_SHORT_GAME_S = 3.0
"""The same limit if no case asks for that check."""

_MAX_GAMES = 4
"""Maximum number of these games."""


class RunLimits(msgspec.Struct, frozen=True):
    """The limits of a test run: maximum number of cases, cases per second, and total seconds."""

    max_cases: int
    rate: float
    seconds: float


class _Game(msgspec.Struct, frozen=True):
    """An undisturbed game with the results of the cases about it, and its recording."""

    results: Sequence[Result]
    recorder: RunRecorder


class TestRun:
    """A test run, with a session for each case.

    `setups` has the targets that are tested side by side; they share a baseline. `command` is the beginning
    of the shell command that runs a case again. `database` keeps the sessions, `keep` is a folder for the
    captures of failed cases; None keeps nothing. Afterwards `left_out` says why cases were left out, if any
    were. `render` renders messages for the report.
    """

    def __init__(
        self,
        setups: Sequence[ProbeSetup],
        limits: RunLimits,
        command: str,
        *,
        database: str | None,
        keep: str | None,
        render: Renderer,
    ) -> None:
        self._setup = setups[0]
        self._limits = limits
        self._store = SessionStore(database, keep)
        self._shared = SharedFindings()
        self._testers = [CaseTester(setup, self._shared, self._store, command, render) for setup in setups]
        self.left_out: str | None = None
        self.error: str | None = None
        """The error that ended the run early, after some results; None if there was none."""

    def run(self, cases: Sequence[Case]) -> Iterator[Result]:
        """Run the cases and yield their results, each as soon as it is known.

        Raises PeerError, ProgramError, RelayError and StorageError; the programs are stopped in any case.
        """
        wanted = cases[: self._limits.max_cases]
        known = 0
        for result in self._results(wanted):
            known += 1
            yield result
        self._leave_out(
            len(wanted) - known, self.error or f"the {self._limits.seconds:g} s of --max-time are over"
        )
        self._leave_out(
            len(cases) - len(wanted), f"no more than {self._limits.max_cases} are tried (--max-cases)"
        )

    def _results(self, wanted: Sequence[Case]) -> Iterator[Result]:
        ends = time.monotonic() + self._limits.seconds
        schedule = _CaseSchedule((case for case in wanted if not case.is_in_play), self._limits.rate, ends)
        workers = []
        try:
            unseen = yield from self._play([case for case in wanted if case.is_in_play], schedule.left_s)
            results: SimpleQueue[TestedCase | Exception | None] = SimpleQueue()
            for tester in self._testers[: schedule.left]:
                worker = threading.Thread(target=_work, args=(tester, schedule, self._shared, results))
                workers.append(worker)
                worker.start()
            for _ in workers:
                while (found := results.get()) is not None:
                    if isinstance(found, TestedCase):
                        yield self._keep(found)
                    else:
                        # The results so far are kept if the server answered them.
                        if not isinstance(found, KiebitzError) or not self._shared.is_responsive:
                            raise found
                        self.error = self.error or str(found)
                        schedule.stop()
            for message, result in unseen:
                yield self._judge_late(message, result)
        finally:
            with ignored_signals():
                schedule.stop()
                for tester in self._testers:
                    tester.stop()
                for worker in workers:
                    worker.join()
                for tester in self._testers:
                    if tester.setup.program is not None:
                        tester.setup.program.stop()

    def _leave_out(self, count: int, why: str) -> None:
        """Note that a number of cases is left out; the first reason counts."""
        if count and self.left_out is None:
            self.left_out = f"{counted(count, 'case')}: {why}"

    def _keep(self, tested: TestedCase) -> Result:
        """Add the recordings of a case to the database and to the folder, and return its result."""
        result = tested.result
        sessions = [self._store.add(recorder, name) for name, recorder in tested.runs]
        if tested.capture:
            self._store.add_capture(result.case, tested.capture)
        other = result.other
        if other is not None:
            other = msgspec.structs.replace(other, session=sessions[0])
        return msgspec.structs.replace(result, session=sessions[-1] if sessions else None, other=other)

    # The undisturbed game.

    def _play(
        self, cases: Sequence[Case], left_s: float
    ) -> Generator[Result, None, list[tuple[str, Result]]]:
        """Play an undisturbed game and yield the results of the cases about it.

        The game is played even without such cases: it shows the program's usual behaviour. It is played again
        if something in it is wrong. Returns the messages that were not sent, with the results of their cases.
        """
        with ExitStack() as recorders:
            games: list[_Game] = []
            while not games or (len(games) < _MAX_GAMES and _is_unconfirmed(games)):
                games.append(self._game(cases, left_s, recorders))
            results = [_summed_up(each) for each in zip(*(game.results for game in games), strict=True)]
            session = self._keep_games(games, results)
        unseen = []
        for case, result in zip(cases, results, strict=True):
            if result.verdict == NOT_TRIED and case.checked_message is not None:
                unseen.append((case.checked_message, result))
            else:
                yield msgspec.structs.replace(result, session=session)
        return unseen

    def _game(self, cases: Sequence[Case], left_s: float, recorders: ExitStack) -> _Game:
        """Play one undisturbed game. Raises PeerError if there is no target."""
        setup, tester = self._setup, self._testers[0]
        begun_ns = now_ns()
        if setup.program is not None and setup.target_role == "server":
            setup.program.start()
        recorder = recorders.enter_context(self._store.recorder("an undisturbed game", setup.decode_as))
        limit_s = min(left_s, MAX_GAME_S if cases else MAX_SHORT_GAME_S)
        playing = BaselineGame(baseline_route(setup), setup, recorder)
        game = add_findings(tester.run(playing.run(limit_s, left_s), recorder), recorder.timeline, setup)
        self._shared.is_responsive = self._shared.is_responsive or game.is_responsive
        self._shared.correct_messages |= correct_messages(recorder.timeline, 0, setup)
        if setup.program is None and setup.target_role == "server" and not self._shared.is_responsive:
            about = setup.dissector
            raise PeerError(
                f"{about.transport} {endpoint(*setup.address)} does not answer. Start the server"
                f" first, or name another address; does it speak {about.grammar.title}?"
            )
        baseline = setup.baseline
        baseline.invalid_messages |= frozenset(game.violations)
        baseline.takes_part, baseline.diverged_at = game.takes_part, game.diverged_at
        results = []
        for case in cases:
            verdict, why_not = game_verdict(case, game)
            # One game serves all of them.
            seconds = game.seconds if case.checked_message is None else 0.0
            wrong = violating_messages(case, game)
            outcome = CaseOutcome(
                case, verdict, why_not, None, begun_ns, seconds, game.is_responsive, wrong=wrong
            )
            results.append(tester.result(outcome, recorder))
        return _Game(tuple(results), recorder)

    def _keep_games(self, games: Sequence[_Game], results: Sequence[Result]) -> str | None:
        """Add the games to the database under the worst verdict, and return the session of the last one."""
        name = f"{self._setup.dissector.protocol}/game"
        worst = min((result.verdict for result in results), key=WORDS.index, default=None)
        title = f"{PROBE} {self._setup.target_role} {name}"
        sessions = [
            self._store.add(game.recorder, title if worst is None else f"{title}: {worst}") for game in games
        ]
        if worst == "FAILED":
            self._store.add_capture(name, games[-1].recorder.capture())
        return sessions[-1]

    def _judge_late(self, message: str, result: Result) -> Result:
        """Return the result of a case whose message was not sent in the undisturbed game."""
        if message not in self._shared.correct_messages:
            return result
        why = "it sends it as specified in the games that lead to other cases"
        return msgspec.structs.replace(result, verdict="OK", why=why, reactions=("answers",))


def _is_unconfirmed(games: Sequence[_Game]) -> bool:
    """Return True if a case has failed in one game, and its message was not sent in the others."""
    for results in zip(*(game.results for game in games), strict=True):
        tried = [result for result in results if result.verdict != NOT_TRIED]
        if len(tried) == 1 and tried[0].is_failed:
            return True
    return False


def _summed_up(results: Sequence[Result]) -> Result:
    """Return the result of a case in several games: a failure counts only if it repeats."""
    tried = [result for result in results if result.verdict != NOT_TRIED] or results[:1]
    failed = [result for result in tried if result.is_failed]
    others = [result for result in tried if not result.is_failed]
    if not failed:
        return others[0]
    if len(failed) > 1 and not others:
        return failed[-1]
    return unstable_result(failed[0], (others or [result for result in results if not result.is_failed])[0])


def _work(
    tester: CaseTester,
    schedule: _CaseSchedule,
    shared: SharedFindings,
    results: SimpleQueue[TestedCase | Exception | None],
) -> None:
    """Try the cases of a schedule, and report their results; at the end None."""
    try:
        while (case := schedule.take()) is not None:
            try:
                results.put(tester.test(case, schedule.left_s))
            finally:
                schedule.finish(case)
            if shared.is_over:
                why = "the server accepts no clients any more: restart it, or use --restart COMMAND"
                raise PeerError(why)
    except StoppedError:
        # Only the end of the run stops a tester.
        pass
    except Exception as error:
        results.put(error)
    finally:
        results.put(None)


class _CaseSchedule:
    """The cases still to be tried, shared by all workers.

    The first case of each message shows if any route leads to it. Its other cases wait for that, so that no
    unreachable message is looked for twice.
    """

    def __init__(self, cases: Iterable[Case], rate: float, ends: float) -> None:
        """Create a schedule.

        Args:
            cases: The cases, in order.
            rate: Maximum number of cases to start per second.
            ends: The time of the monotonic clock after which no case starts.
        """
        self._pending = [*cases]
        self._interval_s = 1 / rate
        self._ends = ends
        self._next_start = time.monotonic()
        self._begun: set[object] = set()
        """The messages of which a case was started."""
        self._tried: set[object] = set()
        """The messages of which a case was finished."""
        self._is_stopped = False
        self._changed = threading.Condition()

    @property
    def left(self) -> int:
        """Number of cases that no worker has taken."""
        return len(self._pending)

    @property
    def left_s(self) -> float:
        """Seconds until no more case starts."""
        return self._ends - time.monotonic()

    def take(self) -> Case | None:
        """Wait for the next case and return it; None if there is none, or no time for it."""
        with self._changed:
            while (case := next(filter(self._may_begin, self._pending), None)) is None:
                if self._is_stopped or not self._pending:
                    return None
                self._changed.wait()
            start = self._next_start = max(self._next_start, time.monotonic())
            if start >= self._ends or self._is_stopped:
                return None
            self._next_start += self._interval_s
            self._pending.remove(case)
            self._begun.add(case.of)
            self._changed.wait_for(lambda: self._is_stopped, start - time.monotonic())
        return case

    def _may_begin(self, case: Case) -> bool:
        return case.of is None or case.of in self._tried or case.of not in self._begun

    def finish(self, case: Case) -> None:
        """Note that a case was tried."""
        with self._changed:
            self._tried.add(case.of)
            self._changed.notify_all()

    def stop(self) -> None:
        """Let no more case start."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
