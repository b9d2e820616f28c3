"""Composition: the three providers and the endpoints for tests, on one port over one database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from aiohttp import web

from libs.runtime.process import Process
from services.provider_sandbox import truth
from services.provider_sandbox.browsers import for_programs
from services.provider_sandbox.callers import Callers
from services.provider_sandbox.control import control_route, fault_routes
from services.provider_sandbox.core import api as core
from services.provider_sandbox.database import Database, open_database
from services.provider_sandbox.faults import Faults
from services.provider_sandbox.financial import api as financial
from services.provider_sandbox.identity import api as identity
from services.provider_sandbox.operations import Api, Operations
from services.provider_sandbox.provider import Provider
from services.provider_sandbox.settings import Settings
from services.provider_sandbox.simulate import api as simulate
from services.provider_sandbox.statements.download import download_route
from services.provider_sandbox.statements.links import Links
from services.provider_sandbox.sweep import SweepTerms
from services.provider_sandbox.web import BODY_BYTES, errors_as_json
from services.provider_sandbox.wires import clock
from services.provider_sandbox.write_batcher import WriteBatcher

KEEP_ALIVE_SECONDS = 75
DRAIN_SECONDS = 5
SERVER_HEADER = "bankside-provider-sandbox"
"""By it services in production tell that no bank answers."""


def application(
    database: Database, settings: Settings
) -> tuple[web.Application, Sequence[WriteBatcher]]:
    """What answers, and what has to run beside it."""
    link_key = settings.link_key.get_secret_value()
    links = Links(settings.public_url, link_key, settings.statement_url_seconds)
    sweep = SweepTerms(settings.sweep_floor, settings.sweep_bank_limit)
    remembered = timedelta(hours=settings.key_hours)
    wire_takes = timedelta(seconds=settings.wire_seconds)
    providers: Mapping[Api, Operations] = {
        "identity": identity.OPERATIONS,
        "core": core.operations(wire_takes, remembered),
        "financial": financial.operations(settings.page_limit, links),
    }
    faults = Faults({api: frozenset(o.name for o in rows) for api, rows in providers.items()})
    app = web.Application(middlewares=[errors_as_json], client_max_size=BODY_BYTES)
    callers = Callers(settings.tokens())
    write_batchers: list[WriteBatcher] = []
    for api, operations in providers.items():
        keys = remembered if api == "core" else None
        provider = Provider(api, operations, database, faults, callers, keys)
        app.add_routes(provider.routes())
        write_batchers += provider.write_batchers
    controls = (*simulate.operations(links, sweep, wire_takes), *truth.OPERATIONS)
    for route in (*(control_route(row, database) for row in controls), *fault_routes(faults)):
        handler = for_programs(route.handler, settings.public_url)
        app.router.add_route(route.method, route.path, handler)
    app.add_routes([download_route(database, links)])
    return app, write_batchers


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    url = settings.database_url.get_secret_value()
    wire_takes = timedelta(seconds=settings.wire_seconds)
    async with (
        open_database(
            url, connections=settings.database_connections, ca_file=settings.database_ca_file
        ) as database,
        AsyncExitStack() as beside,
    ):
        process.readiness.add("database", database.ping)
        app, write_batchers = application(database, settings)
        app.on_response_prepare.append(_name_server)
        runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            shutdown_timeout=DRAIN_SECONDS,
            auto_decompress=False,
        )
        for batcher in write_batchers:
            await beside.enter_async_context(process.background(batcher.name, batcher.run()))
        settling = clock.run(database, wire_takes)
        await beside.enter_async_context(process.background("settle_wires", settling))
        await runner.setup()
        try:
            await web.TCPSite(runner, settings.host, settings.port).start()
            yield
        finally:
            await runner.cleanup()


async def _name_server(_: web.Request, response: web.StreamResponse) -> None:
    """So that production recognizes the sandbox where a provider should be."""
    response.headers["Server"] = SERVER_HEADER
