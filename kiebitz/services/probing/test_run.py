"""A test run: many cases one after the other, with limits on number, rate and time, and program restarts."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from kiebitz.dissectors.conformance.expectations import TargetRole
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.probing.case import Case
from kiebitz.dissectors.probing.routes import Route
from kiebitz.proxy.peers.connections import PeerError
from kiebitz.proxy.relay.modes import endpoint
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.output_files import make_folder, opened
from kiebitz.services.probing.baseline_game import (
    BaselineGame,
    GameObservation,
    add_findings,
    game_verdict,
    violating_messages,
)
from kiebitz.services.probing.case_runner import CaseOutcome, CaseRun
from kiebitz.services.probing.connection_setup import ProbeSetup
from kiebitz.services.probing.program import TargetProgram
from kiebitz.services.probing.results import NOT_TRIED, WORDS, Renderer, Result, result_of, untried_result
from kiebitz.services.probing.route_selection import RouteFactory, baseline_route, routes_to
from kiebitz.services.recording.unfinished import refuse_if_unfinished
from kiebitz.services.wording import counted
from kiebitz.storage.database.schema import MEMORY, StorageError
from kiebitz.storage.export.export import FORMATS
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.disk_space import SpaceLimit
from kiebitz.storage.recording.recorder import Recorder

MAX_GAME_S = 10.0
"""Maximum duration in seconds of the games in which the program's own messages are checked."""

MAX_SHORT_GAME_S = 3.0
"""The same limit if no case asks for that check."""

_Observed = TypeVar("_Observed")

_Key = tuple[int, bool, MessageType | None]
"""A route's number; True if it leads to the start of a conversation; and a message."""

PROBE = "probe"
"""The first word of the names of cases' sessions: `probe server maexchen/JOIN/lost: OK`."""


class RunLimits(msgspec.Struct, frozen=True):
    """The limits of a test run: maximum number of cases, cases per second, and total seconds."""

    max_cases: int
    rate: float
    seconds: float


