"""`kiebitz collect`: record what taps on other machines publish, live, as one session."""

from __future__ import annotations

from pathlib import Path

import click

from kiebitz.cli.live_view import LiveView
from kiebitz.cli.options.companions import Showing, showing_options
from kiebitz.cli.options.decode_as import decode_as_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.recording import (
    Recording,
    database_option,
    max_size_option,
    name_option,
)
from kiebitz.cli.options.records import as_records
from kiebitz.cli.options.taps import PLACE, credentials_option
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.publishing.tap_target import check_reachable
from kiebitz.services.recording.stop_conditions import StopCondition
from kiebitz.services.recording.summary import summary
from kiebitz.services.standard_streams import print_error_line
from kiebitz.storage.read.conditions import compile_optional_filter


@click.command()
@click.argument("source", type=PLACE, metavar="nats://HOST:4222/SUBJECT")
@database_option
@max_size_option
@name_option
@decode_as_option
@protocol_option
@showing_options
@credentials_option
@as_records(recording=Recording)
def collect(source: NatsUrl, recording: Recording, showing: Showing, credentials: Path | None) -> None:
    """Record what taps publish (kiebitz relay --publish, kiebitz sniff --publish) as one session.

    Records everything that is still in JetStream, then new traffic, until Ctrl-C. If it is started again
    on the same database, it resumes where it stopped: nothing is lost or recorded twice.

    \b
    Example:
      kiebitz collect nats://127.0.0.1:4222/class -w class.db
      kiebitz collect tls://nats.example.org/class --nats-creds teacher.creds -w class.db --watch
    """
    forced = parse_decode_as(recording.decode_as)
    filter_ = compile_optional_filter(showing.wanted)
    check_reachable(source, credentials)
    room, database = recording.prepare(), recording.database
    from kiebitz.services.collecting.collector import Collector
    from kiebitz.storage.recording.tap_progress import CollectedSession

    with showing.companions() as companions:
        name = recording.session_name("collect")
        collection = CollectedSession(database, str(source), name, forced)
        recorder = collection.recorder
        end = StopCondition()
        resuming = "" if collection.is_new else f", resuming session {recorder.session_id}"
        print_error_line(f"collecting from {source}{resuming}")
        view = LiveView(recorder, filter_, not showing.prints, collection.tables)
        companions.start(f"{recorder.path}:{recorder.session_id}", end.come)
        Collector(source, credentials, collection, view, room.is_full, end).run()
        if end.was_signal:
            companions.stop()
    print_error_line(summary(recorder))
    room.exit_if_full()
