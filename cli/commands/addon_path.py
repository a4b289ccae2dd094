"""`kiebitz addon-path`: where the script is that mitmproxy loads."""

from __future__ import annotations

from pathlib import Path

import click

from kiebitz.cli.terminal.console import show_line


@click.command("addon-path")
def addon_path() -> None:
    """Print the path of the script that shows and records games in mitmproxy.

    With it, mitmproxy (mitmdump, mitmweb) has one more view, Kiebitz: the messages of a game in a TCP or UDP
    flow, with their fields, what happened, and what is wrong with them. What passes is recorded: into
    kiebitz.db, another database (--set kiebitz_db=game.db), or none (--set kiebitz_db=).

    \b
    Example:
      mitmweb --mode reverse:udp://127.0.0.1:9000@9001 -s "$(kiebitz addon-path)"
    """
    show_line(str(Path(__file__).parent.with_name("mitm") / "addon.py"))
