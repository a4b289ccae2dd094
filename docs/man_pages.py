"""Manual pages of all commands, made from their help: python docs/man_pages.py FOLDER."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
from click_man.core import write_man_pages

from kiebitz.cli.main import COMMANDS, kiebitz
from kiebitz.dissectors.version import kiebitz_version


def main(folder: Path) -> None:
    """Write `kiebitz.1` and a page `kiebitz-COMMAND.1` for each command into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    context = click.Context(kiebitz)
    for name, sentence in (entry for section in COMMANDS.values() for entry in section.items()):
        command = kiebitz.get_command(context, name)
        assert command is not None
        command.short_help = sentence.rstrip(".")
        # click-man visits registered commands only; ours load on demand.
        kiebitz.add_command(command, name)
    kiebitz.short_help = "relay, record and inspect networked table games"
    write_man_pages("kiebitz", kiebitz, version=kiebitz_version(), target_dir=str(folder))
    for page in folder.glob("kiebitz*.1"):
        # A leading apostrophe would begin a macro (groff(7)); click-man leaves it as it is.
        text = re.sub(r"^'", r"\\&'", page.read_text(), flags=re.MULTILINE)
        # Commands and names of protocols are copied: no hyphens and no wider spaces in them.
        page.write_text(text.replace("\n", "\n.ad l\n.nh\n", 1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
