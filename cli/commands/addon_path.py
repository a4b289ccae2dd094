"""`kiebitz addon-path`: print the path of the add-on for mitmproxy."""

from __future__ import annotations

from pathlib import Path

import click

from kiebitz.cli.terminal.console import show_line


@click.command("addon-path")
def addon_path() -> None:
    """Print the path of the add-on that shows and records games in mitmproxy.

    The add-on gives mitmproxy (mitmdump, mitmweb) a view named Kiebitz: the game messages of a TCP or UDP
    flow with fields, events and diagnostics. It records all flows into kiebitz.db, into another database
    (--set kiebitz_db=game.db), or not at all (--set kiebitz_db=).

    \b
    Example:
      mitmweb --mode reverse:udp://127.0.0.1:9000@9001 -s "$(kiebitz addon-path)"
    """
    show_line(str(Path(__file__).parent.with_name("mitm") / "addon.py"))
