"""The gateway terminates TLS itself, by setting, in each of its processes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
import pytest_asyncio

from deploy.local.ports import LOOPBACK
from libs.persistence.engine import open_database
from libs.tls import client_context
from tests.integration.gateway.desk import GATEWAY, gateway_process, make_key
from tests.integration.gateway.test_gateway_authentication import PASSED, TARGET
from tests.support.api import Api, public_interface
from tests.support.certificates import Authority
from tests.support.infrastructure import Environment, Infrastructure
from tests.support.keys import storage_of
from tests.support.launching import launched
from tests.support.pace import pace
from tests.support.stack import Stack
from tests.support.waiting import eventually

PROCESSES = 2
MOST = 20
"""Connections of one address to one process."""


class Encrypted(NamedTuple):
    stack: Stack
    authority: Authority

    @property
    def port(self) -> int:
        return int(self.stack.env["BANKSIDE_GATEWAY_PORT"])

    @property
    def base_url(self) -> str:
        return f"https://localhost:{self.port}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def encrypted(
    infrastructure: Infrastructure, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Encrypted]:
    folder = tmp_path_factory.mktemp("gateway")
    authority = Authority(folder)
    identity = authority.identity()
    environment = infrastructure.create()
    # As `make up` starts it: elsewhere its processes are forked, which shows nothing of how new interpreters begin.
    async with gateway_process(
        environment,
        folder,
        launched,
        BANKSIDE_GATEWAY_PROCESSES=str(PROCESSES),
        BANKSIDE_GATEWAY_STALLED_SECONDS="2",
        BANKSIDE_GATEWAY_CONNECTIONS_PER_ADDRESS=str(MOST),
        BANKSIDE_GATEWAY_TLS_CERTIFICATE_FILE=identity.certificate_file,
        BANKSIDE_GATEWAY_TLS_KEY_FILE=identity.key_file,
    ) as stack:
        yield Encrypted(stack, authority)
    infrastructure.drop(environment)


async def signed_reads(encrypted: Encrypted, count: int) -> list[int]:
    """The statuses of so many signed requests, each on a connection of its own."""
    environment = encrypted.stack.environment
    database = open_database(environment.database_urls["gateway"], "tests")
    context = client_context(encrypted.authority.file)
    statuses = []
    try:
        key = await make_key(database, storage_of(environment.secrets, "gateway"))
        for _ in range(count):
            async with new_session(context) as session:
                api = Api(session, encrypted.base_url, public_interface(), key)
                statuses.append((await api.get(TARGET)).status)
    finally:
        await database.close()
    return statuses


def new_session(context: ssl.SSLContext) -> aiohttp.ClientSession:
    """Its connection is closed with it. With `force_close` it would be left closing, beyond the test's event loop."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))


async def test_every_process_answers_signed_requests_by_tls(encrypted: Encrypted) -> None:
    statuses = await signed_reads(encrypted, 8 * PROCESSES)

    assert set(statuses) == {PASSED}


async def test_connections_that_never_shake_hands_end_and_keep_no_caller_out(
    encrypted: Encrypted,
) -> None:
    silent = [
        await asyncio.open_connection(LOOPBACK, encrypted.port)
        for _ in range((MOST + 5) * PROCESSES)
    ]
    try:
        statuses = await signed_reads(encrypted, PROCESSES)
        async with asyncio.timeout(20 * pace()):
            ends = [await reader.read() for reader, _ in silent]
    finally:
        for _, writer in silent:
            writer.close()

    assert set(statuses) == {PASSED}
    assert set(ends) == {b""}


async def test_what_is_not_tls_is_not_answered_and_leaves_no_trace_in_the_log(
    encrypted: Encrypted,
) -> None:
    reader, writer = await asyncio.open_connection(LOOPBACK, encrypted.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n")
    async with asyncio.timeout(20 * pace()):
        answer = await reader.read()
    writer.close()

    assert b"HTTP" not in answer
    assert "Traceback" not in encrypted.stack.log("gateway")
    assert "handshake" not in encrypted.stack.log("gateway")


async def test_versions_before_1_2_are_refused(encrypted: Encrypted) -> None:
    old = ssl.create_default_context(cafile=encrypted.authority.file)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match=r"TLSv1 is deprecated"):
        old.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match=r"TLSv1_1 is deprecated"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1

    with pytest.raises(ConnectionResetError):
        await asyncio.open_connection("localhost", encrypted.port, ssl=old)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    _, writer = await asyncio.open_connection("localhost", encrypted.port, ssl=old)
    writer.transport.abort()


@pytest.mark.parametrize("given", ["CERTIFICATE", "KEY", "both"])
async def test_half_of_the_settings_and_files_that_cannot_be_used_are_told(
    environment: Environment, tmp_path: Path, given: str
) -> None:
    names = {"CERTIFICATE", "KEY"} if given == "both" else {given}
    settings = {f"BANKSIDE_GATEWAY_TLS_{name}_FILE": str(tmp_path / "none.pem") for name in names}
    stack = Stack(environment, tmp_path, GATEWAY, **settings)

    stack.services["gateway"].spawn()
    code = await stack.services["gateway"].ended()

    assert code == 78
    [said] = stack.log("gateway").splitlines()
    assert "BANKSIDE_GATEWAY_TLS_CERTIFICATE_FILE and BANKSIDE_GATEWAY_TLS_KEY_FILE" in said


async def test_a_renewed_certificate_is_served_and_one_that_cannot_be_used_is_not(
    encrypted: Encrypted,
) -> None:
    def certificate() -> str:
        address, file = ("localhost", encrypted.port), encrypted.authority.file
        return ssl.get_server_certificate(address, ca_certs=file, timeout=20 * pace())

    async def served() -> set[str]:
        """The certificates of all processes."""
        return {await asyncio.to_thread(certificate) for _ in range(8 * PROCESSES)}

    process = encrypted.stack.services["gateway"]
    key_file = Path(encrypted.stack.env["BANKSIDE_GATEWAY_TLS_KEY_FILE"])

    async def are_ready() -> bool:
        return process.log.count('"event":"ready"') == PROCESSES

    async def is_refused() -> bool:
        return process.log.count("certificate_not_renewed") == PROCESSES

    async def is_served() -> bool:
        return len(renewed := await served()) == 1 and before not in renewed

    await eventually("each process is ready", are_ready)
    [before] = await served()
    unusable = key_file.with_suffix(".new")
    unusable.write_text("not yet")
    unusable.replace(key_file)  # at once: the empty file would be refused as another one
    await eventually("the key is refused", is_refused)
    meanwhile = await served()
    encrypted.authority.identity()
    await eventually("the new certificate is served", is_served)

    assert meanwhile == {before}
