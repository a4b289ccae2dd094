"""Schafkopf on real sockets: relayed, sniffed and captured by tcpdump, in whole messages and single bytes."""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from live import free_port, recorded_three_ways, rows, story
from schafkopf_script import Script

PATIENCE_S = 10.0


def send(sock: socket.socket, data: bytes, bytewise: bool) -> None:
    if not bytewise:
        sock.sendall(data)
        return
    for at in range(len(data)):
        sock.sendall(data[at : at + 1])


def receive(sock: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = sock.recv(length - len(data))
        assert piece, "the connection was closed too early"
        data += piece
    return data


def speak(script: Script, listener: socket.socket, port: int, bytewise: bool) -> None:
    """Speak a script through the relay on `port`, both sides of it."""
    with ExitStack() as closing:
        clients: dict[str, socket.socket] = {}
        servers: dict[str, socket.socket] = {}
        for name in script.clients:
            client = closing.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
            server = closing.enter_context(listener.accept()[0])
            for sock in (client, server):
                sock.settimeout(PATIENCE_S)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            clients[name], servers[name] = client, server
        for step in script.steps:
            data = step.data
            ends = (clients[step.client], servers[step.client])
            sender, receiver = ends if step.direction == "c2s" else ends[::-1]
            send(sender, data, bytewise)
            assert receive(receiver, len(data)) == data
        for name in script.clients:
            servers[name].shutdown(socket.SHUT_WR)
            assert clients[name].recv(1) == b""
            clients[name].close()
            assert servers[name].recv(1) == b""


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole messages", "single bytes"])
def test_relay_sniff_and_tcpdump_tell_the_same_story(tmp_path: Path, bytewise: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("sniffing needs root")
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    script = Script(11, ("Anna", "Bärbel", "Carl"))
    for modus in (
        ("SAUSPIELgras", "WENZ", "NICHTS") if bytewise else ("SAUSPIELherz", "HOCHZEIT", "SI", "SOLOgrasDU")
    ):
        script.round(modus)
    script.leave()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(PATIENCE_S)
        server_port = listener.getsockname()[1]
        port = free_port("tcp")
        mode = f"reverse:tcp://127.0.0.1:{server_port}@{port}"
        with recorded_three_ways(tmp_path, f"tcp port {server_port}", mode) as databases:
            speak(script, listener, port, bytewise)
    told = {name: story(database) for name, database in databases.items()}
    assert told["relay"] == told["sniff"]
    assert told["relay"] == told["import"]
    assert len(told["relay"]["games"]) == len(script.rounds)
    assert len(rows(databases["relay"], "SELECT id FROM messages WHERE name != 'unreadable'")) == len(
        script.steps
    )
    assert rows(databases["relay"], "SELECT id FROM diagnostics WHERE severity != 'note'") == []
    for database in databases.values():
        assert {reason for (reason,) in rows(database, "SELECT close_reason FROM streams")} == {"closed"}
