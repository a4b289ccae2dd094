"""Benchmark of the UDP relay with alterations, compared with mitmdump and an equivalent script.

As in `relay_udp.py` every client registers at a Mäxchen server and waits for the answer. Kiebitz is measured
without an option that alters, with one that matches no message, and with one that replaces the name in each
REGISTER; mitmdump without a script, and with one that writes the same bytes.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from relay_udp import CLIENTS, UDP, recorded, register, serve
from relays import OURS, Passed, Relay, cell, compare, installed, table
from report import Report

NAME = "somebody-else"
SCRIPT = f"""
def udp_message(flow):
    message = flow.messages[-1]
    if message.content.startswith(b"REGISTER;"):
        message.content = b"REGISTER;{NAME}"
"""

ALL, SCRIPTED = f"{OURS}, all altered", "mitmdump, script"
COLUMNS = "round trips/s|p50 µs|p99 µs|added p50 µs|lost|forwarder µs each|peak MiB"


def _recorded_altered(connection: sqlite3.Connection) -> Passed:
    passed = recorded(connection)
    del passed["c2s", f"REGISTER;{NAME}".encode()]
    sent = connection.execute("SELECT original, count(*) FROM alterations GROUP BY original")
    return passed | {("c2s", original): count for original, count in sent}


def compared(report: Report, rounds: int) -> None:
    """Run with one client, which shows latency, and with many, which show throughput."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text(SCRIPT)
        altered = UDP._replace(recorded=_recorded_altered)
        relays = {
            "direct": Relay(UDP, "direct"),
            OURS: Relay(UDP, OURS),
            f"{OURS}, nothing met": Relay(UDP, OURS, ("--drop", 'msg == "ROLLED" && dice == "2,1"')),
            ALL: Relay(altered, OURS, ("--change", 'msg == "REGISTER"', f"name={NAME}")),
        }
        if "mitmdump" in installed(UDP):
            relays["mitmdump"] = Relay(UDP, "mitmdump")
            relays[SCRIPTED] = Relay(UDP, "mitmdump", ("-s", str(script)))
        for title, found in compare(relays, serve, register, CLIENTS, rounds):
            report.show(table(f"{title}, altering", found, COLUMNS))
            if SCRIPTED in relays:
                ours, theirs = (cell(found, name, "round trips/s") for name in (ALL, SCRIPTED))
                others = [{OURS: one[ALL], "mitmdump": one[SCRIPTED]} for one in found]
                ratio = cell(others, OURS, "× mitmdump's rate")
                report.promise(
                    f"{title}, altering all: round trips/s", ours, "–", None, f"{SCRIPTED} {theirs}", ratio
                )
