"""Between tap and collector: a server that rejects clients, is not trusted or is none, and a cut network."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import socket
import socketserver
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from command import kiebitz
from processes_and_rows import PATIENCE_S, free_port
from strength import a_few, every
from taps_and_nats import NEEDS_NATS, SUBJECT, Network, Program, at, network, place_at, refusal, seed, server

from kiebitz.dissectors.model import Chunk, Stream
from kiebitz.proxy.taps.jetstream import START_POSITION, Consumer, NatsConnection, ReceivedMessage
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.proxy.taps.publisher import BatchBuilder, Publisher
from kiebitz.proxy.taps.wire_format import Batch, TapError, decode

pytestmark = NEEDS_NATS

SECRET = "s3cret-of-alice"
NEEDED = "it requires credentials: give --nats-creds FILE"


def test_a_server_that_is_not_there_or_is_none_of_ours_is_reported_plainly(tmp_path: Path) -> None:
    assert refusal(at(free_port("tcp"))) == "Connection refused"
    with server(tmp_path, has_jetstream=False) as plain:
        assert refusal(at(plain.port)) == "it has no JetStream: start nats-server with -js"
        assert refusal(at(plain.port, is_tls=True)) == "it offers no TLS, which tls:// requires"


# A server that accepts some clients.


@pytest.mark.parametrize("kind", ["a password", "a token", "an nkey"])
def test_admission_depends_on_credentials(kind: str, tmp_path: Path) -> None:
    known, public = seed(tmp_path / "known.nk")
    stranger, _ = seed(tmp_path / "stranger.nk")
    asked = {
        "a password": f'user: alice, password: "{SECRET}"',
        "a token": f'token: "{SECRET}"',
        "an nkey": f"users = [ {{ nkey: {public} }} ]",
    }[kind]
    with server(tmp_path, f"authorization {{ {asked} }}") as nats:
        assert refusal(at(nats.port)) == NEEDED
        assert refusal(at(nats.port), stranger) == f"it does not accept the credentials in {stranger}"
        assert kind != "an nkey" or refusal(at(nats.port), known) is None


def test_a_jwt_with_its_seed_lets_in(tmp_path: Path) -> None:
    """As `nsc` writes it, for a server that trusts an operator."""
    nkeys = pytest.importorskip("nkeys", reason="nkeys is not installed")
    prefixes = {
        "operator": nkeys.PREFIX_BYTE_OPERATOR,
        "system": nkeys.PREFIX_BYTE_ACCOUNT,
        "account": nkeys.PREFIX_BYTE_ACCOUNT,
        "user": nkeys.PREFIX_BYTE_USER,
    }
    seeds = {who: nkeys.encode_seed(os.urandom(32), prefix) for who, prefix in prefixes.items()}
    pairs = {who: nkeys.from_seed(seed) for who, seed in seeds.items()}
    public = {who: pair.public_key.decode() for who, pair in pairs.items()}

    def token(who: str, issuer: str, kind: str, **claims: Any) -> str:
        told = {
            "iss": public[issuer],
            "sub": public[who],
            "iat": int(time.time()),
            "nats": {"type": kind, "version": 2, **claims},
        }
        parts = [
            urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
            for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, told)
        ]
        signature = urlsafe_b64encode(pairs[issuer].sign(b".".join(parts))).rstrip(b"=")
        return b".".join([*parts, signature]).decode()

    of_user = dict.fromkeys(("subs", "data", "payload"), -1)
    of_system = of_user | {"conn": -1}
    of_account = of_system | dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
    file = tmp_path / "alice.creds"
    file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{token('user', 'account', 'user', **of_user)}\n"
        "------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seeds['user'].decode()}\n------END USER NKEY SEED------\n"
    )
    accounts = "\n".join(
        f"{public[who]}: {token(who, 'operator', 'account', limits=limits)}"
        for who, limits in {"system": of_system, "account": of_account}.items()
    )
    trusted = (
        f"operator: {token('operator', 'operator', 'operator')}\nsystem_account: {public['system']}\n"
        f"resolver: MEMORY\nresolver_preload {{\n{accounts}\n}}\n"
    )
    with server(tmp_path, trusted) as nats:
        assert refusal(at(nats.port), file) is None
        assert refusal(at(nats.port)) == NEEDED


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


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("make", "words"), every(3, [pytest.param(*row, id=name) for name, row in CERTIFICATES.items()])
)
def test_a_certificate_that_is_not_trusted(
    make: Callable[[Authority, Authority], Path], words: str, tmp_path: Path, authorities: list[Authority]
) -> None:
    pem = make(*authorities)
    with server(tmp_path, f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}') as nats:
        for is_tls in (True, False):
            said = refusal(at(nats.port, is_tls)) or ""
            assert said.startswith("its certificate is not trusted: ")
            assert words in said


def test_with_tls_a_server_is_authenticated(tmp_path: Path, authorities: list[Authority]) -> None:
    pem = authorities[0].server()
    with server(tmp_path, f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}') as nats:
        assert refusal(at(nats.port, is_tls=True)) is None
        elsewhere = NatsUrl("localhost", nats.port, SUBJECT, is_tls=True)
        assert "is not valid for 'localhost'" in (refusal(elsewhere) or "")


def test_a_server_that_asks_for_a_certificate(tmp_path: Path, authorities: list[Authority]) -> None:
    pem = authorities[0].server()
    settings = f'cert_file: "{pem}", key_file: "{pem}", ca_file: "{authorities[0].path}", verify: true'
    with server(tmp_path, f"tls {{ {settings} }}") as nats:
        said = refusal(at(nats.port, is_tls=True)) or ""
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
    link = NatsConnection(at(4222, is_tls=True), None)
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


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.wfile.write(answer)
                self.rfile.read()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as peer:
        peer.daemon_threads = True
        threading.Thread(target=peer.serve_forever, daemon=True).start()
        try:
            yield peer.server_address[1]
        finally:
            peer.shutdown()


SAYS = "it is not a NATS server|it does not answer|the connection was lost|it offers no TLS"


@pytest.mark.full(but=1)
@pytest.mark.parametrize("answer", a_few(ANSWERS, ["garbage", "other values"]))
def test_servers_that_are_no_nats_servers(answer: str) -> None:
    with answering(ANSWERS[answer]) as port:
        for is_tls in (False, True):
            said = refusal(at(port, is_tls))
            assert re.match(SAYS, said or ""), said


def test_no_proof_is_sent_to_a_server_without_tls(tmp_path: Path) -> None:
    """An attacker in between could use the proof to log in as Kiebitz."""
    own, _ = seed(tmp_path / "alice.nk")
    told = {
        "server_id": "x",
        "version": "2.9.10",
        "max_payload": 1 << 20,
        "auth_required": True,
        "nonce": "abc",
    }
    heard: list[bytes] = []

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO " + json.dumps(told).encode() + b"\r\n")
        heard.append(await reader.read())
        writer.close()

    async def reach() -> None:
        async with await asyncio.start_server(ask, "127.0.0.1", 0) as listener:
            link = NatsConnection(at(listener.sockets[0].getsockname()[1], is_tls=True), own)
            with pytest.raises(TapError, match="it offers no TLS"):
                await link.open()
            await link.close()
            while not heard:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(reach(), PATIENCE_S))
    assert heard == [b""]


# The relay continues.


@pytest.mark.full
def test_a_relay_forwards_while_it_may_not_publish(
    tmp_path: Path, authorities: list[Authority], monkeypatch: pytest.MonkeyPatch
) -> None:
    pem, database, port = authorities[1].server(), tmp_path / "game.db", free_port("udp")
    own, _ = seed(tmp_path / "own.nk")
    monkeypatch.setenv("NATS_CREDS", str(own))
    with (
        server(tmp_path, f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}') as nats,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as target,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        target.bind(("127.0.0.1", 0))
        mode = f"reverse:udp://127.0.0.1:{target.getsockname()[1]}@{port}"
        place = place_at(nats.port).replace("nats:", "tls:")
        words = ("relay", "-m", mode, "-q", "-w", str(database), "--publish", place)
        with Program(tmp_path / "relay.log", *words) as relay:
            relay.until_says("listening on")
            for one in (target, client):
                one.settimeout(PATIENCE_S)
            client.sendto(b"hello", ("127.0.0.1", port))
            relay.until_says("cannot publish")
            client.sendto(b"hello again", ("127.0.0.1", port))
            assert [target.recv(99), target.recv(99)] == [b"hello", b"hello again"]
            assert relay.end() == 0
    assert relay.said.count("its certificate is not trusted") == 1
    assert "Traceback" not in relay.said
    secret = own.read_bytes()
    assert secret not in relay.said.encode()
    for path in tmp_path.glob("*game.db*"):
        assert path.is_dir() or secret not in path.read_bytes()


# A network that is cut.

CUT_S = 2.0
STREAM = Stream(1, "udp", "127.0.0.1:40176", "127.0.0.1:9000", 1)


def test_data_sent_during_a_network_cut_arrives_once_and_in_order(tmp_path: Path) -> None:
    """The way of both is cut, with something under way; a full run of the taps does it for a minute."""
    told: list[str] = []
    with server(tmp_path) as nats, network(nats.port) as way:
        arrived = asyncio.run(_cut(way, told.append))
    numbers = [number for batch in arrived for number in range(batch.first, batch.first + len(batch.items))]
    assert sorted(set(numbers)) == [*range(60)]
    assert numbers == sorted(numbers)
    assert len(told) == 4, told
    assert sum("is reachable again" in sentence for sentence in told) == 2


async def _cut(way: Network, tell: Callable[[str], None]) -> list[Batch]:
    """Publish batches one after another, and cut the way in the middle."""
    place = at(way.port)
    publisher = Publisher(
        place, None, "lab", on_notice=tell, backlog_path="a folder", may_wait=lambda lost_since: True
    )
    came: asyncio.Queue[list[ReceivedMessage]] = asyncio.Queue()
    consuming = asyncio.create_task(Consumer(place, None, START_POSITION, tell).run(came))
    batches = BatchBuilder("lab", "r1", 0)

    async def send(number: int) -> None:
        items = [Chunk(STREAM, "c2s", time.time_ns(), offset, b"x") for offset in range(number, number + 20)]
        await asyncio.wait_for(publisher.publish(batches.batches(items)), PATIENCE_S)

    found: list[Batch] = []

    async def receive(items: int) -> None:
        while not found or found[-1].first + len(found[-1].items) < items:
            found.extend(decode(one.data) for one in await asyncio.wait_for(came.get(), PATIENCE_S))

    try:
        await send(0)
        await receive(20)
        way.cut()
        sending = asyncio.create_task(send(20))
        await asyncio.sleep(CUT_S)
        await asyncio.to_thread(way.mend)
        await sending
        await send(40)
        await receive(60)
        return found
    finally:
        consuming.cancel()
        with suppress(asyncio.CancelledError):
            await consuming
        await publisher.close()
