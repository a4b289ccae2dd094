"""A dice game over WebSocket: its protocol file, and a server and players of the library websockets."""

from __future__ import annotations

import itertools
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes_and_rows import PATIENCE_S
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

DICE = """
protocol = "wsdice"
framing = "websocket"
name = "type"

[messages]
join = "c: name=player"
welcome = "s: id=id < join"
roll = "c:"
rolled = "s: id=id dice=1..6 < roll"

[identity]
login = "join"
given = "welcome"
"""


def write_file(folder: Path) -> str:
    """Write the protocol file and return its path."""
    path = folder / "wsdice.toml"
    path.write_text(DICE)
    return str(path)


@contextmanager
def dice_server(encrypted: ssl.SSLContext | None = None) -> Iterator[int]:
    """Run a server, with TLS if it is given; yield its port."""
    numbers = itertools.count(1)

    def play(connection: ServerConnection) -> None:
        number, dice = next(numbers), itertools.cycle(range(1, 7))
        for text in connection:
            message = json.loads(text)
            if message["type"] == "join":
                connection.send(json.dumps({"type": "welcome", "id": number}))
            else:
                connection.send(json.dumps({"type": "rolled", "id": number, "dice": next(dice)}))

    with serve(play, "127.0.0.1", 0, ssl=encrypted) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join(PATIENCE_S)


def play(port: int, name: str, rolls: int, encrypted: ssl.SSLContext | None = None) -> list[int]:
    """Play as a client; return what the dice showed. The first message is sent in fragments."""
    scheme = "ws" if encrypted is None else "wss"
    with connect(f"{scheme}://127.0.0.1:{port}/game", ssl=encrypted, open_timeout=PATIENCE_S) as connection:
        text = json.dumps({"type": "join", "name": name})
        connection.send([text[:9], text[9:20], text[20:]])
        connection.recv(PATIENCE_S)
        dice = []
        for _ in range(rolls):
            connection.send(json.dumps({"type": "roll"}))
            dice.append(json.loads(connection.recv(PATIENCE_S))["dice"])
        assert connection.ping().wait(PATIENCE_S)
        return dice
