"""An Okey server of `peers` with a race: `late_okey_server.py PORT`.

For a moment after a client has left, it closes the connection of every client that sends a line. In
p-vf/JavaTiles a thread that writes to the socket of a lost client ends the connection of its own client.
"""

from __future__ import annotations

import sys
from pathlib import Path

SUPPORT = Path(__file__).parent
sys.path[:1] = [str(SUPPORT), str(SUPPORT.parent.parent)]

from peers import loop  # noqa: E402 (the path is set first)
from peers.okey_server import OkeyServer  # noqa: E402 (likewise)
from peers.program import Link, Setup  # noqa: E402 (likewise)

UNNOTICED_S = 0.02
"""The duration of that moment in seconds."""


class LateOkeyServer(OkeyServer):
    """A server that closes the connections of others for a moment after a client has left."""

    _lost_at = float("-inf")

    def leave(self, link: Link) -> None:
        self._lost_at = self.now
        super().leave(link)

    def line(self, link: Link, line: bytes) -> None:
        if self.now < self._lost_at + UNNOTICED_S:
            self.lose(link)
            link.close()
        else:
            super().line(link, line)


if __name__ == "__main__":
    doors = loop.listen("127.0.0.1", int(sys.argv[1]), LateOkeyServer.doors, LateOkeyServer.transport)
    loop.Carrier(LateOkeyServer(Setup()), doors).run(60.0)
