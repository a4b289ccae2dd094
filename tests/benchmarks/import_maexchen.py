"""How fast a capture is imported, beside tshark with the same protocol in Lua, and in how much memory.

    python tests/benchmarks/import_maexchen.py

Kiebitz writes a database with messages, events and state. tshark once writes flat fields, and once JSON with
all it knows of each packet (`-T ek`), which is nearer to what Kiebitz keeps; both go to /dev/null. A round
measures all three; the ratios are the medians of the rounds' ratios, since the machine's other load comes and
goes. Then captures of several lengths are imported, to see that memory does not grow with them.
"""

from __future__ import annotations

import shutil
import sqlite3
import statistics
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import click
from repeating import PACKETS, repeat
from rich.console import Console
from rich.table import Table
from running import KIEBITZ, Cost, run

LUA = Path(__file__).with_name("maexchen.lua")
FIELDS = ("msg", "name", "dice", "token", "round", "players", "reason", "scores")
KIEBITZ_NAME, FLAT, FULL = "kiebitz", "tshark, flat fields", "tshark -T ek"
LENGTHS = (1, 5, 20, 60)


def tshark(capture: Path, *output: str) -> list[str]:
    # -n: names of addresses and ports are nobody's question here.
    return ["tshark", "-n", "-X", f"lua_script:{LUA}", "-r", str(capture), *output]


def flat_fields() -> list[str]:
    """As much as tells which message it was, when, and between whom."""
    names = ["frame.time_epoch", "ip.src", "udp.srcport", "ip.dst", "udp.dstport"]
    names += [f"maexchen.{name}" for name in FIELDS]
    return ["-T", "fields", *(word for name in names for word in ("-e", name))]


def import_into(database: Path, capture: Path) -> Cost:
    """Import a capture into a new database."""
    for file in database.parent.glob(f"{database.name}*"):
        file.unlink()
    return run([*KIEBITZ, "import", str(capture), "-w", str(database)])


def recorded_messages(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        count: int = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    return count


def messages_for_tshark(capture: Path) -> int:
    # No dissector of tshark ever gets an empty datagram; to Kiebitz it is a message, a malformed one.
    condition = "maexchen || udp.length == 8"
    listed = subprocess.run(
        tshark(capture, "-T", "fields", "-e", "frame.number", "-Y", condition),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return listed.stdout.count(b"\n")


def compare(console: Console, folder: Path, repetitions: int, rounds: int) -> None:
    """Kiebitz and tshark on the same capture."""
    capture, database = folder / "long.pcap", folder / "long.db"
    packets = repeat(capture, repetitions)
    have_tshark = shutil.which("tshark") is not None
    if have_tshark:
        found = messages_for_tshark(capture)
        if found != packets:
            raise click.ClickException(f"tshark sees {found} messages in {packets} packets")
    else:
        console.print("tshark is not installed: nothing to compare with")
    measured: list[dict[str, Cost]] = []
    for _ in range(rounds):
        costs = {KIEBITZ_NAME: import_into(database, capture)}
        if have_tshark:
            costs[FLAT] = run(tshark(capture, *flat_fields()))
            costs[FULL] = run(tshark(capture, "-T", "ek"))
        measured.append(costs)
    found = recorded_messages(database)
    if found != packets:
        raise click.ClickException(f"Kiebitz recorded {found} messages of {packets} packets")
    console.print(comparison(measured, packets))
    larger = database.stat().st_size / capture.stat().st_size
    console.print(
        f"The capture has {capture.stat().st_size / 1e6:.1f} MB, the database {larger:.2f} times that.\n"
    )
    capture.unlink()
    database.unlink()


def comparison(measured: list[dict[str, Cost]], packets: int) -> Table:
    """The medians, and how many times a peer's CPU time is ours."""
    result = Table(title=f"Import of {packets:,} messages", title_justify="left")
    result.add_column("")
    for heading in ("messages/CPU s", "CPU s", "wall s", "peak MiB", "kiebitz is × as fast"):
        result.add_column(heading, justify="right")
    for name in measured[0]:
        mine = [costs[name] for costs in measured]
        faster = statistics.median(costs[name].cpu / costs[KIEBITZ_NAME].cpu for costs in measured)
        cpu = statistics.median(cost.cpu for cost in mine)
        result.add_row(
            name,
            f"{packets / cpu:,.0f}",
            f"{cpu:.2f}",
            f"{statistics.median(cost.wall for cost in mine):.2f}",
            f"{max(cost.peak for cost in mine):.0f}",
            f"{faster:.2f}",
        )
    return result


def memory(folder: Path) -> Table:
    """The peak of imports of ever longer captures."""
    result = Table(title="Memory by length", title_justify="left")
    for heading in ("messages", "capture MB", "peak MiB", "messages/CPU s", "database ÷ capture"):
        result.add_column(heading, justify="right")
    capture, database = folder / "growing.pcap", folder / "growing.db"
    for length in LENGTHS:
        packets = repeat(capture, length)
        cost = import_into(database, capture)
        size = capture.stat().st_size
        result.add_row(
            f"{packets:,}",
            f"{size / 1e6:.1f}",
            f"{cost.peak:.0f}",
            f"{packets / cost.cpu:,.0f}",
            f"{database.stat().st_size / size:.2f}",
        )
    return result


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", default=3, show_default=True, help="How often each is measured.")
@click.option(
    "--repetitions", default=20, show_default=True, help=f"Length compared on, times {PACKETS} messages."
)
@click.option("--only", type=click.Choice(["speed", "memory"]), help="One of the two parts.")
def main(rounds: int, repetitions: int, only: str | None) -> None:
    console = Console(width=110)
    with tempfile.TemporaryDirectory() as folder:
        if only != "memory":
            compare(console, Path(folder), repetitions, rounds)
        if only != "speed":
            console.print(memory(Path(folder)))


if __name__ == "__main__":
    main()
