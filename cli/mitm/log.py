"""What Kiebitz says within mitmproxy, which owns the terminal: lines of its log, escaped here."""

from __future__ import annotations

import logging

from mitmproxy.log import ALERT

from kiebitz.dissectors.escaping import printable

_log = logging.getLogger("kiebitz")


def inform(sentence: str) -> None:
    """Say what goes as it should."""
    _say(logging.INFO, sentence)


def warn(sentence: str) -> None:
    """Say what does not."""
    _say(logging.WARNING, sentence)


def alert(sentence: str) -> None:
    """Say what is shown however little mitmproxy is to show."""
    _say(ALERT, sentence)


def _say(level: int, sentence: str) -> None:
    # The text may have a percent sign: it is no format.
    _log.log(level, "%s", printable(sentence))
