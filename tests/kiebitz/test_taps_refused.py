from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from certificates import Authority
from command import kiebitz
from processes_and_rows import PATIENCE_S, free_port
from strength import a_few, every
from taps_and_nats import SUBJECT, Program, needs_nats, place_at, server

from kiebitz.proxy.taps.jetstream import NatsConnection, ensure_stream
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.proxy.taps.wire_format import TapError

SECRET = "s3cret-of-alice"
NKEY = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


@pytest.fixture(autouse=True)
def _is_installed() -> None:
    needs_nats()


def refusal(place: NatsUrl, credentials: Path | None = None) -> str:
    async def reach() -> None:
        link = NatsConnection(place, credentials)
        try:
            await ensure_stream(await link.open(), place)
        except Exception as error:
            raise link.failure(error) from error
        finally:
            await link.close()

    with pytest.raises(TapError) as raised:
        asyncio.run(asyncio.wait_for(reach(), PATIENCE_S))
    return str(raised.value)


def seed(path: Path) -> Path:
    nkeys = pytest.importorskip("nkeys", reason="nkeys is not installed")
    path.write_bytes(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER))
    return path


# A server that accepts no client.

AUTHORIZATIONS = {
    "a password": f'authorization {{ user: alice, password: "{SECRET}" }}',
    "a token": f'authorization {{ token: "{SECRET}" }}',
    "an nkey": f"authorization {{ users = [ {{ nkey: {NKEY} }} ] }}",
}


@pytest.mark.parametrize("authorization", AUTHORIZATIONS.values(), ids=AUTHORIZATIONS.keys())
def test_a_server_that_asks_for_the_name(authorization: str, tmp_path: Path) -> None:
    own = seed(tmp_path / "own.nk")
    with server(tmp_path, authorization) as nats:
        place = NatsUrl("127.0.0.1", nats.port, SUBJECT, is_tls=False)
        assert refusal(place) == "it requires credentials: give --nats-creds FILE"
        assert refusal(place, own) == f"it does not accept the credentials in {own}"


JWT = (
    "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n"
    "-----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n"
)
CREDENTIALS: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda path: None, "No such file"),
    "empty": (Path.touch, "these are not NATS credentials"),
    "a folder": (Path.mkdir, "is a directory"),
    "a pipe": (os.mkfifo, "it is a pipe or a device: name a file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "it is a pipe or a device: name a file"),
    "no text": (lambda path: path.write_bytes(b"\xff\xfe"), "it is not a text file"),
    "a password": (lambda path: path.write_text(SECRET), "these are not NATS credentials"),
    "marks alone": (lambda path: path.write_text(JWT.format("", "")), "these are not NATS credentials"),
    "half a seed": (
        lambda path: path.write_text(JWT.format("a.b.c", f"SU{SECRET}")),
        "these are not NATS credentials",
    ),
    "an escape": (
        lambda path: path.write_text(JWT.format("\x1b[2J", "SU" + "A" * 56)),
        "these are not NATS credentials",
    ),
}


@pytest.mark.parametrize(("write", "words"), CREDENTIALS.values(), ids=CREDENTIALS.keys())
def test_a_file_without_credentials(write: Callable[[Path], object], words: str, tmp_path: Path) -> None:
    path = tmp_path / "alice\x1b.creds"
    write(path)
    database = str(tmp_path / "game.db")
    publishing = ["relay", "-m", "reverse:udp://127.0.0.1:9@0", "--publish", place_at(4222)]
    for command in (publishing, ["collect", place_at(4222)]):
        done = kiebitz(*command, "--nats-creds", str(path), "-w", database)
        assert done.status in (1, 2)
        assert re.search(words, done.err), done.err
        assert len(done.err.splitlines()) <= 2
        assert not {SECRET, "\x1b", "Traceback"} & {*re.findall(f"{SECRET}|\x1b|Traceback", done.err)}
    assert not Path(database).exists()


@pytest.mark.parametrize("address", ["nats://alice:{}@HOST/class", "nats://HOST/class?pass={}", "{}@HOST"])
def test_a_password_in_an_address_is_refused_and_not_repeated(address: str, tmp_path: Path) -> None:
    done = kiebitz("collect", address.format(SECRET), "-w", str(tmp_path / "game.db"))
    assert (done.status, done.out) == (2, "")
    assert "give a file with --nats-creds" in done.err
    assert SECRET not in done.err


# A server that cannot be trusted.

CERTIFICATES: dict[str, tuple[Callable[[Authority, Authority], Path], str]] = {
    "of an unknown authority": (
        lambda ours, others: others.server(),
        "set SSL_CERT_FILE in the environment",
    ),
    "expired": (lambda ours, others: ours.server(days=-1), "expired (renew it, or set the clock"),
    "not valid yet": (lambda ours, others: ours.server(days=5), "not yet valid (set the clock"),
    "of another machine": (
        lambda ours, others: ours.server("127.0.0.9"),
        "(use the name in the server's certificate)",
    ),
}


@pytest.fixture
def authorities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Authority]:
    folders = [tmp_path / "ours", tmp_path / "others"]
    for folder in folders:
        folder.mkdir()
    made = [*map(Authority, folders)]
    monkeypatch.setenv("SSL_CERT_FILE", str(made[0].path))
    return made


