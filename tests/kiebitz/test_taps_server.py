"""A server that rejects clients or is not trusted, and a cut network, between tap and collector.

A real nats-server, and both sides in this process.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from processes_and_rows import PATIENCE_S, free_port
from taps_and_nats import SUBJECT, Network, Server, needs_nats, network, server

from kiebitz.dissectors.model import Chunk, Stream
from kiebitz.proxy.taps.jetstream import (
    START_POSITION,
    Consumer,
    NatsConnection,
    ReceivedMessage,
    ensure_stream,
)
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.proxy.taps.publisher import BatchBuilder, Publisher
from kiebitz.proxy.taps.wire_format import Batch, TapError, decode

CUT_S = 2.0
STREAM = Stream(1, "udp", "127.0.0.1:40176", "127.0.0.1:9000", 1)


@pytest.fixture(autouse=True)
def _is_installed() -> None:
    needs_nats()


def at(port: int, is_tls: bool = False) -> NatsUrl:
    return NatsUrl("127.0.0.1", port, SUBJECT, is_tls)


def refusal(place: NatsUrl, credentials: Path | None = None) -> str | None:
    async def reach() -> None:
        link = NatsConnection(place, credentials)
        try:
            await ensure_stream(await link.open(), place)
        except Exception as error:
            raise link.failure(error) from error
        finally:
            await link.close()

    try:
        asyncio.run(reach())
    except TapError as error:
        return str(error)
    return None


def test_a_server_that_is_not_there_or_is_none_of_ours_is_reported_plainly(tmp_path: Path) -> None:
    assert refusal(at(free_port("tcp"))) == "Connection refused"
    plain = Server(tmp_path, has_jetstream=False)
    plain.start()
    try:
        assert refusal(at(plain.port)) == "it has no JetStream: start nats-server with -js"
        assert refusal(at(plain.port, is_tls=True)) == "it offers no TLS, which tls:// requires"
    finally:
        plain.kill()


def test_admission_depends_on_credentials(tmp_path: Path) -> None:
    nkeys = pytest.importorskip("nkeys", reason="nkeys is not installed")
    files = [tmp_path / "known.nk", tmp_path / "stranger.nk"]
    for file in files:
        file.write_bytes(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER))
    known, stranger = files
    public = nkeys.from_seed(known.read_bytes()).public_key.decode()
    with server(tmp_path, f"authorization {{ users = [ {{ nkey: {public} }} ] }}") as nats:
        assert refusal(at(nats.port), known) is None
        assert refusal(at(nats.port), stranger) == f"it does not accept the credentials in {stranger}"
        without = "it requires credentials: give --nats-creds FILE"
        assert refusal(at(nats.port)) == without


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
        assert refusal(at(nats.port)) == "it requires credentials: give --nats-creds FILE"


def test_with_tls_a_server_is_authenticated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / "ours", tmp_path / "strangers"]
    for folder in folders:
        folder.mkdir()
    ours, strangers = map(Authority, folders)
    pem = ours.server()
    with server(tmp_path, f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}') as nats:
        monkeypatch.setenv("SSL_CERT_FILE", str(ours.path))
        assert refusal(at(nats.port, is_tls=True)) is None
        elsewhere = NatsUrl("localhost", nats.port, SUBJECT, is_tls=True)
        assert "is not valid for 'localhost'" in (refusal(elsewhere) or "")
        monkeypatch.setenv("SSL_CERT_FILE", str(strangers.path))
        said = refusal(at(nats.port, is_tls=True)) or ""
        assert said.startswith("its certificate is not trusted: unable to get local issuer certificate")
        assert "SSL_CERT_FILE" in said


def test_no_proof_is_sent_to_a_server_without_tls(tmp_path: Path) -> None:
    """An attacker in between could use the proof to log in as Kiebitz."""
    nkeys = pytest.importorskip("nkeys", reason="nkeys is not installed")
    seed = tmp_path / "alice.nk"
    seed.write_bytes(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER))
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
            link = NatsConnection(at(listener.sockets[0].getsockname()[1], is_tls=True), seed)
            with pytest.raises(TapError, match="it offers no TLS"):
                await link.open()
            await link.close()
            while not heard:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(reach(), PATIENCE_S))
    assert heard == [b""]


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
