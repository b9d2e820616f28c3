"""Endpoints that webhooks go to: real HTTP servers, plain or with TLS, which answer as a test decides.

They speak on the level of bytes, so that they can also do what no decent server does.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.accepting import stop_accepting


@dataclass(frozen=True)
class Received:
    """A request as it came; names of headers in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


Answer = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Receiver:
    """A listening endpoint: where it is, what came, and what it answers from now on."""

    answer: Answer
    host: str = ""
    port: int = 0
    scheme: str = "http"
    requests: list[Received] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/hook", host: str | None = None) -> str:
        return f"{self.scheme}://{host or self.host}:{self.port}{path}"


@asynccontextmanager
async def receiver(
    answer: Answer | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[Receiver]:
    """An endpoint that listens until the block ends."""
    listening = Receiver(answer or replies(200), host, scheme="https" if tls else "http")
    connections: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                listening.requests.append(request)
                await listening.answer(request, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass  # the sender went away, or the test is over
        finally:
            writer.transport.abort()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listening.connections += 1
        connections[writer] = asyncio.create_task(serve(reader, writer))

    server = await asyncio.start_server(connected, host, port, ssl=tls)
    listening.port = server.sockets[0].getsockname()[1]
    try:
        yield listening
    finally:
        await stop_accepting(server.sockets)
        server.close()
        for writer, task in connections.items():
            task.cancel()
            writer.transport.abort()  # a task that has not begun does not get to it
        ended = await asyncio.gather(*connections.values(), return_exceptions=True)
        await asyncio.gather(*(each.wait_closed() for each in connections), return_exceptions=True)
        await server.wait_closed()
        for error in ended:
            if isinstance(error, Exception):
                raise error


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head[:-4].split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body)


def replies(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """Answers at once, and keeps the connection."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = f"HTTP/1.1 {status} Whatever\r\nContent-Length: {len(body)}\r\n{lines}\r\n"
    return writes(head.encode("latin-1") + body)


def writes(answer: bytes) -> Answer:
    """Answers with these very bytes."""

    async def write(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    return write


async def hangs(_: Received, __: asyncio.StreamWriter) -> None:
    """Never answers."""
    await asyncio.Event().wait()


async def resets(_: Received, writer: asyncio.StreamWriter) -> None:
    """Ends the connection without a word."""
    writer.transport.abort()


def repeats(head: bytes, part: bytes, pause_seconds: float = 0.0) -> Answer:
    """Answers with a beginning and then with more and more of the same, for ever."""

    async def write(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_seconds)

    return write


class Authority:
    """A certificate authority of a test's own."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of a test")])
        self._certificate = _certificate(
            self._name, self._name, self._key, self._key, constraints=x509.BasicConstraints(True, 0)
        )

    def trusting(self) -> ssl.SSLContext:
        """For a client that trusts this authority only."""
        return ssl.create_default_context(cadata=_pem(self._certificate).decode())

    def serving(self, host: str, *, expired: bool = False) -> ssl.SSLContext:
        """For a server with a certificate of this authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(_common_name(host), self._name, key, self._key, host, expired)
        return _server_context(certificate, key)


def self_signed(host: str) -> ssl.SSLContext:
    """For a server that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _common_name(host)
    return _server_context(_certificate(name, name, key, key, host), key)


def _common_name(host: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    host: str | None = None,
    expired: bool = False,
    constraints: x509.BasicConstraints = x509.BasicConstraints(False, None),  # noqa: B008 - frozen
) -> x509.Certificate:
    now = datetime.now(UTC)
    ends = now + timedelta(days=-1 if expired else 1)
    builder = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(ends)
        .add_extension(constraints, critical=True)
    )
    if host is not None:
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _server_context(
    certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.pem"
        path.write_bytes(private + _pem(certificate))
        context.load_cert_chain(path)
    return context


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
