"""Work in proportion to the traffic: twice as many connections take twice as many steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from file_conversations import Conversation, dissector_of
from growth import growth_of

from kiebitz.dissectors.drafting.relations import find_broadcasts
from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.model import DIRECTIONS

HEAD = """\
protocol = "test"
port = 4711
[messages]
JOIN = "c: name=player"
JOINED = "s*: name=player < JOIN"
GIVEN = "s: id=integer name=player < JOIN"
ROLLED = "s*: name=player pips=1..6"
GONE = "s*: name=player"
"""
IDENTITIES = {
    "login": '[identity]\nlogin = "JOIN"\ngiven = "JOINED"\n',
    "left": '[identity]\nlogin = "JOIN"\nleft = ["GONE"]\n',
    "ids": '[identity]\nlogin = "JOIN"\ngiven = "GIVEN"\n',
}

LINEAR = 1.2
"""Maximum growth that counts as linear; quadratic work has 1.6 to 2.3."""


def tables(identity: str, is_ended: bool) -> Callable[[int], Callable[[], object]]:
    """Return a function that prepares a conversation with a number of clients."""
    dissector = dissector_of(HEAD + IDENTITIES[identity])

    def prepare(clients: int) -> Callable[[], object]:
        conversation = Conversation(dissector)
        for client in range(clients):
            name = f"p{client}"
            conversation.send(
                *(f"{name}{line} {name}" for line in ("> JOIN", "< JOINED", f"< GIVEN {client}"))
            )
            conversation.send(f"{name}< ROLLED {name} 3", f"{name}< GONE {name}")
            if is_ended:
                conversation.send(f"{name}.")
        return conversation.found

    return prepare


@pytest.mark.full(but=2)
@pytest.mark.parametrize("is_ended", [True, False], ids=["ended", "open"])
@pytest.mark.parametrize("identity", IDENTITIES)
def test_connections_of_a_protocol_file(identity: str, is_ended: bool) -> None:
    assert growth_of(tables(identity, is_ended), 60) < LINEAR


def test_broadcasts_of_many_clients_are_found() -> None:
    def prepare(clients: int) -> Callable[[], object]:
        messages: list[Message] = []
        for client in range(clients):
            name = f"p{client}".encode()
            for time_ns, direction in enumerate(DIRECTIONS, client * 1000):
                data = direction.encode() + name
                messages.append(Message(client, direction, time_ns, data, direction, order=len(messages)))
        return lambda: find_broadcasts(messages, ["server"] * clients)

    assert growth_of(prepare, 60) < LINEAR
