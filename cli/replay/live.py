"""A replay to a live peer: set up from a session and options, then played, shown and recorded."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress

import click

from kiebitz.cli.live_view import LiveView
from kiebitz.cli.status import FAILED, VIOLATIONS
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import blame_of
from kiebitz.dissectors.inspection.inspector import DIVERGENCE
from kiebitz.dissectors.model import Direction, Fault, Item
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.dissectors.replay.replay_peer import Divergence, DivergencePolicy, ReplayPeer
from kiebitz.dissectors.replay.script import RecordedLine, Script, names_of_roles
from kiebitz.proxy.peers.connections import Peers
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.recording.note import refuse_if_unfinished
from kiebitz.services.recording.summary import summary
from kiebitz.services.replay.peer_driver import PeerDriver
from kiebitz.services.server_addresses import addresses_of
from kiebitz.services.standard_streams import print_error_line, warn
from kiebitz.storage.database.schema import MEMORY, StorageError
from kiebitz.storage.read.players import no_such_player
from kiebitz.storage.read.recorded_items import script_of
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.recording.disk_space import SpaceLimit
from kiebitz.storage.recording.recorder import COMMIT_EVERY_S, Recorder


class LiveReplay:
    """A replay of the side `plays` of a session at the addresses `given`; with `player`, of that client only.

    It is recorded into `database`, as far as there is room and up to `max_size` bytes, or kept in memory if
    that is None, and shown unless `quiet`.
    """

    def __init__(
        self,
        timeline: Timeline,
        source: str,
        plays: Direction,
        given: Sequence[str],
        *,
        player: str | None,
        policy: DivergencePolicy,
        speed: float,
        patience_s: float,
        database: str | None,
        max_size: int | None,
        quiet: bool,
    ) -> None:
        script = script_of(timeline)
        self._dissectors = _dissectors(script)
        if player is not None:
            script = _only(script, self._dissectors, player)
        if not script.steps:
            raise StorageError("there is nothing to play: no game was recognised in this session")
        self._plays: Direction = plays
        self._script = script
        self._addresses = addresses_of(given, script.servers)
        self._peer = ReplayPeer(script, plays, self._dissectors, policy)
        self._speed = speed
        self._patience_s = patience_s
        self._room = SpaceLimit(max_size)
        self._is_full = False
        self._divergences: list[Divergence] = []
        started_ns = now_ns()
        refuse_if_unfinished(database or MEMORY)
        self._recorder = Recorder(
            database or MEMORY,
            "replay",
            source,
            name=f"replay of {source}",
            started_ns=started_ns,
            decode_as=self._decode_as(),
        )
        self._view = LiveView(self._recorder, None, quiet)
        self._peers = Peers(plays, self._recorder.stream_ids, self._record)

    def run(self) -> int:
        """Play to the end and return the exit status. Raises PeerError, RelayError and StorageError.

        Whatever ends it, everything up to then is recorded.
        """
        try:
            asyncio.run(self._play())
        except asyncio.CancelledError:
            raise click.Abort from None
        finally:
            self._view.show(self._recorder.finish())
            self._recorder.write()
            self._recorder.release()
            if self._recorder.path != MEMORY:
                print_error_line(f"recorded {summary(self._recorder)}")
            # A database in memory is still open.
            self._recorder.connection.close()
        print_error_line(self._outcome())
        if self._divergences:
            return VIOLATIONS
        return FAILED if self._is_full else 0

    async def _play(self) -> None:
        actor = PeerDriver(
            self._peer, self._peers, self._addresses, self._speed, self._patience_s, self._on_divergence
        )
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        writing = asyncio.create_task(self._write())
        try:
            if self._plays == "s2c":
                for role, address in await actor.listen():
                    self._peer.server_moved(role, address)
                    print_error_line(f"playing {role.protocol} server {role.server} on {address}")
            await actor.play()
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing
            self._peers.close()

    async def _write(self) -> None:
        """Show and write the findings periodically."""
        failed = False
        while True:
            await asyncio.sleep(COMMIT_EVERY_S / 2)
            self._view.show(self._recorder.gather())
            try:
                self._recorder.write()
            except StorageError as error:
                # The data is kept for the next attempt; only the last one must succeed.
                if not failed:
                    warn(f"{error}; the replay continues, and is written when that is possible")
                failed = True
            else:
                failed = False
            reason = self._room.stop_reason(self._recorder)
            if reason is not None and not self._is_full:
                self._is_full = True
                warn(f"{reason}; the replay continues, but is not recorded")

    def _record(self, item: Item) -> None:
        if not self._is_full:
            self._recorder.record((item,))

    def _on_divergence(self, divergence: Divergence) -> None:
        self._divergences.append(divergence)
        if divergence.connection is None:
            warn(divergence.text)
            return
        fault = Fault(
            self._peers.streams[divergence.connection],
            divergence.direction,
            now_ns(),
            divergence.offset,
            DIVERGENCE,
            divergence.text,
            divergence.length,
            "state",
            blame_of(divergence.direction),
            divergence.expected,
            quotes=True,
        )
        self._record(fault)

    def _outcome(self) -> str:
        """Return how far the replay went, and with which divergences."""
        total = sum(isinstance(step, RecordedLine) for step in self._script.steps)
        if not self._divergences:
            return f"all {total} messages went as recorded"
        if self._peer.stopped:
            last = self._divergences[-1].text
            return f"stopped after {self._peer.lines} of {total} messages: {last}"
        first = self._divergences[0].text
        count = len(self._divergences)
        if count == 1:
            return f"{total} messages, 1 divergence: {first}"
        return f"{total} messages, {count} divergences, the first: {first}"

    def _decode_as(self) -> dict[tuple[str, int], Dissector]:
        """Return the recorded protocols by live port, so that nothing has to be recognised."""
        return {
            (role.transport, port): self._dissectors[role.protocol]
            for role, (_, port) in self._addresses.items()
            if port
        }


def _dissectors(script: Script) -> dict[str, Dissector]:
    found: dict[str, Dissector] = {}
    for role in script.roles:
        dissector = dissector_of(role.protocol)
        if dissector is None:
            raise StorageError(f"{role.protocol} cannot be played: {not_installed(role.protocol)}")
        found[role.protocol] = dissector
    return found


def _only(script: Script, dissectors: dict[str, Dissector], player: str) -> Script:
    """Return the script of one player's roles. Raises StorageError, with the names of the players."""
    names = names_of_roles(script, dissectors)
    roles = {number for number, known in names.items() if player in known}
    if not roles:
        raise no_such_player(player, set[str]().union(*names.values()))
    return script.only(roles)
