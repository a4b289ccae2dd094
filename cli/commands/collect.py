"""`kiebitz collect`: records as one session, live, what taps on many machines publish."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kiebitz.cli.live_view import LiveView
from kiebitz.cli.options.companions import Companions, showing_options
from kiebitz.cli.options.decode_as import decode_as_option
from kiebitz.cli.options.recording import RecordingRoom, database_option, max_size_option
from kiebitz.cli.options.taps import PLACE, credentials_option
from kiebitz.cli.plugins import tell_left_out
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.publishing.tap_target import check_reachable
from kiebitz.services.recording.stop_conditions import StopCondition
from kiebitz.services.recording.summary import summary
from kiebitz.services.standard_streams import print_error_line
from kiebitz.storage.read.conditions import compile_wanted
from kiebitz.storage.recording.disk_space import spare


@click.command()
@click.argument("source", type=PLACE, metavar="nats://HOST:4222/SUBJECT")
@database_option
@max_size_option
@decode_as_option
@showing_options
@credentials_option
def collect(
    source: NatsUrl,
    database: str,
    max_size: int | None,
    decode_as: tuple[str, ...],
    wanted: str | None,
    quiet: bool,
    is_watched: bool,
    place: tuple[str, int] | None,
    credentials: Path | None,
) -> None:
    """Record what taps publish (kiebitz relay --publish, kiebitz sniff --publish) as one session.

    All of it is taken that is still in JetStream, and then what comes, until Ctrl-C. Started again on the
    same database, it goes on where it was: nothing is lost, and nothing is there twice.

    \b
    Example:
      kiebitz collect nats://127.0.0.1:4222/class -w class.db
      kiebitz collect tls://nats.example.org/class --nats-creds teacher.creds -w class.db --watch
    """
    forced = parse_decode_as(decode_as)
    filter_ = compile_wanted(wanted)
    check_reachable(source, credentials)
    tell_left_out()
    room = RecordingRoom(max_size)
    spare(database)
    # They take their time to load, which --help does without.
    from kiebitz.services.recording.resume import recover

    recover(database)
    from kiebitz.services.collecting.collector import Collector
    from kiebitz.storage.recording.tap_progress import Collection

    with Companions(is_watched, place) as companions:
        name = f"collect {time.strftime('%Y-%m-%d %H:%M:%S')}"
        collection = Collection(database, str(source), name, forced)
        recorder = collection.recorder
        end = StopCondition()
        goes_on = "" if collection.is_new else f", going on with session {recorder.session_id}"
        print_error_line(f"collecting from {source}{goes_on}")
        view = LiveView(recorder, filter_, quiet or is_watched, collection.tables)
        companions.start(f"{recorder.path}:{recorder.session_id}", end.come)
        Collector(source, credentials, collection, view, room.is_full, end).run()
        if end.was_signal:
            companions.stop()
    print_error_line(summary(recorder))
    room.tell_if_full()
