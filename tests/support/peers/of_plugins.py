"""The programs and faults of protocols of plug-ins, as `planted.py` has those of the built-in ones."""

from __future__ import annotations

from peers.planted import SURVIVE, Programs, faults

PLUGIN_PEERS = Programs(("noughts-server", "noughts-player", "knobeln-server"))

PLUGIN_FAULTS = (
    *faults(
        "noughts-server",
        {
            "dies-on-bad-utf8": ("ends when a line is no UTF-8", SURVIVE),
            "dies-on-an-unknown-word": ("ends at a message it does not know", SURVIVE),
            "dies-on-a-missing-field": ("ends at a name without its field", SURVIVE),
            "dies-on-half-a-line": ("ends when a client ends in a line", SURVIVE),
            "waits-for-the-rest": ("serves no client while a line is unfinished", SURVIVE),
            "closes-all": ("ends all connections when one client errs", SURVIVE),
            "forgets-the-square": ("does not say which square is marked", "Game"),
            "makes-up-reasons": ("refuses with a reason that there is not", "Game"),
            "takes-taken-squares": ("lets a taken square be taken", "Game"),
            "lets-all-go-first": ("lets a player go whose turn it is not", "Game"),
            "lets-the-loser-win": ("says WON of the other player", "Game"),
        },
    ),
    *faults(
        "noughts-player",
        {
            "dies-on-bad-utf8": ("ends when a line is no UTF-8", SURVIVE),
            "dies-on-an-unknown-word": ("ends at a message it does not know", SURVIVE),
            "dies-on-a-missing-field": ("ends at a name without its field", SURVIVE),
            "puts-where-no-square-is": ("wants square 10", "Game"),
            "is-silent-when-it-is-its-turn": ("does not go on after the other", "Game"),
        },
    ),
    *faults(
        "knobeln-server",
        {
            "dies-on-bad-utf8": ("ends when a datagram is no UTF-8", SURVIVE),
            "dies-on-an-unknown-word": ("ends at a message it does not know", SURVIVE),
            "rolls-a-word": ("says pips that are no number", "Spiel"),
        },
    ),
)
