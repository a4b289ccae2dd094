"""Many cases, one after the other: how many, how fast and how long, and a program that is started anew."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from kiebitz.cli.files import opened
from kiebitz.cli.probing.program import Program
from kiebitz.cli.probing.results import NOT_TRIED, Result, result_of
from kiebitz.cli.probing.trying import Attempt, Conditions, Trial
from kiebitz.dissectors.probing.cases import Case
from kiebitz.proxy.clock import now_ns
from kiebitz.proxy.peers import PeerError
from kiebitz.storage.export import FORMATS
from kiebitz.storage.recorder import Recorder
from kiebitz.storage.room import Room
from kiebitz.storage.schema import MEMORY, StorageError
from kiebitz.storage.timeline import Timeline, sessions

PROBE = "probe"
"""With this word the names of sessions of cases begin: `probe server maexchen/JOIN/lost: OK`."""


class Bounds(msgspec.Struct, frozen=True):
    """At most so many cases, so many begun in a second, and for so long altogether (seconds)."""

    most: int
    rate: float
    seconds: float


class Series:
    """Tries cases, each in a session of its own.

    `command` is the beginning of the shell command that tries one again. `database` keeps the sessions,
    `keep` is a folder for the captures of those that failed; None keeps nothing. `left` says, when it is
    over, why cases were left out, if some were.
    """

    def __init__(
        self,
        conditions: Conditions,
        bounds: Bounds,
        command: str,
        *,
        program: Program | None,
        database: str | None,
        keep: str | None,
    ) -> None:
        self._conditions = conditions
        self._bounds = bounds
        self._command = command
        self._program = program
        self._database = database
        self._keep = keep
        self._room = Room(None)
        self._was_heard = False
        self._is_over = False
        """Whether the server lets nobody in any more, and nobody starts it again."""
        self.left: str | None = None

    def run(self, cases: Sequence[Case]) -> Iterator[Result]:
        """Try one after the other, and tell what came of each.

        Raises PeerError, ProgramError, RelayError and StorageError; the program is ended in any case.
        """
        begun = time.monotonic()
        wanted = cases[: self._bounds.most]
        try:
            for number, case in enumerate(wanted):
                time.sleep(max(begun + number / self._bounds.rate - time.monotonic(), 0.0))
                left_s = self._bounds.seconds - (time.monotonic() - begun)
                if left_s <= 0:
                    self._leave(len(cases) - number, f"the {self._bounds.seconds:g} s of --time are over")
                    return
                try:
                    result = self._tried(case, left_s)
                except PeerError as error:
                    # What is known by then is told.
                    if not self._was_heard:
                        raise
                    self._leave(len(cases) - number, str(error))
                    return
                yield result
                if self._is_over:
                    why = "nobody gets in any more. Start the server anew, or say how with --restart"
                    self._leave(len(cases) - number - 1, why)
                    return
            self._leave(len(cases) - len(wanted), f"no more than {self._bounds.most} are tried (--most)")
        finally:
            if self._program is not None:
                self._program.stop()

    def _leave(self, count: int, why: str) -> None:
        """Note that so many cases are left out."""
        if count:
            self.left = f"{count} {'case' if count == 1 else 'cases'}: {why}"

    def _tried(self, case: Case, left_s: float) -> Result:
        """Try a case, for so many seconds at the most; with the server started anew, if it was only in no
        state for it. A client is started anew for each case."""
        program = self._program
        if program is None or case.role == "client":
            return self._once(case, left_s)
        if not program.is_running:
            program.start()
        was_fresh = program.is_fresh
        result = self._once(case, left_s)
        if was_fresh or result.verdict not in (NOT_TRIED, "FAILED", "NON-STRICT"):
            return result
        # What earlier cases have left behind may be the reason: cards that are not the record's, say.
        program.start()
        return self._once(case, left_s)

    def _once(self, case: Case, left_s: float) -> Result:
        started_ns = now_ns()
        recorder = Recorder(
            self._database or MEMORY,
            "replay",
            case.name,
            name=f"{PROBE} {case.role} {case.name}",
            started_ns=started_ns,
            decode_as=self._conditions.decode_as,
        )
        try:
            attempt = self._attempt(case, recorder, left_s)
            self._look(attempt)
            reason = self._room.why_full(recorder)
            if reason is not None:
                raise StorageError(f"{reason}; no more cases are tried")
            timeline = Timeline(recorder.connection, sessions(recorder.connection)[-1])
            session = f"{self._database}:{recorder.session_id}" if self._database is not None else None
            output = self._program.output if self._program is not None else None
            command = f"{self._command} --only {shlex.quote(case.name)}"
            result = result_of(attempt, timeline, session, output, command)
            recorder.rename(f"{PROBE} {case.role} {case.name}: {result.verdict}")
            if self._keep is not None and result.is_failed:
                self._keep_capture(timeline, case)
        finally:
            recorder.release()
            # One in memory is still open.
            recorder.connection.close()
        return result

    def _look(self, attempt: Attempt) -> None:
        """See whether there is anybody to go on with. Raises PeerError if nobody has ever answered."""
        seen = attempt.seen
        if self._program is not None:
            return
        if attempt.case.role == "server" and not attempt.is_heard and not self._was_heard:
            role = self._conditions.script.roles[0]
            host, port = next(iter(self._conditions.places.values()))
            raise PeerError(
                f"{role.transport} {host}:{port} does not answer. Start the server first, or name another"
                f" address; is it {self._conditions.dissector.grammar.title} that it speaks?"
            )
        self._was_heard = True
        self._is_over = seen is not None and seen.lets_in is False

    def _attempt(self, case: Case, recorder: Recorder, left_s: float) -> Attempt:
        trial = Trial(case, self._conditions, recorder, self._program)
        if self._program is not None:
            self._program.is_fresh = False
        try:
            return asyncio.run(trial.run(max(left_s, 0.0)))
        finally:
            recorder.finish()
            recorder.write()

    def _keep_capture(self, timeline: Timeline, case: Case) -> None:
        assert self._keep is not None
        with suppress(FileExistsError):
            os.mkdir(self._keep)
        path = os.path.join(self._keep, case.name.replace("/", "-") + ".pcapng")
        with opened(path, self._database or "") as file:
            FORMATS["pcapng"](timeline, file)
