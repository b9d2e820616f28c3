"""What the production profile looks for at a start, by asking others: a clock that is off, a simulator for a bank.

A server that does not answer refuses nothing: a service that starts while its database is away waits for it.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Mapping

import aiohttp
import asyncpg
import structlog

from libs.gathering import gather_or_cancel
from libs.persistence.addressing import connect_arguments
from libs.persistence.availability import is_away
from libs.providers.companies import Login, Simulator
from libs.tls import client_context

CLOCK_SECONDS = 2.0
"""A clock that is further off is refused."""
ASK_SECONDS = 5.0

_log = structlog.get_logger("production")


async def seconds_ahead(
    database_url: str, ca_file: str | None, now: Callable[[], float] = time.time
) -> tuple[float, float]:
    """By how much this clock is ahead of the database's, and by how much that may be wrong.

    Raises what asyncpg raises, OSError or TimeoutError.
    """
    async with asyncio.timeout(ASK_SECONDS):
        connection = await asyncpg.connect(**connect_arguments(database_url, ca_file))
        try:
            sent = now()
            its = float(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())"))
            received = now()
        finally:
            connection.terminate()
    return (sent + received) / 2 - its, (received - sent) / 2


def clock_that_is_off(ahead: float, uncertain: float) -> Iterator[str]:
    if abs(ahead) - uncertain > CLOCK_SECONDS:
        way = "ahead of" if ahead > 0 else "behind"
        yield (
            f"set the clock: this machine's is {abs(ahead):.1f} s {way} the database's, and {CLOCK_SECONDS:g} s is"
            " the most in production. Let both follow NTP."
        )


async def is_simulated(url: str, simulator: Simulator, ca_file: str | None) -> bool:
    """Whether a simulator answers at the provider's URL. Raises aiohttp.ClientError, OSError or TimeoutError."""
    async with (
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=client_context(ca_file) if ca_file else True),
            timeout=aiohttp.ClientTimeout(total=ASK_SECONDS),
            trust_env=False,
        ) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        return simulator.has_answered(response.headers.get("Server"))


def simulator_as_provider(variable: str, simulator: Simulator) -> str:
    return (
        f"set {variable} to a provider's URL: what answers there is {simulator.name}, which"
        " simulates a bank."
    )


async def clock_refusals(database_url: str, ca_file: str | None) -> list[str]:
    try:
        return list(clock_that_is_off(*await seconds_ahead(database_url, ca_file)))
    except Exception as error:
        if not is_away(error):
            raise
        _log.warning("clock_not_compared", error=type(error).__name__)
        return []


async def provider_refusals(logins: Mapping[str, Login], ca_file: str | None) -> list[str]:
    """The refusals of simulators that answer in place of providers.

    Args:
        logins: by the variables of their URLs.
    """

    async def ask(variable: str, login: Login) -> list[str]:
        try:
            simulator = login.simulator
            if simulator is None or simulator.server is None:
                return []
            if not await is_simulated(login.url, simulator, ca_file):
                return []
            return [simulator_as_provider(variable, simulator)]
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            _log.warning("provider_not_asked", variable=variable, error=type(error).__name__)
            return []

    asked = await gather_or_cancel(itertools.starmap(ask, logins.items()), name="ask-provider")
    return list(itertools.chain.from_iterable(asked))
