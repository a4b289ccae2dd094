"""`kiebitz sniff`: record game traffic from a network interface or a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from kiebitz.cli.completion.network import complete_interface
from kiebitz.cli.live_view import LiveView
from kiebitz.cli.options.anonymizing import anonymize_option
from kiebitz.cli.options.companions import Companions, Showing, showing_options
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
from kiebitz.proxy.capture.live import Sniffer
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
    from kiebitz.dissectors.filters import Filter
    from kiebitz.dissectors.inspection.inspector import DecodeAs
    from kiebitz.proxy.capture.live import CapturePipe
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
    duration = ending.number if ending is not None else None
    forced = parse_decode_as(recording.decode_as)
    filter_ = compile_optional_filter(showing.wanted)
    publishing.check(recording.is_anonymized)
    room, database = recording.prepare(), recording.database
    name = recording.session_name("sniff")
    anonymizer = anonymizer_if(pseudonyms_if(recording.is_anonymized), forced)
    with showing.companions() as companions, publishing.tap(database) as tap:
        asked = _Asked(
            begin=partial(Recorder, database, "sniff", name=name, decode_as=forced, anonymizer=anonymizer),
            forced=forced,
            duration=duration,
            count=count,
            room=room,
            wanted=filter_,
            quiet=not showing.prints,
            companions=companions,
            tap=tap,
        )
        if interface == _PIPE:
            _sniff_pipe(asked)
        else:
            _sniff_interface(interface, bpf_filter, asked)
        if tap is not None:
            # Everything is published, or kept for later.
            tap.journal.close()
            tap.finish()
        room.exit_if_full()


class _Asked(msgspec.Struct, frozen=True):
    """The options of a recording, for all sources of packets.

    `begin` creates the recorder. Recording stops after `duration` seconds, after `count` packets, or when
    there is no more `room`. Only what matches `wanted` is printed, and nothing if `quiet`.
    """

    begin: Callable[..., Recorder]
    forced: DecodeAs
    duration: float | None
    count: int | None
    room: RecordingRoom
    wanted: Filter | None
    quiet: bool
    companions: Companions
    tap: TapSupervisor | None


def _sniff_pipe(asked: _Asked) -> None:
    # Not needed for interfaces.
    from kiebitz.proxy.capture.files import standard_input
    from kiebitz.proxy.capture.live import CapturePipe

    end = StopCondition(asked.duration, _DRAIN_S)
    with CapturePipe(standard_input()) as pipe:
        from kiebitz.proxy.capture.files import CaptureError

        while not pipe.has_begun(_LOOK_EVERY_S):
            if end.has_come:
                raise CaptureError(
                    f"no capture received from {pipe.name}: tcpdump only sends each packet at once with -U"
                )
        # The session starts with the first packet.
        recorder = asked.begin(_PIPE)
        print_error_line(f"reading a capture from {pipe.name}")
        recording = _record(pipe, recorder, asked, end)
    _report(pipe.name, recording)


def _sniff_interface(interface: str, bpf_filter: str | None, asked: _Asked) -> None:
    with Sniffer(interface, bpf_filter) as sniffer:
        source = f"{interface} {bpf_filter}" if bpf_filter else interface
        recorder = asked.begin(source, started_ns=sniffer.now_ns())
        print_error_line(f"capturing on {interface}")
        recording = _record(sniffer, recorder, asked, StopCondition(asked.duration))
    _report(interface, recording)


def _report(source: str, recording: PacketRecording) -> None:
    print_error_line(f"{recording.packets} packets, {summary(recording.recorder)}")
    print_losses(source, recording.losses)


def _record(
    source: Sniffer | CapturePipe, recorder: Recorder, asked: _Asked, end: StopCondition
) -> PacketRecording:
    """Record, show and publish packets."""
    count, tap = asked.count, asked.tap
    if tap is not None:
        tap.start()
    recording = PacketRecording(recorder, asked.forced, tap.items if tap is not None else None)
    view = LiveView(recorder, asked.wanted, asked.quiet)
    recorder.set_on_full(lambda: view.show(recorder.commit()))
    asked.companions.start(f"{recorder.path}:{recorder.session_id}", end.come)
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
            if asked.room.is_full(recorder):
                break
    view.show(recording.close(source.capture, is_over, source.dropped))
    if end.was_signal:
        asked.companions.stop()
    return recording
