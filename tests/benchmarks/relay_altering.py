"""Benchmark of the UDP relay with alterations, compared with mitmdump and an equivalent script.

As in `relay_udp.py` every client registers at a Mäxchen server and waits for the answer. Kiebitz is measured
without an option that alters, with one that matches no message, and with one that replaces the name in each
REGISTER; mitmdump without a script, and with one that writes the same bytes.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from relay_udp import UDP, recorded, register, serve
from relays import (
    OURS,
    SECONDS,
    SPAWN,
    Kind,
    Load,
    Measured,
    OurRelay,
    Passed,
    free_port,
    median_of,
    other_relay,
    present,
    process,
)
from report import Report, new_table
from rich.table import Table

CLIENTS = (1, 32)
NAME = "somebody-else"

MEETS_NOTHING = ("--drop", 'msg == "ROLLED" && dice == "2,1"')
MEETS_ALL = ("--change", 'msg == "REGISTER"', f"name={NAME}")

SCRIPT = f"""
def udp_message(flow):
    message = flow.messages[-1]
    if message.content.startswith(b"REGISTER;"):
        message.content = b"REGISTER;{NAME}"
"""

PLAIN, NOTHING, ALL = OURS, f"{OURS}, nothing met", f"{OURS}, all altered"
OTHERS = ("mitmdump", "mitmdump, script")


def _recorded_altered(connection: sqlite3.Connection) -> Passed:
    passed = recorded(connection)
    del passed["c2s", f"REGISTER;{NAME}".encode()]
    sent = connection.execute("SELECT original, count(*) FROM alterations GROUP BY original")
    return passed | {("c2s", original): count for original, count in sent}


ALTERED = Kind(UDP.transport, UDP.socat, UDP.finished, _recorded_altered)


def compared(report: Report, rounds: int) -> None:
    """Run with one client, which shows latency, and with many, which show throughput."""
    server = free_port("udp")
    with (
        process(serve, server),
        SPAWN.Pool(1) as pool,
        tempfile.TemporaryDirectory() as folder,
    ):
        script = Path(folder, "script.py")
        script.write_text(SCRIPT)

        def put(port: int, clients: int) -> Load:
            load: Load = pool.apply(register, (port, clients, SECONDS))
            return load

        def measured(name: str, clients: int) -> Measured[Load]:
            load = partial(put, clients=clients)
            if name in OTHERS:
                options: tuple[str, ...] = ("-s", str(script)) if name == OTHERS[1] else ()
                with other_relay("mitmdump", UDP, server, *options) as port:
                    return Measured(load(port))
            if name == "direct":
                return Measured(load(server))
            options = {PLAIN: (), NOTHING: MEETS_NOTHING, ALL: MEETS_ALL}[name]
            kind = ALTERED if name == ALL else UDP
            with (
                tempfile.TemporaryDirectory() as place,
                OurRelay(Path(place), kind, server, *options) as relay,
            ):
                return relay.measure(load)

        every = ["direct", PLAIN, NOTHING, ALL, *(OTHERS if "mitmdump" in present() else ())]
        for clients in CLIENTS:
            found = [{name: measured(name, clients) for name in every} for _ in range(rounds)]
            title = f"UDP relay, {clients} client{'s' if clients > 1 else ''}, altering"
            report.show(_table(title, found))
            _promise(report, title, found)


def _table(title: str, found: Sequence[dict[str, Measured[Load]]]) -> Table:
    result = new_table(title, "round trips/s|p50 µs|p99 µs|added p50 µs|lost|forwarder µs each|peak MiB")
    for name in found[0]:
        mine = [one[name] for one in found]
        costs = [(one.recording, one.load.messages) for one in mine if one.recording is not None]
        result.add_row(
            name,
            f"{median_of(found, name, 'rate'):,.0f}",
            f"{median_of(found, name, 'p50'):,.1f}",
            f"{median_of(found, name, 'p99'):,.1f}",
            f"{median_of(found, name, 'p50') - median_of(found, 'direct', 'p50'):,.1f}",
            str(sum(one.load.lost for one in mine)),
            f"{statistics.median(cost.forwarder / many * 1e6 for cost, many in costs):.1f}" if costs else "–",
            f"{statistics.median(cost.peak for cost, _ in costs):.0f}" if costs else "–",
        )
    return result


def _promise(report: Report, title: str, found: Sequence[dict[str, Measured[Load]]]) -> None:
    if OTHERS[1] not in found[0]:
        return
    ratios = [one[ALL].load.rate / one[OTHERS[1]].load.rate for one in found]
    report.promise(
        f"{title} all: round trips/s",
        f"{median_of(found, ALL, 'rate'):,.0f}",
        f"mitmdump, script {median_of(found, OTHERS[1], 'rate'):,.0f}",
        f"{statistics.median(ratios):,.2f}",
        "–",
        None,
    )