class TestRun:
    """A test run, with a session for each case.

    `command` is the beginning of the shell command that runs a case again. `database` keeps the sessions,
    `keep` is a folder for the captures of failed cases; None keeps nothing. Afterwards `left_out` says why
    cases were left out, if any were. `render` renders messages for the report.
    """

    def __init__(
        self,
        setup: ProbeSetup,
        limits: RunLimits,
        command: str,
        *,
        program: TargetProgram | None,
        database: str | None,
        keep: str | None,
        render: Renderer,
    ) -> None:
        self._render = render
        self._setup = setup
        self._limits = limits
        self._command = command
        self._program = program
        self._database = database
        self._keep = keep
        if keep is not None and os.path.lexists(keep):
            # Fail before cases run, not at the first that fails.
            make_folder(keep)
        self._room = SpaceLimit(None)
        self._was_responsive = False
        self._unreachable: dict[_Key, str] = {}
        """The reason why a message never came up, by route and message."""
        self._is_over = False
        """True if the server accepts no more clients, and Kiebitz cannot restart it."""
        self.left_out: str | None = None

    def run(self, cases: Sequence[Case]) -> Iterator[Result]:
        """Run the cases one after the other and yield their results.

        Raises PeerError, ProgramError, RelayError and StorageError; the program is stopped in any case.
        """
        begun = time.monotonic()
        wanted = cases[: self._limits.max_cases]
        played = [case for case in wanted if case.is_in_play]
        odd = [case for case in wanted if not case.is_in_play]
        try:
            if self._program is not None and self._setup.target_role == "server":
                self._program.start()
            yield from self._play(played, self._limits.seconds)
            for number, case in enumerate(odd, len(played)):
                time.sleep(max(begun + number / self._limits.rate - time.monotonic(), 0.0))
                left_s = self._limits.seconds - (time.monotonic() - begun)
                if left_s <= 0:
                    self._leave_out(
                        len(cases) - number, f"the {self._limits.seconds:g} s of --max-time are over"
                    )
                    return
                try:
                    result = self._try_case(case, left_s)
                except PeerError as error:
                    # The results so far are kept.
                    if not self._was_responsive:
                        raise
                    self._leave_out(len(cases) - number, str(error))
                    return
                yield result
                if self._is_over:
                    why = "the server accepts no clients any more: restart it, or use --restart COMMAND"
                    self._leave_out(len(cases) - number - 1, why)
                    return
            self._leave_out(
                len(cases) - len(wanted), f"no more than {self._limits.max_cases} are tried (--max-cases)"
            )
        finally:
            if self._program is not None:
                self._program.stop()

    def _leave_out(self, count: int, why: str) -> None:
        """Note that a number of cases is left out."""
        if count:
            self.left_out = f"{counted(count, 'case')}: {why}"

    def _play(self, cases: Sequence[Case], left_s: float) -> Iterator[Result]:
        """Play an undisturbed game and yield the results of the cases about it.

        The game is played even without such cases: it shows the program's usual behaviour.
        """
        target_role = self._setup.target_role
        name = f"{PROBE} {target_role} {self._setup.dissector.protocol}/game"
        begun_ns = now_ns()
        with self._session(name, "an undisturbed game") as recorder:
            game = self._observe_game(
                recorder, min(left_s, MAX_GAME_S if cases else MAX_SHORT_GAME_S), left_s
            )
            timeline = self._timeline(recorder)
            game = add_findings(game, timeline, self._setup)
            baseline = self._setup.baseline
            baseline.invalid_messages, baseline.takes_part = frozenset(game.violations), game.takes_part
            baseline.diverged_at = game.diverged_at
            self._check_target(target_role, game.is_responsive)
            verdicts = []
            for case in cases:
                verdict, why_not = game_verdict(case, game)
                verdicts.append(verdict.word if verdict is not None else NOT_TRIED)
                # One game serves all of them.
                seconds = game.seconds if case.checked_message is None else 0.0
                wrong = violating_messages(case, game)
                outcome = CaseOutcome(
                    case, verdict, why_not, None, begun_ns, seconds, game.is_responsive, wrong=wrong
                )
                yield self._result(outcome, recorder, timeline)
            if verdicts:
                recorder.rename(f"{name}: {min(verdicts, key=WORDS.index)}")
            if "FAILED" in verdicts:
                self._keep_capture(timeline, f"{self._setup.dissector.protocol}/game")

    def _observe_game(self, recorder: Recorder, limit_s: float, come_s: float) -> GameObservation:
        game = BaselineGame(baseline_route(self._setup, 1), self._setup, recorder, self._program)
        return self._run(game.run(limit_s, come_s), recorder)

    def _try_case(self, case: Case, left_s: float) -> Result:
        """Try a case for at most `left_s` seconds, on one route after the other until it can be injected.

        The server is restarted if its state may be the reason for a bad result. A client is restarted for
        each case.
        """
        result = None
        reasons: list[str] = []
        for number, make in enumerate(routes_to(case, self._setup)):
            key = (number, case.at_start, case.of)
            if key in self._unreachable:
                reasons.append(self._unreachable[key])
                continue
            result = self._on_route(case, make, left_s, key)
            if result.verdict != NOT_TRIED:
                return result
            reasons.append(result.why)
        if result is None:
            why = reasons[0] if reasons else "no game reaches its injection point"
            return untried_result(case, why, self._repeat_command(case))
        # The first route is the better one, and its obstacle says more.
        return msgspec.structs.replace(result, why=reasons[0])

    def _on_route(self, case: Case, make: RouteFactory, left_s: float, key: _Key) -> Result:
        program = self._program
        if program is None:
            return self._run_once(case, make(1), left_s, key)
        if case.role == "server" and not program.is_running:
            program.start()
        was_fresh = case.role == "server" and program.is_fresh
        result = self._run_once(case, make(1), left_s, key)
        is_doubtful = result.verdict in ("FAILED", "NON-STRICT") or (
            # A client is restarted in any case.
            result.verdict == NOT_TRIED and case.role == "server"
        )
        if was_fresh or not is_doubtful:
            return result
        # The reason may be the state left by earlier cases, or a game in which the message was not due.
        if case.role == "server":
            program.start()
        return self._run_once(case, make(2), left_s, key)

    def _run_once(self, case: Case, route: Route, left_s: float, key: _Key) -> Result:
        name = f"{PROBE} {case.role} {case.name}"
        with self._session(name, case.name) as recorder:
            case_run = CaseRun(case, route, self._setup, recorder, self._program)
            outcome = self._run(case_run.run(left_s), recorder)
            self._check_target(case.role, outcome.is_responsive)
            observed = outcome.observed
            self._is_over = self._program is None and observed is not None and observed.lets_in is False
            if outcome.never_came_up:
                self._unreachable[key] = outcome.why_not or ""
            timeline = self._timeline(recorder)
            result = self._result(outcome, recorder, timeline)
            recorder.rename(f"{name}: {result.verdict}")
            if result.is_failed:
                self._keep_capture(timeline, case.name)
        return result

    @contextmanager
    def _session(self, name: str, source: str) -> Iterator[Recorder]:
        """Provide the recorder of a new session."""
        refuse_if_unfinished(self._database or MEMORY)
        recorder = Recorder(
            self._database or MEMORY,
            "replay",
            source,
            name=name,
            started_ns=now_ns(),
            decode_as=self._setup.decode_as,
        )
        try:
            yield recorder
        finally:
            recorder.release()
            # A database in memory is still open.
            recorder.connection.close()

    def _run(self, doing: Coroutine[None, None, _Observed], recorder: Recorder) -> _Observed:
        if self._program is not None:
            self._program.is_fresh = False
        try:
            return asyncio.run(doing)
        finally:
            recorder.finish()
            recorder.write()

    def _timeline(self, recorder: Recorder) -> Timeline:
        reason = self._room.stop_reason(recorder)
        if reason is not None:
            raise StorageError(f"{reason}; no more cases are tried")
        return Timeline(recorder.connection, sessions(recorder.connection)[-1])

    def _result(self, outcome: CaseOutcome, recorder: Recorder, timeline: Timeline) -> Result:
        session = f"{self._database}:{recorder.session_id}" if self._database is not None else None
        output = self._program.output if self._program is not None else None
        return result_of(outcome, timeline, session, output, self._repeat_command(outcome.case), self._render)

    def _repeat_command(self, case: Case) -> str:
        return f"{self._command} --only {shlex.quote(case.name)}"

    def _check_target(self, target_role: TargetRole, is_responsive: bool) -> None:
        """Check that there is a target to continue with. Raises PeerError if none has ever answered."""
        if (
            self._program is None
            and target_role == "server"
            and not is_responsive
            and not self._was_responsive
        ):
            about = self._setup.dissector
            raise PeerError(
                f"{about.transport} {endpoint(*self._setup.address)} does not answer. Start the server"
                f" first, or name another address; does it speak {about.grammar.title}?"
            )
        self._was_responsive = True

    def _keep_capture(self, timeline: Timeline, case: str) -> None:
        if self._keep is None:
            return
        make_folder(self._keep)
        path = os.path.join(self._keep, case.replace("/", "-") + ".pcapng")
        with opened(path, self._database or "") as file:
            FORMATS["pcapng"](timeline, file)
