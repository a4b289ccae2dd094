"""An Okey server of `peers` that notices a client's end only after a moment: `late_okey_server.py PORT`.

Until then, whoever writes to that client loses their own connection, as in a server whose threads write to
one another's sockets.
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


class LateOkeyServer(OkeyServer):
    """A server that breaks the connections of others for a moment after one has ended."""

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
