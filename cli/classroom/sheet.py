"""A sheet with the addresses of a class, to print and cut: where each group connects, and a code to scan."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import segno

from kiebitz.cli.terminal.console import is_terminal, show_line
from kiebitz.dissectors.escaping import printable
from kiebitz.proxy.relay.modes import endpoint
from kiebitz.services.output_files import opened

if TYPE_CHECKING:
    from kiebitz.cli.web.run import Link
    from kiebitz.services.classroom.lesson import ClassPlan

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Entry(NamedTuple):
    """A group's entry: its name, where its programs connect to, and the transports of its protocol."""

    name: str
    address: str
    transports: str


def entries(plan: ClassPlan, own_host: str) -> list[Entry]:
    """Return the entries of a plan's groups; `own_host` is this machine's address for others."""
    return [
        Entry(
            group.name,
            endpoint(own_host if group.listen[0] in ("0.0.0.0", "::") else group.listen[0], group.listen[1]),
            " or ".join(transport.upper() for transport in group.transports),
        )
        for group in plan.groups
    ]


def show_sheet(plan: ClassPlan, link: Link) -> None:
    """Print the addresses, and on a terminal the code of the page."""
    rows = entries(plan, link.host)
    width = max(len(row.address) for row in rows)
    for row in rows:
        show_line(f"{row.address:{width}}  {row.transports:10}  {row.name}")
    show_line(f"the page for all: {link.late_link()}")
    if is_terminal():
        from kiebitz.cli.terminal.scan_code import show_scan_code

        show_scan_code(link.late_link())


def write_sheet(plan: ClassPlan, link: Link, path: str) -> None:
    """Write the sheet as one HTML file, which loads nothing. Raises StorageError."""
    cards = "".join(_card(row, link.late_link()) for row in entries(plan, link.host))
    style = files("kiebitz.cli.classroom").joinpath("sheet.css").read_text()
    page = (
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f"<title>Addresses of the class</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>Addresses of the class</h1>\n{cards}</body>\n</html>\n"
    )
    with opened(path, "") as file:
        file.write(page.encode())


def _card(row: Entry, page: str) -> str:
    code = segno.make(f"{page}#group={quote(row.name)}", error="m", micro=False)
    return (
        f"<section>\n<h2 dir=auto>{_text(row.name)}</h2>\n"
        f"<p>Programs connect to<br><b>{_text(row.address)}</b><br>{_text(row.transports)}</p>\n"
        f"<p>Your table, in a browser:</p>\n{code.svg_inline(border=2, omitsize=True)}\n"
        f"<p class=link>All tables: {_text(page)}</p>\n</section>\n"
    )


def _text(text: str) -> str:
    return escape(printable(text))
