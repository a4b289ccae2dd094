"""Names that attack terminals, and checks that what is written is harmless."""

from __future__ import annotations

import contextlib
import io
import json
import re
from xml.sax.saxutils import escape

from command import Done

from kiebitz.cli.main import run

NAMES = {
    "controls": "\x1b[2J\x1b]0;x\x07\x9b5m\x85\x08\u202e\u2066\u200d\ufeff\x7f",
    "markup": "[red]:smile:[/][link=file:///]{0.__class__}%s%n$(id)`id`<b>&amp;]]>",
    "piled up": "e" + "\u0301" * 3000,
    "formula": "=1+1",
}
"""Names that do something where they are not only shown."""
PLAYERS = {
    "maexchen": ("maexchen-head-tiny.pcap", "alice"),
    "schafkopf": ("schafkopf-1.3-badcard.pcap", "Falsch"),
    "catan": ("catan-yaks-lobby.pcap.gz", "King DirectHand (AI)"),
    "okey": ("okey-head-game-win.pcap.gz", "boran"),
    "cgml": ("cgml-tiny.pcap.gz", "wampaire"),
}
"""Protocol -> a capture and a player in it."""


def spelt(name: str, protocol: str) -> str:
    """Return a name as encoded in a message, without characters that cannot be."""
    if protocol == "catan":
        return json.dumps(name)[1:-1]
    if protocol == "cgml":
        # XML has no such letters.
        return escape("".join(letter for letter in name if letter >= " "))
    ends = {"maexchen": ";,:", "schafkopf": "\r", "okey": '\r" '}[protocol]
    return "".join(letter for letter in name if letter not in ends)


def is_harmless(text: str) -> bool:
    """Return whether nothing is in a text but what can be seen, line ends and the tabs of a listing."""
    return all(letter.isprintable() or letter in "\n\t" for letter in text) and "\u0301" * 9 not in text


class Terminal(io.TextIOWrapper):
    """A text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def on_a_terminal(*arguments: str) -> Done:
    """Run a command in this process as on a terminal."""
    written = io.BytesIO()
    out = Terminal(written, encoding="utf-8", newline="")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = run(arguments)
        out.flush()
    return Done(status, written.getvalue().decode(), "")


RICHS_OWN = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)|\r")
"""Colours, and what moves a progress bar. No name here holds these."""


PROGRESS = re.compile(r"(?:.*\x1b\[(?:2K|\?25[lh]|1A))+", re.DOTALL)
"""All up to the end of a progress bar."""


CODES = re.compile(RICHS_OWN.pattern + r"|\x1b\[\?1049[hl]|\x1b\[H|\x1b\[\d+A")
"""Control sequences that rich writes itself, also on a whole screen."""
WORDS = {"protocol", "transport", "direction", "severity", "kind", "action"}
"""Columns without whose words a database is read no further, or as one of an unknown protocol."""
CAPTURES_OF = {
    "maexchen": "maexchen-head-tiny.pcap",
    "schafkopf": "schafkopf-1.3-1human-tiny.pcap",
    "catan": "catan-yaks-lobby.pcap.gz",
    "okey": "okey-head-tiny.pcap.gz",
    "cgml": "cgml-tiny.pcap.gz",
}
