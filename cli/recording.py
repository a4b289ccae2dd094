"""The recorder's process of a relay: reads the journal, inspects, writes and shows what happens.

If the database cannot be written (disk full, locked by another program), it says so once and tries again;
what comes meanwhile waits in the journal. The relay itself never waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import click

from cli.catalog import compile_wanted
from cli.decode_as import parse_decode_as
from cli.garbage import collect_seldom
from cli.live import LiveView
from cli.recording_options import summary
from proxy.journal import JournalError, JournalReader
from proxy.processes import follow, give_way
from storage.recorder import COMMIT_EVERY_S, Recorder
from storage.schema import StorageError

RETRY_S = 0.5
GIVE_UP_S = 10.0
"""How long a database that cannot be written is tried once the relay itself is over."""


def record_journal(
    journal: Path,
    database: str,
    source: str,
    name: str,
    decode_as: tuple[str, ...],
    wanted: str | None,
    quiet: bool,
    relay: Connection,
    tells_relay: bool,
) -> None:
    """Record the journal in the folder `journal` to its end, as one session; to be run by `start_child`.

    Sends `relay` None once the session is open, or a sentence that says why it cannot be; what is to be told
    later goes there, too, if it `tells_relay`, else to stderr. Something can be read from `relay` when the
    relay is over: what it sends, or the end.
    """
    give_way()
    collect_seldom()
    started_ns = time.time_ns()
    try:
        recorder = Recorder(
            database,
            "relay",
            source,
            name=name,
            started_ns=started_ns,
            decode_as=parse_decode_as(decode_as),
        )
    except StorageError as error:
        relay.send(str(error))
        return
    reader = JournalReader(journal, base=next(recorder.stream_ids) - 1)
    relay.send(None)
    tell = _teller(relay if tells_relay else None)
    view = LiveView(recorder, compile_wanted(wanted), quiet)
    committed = time.monotonic()
    try:
        for items in follow(reader):
            recorder.record(items)
            now = time.monotonic()
            # Half the promised time: the commit itself takes some, too.
            if recorder.full or now - committed >= COMMIT_EVERY_S / 2:
                view.show(recorder.gather())
                _write(recorder, relay, tell)
                reader.release()
                committed = now
    except JournalError as error:
        tell(f"kiebitz: {error}; what was recorded until then is kept")
    view.show(recorder.finish())
    _write(recorder, relay, tell)
    reader.release()
    reader.close()
    recorder.release()
    tell(f"recorded {summary(recorder)}")
    if not reader.stopped:
        tell("kiebitz: the relay has died; what it had passed on until then is recorded")


def _teller(relay: Connection | None) -> Callable[[str], None]:
    def tell(sentence: str) -> None:
        if relay is None:
            click.echo(sentence, err=True)
            return
        # A relay that has died hears nothing.
        with suppress(OSError):
            relay.send(sentence)

    return tell


def _write(recorder: Recorder, relay: Connection, tell: Callable[[str], None]) -> None:
    """Write what was gathered, trying again until it works, or the relay is over and it is of no use."""
    failed_since: float | None = None
    while True:
        try:
            recorder.write()
        except StorageError as error:
            now = time.monotonic()
            if failed_since is None:
                failed_since = now
                tell(f"kiebitz: {error}; the relay goes on, and what it passes on waits to be recorded")
            if relay.poll() and now - failed_since > GIVE_UP_S:
                tell("kiebitz: gave up writing; the end of this session is not recorded")
                raise SystemExit(1) from error
            time.sleep(RETRY_S)
        else:
            if failed_since is not None:
                tell("kiebitz: the database can be written again; nothing is missing")
            return
