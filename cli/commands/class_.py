"""`kiebitz class`: a lesson with a relay for each group, recordings, the page, and a sheet of addresses."""

from __future__ import annotations

import os
import signal
import time

import click

from kiebitz.cli.options.companions import Companions
from kiebitz.cli.options.serving import Serving
from kiebitz.cli.terminal.console import show_line
from kiebitz.proxy.system.deferred_signals import TERMINATION_SIGNALS, signals_handled
from kiebitz.services.standard_streams import print_error_line
from kiebitz.services.wording import counted

_KEYS = "keys"
_SHEET = "sheet.html"
_WAIT_S = 0.5


@click.command("class")
@click.argument("plan_path", metavar="CLASS.toml", type=click.Path())
@click.option("--check", "checks_only", is_flag=True, help="Check the file and the ports, and exit.")
@click.option(
    "--sheet",
    "sheet_only",
    is_flag=True,
    help="Write the sheet of addresses and codes, to print it before the lesson, and exit.",
)
def class_(plan_path: str, checks_only: bool, sheet_only: bool) -> None:
    """Run a lesson: a relay for each group, the recordings, and the page with all tables.

    CLASS.toml names the groups, the ports at which their clients connect, and their servers. A server is an
    address, or a command that is started with the lesson, and again if it ends. The recordings are in one
    folder, with the page's keys, which stay valid, and with sheet.html, a sheet of addresses and codes to
    print. One group's trouble is that group's. Ctrl-C ends the lesson. The commands run with your rights:
    use only commands that you trust.

    \b
    Example:
      kiebitz class lesson.toml --check
      kiebitz class lesson.toml --sheet
      kiebitz class lesson.toml
    """
    from kiebitz.services.classroom.lesson import read_class

    plan = read_class(plan_path)
    if checks_only:
        for group in plan.groups:
            shown = f"{group.name}: port {group.listen[1]} -> {group.server_words}"
            show_line(f"{shown} ({group.protocol or 'the protocol is recognised'})")
        print_error_line(f"{plan_path}: {counted(len(plan.groups), 'group')}, nothing to complain about")
        return
    from kiebitz.cli.classroom.sheet import show_sheet, write_sheet
    from kiebitz.cli.web.access import kept_keys
    from kiebitz.cli.web.run import Link
    from kiebitz.services.classroom.lesson import Lesson

    keys, sheet = (os.path.join(plan.folder, name) for name in (_KEYS, _SHEET))
    link = Link(*plan.page, kept_keys(keys), plan.delay_s)
    write_sheet(plan, link, sheet)
    show_sheet(plan, link)
    print_error_line(f"the same to print: {sheet}")
    if sheet_only:
        return
    with (
        signals_handled(*TERMINATION_SIGNALS),
        Lesson(plan, lambda name, sentence: print_error_line(f"{name}: {sentence}")) as lesson,
        Companions(False, plan.page, Serving(delay_s=plan.delay_s, keys=keys)) as companions,
    ):
        try:
            lesson.wait_until_started()
            companions.start(plan.folder, lambda: None)
            while True:
                time.sleep(_WAIT_S)
        except KeyboardInterrupt:
            print_error_line("ending the lesson: everything is recorded first")
            # A second signal does not end the recordings in the middle.
            for number in TERMINATION_SIGNALS:
                signal.signal(number, signal.SIG_IGN)
