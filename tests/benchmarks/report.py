"""Report of the benchmarks: tables on the terminal, promised and measured values, and a file.

The file, RESULTS.md, has the machine, the promises, and all tables.
"""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

Part = Table | str


class Report:
    """Prints to a terminal what is shown, and keeps it."""

    def __init__(self) -> None:
        self._console = Console(width=120)
        self._parts: list[Part] = []
        self._machine = machine()
        self._promises = new_table("Promised and measured", "Kiebitz|peer|ratio|aim")
        self._promises.add_column("kept")

    def show(self, part: Part) -> None:
        """Print a table, or a paragraph."""
        self._console.print(part, highlight=False)
        self._parts.append(part)

    def promise(
        self, subject: str, ours: str, aim: str, kept: bool | None, peer: str = "–", ratio: str = "–"
    ) -> None:
        """Keep a measured figure, the peer's, and their ratio, the target, and whether it is met.

        `kept` is None where nothing is promised, or there was no peer to compare with.
        """
        was = {True: "yes", False: "no", None: "–"}[kept]
        self._promises.add_row(subject, ours, peer, ratio, aim, was)

    def limit(self, subject: str, measured: float, most: float, form: str = ".2f") -> None:
        """Keep a figure that is promised to be at most so much."""
        self.promise(subject, f"{measured:{form}}", f"≤ {most:,}", measured <= most)

    def end(self, path: Path | None) -> None:
        """Print the promised and measured values; write everything to a file of Markdown, if there is one."""
        self._console.print(self._promises, highlight=False)
        if path is not None:
            parts = [*INTRODUCTION, self._machine, self._promises, *self._parts]
            path.write_text("\n\n".join(map(_markdown, parts)) + "\n")
            self._console.print(f"Written to {path}.", highlight=False)


INTRODUCTION = (
    "# Results of the last full run",
    "Written by `make bench`; [README.md](README.md) says what is measured, and how to read it.",
)


def new_table(title: str, figures: str, texts: str | None = "") -> Table:
    """Return an empty table with these headings, separated by bars: of texts, and of figures on the right."""
    made = Table(title=title, title_justify="left")
    for heading in texts.split("|") if texts is not None else ():
        made.add_column(heading)
    for heading in figures.split("|"):
        made.add_column(heading, justify="right")
    return made


def _markdown(part: Part) -> str:
    if isinstance(part, str):
        return part
    title, part.title, part.box = part.title, None, box.MARKDOWN
    # As wide as it needs to be: a row of Markdown is one line.
    console = Console(file=io.StringIO(), width=10_000)
    console.print(part)
    assert isinstance(console.file, io.StringIO)
    head, _, *rows = (" ".join(line.split()) for line in console.file.getvalue().strip().split("\n"))
    rule = "|".join("---:" if column.justify == "right" else "---" for column in part.columns)
    return "\n".join([f"### {title}", "", head, f"|{rule}|", *rows])


def machine() -> str:
    """Return a paragraph: on what, with what and when this was measured."""
    cpus = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    tools = [
        _first_line("tshark", "--version"),
        _first_line("socat", "-V", place=1).partition(" on ")[0],
        _first_line(str(Path(sys.executable).with_name("mitmdump")), "--version"),
    ]
    commit = _first_line("git", "rev-parse", "--short", "HEAD")
    whose = "the system's" if sys.base_prefix == "/usr" else "not the system's"
    return (
        f"Measured on {time.strftime('%Y-%m-%d')}, commit {commit}: "
        f"{os.cpu_count()} cores ({cpus[0] if cpus else platform.machine()}), {memory:.0f} GiB of memory, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()} ({whose}), "
        f"SQLite {sqlite3.sqlite_version}; {'; '.join(tools)}. When it began, the machine had a load of "
        f"{os.getloadavg()[0]:.1f}."
    )


def _first_line(*command: str, place: int = 0) -> str:
    """Return the first line that a program writes, or another one."""
    if shutil.which(command[0]) is None:
        return f"no {Path(command[0]).name}"
    written = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\n")
    return " ".join(written[place].split())
