"""`kiebitz sniff`: records the game traffic that passes a network interface, or comes through a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from kiebitz.cli.completion.network import complete_interface
from kiebitz.cli.live_view import LiveView
from kiebitz.cli.options.anonymizing import anonymize_option
from kiebitz.cli.options.companions import Companions, showing_options
from kiebitz.cli.options.conditions import Condition, ConditionType
from kiebitz.cli.options.decode_as import decode_as_option
from kiebitz.cli.options.recording import RecordingRoom, database_option, max_size_option
from kiebitz.cli.options.taps import publish_options, tapped, tapping
from kiebitz.cli.plugins import tell_left_out
from kiebitz.proxy.capture.live import Sniffer
from kiebitz.proxy.system.sudo import continue_as_invoking_user
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.services.anonymizing import anonymizer_if, pseudonyms_if
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.importing.losses import losses, print_losses
from kiebitz.services.importing.packets import PacketRecording
from kiebitz.services.recording.stop_conditions import StopCondition
from kiebitz.services.recording.summary import summary
from kiebitz.services.standard_streams import print_error_line, warn
from kiebitz.storage.read.conditions import compile_wanted
from kiebitz.storage.recording.disk_space import spare
from kiebitz.storage.recording.recorder import COMMIT_EVERY_S, Recorder

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter
    from kiebitz.dissectors.inspection.inspector import DecodeAs
    from kiebitz.proxy.capture.pipe import CapturePipe
    from kiebitz.services.publishing.supervisor import TapSupervisor

_AT_ONCE = 1000
"""Packets taken before the next commit is thought of."""

_LOOK_EVERY_S = COMMIT_EVERY_S / 4

_PIPE = "-"
"""Stands for standard input in place of an interface."""

_DRAIN_S = 2.0
"""So long the other program of a pipe may take to write what it still has when both are to end."""


@click.command()
@click.option(
    "-i",
    "interface",
    required=True,
    metavar="IFACE",
    shell_complete=complete_interface,
    help="The interface, as in lo or eth0; - is a capture that comes through standard input.",
)
@click.option("-f", "bpf_filter", metavar="BPF", help="Capture filter, as tcpdump takes it.")
@database_option
@max_size_option
@click.option(
    "-a",
    "ending",
    type=ConditionType({"duration": "SECONDS"}),
    metavar="duration:SECONDS",
    help="Stop after this time.",
)
@click.option("-c", "count", type=click.IntRange(min=1), metavar="N", help="Stop after N packets.")
@decode_as_option
@showing_options
@publish_options
@anonymize_option
def sniff(
    interface: str,
    bpf_filter: str | None,
    database: str,
    max_size: int | None,
    ending: Condition | None,
    count: int | None,
    decode_as: tuple[str, ...],
    wanted: str | None,
    quiet: bool,
    is_watched: bool,
    place: tuple[str, int] | None,
    place_of_tap: NatsUrl | None,
    tap_name: str | None,
    credentials: Path | None,
    is_anonymized: bool,
) -> None:
    """Record the game traffic on a network interface, without standing in its way.

    Another program may capture it, also on another machine: it writes pcap or pcapng into a pipe.

    \b
    Example:
      kiebitz sniff -i lo -f 'udp port 9000' -w game.db
      ssh pi sudo tcpdump -U -w - udp port 9000 | kiebitz sniff -i - -w game.db
    """
    if interface == _PIPE and bpf_filter is not None:
        raise click.UsageError(
            "-f is for an interface: what comes through a pipe is filtered where it is captured,"
            f" as in tcpdump -U -w - {bpf_filter!r} | kiebitz sniff -i -"
        )
    continue_as_invoking_user()
    duration = ending.number if ending is not None else None
    forced = parse_decode_as(decode_as)
    filter_ = compile_wanted(wanted)
    published = tapping(place_of_tap, tap_name, credentials, is_anonymized)
    tell_left_out()
    room = RecordingRoom(max_size)
    spare(database)
    # It takes its time to load, which --help does without.
    from kiebitz.services.recording.resume import recover

    recover(database)
    name = f"sniff {time.strftime('%Y-%m-%d %H:%M:%S')}"
    anonymizer = anonymizer_if(pseudonyms_if(is_anonymized), forced)
    with Companions(is_watched, place) as companions, tapped(published, database) as tap:
        asked = _Asked(
            begin=partial(Recorder, database, "sniff", name=name, decode_as=forced, anonymizer=anonymizer),
            forced=forced,
            duration=duration,
            count=count,
            room=room,
            wanted=filter_,
            quiet=quiet or is_watched,
            companions=companions,
            tap=tap,
        )
        if interface == _PIPE:
            _sniff_pipe(asked)
        else:
            _sniff_interface(interface, bpf_filter, asked)
        if tap is not None:
            # All is published, or kept for later.
            tap.journal.close()
            tap.finish()
        room.tell_if_full()


class _Asked(msgspec.Struct, frozen=True):
    """How packets are to be recorded, wherever they come from.

    `begin` makes the recorder. The end comes after `duration` seconds, after `count` packets, or when there
    is no more `room`. Lines are shown of all that is `wanted`, unless it is to be `quiet`. The `companions`
    show the table, and `tap` publishes.
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
    """Record the capture that comes through standard input, and say what was recorded."""
    # Packets mostly come from an interface.
    from kiebitz.proxy.capture.files import standard_input
    from kiebitz.proxy.capture.pipe import CapturePipe

    end = StopCondition(asked.duration, _DRAIN_S)
    with CapturePipe(standard_input()) as pipe:
        _await_capture(pipe, end)
        # Its time zero is that of its packets.
        recorder = asked.begin(_PIPE)
        print_error_line(f"reading a capture from {pipe.name}")
        recording, is_whole = _record(pipe, recorder, asked, end)
    print_error_line(f"{recording.packets} packets, {summary(recorder)}")
    print_losses(pipe.name, losses(recording.decoder, pipe.capture, is_whole))


