"""`kiebitz sniff`: records the game traffic that passes a network interface."""

from __future__ import annotations

import signal
import time

import click

from cli.catalog import compile_wanted
from cli.decode_as import decode_as_option, parse_decode_as
from cli.importing import PacketRecording
from cli.live import LiveView
from cli.plugins import tell_left_out
from cli.recording_options import database_option, summary
from proxy.sniff import Sniffer
from storage.recorder import COMMIT_EVERY_S, Recorder

_AT_ONCE = 1000
"""Packets taken before the next commit is thought of."""


class _DurationType(click.ParamType[float]):
    name = "duration"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        kind, colon, number = value.partition(":")
        try:
            seconds = float(number)
        except ValueError:
            seconds = -1.0
        if kind != "duration" or not colon or not seconds > 0:
            self.fail(f"'{value}' is not of the form duration:SECONDS, as in duration:60", param, ctx)
        return seconds


@click.command()
@click.option("-i", "interface", required=True, metavar="IFACE", help="The interface, as in lo or eth0.")
@click.option("-f", "bpf_filter", metavar="BPF", help="Capture filter, as tcpdump takes it.")
@database_option
@click.option(
    "-a", "duration", type=_DurationType(), metavar="duration:SECONDS", help="Stop after this time."
)
@click.option("-c", "count", type=click.IntRange(min=1), metavar="N", help="Stop after N packets.")
@decode_as_option
@click.option("-Y", "wanted", metavar="FILTER", help="Show only what meets this filter; all is recorded.")
@click.option("-q", "quiet", is_flag=True, help="Show nothing of what happens.")
def sniff(
    interface: str,
    bpf_filter: str | None,
    database: str,
    duration: float | None,
    count: int | None,
    decode_as: tuple[str, ...],
    wanted: str | None,
    quiet: bool,
) -> None:
    """Record the game traffic on a network interface, without standing in its way.

    \b
    Example:
      kiebitz sniff -i lo -f 'udp port 9000' -w game.db
    """
    forced = parse_decode_as(decode_as)
    filter_ = compile_wanted(wanted)
    tell_left_out()
    with Sniffer(interface, bpf_filter) as sniffer:
        started_ns = time.time_ns()
        source = f"{interface} {bpf_filter}" if bpf_filter else interface
        name = f"sniff {time.strftime('%Y-%m-%d %H:%M:%S')}"
        recorder = Recorder(database, "sniff", source, name=name, started_ns=started_ns, decode_as=forced)
        recording = PacketRecording(recorder, forced)
        view = LiveView(started_ns, filter_, quiet)
        click.echo(f"capturing on {interface}", err=True)
        stop = _StopSignal()
        end = time.monotonic() + duration if duration is not None else None
        committed = time.monotonic()
        while not stop.came and (count is None or recording.packets < count):
            now = time.monotonic()
            if end is not None and now >= end:
                break
            left = count - recording.packets if count is not None else None
            packets = sniffer.read(COMMIT_EVERY_S / 4, limit=min(left, _AT_ONCE) if left else _AT_ONCE)
            recording.take(packets)
            if not packets:
                recording.expire(time.time_ns())
            if recorder.full or now - committed >= COMMIT_EVERY_S / 2:
                view.show(recorder.commit())
                committed = now
        view.show(recording.close())
    click.echo(f"{recording.packets} packets, {summary(recorder)}", err=True)
    if sniffer.dropped:
        click.echo(
            f"kiebitz: {sniffer.dropped} packets came too fast and were dropped by the kernel", err=True
        )


class _StopSignal:
    """Whether SIGINT or SIGTERM has come: they end the session cleanly."""

    def __init__(self) -> None:
        self.came = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.came = True
