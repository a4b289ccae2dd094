"""Conversations of noughts and crosses."""

from __future__ import annotations

from file_conversations import Conversation
from kiebitz_noughts.dissector import NOUGHTS


def registered() -> Conversation:
    """Return a conversation in which Alice and Bob register, and a game begins."""
    talk = Conversation(NOUGHTS, "\r\n", 3333)
    for name in ("alice", "bob"):
        talk.send(f"{name}> HELLO {name}", f"{name}< WELCOME")
    return talk.send("*< START alice bob")
