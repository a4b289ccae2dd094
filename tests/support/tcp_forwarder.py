"""A forwarder of TCP on the loopback, as a program: its own port, and the one that it forwards to."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress


async def _forward(port: int, to: int) -> None:
    async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        sink.close()

    async def accept(client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        try:
            source, sink = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            answers.close()
            return
        await asyncio.gather(pass_on(client, sink), pass_on(source, answers))

    async with await asyncio.start_server(accept, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_forward(*map(int, sys.argv[1:])))
