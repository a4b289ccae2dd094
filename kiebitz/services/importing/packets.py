"""Recording of captured packets as a session, from a file, a pipe or a live interface."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from shlex import quote
from signal import SIGHUP
from typing import TYPE_CHECKING

from kiebitz.dissectors.dissector import recognise
from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Direction, Findings, Item, Transport
from kiebitz.dissectors.registry import file_of, installed
from kiebitz.proxy.capture.files import CaptureError, CaptureFile, open_capture
from kiebitz.proxy.capture.packets import RawPacket
from kiebitz.proxy.flows.packet_flows import PacketFlows
from kiebitz.proxy.journal.item_writer import ItemWriter
from kiebitz.proxy.system.deferred_signals import TERMINATION_SIGNALS, signals_handled
from kiebitz.services.anonymizing import anonymizer_if
from kiebitz.services.decode_as import server_ports
from kiebitz.services.faults import infrequent_gc
from kiebitz.services.importing import is_compiled
from kiebitz.services.importing.losses import losses
from kiebitz.services.recording.note import refuse_if_unfinished
from kiebitz.services.standard_streams import warn
from kiebitz.services.wording import counted
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.recording.inspection import InspectionFactory, LocalInspection
from kiebitz.storage.recording.recorder import Recorder

if TYPE_CHECKING:
    import sqlite3

    from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms

_BATCH = 2000
"""Number of packets between two progress updates."""

_IMPATIENCE_S = 0.2
"""Time in seconds after Ctrl-C in which a batch may be finished."""

MIN_SIZE_FOR_PROCESS = 2_000_000
"""Size in bytes from which a capture file is worth starting a second process."""


_HAS_PROCESSES = sys.platform != "emscripten"
"""False in a browser."""


class PacketRecording(PacketFlows):
    """Records the game traffic of captured packets as one session, and also writes its items to `tap`.

    Packets `from_file` are put in time order first.
    """

    def __init__(
        self,
        recorder: Recorder,
        forced: DecodeAs,
        tap: ItemWriter | None = None,
        from_file: bool = False,
    ) -> None:
        super().__init__(recorder.stream_ids, _orient, partial(server_ports, forced), self._record, from_file)
        self.recorder = recorder
        self.losses: list[str] = []
        self._tap = tap

    def close(
        self,
        capture: CaptureFile | None = None,
        is_over: bool = True,
        dropped: int = 0,
        others: Iterable[str] = (),
    ) -> Findings:
        """End all streams and the session, with the losses of its source. Raises StorageError.

        `is_over` is True if its `capture` was read to its end; `dropped` is the number of packets that the
        capturing machine has dropped; `others` are clauses for other losses.
        """
        self.end()
        self.losses = [*others, *losses(self.decoder, capture, is_over, self.late, dropped)]
        self.recorder.lacks = "; ".join(self.losses) or None
        return self.recorder.close()

    def _record(self, items: list[Item]) -> None:
        if self._tap is not None:
            self._tap.write(items)
        self.recorder.record(items)


def _orient(transport: Transport, data: bytes, _source: str, _destination: str) -> Direction | None:
    """Return the direction of bytes that only one side of one protocol can have sent."""
    certain = [
        (file_of(dissector.protocol) is None, direction)
        for dissector, direction, likeness in recognise(installed().dissectors.values(), transport, data)
        if likeness == "certain"
    ]
    # A protocol file may be less precise than the others.
    best = {direction for rank, direction in certain if rank == max(certain)[0]}
    return best.pop() if len(best) == 1 else None


@infrequent_gc()
def import_capture(
    source: str,
    database: str,
    forced: DecodeAs,
    on_progress: Callable[[int, int | None], None],
    is_full: Callable[[Recorder], bool] = lambda recorder: False,
    stand_ins: Pseudonyms | None = None,
    jobs: int | None = None,
) -> tuple[PacketRecording, str | None]:
    """Record a capture file as a new session.

    An interruption, or reaching `is_full`, leaves a complete session with what was read by then.

    Args:
        source: The capture file.
        database: The database to record in.
        forced: Protocols of ports.
        on_progress: Called with the bytes read and, if known, the total.
        is_full: Returns True if the recording is to end.
        stand_ins: Pseudonyms to record instead of personal values.
        jobs: Number of processes for a large capture, 1 or 2: a second one inspects what this one reads. It
            makes an import a quarter shorter on an idle machine and costs a tenth more CPU time; None takes
            one if Kiebitz is compiled, else two.

    Returns:
        The closed recording, and its losses as one text, None without any.

    Raises:
        CaptureError: The capture cannot be read.
        StorageError: The database cannot be written.
    """
    refuse_if_unfinished(database)
    with ExitStack() as stack:
        capture = stack.enter_context(open_capture(source))
        interrupts = stack.enter_context(_Interrupts())
        is_large = _HAS_PROCESSES and capture.size is not None and capture.size >= MIN_SIZE_FOR_PROCESS
        has_second = is_large and (jobs or (1 if is_compiled() else 2)) > 1
        inspect = stack.enter_context(_in_process()) if has_second else LocalInspection
        with interrupts.allowed():
            recorder = Recorder(
                database,
                "import",
                source,
                decode_as=forced,
                inspect=inspect,
                anonymizer=anonymizer_if(stand_ins, forced),
            )
        interrupts.on_impatience = recorder.stop_soon
        recording = PacketRecording(recorder, forced, from_file=True)
        packets = iter(capture)
        batch: list[RawPacket] = []
        try:
            while True:
                batch.clear()
                with interrupts.allowed():
                    batch.extend(islice(packets, _BATCH))
                if not batch:
                    break
                recording.take(batch)
                if recorder.full:
                    recorder.commit()
                    if is_full(recorder):
                        break
                on_progress(capture.position, capture.size)
            if capture.truncated is not None and not recording.packets and database != MEMORY:
                raise CaptureError(f"{source}: {capture.truncated}; nothing was recorded before that")
            recording.close(capture, dropped=capture.reader.dropped)
        except KeyboardInterrupt:
            recording.take(batch)
            if not recording.packets:
                recorder.release()
                raise
            read = f"only the first {counted(recording.packets, 'packet')} of the capture were imported"
            recording.close(capture, False, capture.reader.dropped, [read])
            if database != MEMORY:
                again = f"kiebitz sessions {quote(database)} --delete {recorder.session_id}"
                warn(f"{source}: {read}; {again} removes them, for another import")
            _warn_about_rest(recorder, interrupts.was_impatient)
            raise
        except BaseException:
            recorder.release()
            raise
        if interrupts.was_impatient:
            _warn_about_rest(recorder, is_cut=True)
            raise KeyboardInterrupt
        return recording, recorder.lacks


def _warn_about_rest(recorder: Recorder, is_cut: bool) -> None:
    """Warn about what an interrupted import has left out; with `is_cut` it did not finish its last batch."""
    missing = ["its last bytes may not be dissected"] if is_cut else []
    if not recorder.indexed:
        missing.append("it has no indexes")
    if missing and recorder.path != MEMORY:
        path = recorder.path
        warn(f"{path}: {', and '.join(missing)}; kiebitz redissect {quote(path)} completes it")


@contextmanager
def _in_process() -> Iterator[InspectionFactory]:
    # It loads what small captures, and a sniff, do without.
    from kiebitz.services.importing.process_inspection import ProcessInspection

    inspection = ProcessInspection()
    try:
        yield inspection.begin
    finally:
        inspection.close()


class _Interrupts:
    """A context in which signals raise KeyboardInterrupt only while `allowed`, or else when they next are.

    Within a batch they would leave that half recorded, so they only call `on_impatience`, after a while. Only
    the main thread receives them.
    """

    def __init__(self) -> None:
        self._handled = ExitStack()
        self._are_allowed = False
        self._has_come = False
        self.was_impatient = False
        """True if `on_impatience` was called, so that something may be missing."""
        self._timer = threading.Timer(_IMPATIENCE_S, self._lose_patience)
        self._timer.daemon = True
        self.on_impatience: Callable[[], None] = lambda: None

    def __enter__(self) -> _Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._handled.enter_context(signals_handled(*TERMINATION_SIGNALS, SIGHUP, handler=self._note))
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._handled.close()

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Allow interruptions in a block that loses nothing by them and may take long."""
        self._are_allowed = True
        try:
            if self._has_come:
                raise KeyboardInterrupt
            yield
        finally:
            self._are_allowed = False

    def _lose_patience(self) -> None:
        self.was_impatient = True
        self.on_impatience()

    def _note(self, _number: int, _frame: object) -> None:
        if self._are_allowed:
            self._has_come = True
            raise KeyboardInterrupt
        if not self._has_come:
            self._has_come = True
            self._timer.start()


def open_capture_in_memory(
    source: str, decode_as: DecodeAs | None = None
) -> tuple[sqlite3.Connection, str | None]:
    """Return a capture file as a database in memory with one session, and its losses."""
    recording, lacks = import_capture(source, MEMORY, decode_as or {}, lambda _done, _all: None)
    return recording.recorder.connection, lacks
