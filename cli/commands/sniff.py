"""`kiebitz sniff`: record game traffic from a network interface or a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from kiebitz.cli.completion.network import complete_interface
from kiebitz.cli.live_view import LiveView
from kiebitz.cli.options.anonymizing import anonymize_option
from kiebitz.cli.options.companions import Showing, showing_options
from kiebitz.cli.options.decode_as import decode_as_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.recording import (
    Condition,
    Recording,
    RecordingRoom,
    condition_type,
    database_option,
    max_size_option,
    name_option,
)
from kiebitz.cli.options.records import as_records
from kiebitz.cli.options.taps import Publishing, publish_options
from kiebitz.proxy.capture.files import CaptureError, standard_input
from kiebitz.proxy.capture.live import CapturePipe, Sniffer
from kiebitz.proxy.system.sudo import continue_as_invoking_user
from kiebitz.services.anonymizing import anonymizer_if, pseudonyms_if
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.importing.losses import print_losses
from kiebitz.services.importing.packets import PacketRecording
from kiebitz.services.recording.stop_conditions import StopCondition
from kiebitz.services.recording.summary import summary
from kiebitz.services.standard_streams import print_error_line
from kiebitz.storage.read.conditions import compile_optional_filter
from kiebitz.storage.recording.recorder import COMMIT_EVERY_S, Recorder

if TYPE_CHECKING:
    from kiebitz.services.publishing.tap_supervisor import TapSupervisor

_AT_ONCE = 1000
"""Maximum number of packets to read between two checks for a commit."""

_LOOK_EVERY_S = COMMIT_EVERY_S / 4

_PIPE = "-"
"""The interface name that means standard input."""

_DRAIN_S = 2.0
"""Time (seconds) to read the rest of a pipe after a signal that also ends the other program."""


@click.command()
@click.option(
    "-i",
    "interface",
    required=True,
    metavar="IFACE",
    shell_complete=complete_interface,
    help="Interface, as in lo or eth0; - reads a capture from standard input.",
)
@click.option("-f", "bpf_filter", metavar="BPF", help="Capture filter, as for tcpdump.")
@database_option
@max_size_option
@name_option
@click.option(
    "-a",
    "ending",
    type=condition_type({"duration": "SECONDS"}),
    metavar="duration:SECONDS",
    help="Stop after this time.",
)
@click.option("-c", "count", type=click.IntRange(min=1), metavar="N", help="Stop after N packets.")
@decode_as_option
@protocol_option
@showing_options
@publish_options
@anonymize_option
@as_records(recording=Recording)
def sniff(
    interface: str,
    bpf_filter: str | None,
    ending: Condition | None,
    count: int | None,
    recording: Recording,
    showing: Showing,
    publishing: Publishing,
) -> None:
    """Record game traffic from a network interface, without relaying it.

    Another program, also on another machine, may capture the traffic and write pcap or pcapng into a pipe.

    \b
    Example:
      kiebitz sniff -i lo -f 'udp port 9000' -w game.db
      ssh pi sudo tcpdump -U -w - udp port 9000 | kiebitz sniff -i - -w game.db
    """
    if interface == _PIPE and bpf_filter is not None:
        raise click.UsageError(
            "-f requires an interface: filter a pipe where it is captured,"
            f" as in tcpdump -U -w - {bpf_filter!r} | kiebitz sniff -i -"
        )
    continue_as_invoking_user()
    forced = parse_decode_as(recording.decode_as)
    filter_ = compile_optional_filter(showing.wanted)
    publishing.check(recording.is_anonymized)
    room, database = recording.prepare(), recording.database
    name = recording.session_name("sniff")
    anonymizer = anonymizer_if(pseudonyms_if(recording.is_anonymized), forced)
    with showing.companions() as companions, publishing.tap(database) as tap:
        with _capturing(interface, bpf_filter, ending) as (source, end):
            is_pipe = isinstance(source, CapturePipe)
            recorder = Recorder(
                database,
                "sniff",
                f"{interface} {bpf_filter}" if bpf_filter else interface,
                name=name,
                # The session of a pipe starts with its first packet.
                started_ns=None if is_pipe else source.now_ns(),
                decode_as=forced,
                anonymizer=anonymizer,
            )
            print_error_line(f"{'reading a capture from' if is_pipe else 'capturing on'} {source.name}")
            if tap is not None:
                tap.start()
            packets = PacketRecording(recorder, forced, tap.items if tap is not None else None)
            companions.start(f"{recorder.path}:{recorder.session_id}", end.come)
            _record(source, packets, LiveView(recorder, filter_, not showing.prints), end, count, room, tap)
            if end.was_signal:
                companions.stop()
        print_error_line(f"{packets.packets} packets, {summary(recorder)}")
        print_losses(source.name, packets.losses)
        if tap is not None:
            # Everything is published, or kept for later.
            tap.journal.close()
            tap.finish()
        room.exit_if_full()


@contextmanager
def _capturing(
    interface: str, bpf_filter: str | None, ending: Condition | None
) -> Iterator[tuple[Sniffer | CapturePipe, StopCondition]]:
    """Yield the source of packets, a pipe once its capture has begun, and the end of the recording."""
    duration = ending.number if ending is not None else None
    if interface != _PIPE:
        with Sniffer(interface, bpf_filter) as sniffer:
            yield sniffer, StopCondition(duration)
        return
    end = StopCondition(duration, _DRAIN_S)
    with CapturePipe(standard_input()) as pipe:
        while not pipe.has_begun(_LOOK_EVERY_S):
            if end.has_come:
                raise CaptureError(
                    f"no capture received from {pipe.name}: tcpdump only sends each packet at once with -U"
                )
        yield pipe, end


def _record(
    source: Sniffer | CapturePipe,
    recording: PacketRecording,
    view: LiveView,
    end: StopCondition,
    count: int | None,
    room: RecordingRoom,
    tap: TapSupervisor | None,
) -> None:
    """Record, show and publish packets to the end, at most `count`, while there is room."""
    recorder = recording.recorder
    recorder.set_on_full(lambda: view.show(recorder.commit()))
    is_over = False
    committed = time.monotonic()
    while not end.has_come and (count is None or recording.packets < count):
        now = time.monotonic()
        limit = _AT_ONCE if count is None else min(count - recording.packets, _AT_ONCE)
        try:
            packets = source.read(_LOOK_EVERY_S, limit)
        except EOFError:
            is_over = True
            break
        if packets:
            recording.take(packets)
        else:
            recording.expire(source.now_ns())
        if tap is not None:
            tap.look()
        if recorder.full or now - committed >= COMMIT_EVERY_S / 2:
            view.show(recorder.commit())
            committed = now
            if room.is_full(recorder):
                break
    view.show(recording.close(source.capture, is_over, source.dropped))
