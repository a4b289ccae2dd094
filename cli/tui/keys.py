"""The keys of `kiebitz watch`: bindings, help and key line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from textual.binding import Binding


class Key(NamedTuple):
    """A key and its action.

    `key` is Textual's name, `shown` the name on screen and `plain` its ASCII form. `does` is the text of the
    help. `word` is the label in the key line, `by_hand` the label there while held messages are shown.
    """

    key: str
    action: str
    shown: str
    does: str
    word: str = ""
    plain: str = ""
    by_hand: str = ""


KEYS = (
    Key("q,Q,ctrl+d", "leave(0)", "q", "quit", "quit", by_hand="quit"),
    Key("space", "play", "Space", "play or pause", "play"),
    Key("left", "go('step', -1)", "←", "previous event; with Shift, ten back", "", "Left"),
    Key("right", "go('step', 1)", "→", "next event; with Shift, ten on", "event", "Right"),
    Key("shift+left", "go('step', -10)", "", ""),
    Key("shift+right", "go('step', 10)", "", ""),
    Key("pageup", "go('game', -1)", "PgUp", "start of this or the previous game"),
    Key("pagedown", "go('game', 1)", "PgDn", "next game", "game"),
    Key("home", "go('begin')", "Home", "first event"),
    Key("end", "go('end')", "End", "last event; follows a live recording", "end"),
    Key("plus,equals_sign", "faster", "+ -", "faster, slower"),
    Key("minus", "slower", "", ""),
    Key("n", "go('error', 1)", "n", "next error", "error"),
    Key("N", "go('error', -1)", "N", "previous error"),
    Key("slash", "filter", "/", "filter events and messages", "filter"),
    Key("t", "tables", "t", "all tables, or games at once; Enter enlarges one", "tables"),
    Key("a", "player", "a", "choose whose view is shown", "as"),
    Key("tab", "pane(1)", "Tab", "next pane", "pane", by_hand="pane"),
    Key("shift+tab", "pane(-1)", "", ""),
    Key("up", "move(-1)", "↑ ↓", "select a line of the pane, or a table", "", "Up Down"),
    Key("down", "move(1)", "", ""),
    Key("enter", "open", "Enter", "open the message of the line", "open", by_hand="forward"),
    Key("h", "held", "h", "held: Enter forwards, e edits, d drops, r answers, g forwards all"),
    Key("e", "by_hand('change')", "e", "", by_hand="edit"),
    Key("d", "by_hand('drop')", "d", "", by_hand="drop"),
    Key("r", "by_hand('answer')", "r", "", by_hand="answer"),
    Key("g", "by_hand('let-all-go')", "g", "", by_hand="forward all"),
    Key("shift+up", "scroll(-1)", "Shift ↑ ↓", "scroll the picture", "", "Shift Up Down"),
    Key("shift+down", "scroll(1)", "", ""),
    Key("y", "copy", "y", "copy a reference such as #31"),
    Key("question_mark", "help", "?", "all keys", "help", by_hand="help"),
    Key("ctrl+c", "leave(130)", "Ctrl-C", "quit"),
    Key("ctrl+z", "suspend_process", "Ctrl-Z", "suspend until fg"),
)

_PRIORITY = ["q", "?", "Space", "Right", "n", "/", "a", "Tab", "Enter", "t", "PgDn", "End"]
_HELD_PRIORITY = ["Enter", "e", "d", "r", "g", "?", "Tab", "q"]
"""Order in which keys get their place in the key line."""


def bindings() -> list[Binding]:
    """Return the keys as Textual's bindings."""
    return [
        Binding(key.key, f"app.{key.action}", key.does, show=False, priority=key.key == "ctrl+c")
        for key in KEYS
    ]


def help_lines(has_letters: bool) -> list[tuple[str, str]]:
    """Return each key with its description."""
    return [(_name(key, has_letters), key.does) for key in KEYS if key.does]


def key_line(width: int, has_letters: bool, by_hand: bool = False) -> str:
    """Return as many keys as fit into a line; with `by_hand` those that act on held messages."""
    first = _HELD_PRIORITY if by_hand else _PRIORITY

    def most_needed(key: Key) -> int:
        name = key.plain or key.shown
        return first.index(name) if name in first else len(first)

    worded = [key._replace(word=key.by_hand) if by_hand else key for key in KEYS]
    worded = [key for key in worded if key.word]
    chosen: set[Key] = set()
    for key in sorted(worded, key=most_needed):
        if len("  ".join(_words(worded, {*chosen, key}, has_letters))) <= width:
            chosen.add(key)
    return "  ".join(_words(worded, chosen, has_letters))


def _words(keys: list[Key], chosen: set[Key], has_letters: bool) -> Iterator[str]:
    return (f"{_name(key, has_letters)} {key.word}" for key in keys if key in chosen)


def _name(key: Key, has_letters: bool) -> str:
    return key.plain if key.plain and not has_letters else key.shown
