"""What the tests of mitmproxy's modes share: a game over TCP, who speaks it, and certificates."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from live import KIEBITZ, PATIENCE_S, Said, free_port, rows, running, speak
from maexchen_live import Player
from python_socks.sync import Proxy
from schafkopf_script import Script

from kiebitz.proxy.endpoints import endpoint_text


def game(*players: str) -> list[Said]:
    """A game of Schafkopf; its server speaks first."""
    script = Script(11, players)
    for modus in ("SAUSPIELherz", "HOCHZEIT", "SOLOgrasDU"):
        script.round(modus)
    script.leave()
    return [Said(step.client, step.direction, step.data) for step in script.steps]


@contextmanager
def listening(host: str = "127.0.0.1") -> Iterator[socket.socket]:
    """A game server's listening socket."""
    with socket.socket() as listener:
        listener.bind((host, 0))
        listener.listen(4096)
        listener.settimeout(PATIENCE_S)
        yield listener


def by_socks(port: int, server: tuple[str, int]) -> socket.socket:
    """A connection to `server` by way of the SOCKS proxy on a port of this machine."""
    return Proxy.from_url(f"socks5://127.0.0.1:{port}").connect(*server, timeout=PATIENCE_S)


def assert_recorded(database: Path, players: Sequence[Player]) -> None:
    """Each player has a stream, with every datagram that he sent and got."""
    for player in players:
        client = endpoint_text(player.address)
        recorded: dict[str, list[bytes]] = {"c2s": [], "s2c": []}
        for direction, data in rows(
            database,
            "SELECT direction, data FROM chunks c JOIN streams s ON s.id = c.stream_id"
            f" WHERE transport = 'udp' AND client = '{client}' ORDER BY c.id",
        ):
            recorded[direction].append(data)
        assert recorded == {"c2s": player.log.sent[player.server], "s2c": player.log.received[player.server]}


def relayed_plainly(database: Path, said: list[Said], bytewise: bool = False) -> None:
    """Record the conversations in the mode that is not mitmproxy's."""
    with listening() as listener:
        port = free_port("tcp")
        mode = f"reverse:tcp://127.0.0.1:{listener.getsockname()[1]}@{port}"
        with running(*KIEBITZ, "relay", "-m", mode, "-w", str(database), "-q", ready="listening on"):
            speak(said, listener, lambda: socket.create_connection(("127.0.0.1", port), PATIENCE_S), bytewise)


_SIGNS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """Issues certificates for 127.0.0.1; its own is in the file `path`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "authority.pem"
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        certificate = self._certificate(
            self._name,
            self._key,
            lambda made: made.add_extension(constraints, True).add_extension(_SIGNS, True),
        )
        self.path.write_bytes(certificate.public_bytes(Encoding.PEM))

    @contextmanager
    def serving(self) -> Iterator[ssl.SSLSocket]:
        """The listening socket of a server with a certificate; `live.accept` takes its connections."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server")])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        certificate = self._certificate(name, key, lambda made: made.add_extension(names, False))
        path = self._folder / "server.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        with listening() as plain, context.wrap_socket(plain, True, False) as listener:
            yield listener

    def _certificate(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        extend: Callable[[x509.CertificateBuilder], x509.CertificateBuilder],
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            # Who is strict about RFC 5280, as Python is from 3.13 on, asks for these.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False)
        )
        return extend(made).sign(self._key, hashes.SHA256())
