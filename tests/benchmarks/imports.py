"""Benchmark of imports compared with tshark and a dissector for the protocol: time and memory.

Each build of Kiebitz writes a database with messages, events and state. tshark has a dissector in Lua, and
for Catan also its own of JSON. With each it writes JSON with all details of each packet (`-T ek`), the
closest equivalent to Kiebitz's database, and then flat fields to a file, whose messages are counted. In a
round each peer runs once, and Kiebitz before and after all of them, since other load on the machine varies.
Then a short and a long capture are imported, to check that memory does not grow with the length.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import click
import msgspec
from repeating import CATAN, CGML, MAEXCHEN, MAEXCHEN_OF_THREE, OKEY, SCHAFKOPF, Recording, repeat
from report import Report, new_table
from rich.table import Table
from running import BUILDS, Cost, count, import_into, run

REPETITIONS = 20

KIEBITZ_NAME = next(iter(BUILDS))
AS_MUCH = "-T ek"
"""The tshark output that is as detailed as Kiebitz's database."""

FLAT = "flat fields"
MIN_RATIOS = {AS_MUCH: 5, FLAT: 1.5}
"""Output of tshark -> promised ratio to its messages per CPU second."""
LENGTHS = (1, 60)

Measured = Mapping[str, Sequence[Cost]]
"""Program -> what each of its runs cost."""

_PEERS_FIRST = 5
"""Index of the peer's first flat field; time, addresses and ports precede it."""


class Peer(msgspec.Struct, frozen=True):
    """tshark with a dissector for the protocol: the options that give it one, and the fields to write.

    In the first field's values, separated by semicolons, `one_message` matches once for each message.
    """

    name: str
    options: tuple[str, ...]
    fields: tuple[str, ...]
    one_message: str


class Subject(msgspec.Struct, frozen=True):
    """A protocol, by the first word of the title, and the capture to import.

    `only_kiebitz` is the number of the recording's messages that no dissector of tshark recognizes. A short
    recording is repeated `times` as often as the others, so that start-up time does not dominate.
    """

    title: str
    recording: Recording
    only_kiebitz: int = 0
    times: int = 1

    def peers(self) -> list[Peer]:
        """Return tshark's dissectors for the protocol."""
        protocol = self.title.split()[0]
        options = ("-X", f"lua_script:{Path(__file__).with_name(protocol)}.lua")
        # -G comes first.
        command = ["tshark", "-G", "fields", *options]
        told = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        fields = re.findall(rf"^F\t[^\t]*\t({protocol}\.\S+)", told, re.MULTILINE)
        in_lua = Peer("tshark, Lua", options, tuple(fields), "[^;\n]+")
        return [in_lua, ITS_OWN_JSON] if protocol == "catan" else [in_lua]


# tshark's own dissector of JSON accepts all objects of a segment, but never reassembles segments; in this
# recording no object needs that. These two fields are the least that contain as much as the columns in Lua:
# each value with its names, and the names alone, since some messages have no value. Names and values in
# separate fields cost as much and lose their association; the compact form costs more.
ITS_OWN_JSON = Peer(
    "tshark, its JSON",
    ("-d", "tcp.port==6789,json"),
    ("json.path", "json.path_with_value"),
    "(?<![^;])/[^/;\n]+(?=[;\n])",
)

SUBJECTS = (
    # tshark passes empty datagrams to no dissector.
    Subject("maexchen", MAEXCHEN, only_kiebitz=2),
    # With fewer players there are fewer copies of broadcasts: 43 events for 100 messages instead of 25.
    Subject("maexchen of three", MAEXCHEN_OF_THREE, times=4),
    # A !BEENDEN that its sender has not ended: tshark waits for the rest.
    Subject("schafkopf", SCHAFKOPF, only_kiebitz=1),
    Subject("catan", CATAN),
    Subject("okey", OKEY, times=8),
    Subject("cgml", CGML),
)


def tshark(peer: Peer, capture: Path, *output: str) -> list[str]:
    # -n: no name resolution.
    return ["tshark", "-n", *peer.options, "-r", str(capture), *output]


def flat_fields(subject: Subject, peer: Peer) -> list[str]:
    """Return the options for flat fields that identify a message, its time and its endpoints."""
    transport = "udp" if subject.title.startswith("maexchen") else "tcp"
    names = ["frame.time_epoch", "ip.src", f"{transport}.srcport", "ip.dst", f"{transport}.dstport"]
    names += peer.fields
    return ["-T", "fields", "-E", "aggregator=;", *(word for name in names for word in ("-e", name))]


def messages_in(written: Path, peer: Peer) -> int:
    """Return the number of messages in flat fields: the values in the peer's first field of each line."""
    # Line by line: whatever this process has in memory, the measured ones seem to have at their peak.
    with written.open(errors="replace") as lines:
        return sum(len(re.findall(peer.one_message, line.split("\t")[_PEERS_FIRST] + "\n")) for line in lines)


