"""`kiebitz interop` with programs that escape, replace its files, or publish a report with other paths."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command import kiebitz
from processes_and_rows import until

HOSTILE = """
import os
import socket
import sys
import time

kind, port, report = sys.argv[1:]
if kind == "daemon":
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            kept = bytearray(200_000_000)
            time.sleep(60)
        os._exit(0)
    os.wait()
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
peer.bind(("127.0.0.1", int(port)))
time.sleep(1)
if kind == "links":
    for name in ("programs", "badges"):
        os.symlink(os.path.dirname(report), os.path.join(report, name))
    os.mkfifo(os.path.join(report, "results.json"))
    os.symlink("/nowhere", os.path.join(report, "index.html"))
for number in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{number}/cmdline").read().split("\\0")
    except OSError:
        continue
    if not kind.startswith("database") or "relay" not in words or "-w" not in words:
        continue
    database = words[words.index("-w") + 1]
    if not database.startswith(report):
        # Another test's.
        continue
    print("replaces", database, flush=True)
    os.rename(database, database + ".old")
    if kind == "database-pipe":
        os.mkfifo(database)
    else:
        open(database, "w").write("something else")
time.sleep(60 if kind == "daemon" else 0.5)
sys.exit(1)
"""


def run(folder: Path, kind: str) -> tuple[list[dict[str, object]], Path]:
    """Run a plan with this server and one that is quiet; return the runs of both cells, and the report."""
    (folder / "hostile.py").write_text(HOSTILE)
    report = folder / "report"
    servers = "".join(
        f'[[server]]\nname = "{name}"\n'
        f'command = "{sys.executable} {folder / "hostile.py"} {name} {{port}} {report}"\n'
        for name in (kind, "quiet")
    )
    path = folder / "plan.toml"
    path.write_text(
        'protocol = "maexchen"\nplayers = 1\ntimeout = "30s"\nmemory = "150MB"\n'
        f'{servers}[[client]]\nname = "c"\ncommand = "sleep 60 {{port}}"\n'
    )
    done = kiebitz("interop", str(path), "-o", str(report), "--json")
    assert done.status == 3, done.err
    return [cell["attempts"][0] for cell in done.json["cells"]], report


def processes_of(folder: Path) -> list[str]:
    """Return the processes that have a folder in their command line."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = file.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in text:
            found.append(text)
    return found


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("daemon", "the server daemon crashed (more than 150,000,000 bytes of memory)"),
        ("database-pipe", "it was not recorded: "),
        ("database-text", "it was not recorded: "),
        ("links", "the server links ended (exit status 1) before any game began"),
    ],
)
def test_a_hostile_program_spoils_its_cell_only(kind: str, why: str, tmp_path: Path) -> None:
    (spoiled, other), report = run(tmp_path, kind)
    assert why in str(spoiled["why"])
    assert other["outcome"] == "refused"
    until(lambda: processes_of(tmp_path) == [], "nothing is left", 10)
    # Everything is in the report itself.
    for name in ("cells", "programs", "badges", "index.html", "results.json"):
        assert (report / name).exists()
        assert not (report / name).is_symlink()
    assert not (report / "results.json").is_fifo()
    assert {file.name for file in tmp_path.iterdir()} == {"hostile.py", "plan.toml", "report"}
    assert [file for file in report.iterdir() if file.name.startswith(".")] == []


def test_paths_in_the_results_of_a_stranger_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        'protocol = "maexchen"\nplayers = 1\ntimeout = "1s"\n'
        '[[server]]\nname = "it"\ncommand = "true {port}"\n[[client]]\nname = "it"\ncommand = "true {port}"\n'
    )
    report = tmp_path / "report"
    plan = str(tmp_path / "plan.toml")
    kiebitz("interop", plan, "-o", str(report))
    results = json.loads((report / "results.json").read_text())
    outside = str(tmp_path / "outside")
    for page, database in (
        (f"{outside}.html", f"{outside}.db"),
        ("../outside.html", "../outside.db"),
        ("cells/../../outside.html", "cells/../../outside.db"),
    ):
        results["cells"][0]["attempts"][0].update(page=page, database=database)
        (report / "results.json").write_text(json.dumps(results))
        done = kiebitz("interop", plan, "-o", str(report), "--resume", "--json")
        (attempt,) = done.json["cells"][0]["attempts"]
        assert (attempt["page"], attempt["database"]) == ("cells/it--it.html", "cells/it--it.db")
        assert {file.name for file in tmp_path.iterdir()} == {"plan.toml", "report"}
