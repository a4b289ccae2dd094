"""Ports in use, as the system reports them: no traffic is sent, and nothing is said of other sockets."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest
from processes_and_rows import free_port

from kiebitz.dissectors.model import Transport
from kiebitz.proxy.system.ports_in_use import is_in_use

ADDRESSES = [
    (socket.AF_INET, "127.0.0.1"),
    (socket.AF_INET, "0.0.0.0"),
    (socket.AF_INET6, "::1"),
    (socket.AF_INET6, "::"),
]


@pytest.mark.parametrize("has_query", [True, False])
@pytest.mark.parametrize(("family", "address"), ADDRESSES)
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_socket_that_listens_is_found(
    transport: Transport, family: int, address: str, has_query: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_query:
        # As on systems that cannot be asked for single sockets.
        monkeypatch.delattr(socket, "AF_NETLINK")
    kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
    with socket.socket(family, kind) as server:
        server.bind((address, 0))
        port = server.getsockname()[1]
        if transport == "tcp":
            assert is_in_use(transport, port) is False
            server.listen()
        assert is_in_use(transport, port) is True
    assert is_in_use(transport, port) is False


@pytest.mark.parametrize("has_query", [True, False])
def test_a_connection_does_not_listen(has_query: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_query:
        monkeypatch.delattr(socket, "AF_NETLINK")
    with ExitStack() as held, socket.create_server(("127.0.0.1", 0)) as server:
        client = held.enter_context(socket.create_connection(server.getsockname()))
        held.enter_context(server.accept()[0])
        assert is_in_use("tcp", client.getsockname()[1]) is False
        assert is_in_use("tcp", server.getsockname()[1]) is True


def test_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_file(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.delattr(socket, "AF_NETLINK")
    monkeypatch.setattr("builtins.open", no_file)
    assert is_in_use("tcp", free_port("tcp")) is None
