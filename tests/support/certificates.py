"""Certificates of an authority of the tests' own, for servers at 127.0.0.1."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from processes_and_rows import PATIENCE_S

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

    def server(self, address: str = "127.0.0.1", days: int = 1) -> Path:
        """Make a file with the key and the certificate of a server, valid until in `days` days."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server")])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        certificate = self._certificate(name, key, lambda made: made.add_extension(names, False), days)
        path = self._folder / "server.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        return path

    @contextmanager
    def serving(self) -> Iterator[ssl.SSLSocket]:
        """Yield the listening socket of a server with a certificate; `live.accept` takes its connections."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server())
        with (
            socket.create_server(("127.0.0.1", 0), backlog=4096) as plain,
            context.wrap_socket(plain, True, False) as listener,
        ):
            listener.settimeout(PATIENCE_S)
            yield listener

    def _certificate(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        extend: Callable[[x509.CertificateBuilder], x509.CertificateBuilder],
        days: int = 1,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=days - 2))
            .not_valid_after(now + datetime.timedelta(days=days))
            # Who is strict about RFC 5280, as Python is from 3.13 on, asks for these.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False)
        )
        return extend(made).sign(self._key, hashes.SHA256())
