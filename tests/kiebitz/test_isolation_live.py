"""A dissector that raises in a live recording: the other tables, and all bytes, are recorded."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, rows, running
from udp_relays import eventually

# Loaded by each Python process of the relay at its start.
PLANTING = """\
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN as dissector

def raising(call):
    def other(*args):
        if "evil" in repr(args):
            raise RuntimeError("planted")
        return call(*args)
    return other

{plant}
"""
PLANTS = {
    "codec": "dissector.codec.decode = raising(dissector.codec.decode)",
    "table": """\
make = dissector.table
def table(*args):
    made = make(*args)
    made.message = raising(made.message)
    return made
dissector.table = table""",
    "writer": "dissector.presentation.describe = raising(dissector.presentation.describe)",
}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("plant", PLANTS)
def test_all_bytes_and_the_other_table_are_recorded(
    plant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "sitecustomize.py").write_text(PLANTING.format(plant=PLANTS[plant]))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "planted"))
    database = tmp_path / "game.db"
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(4)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
            each.settimeout(PATIENCE_S)
        (evil, good), clients = sockets[:2], sockets[2:]
        addresses = [f"127.0.0.1:{server.getsockname()[1]}" for server in (evil, good)]
        ports = [free_port("udp"), free_port("udp")]
        options: list[str] = []
        for address, port in zip(addresses, ports, strict=True):
            options += ["-m", f"reverse:udp://{address}@{port}"]
            options += ["-d", f"udp.port=={address.partition(':')[2]},maexchen"]
        command = (*KIEBITZ, "relay", "-w", str(database), "-q", *options)
        stack.enter_context(running(*command, ready="listening on"))

        def register(name: str) -> None:
            for server, client, port in zip((evil, good), clients, ports, strict=True):
                word = b"evil" if server is evil and name == "second" else name.encode()
                client.sendto(b"REGISTER;" + word, ("127.0.0.1", port))
                _, address = server.recvfrom(1000)
                server.sendto(b"REGISTERED;0", address)
                client.recv(1000)

        for name in ("first", "second", "third"):
            register(name)
        eventually(lambda: rows(database, "SELECT count(*) FROM chunks") == [(12,)])
    of_good = f"WHERE s.server = '{addresses[1]}'"
    joined = "JOIN streams AS s ON s.id = stream_id"
    assert rows(database, f"SELECT count(*) FROM messages {joined} {of_good}") == [(6,)]
    ended = rows(database, f"SELECT s.server FROM diagnostics {joined} WHERE code = 'game-not-kept'")
    assert ended == [(addresses[0],)]
    assert rows(database, "SELECT ended_ns IS NOT NULL FROM sessions") == [(1,)]
    assert not [*tmp_path.glob(".*spool*")]