def _sniff_interface(interface: str, bpf_filter: str | None, asked: _Asked) -> None:
    """Record what passes an interface, and say what was recorded."""
    with Sniffer(interface, bpf_filter) as sniffer:
        source = f"{interface} {bpf_filter}" if bpf_filter else interface
        recorder = asked.begin(source, started_ns=sniffer.now_ns())
        print_error_line(f"capturing on {interface}")
        recording, _ = _record(sniffer, recorder, asked, StopCondition(asked.duration))
    print_error_line(f"{recording.packets} packets, {summary(recorder)}")
    if sniffer.dropped:
        warn(f"{sniffer.dropped} packets came too fast and were dropped by the kernel")
    print_losses(interface, losses(recording.decoder))


def _await_capture(pipe: CapturePipe, ending: StopCondition) -> None:
    """Wait until a capture begins, so that nothing is recorded where none does. Raises CaptureError."""
    from kiebitz.proxy.capture.files import CaptureError

    while not pipe.has_begun(_LOOK_EVERY_S):
        if ending.has_come:
            raise CaptureError(
                f"no capture has come through {pipe.name}: tcpdump sends each packet at once only with -U"
            )


def _record(
    source: Sniffer | CapturePipe, recorder: Recorder, asked: _Asked, end: StopCondition
) -> tuple[PacketRecording, bool]:
    """Record, show and publish packets; also gives whether it ended because no more come."""
    count, tap = asked.count, asked.tap
    if tap is not None:
        tap.start()
    recording = PacketRecording(recorder, asked.forced, tap.items if tap is not None else None)
    view = LiveView(recorder, asked.wanted, asked.quiet)
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
        recording.take(packets)
        if not packets:
            recording.expire(source.now_ns())
        if tap is not None:
            tap.look()
        if recorder.full or now - committed >= COMMIT_EVERY_S / 2:
            view.show(recorder.commit())
            committed = now
            if asked.room.is_full(recorder):
                break
    view.show(recording.close())
    if end.was_signal:
        asked.companions.stop()
    return recording, is_over