def compare(report: Report, folder: Path, subject: Subject, repetitions: int, rounds: int) -> None:
    """Kiebitz and its peers on the same capture."""
    capture, database, written = folder / "long.pcap", folder / "long.db", folder / "flat"
    packets = repeat(capture, repetitions, subject.recording)
    messages = repetitions * subject.recording.messages
    peers = subject.peers() if shutil.which("tshark") is not None else []
    if not peers:
        report.show("tshark is not installed: nothing to compare with.")
    measured: defaultdict[str, list[Cost]] = defaultdict(list)
    for _ in range(rounds):
        for build in BUILDS:
            measured[build].append(import_into(database, capture, build))
        for peer in peers:
            measured[f"{peer.name}, {AS_MUCH}"].append(run(tshark(peer, capture, "-T", "ek")))
            flat = tshark(peer, capture, *flat_fields(subject, peer))
            measured[f"{peer.name}, {FLAT}"].append(run(flat, written=written))
            found = messages_in(written, peer) + repetitions * subject.only_kiebitz
            if found != messages:
                raise click.ClickException(f"{peer.name} sees {found} of {messages} messages")
        for build in reversed(BUILDS):
            measured[build].append(import_into(database, capture, build))
    found = count(database)
    if found != messages:
        raise click.ClickException(f"Kiebitz recorded {found} of {messages} messages")
    title = f"Import of {messages:,} messages of {subject.title} in {packets:,} packets"
    report.show(comparison(title, measured, messages, packets))
    for peer in peers:
        columns = ", ".join(flat_fields(subject, peer)[5::2])
        report.show(f"The flat fields of {peer.name} are {columns}.")
    larger = database.stat().st_size / capture.stat().st_size
    report.show(
        f"The capture has {capture.stat().st_size / 1e6:.1f} MB, the database {larger:.2f} times that."
    )
    promises(report, subject, measured, messages, larger)
    for file in (capture, database, written):
        file.unlink(missing_ok=True)


def promises(report: Report, subject: Subject, measured: Measured, messages: int, larger: float) -> None:
    """Add the promises about an import: speed relative to each peer, size."""
    title = f"Import, {subject.title}"
    cpu = {name: median_cpu(costs) for name, costs in measured.items()}
    for build, name in product(BUILDS, cpu):
        if name not in BUILDS:
            ratio = cpu[name] / cpu[build]
            least = next(least for output, least in MIN_RATIOS.items() if name.endswith(output))
            report.promise(
                f"{title}, {build}: messages/CPU s",
                f"{messages / cpu[build]:,.0f}",
                f"≥ {least}",
                ratio >= least,
                f"{name} {messages / cpu[name]:,.0f}",
                f"{ratio:.2f}",
            )
    report.limit(f"{title}: database ÷ capture", larger, 3)


def median_cpu(costs: Sequence[Cost]) -> float:
    """Return a program's CPU seconds."""
    return statistics.median(cost.cpu for cost in costs)


def comparison(title: str, measured: Measured, messages: int, packets: int) -> Table:
    """Return the medians, and how many times a peer's CPU time is ours."""
    result = new_table(title, "messages/CPU s|packets/CPU s|CPU s|wall s|peak MiB|kiebitz is × as fast")
    ours = median_cpu(measured[KIEBITZ_NAME])
    for name, mine in measured.items():
        cpu = median_cpu(mine)
        result.add_row(
            name,
            f"{messages / cpu:,.0f}",
            f"{packets / cpu:,.0f}",
            f"{cpu:.2f}",
            f"{statistics.median(cost.wall for cost in mine):.2f}",
            f"{max(cost.peak for cost in mine):.0f}",
            f"{cpu / ours:.2f}",
        )
    return result


def memory(report: Report, folder: Path, subject: Subject) -> None:
    """Memory, of both processes together, and use of the second core, in imports of ever longer captures."""
    result = new_table(
        f"Memory by length, {subject.title}",
        "messages|packets|capture MB|peak MiB|messages/CPU s|wall s ÷ CPU s|database ÷ capture",
        None,
    )
    capture, database = folder / "growing.pcap", folder / "growing.db"
    peak = share = 0.0
    for length in LENGTHS:
        packets = repeat(capture, length, subject.recording)
        messages = length * subject.recording.messages
        cost = import_into(database, capture)
        size = capture.stat().st_size
        peak = max(peak, cost.peak)
        share = cost.wall / cost.cpu
        result.add_row(
            f"{messages:,}",
            f"{packets:,}",
            f"{size / 1e6:.1f}",
            f"{cost.peak:.0f}",
            f"{messages / cost.cpu:,.0f}",
            f"{share:.2f}",
            f"{database.stat().st_size / size:.2f}",
        )
    report.show(result)
    # Of the longest: the start and the indexes take one core.
    report.limit(f"Import, {subject.title}, {messages:,} messages: wall s ÷ CPU s", share, 0.6)
    report.limit(f"Import, {subject.title}, any length: peak MiB", peak, 250, ".0f")


def show_builds(report: Report) -> None:
    """Show the version of each build, and the size of its files as compressed in a wheel."""
    table = new_table("Builds", "MB compressed", "|version")
    for build, command in BUILDS.items():
        version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
        size = subprocess.run([*command[:-2], "-c", _SIZE], capture_output=True, text=True, check=True).stdout
        table.add_row(build, " ".join(version.split()), f"{int(size) / 1e6:.1f}")
    report.show(table)


_SIZE = """import os, zlib, kiebitz
files = (os.path.join(at, name) for at, _, names in os.walk(kiebitz.__path__[0], followlinks=True)
         if not at.endswith("__pycache__") for name in names)
print(sum(len(zlib.compress(open(file, "rb").read())) for file in files))"""


def imported(report: Report, rounds: int) -> None:
    """Measure Kiebitz and its peers on a long capture, then Kiebitz alone on ever longer ones."""
    show_builds(report)
    for subject in SUBJECTS:
        with tempfile.TemporaryDirectory() as folder:
            compare(report, Path(folder), subject, REPETITIONS * subject.times, rounds)
            memory(report, Path(folder), subject)
