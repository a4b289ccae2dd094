"""Escaped messages in mitmproxy's log, as mitmproxy owns the terminal."""

from __future__ import annotations

import logging

from mitmproxy.log import ALERT

from kiebitz.dissectors.escaping import printable

_log = logging.getLogger("kiebitz")


def inform(sentence: str) -> None:
    """Log an information."""
    _say(logging.INFO, sentence)


def warn(sentence: str) -> None:
    """Log a warning."""
    _say(logging.WARNING, sentence)


def alert(sentence: str) -> None:
    """Log a message that is shown at any log level."""
    _say(ALERT, sentence)


def _say(level: int, sentence: str) -> None:
    # The text may contain percent signs.
    _log.log(level, "%s", printable(sentence))
