"""A certificate authority of a test, and a server that terminates TLS before one that does not speak it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from deploy.local.ports import LOOPBACK
from libs.tls import server_context
from tests.support.accepting import stop_accepting

CHUNK_BYTES = 65536
POSTGRES_TLS_REQUEST_BYTES = 8


@dataclass(frozen=True)
class Identity:
    certificate_file: str
    key_file: str

    def context(self) -> ssl.SSLContext:
        return server_context(self.certificate_file, self.key_file)


class Authority:
    """Makes certificates for servers; files go to `folder`."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"tests {name}")])
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        path = folder / f"{name}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self.file = str(path)

    def identity(self, host: str = "localhost", *, days: float = 1) -> Identity:
        """A certificate for this host name, with its key; it expires in so many days."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        certificate = (
            _builder(subject, self._name, key.public_key(), days)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        certificate_file, key_file = self._folder / f"{host}.pem", self._folder / f"{host}.key"
        certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_file.touch(mode=0o600)
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return Identity(str(certificate_file), str(key_file))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float = 1
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
    )


@contextlib.asynccontextmanager
async def behind_tls(server_url: str, identity: Identity) -> AsyncIterator[str]:
    """The URL, at the host `localhost`, of a server that terminates TLS and forwards all of it to that of `server_url`.

    A client of PostgreSQL asks for TLS before it begins with it (PostgreSQL's protocol, section "SSL Session
    Encryption"); others begin at once.
    """
    server = urlsplit(server_url)
    asks_first = server.scheme == "postgresql"
    context = identity.context()
    links: set[asyncio.Task[None]] = set()

    async def link(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if asks_first:
                await reader.readexactly(POSTGRES_TLS_REQUEST_BYTES)
                writer.write(b"S")
                await writer.start_tls(context)
            await _connect(server.hostname or "", server.port or 0, reader, writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(link(reader, writer), name="behind-tls")
        links.add(task)
        # Here, not by the link: one that is canceled before it has begun never runs. To close the connection would wait
        # for the other side's close_notify.
        task.add_done_callback(lambda _: writer.transport.abort())
        task.add_done_callback(links.discard)

    listening = await asyncio.start_server(accept, LOOPBACK, 0, ssl=None if asks_first else context)
    port = listening.sockets[0].getsockname()[1]
    login, at, _ = server.netloc.rpartition("@")
    try:
        yield server._replace(netloc=f"{login}{at}localhost:{port}").geturl()
    finally:
        await stop_accepting(listening.sockets)
        listening.close()
        for task in list(links):
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)


async def _connect(
    host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    from_server, to_server = await asyncio.open_connection(host, port)
    ways = {
        asyncio.create_task(_forward(reader, to_server)),
        asyncio.create_task(_forward(from_server, writer)),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        to_server.transport.abort()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
