"""Programs of the game of `websocket_dice`.

`server PORT [--fault]` ends at an unknown message if it has the fault; `player PORT NAME` plays.
"""

from __future__ import annotations

import json
import os
import sys

from websocket_dice import play
from websockets.sync.server import ServerConnection, serve


def answer(connection: ServerConnection) -> None:
    """Answer a client until it leaves, or sends something unknown."""
    dice = 0
    for text in connection:
        try:
            kind = json.loads(text)["type"]
        except (ValueError, TypeError, KeyError):
            kind = None
        match kind:
            case "join":
                connection.send(json.dumps({"type": "welcome", "id": 1}))
            case "roll":
                dice = dice % 6 + 1
                connection.send(json.dumps({"type": "rolled", "id": 1, "dice": dice}))
            case _ if "--fault" in sys.argv:
                os._exit(1)
            case _:
                return


if __name__ == "__main__":
    role, port, *more = sys.argv[1:]
    if role == "player":
        play(int(port), more[0], 3)
    else:
        with serve(answer, "127.0.0.1", int(port)) as server:
            server.serve_forever()