@pytest.mark.parametrize(
    ("make", "words"), every(3, [pytest.param(*row, id=name) for name, row in CERTIFICATES.items()])
)
def test_a_certificate_that_is_not_trusted(
    make: Callable[[Authority, Authority], Path], words: str, tmp_path: Path, authorities: list[Authority]
) -> None:
    pem = make(*authorities)
    with server(tmp_path, f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}') as nats:
        for is_tls in (True, False):
            said = refusal(NatsUrl("127.0.0.1", nats.port, SUBJECT, is_tls))
            assert said.startswith("its certificate is not trusted: ")
            assert words in said


def test_a_server_that_asks_for_a_certificate(tmp_path: Path, authorities: list[Authority]) -> None:
    pem = authorities[0].server()
    settings = f'cert_file: "{pem}", key_file: "{pem}", ca_file: "{authorities[0].path}", verify: true'
    with server(tmp_path, f"tls {{ {settings} }}") as nats:
        said = refusal(NatsUrl("127.0.0.1", nats.port, SUBJECT, is_tls=True))
    # Which comes first, the alert or the end of the connection, is chance.
    assert said == "the connection was lost" or "requires a client certificate" in said


@pytest.mark.parametrize(
    "error",
    [
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        ConnectionAbortedError(errno.ECONNABORTED, "Software caused connection abort"),
        OSError("Multiple exceptions: [Errno 104] Connection reset by peer, [Errno 104] Connection reset"),
        ConnectionError("connection closed"),
    ],
    ids=repr,
)
def test_one_text_for_each_way_in_which_a_connection_ends(error: OSError) -> None:
    link = NatsConnection(NatsUrl("127.0.0.1", 4222, SUBJECT, is_tls=True), None)
    assert str(link.failure(error)) == "the connection was lost"


# What is no server of NATS.

INFO = b'INFO {"max_payload": 1048576}\r\n'
ANSWERS = {
    "nothing": b"",
    "garbage": bytes(range(256)) * 16,
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no json": b"INFO {\r\n",
    "other json": b"INFO []\r\n",
    "other values": b'INFO {"max_payload": "x", "tls_required": 7, "nonce": 3, "connect_urls": 5}\r\n',
    "long": b"INFO " + b"x" * (8 << 20),
    "an error": INFO + b"PONG\r\n-ERR '\x1b[2J'\r\n",
    "a message that is too long": INFO + b"PONG\r\nMSG x 1 99999999999999999999\r\n",
    "a header": INFO + b"PONG\r\nHMSG x 1 99 10\r\n\r\n\r\n",
}
_ANSWERING = """
import asyncio, sys
async def met(reader, writer):
    writer.write(answer)
    await reader.read(1 << 30)
async def main():
    one = await asyncio.start_server(met, "127.0.0.1", 0)
    print(one.sockets[0].getsockname()[1], flush=True)
    await one.serve_forever()
answer = sys.stdin.buffer.read()
asyncio.run(main())
"""


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _ANSWERING], stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(answer)
        process.stdin.close()
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


SAYS = "it is not a NATS server|it does not answer|the connection was lost|it offers no TLS"


@pytest.mark.full(but=1)
@pytest.mark.parametrize("answer", a_few(ANSWERS, ["garbage", "other values"]))
def test_servers_that_are_no_nats_servers(answer: str) -> None:
    with answering(ANSWERS[answer]) as port:
        for is_tls in (False, True):
            said = refusal(NatsUrl("127.0.0.1", port, SUBJECT, is_tls))
            assert re.match(SAYS, said), said


# The relay continues.


@pytest.mark.full
def test_a_relay_forwards_while_it_may_not_publish(
    tmp_path: Path, authorities: list[Authority], monkeypatch: pytest.MonkeyPatch
) -> None:
    pem, own, database = authorities[1].server(), seed(tmp_path / "own.nk"), tmp_path / "game.db"
    port = free_port("udp")
    monkeypatch.setenv("NATS_CREDS", str(own))
    with (
        server(tmp_path, f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}') as nats,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as target,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        target.bind(("127.0.0.1", 0))
        mode = f"reverse:udp://127.0.0.1:{target.getsockname()[1]}@{port}"
        place = place_at(nats.port).replace("nats:", "tls:")
        relay = Program(
            tmp_path / "relay.log", "relay", "-m", mode, "-q", "-w", str(database), "--publish", place
        )
        try:
            relay.until_says("listening on")
            for one in (target, client):
                one.settimeout(PATIENCE_S)
            client.sendto(b"hello", ("127.0.0.1", port))
            relay.until_says("cannot publish")
            client.sendto(b"hello again", ("127.0.0.1", port))
            assert [target.recv(99), target.recv(99)] == [b"hello", b"hello again"]
            assert relay.end() == 0
        finally:
            relay.kill()
    assert relay.said.count("its certificate is not trusted") == 1
    assert "Traceback" not in relay.said
    secret = own.read_bytes()
    assert secret not in relay.said.encode()
    for path in tmp_path.glob("*game.db*"):
        assert path.is_dir() or secret not in path.read_bytes()
