"""Signed balance reads beside the same job as it is usually built."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import asyncpg

from deploy.local.ports import LOOPBACK
from libs.runtime.processes import die_with_parent
from tests.benchmarks import peers
from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.keys.balance import (
    CONNECTIONS,
    balance_load,
    balance_target,
    expected_balance,
)
from tests.benchmarks.partner import Partner, onboarded_partner
from tests.benchmarks.requirements import ensure_peers
from tests.benchmarks.rounds import alternate
from tests.benchmarks.signed_requests import signed
from tests.benchmarks.wrk import Load
from tests.support.ports import free_ports
from tests.support.stack import Stack
from tests.support.waiting import eventually

GOAL, FLOOR = 6.0, 3.5
START_SECONDS = 30.0
STOP_SECONDS = 10.0
SCHEMA = Path(peers.__file__).with_name("schema.sql")


async def run(bench: Bench) -> list[Figure]:
    python = ensure_peers()
    async with bench.stack() as stack:
        partner = await onboarded_partner(stack)
        load = balance_load(bench, stack, partner)
        async with _peer(bench, stack, partner, python) as peer:
            ours, theirs = await alternate(bench.plan, "/s", load.rate, peer.rate)
    return [ratio("read_path_peer", ours, theirs, goal=GOAL, floor=FLOOR, note=load.told)]


@contextlib.asynccontextmanager
async def _peer(bench: Bench, stack: Stack, partner: Partner, python: Path) -> AsyncIterator[Load]:
    """The peer's two processes, on the same servers and the same provider, with the same key."""
    database = bench.servers.url(await bench.servers.database())
    await _fill(database, partner)
    settings = {
        "PEER_DATABASE_URL": database,
        "PEER_AMQP_URL": bench.servers.rabbitmq.url(),
        "PEER_PROVIDER_URL": stack.env["BANKSIDE_FINANCIAL_URL"],
        "PEER_PROVIDER_TOKEN": stack.environment.secrets.provider_tokens["ledger_read"][
            "financial"
        ],
    }
    port = free_ports(1)[0]
    name = peers.__name__
    server = ("--host", LOOPBACK, "--port", str(port), "--loop", "uvloop", "--http", "httptools")
    quiet = ("--no-access-log", "--log-level", "warning")
    base_url = f"http://{LOOPBACK}:{port}"
    with (
        _process((str(python), "-m", f"{name}.worker"), settings) as worker,
        _process(
            (str(python), "-m", "uvicorn", f"{name}.gateway:app", *server, *quiet), settings
        ) as gateway,
    ):
        await _answers(base_url, (worker, gateway))
        make = signed(balance_target(base_url, partner), partner.key)
        yield Load(base_url, make, expected_balance(partner), CONNECTIONS)


async def _fill(database: str, partner: Partner) -> None:
    connection = await asyncpg.connect(database)
    try:
        await connection.execute(SCHEMA.read_text())
        key = partner.key
        await connection.execute(
            "INSERT INTO credentials VALUES ($1, $2, $3)",
            *(key.subscription_key, key.secret, key.tenant),
        )
        await connection.execute(
            "INSERT INTO accounts VALUES ($1, $2)", partner.account_id, key.tenant
        )
    finally:
        await connection.close()


@contextlib.contextmanager
def _process(
    command: tuple[str, ...], settings: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command,
        env=os.environ | settings,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - only prctl and getppid
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _answers(base_url: str, processes: tuple[subprocess.Popen[bytes], ...]) -> None:
    async def ready() -> bool:
        assert all(process.poll() is None for process in processes), "the peer ended"
        with contextlib.suppress(aiohttp.ClientConnectorError):
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"{base_url}/docs") as response,
            ):
                return response.status == 200
        return False

    await eventually("the peer answers", ready, START_SECONDS)
