"""The running bank: its application, and the clock that moves wires and validations on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aiohttp import web

from tests.support.increase_bank import (
    accounts,
    ach,
    control,
    entities,
    events,
    inbound,
    intrafi,
    programs,
    statements,
    wires,
)
from tests.support.increase_bank.calls import Conduct, Operation
from tests.support.increase_bank.kinds import kind_of
from tests.support.increase_bank.store import Store
from tests.support.increase_bank.web import MOST_BYTES, Bank, May, download, file_contents, handler
from tests.support.increase_bank.web import unknown as unknown_operation

HOST = "127.0.0.1"
TICK_SECONDS = 0.02
AT_ONCE = 200
STOP_SECONDS = 2.0
OPERATIONS: tuple[Operation, ...] = (
    *entities.OPERATIONS,
    *accounts.OPERATIONS,
    *wires.OPERATIONS,
    *ach.OPERATIONS,
    *inbound.OPERATIONS,
    *statements.OPERATIONS,
    *intrafi.OPERATIONS,
    *programs.OPERATIONS,
    *events.OPERATIONS,
)


@dataclass(frozen=True)
class RunningBank:
    """A bank that listens. `url` is what `base_url` of the SDK's client and BANKSIDE_INCREASE_URL take."""

    bank: Bank
    url: str


def application(bank: Bank) -> web.Application:
    app = web.Application(client_max_size=MOST_BYTES)
    app.add_routes(
        [web.route(o.method, o.path, handler(bank, o)) for o in OPERATIONS]
        + control.routes(bank)
        + [
            web.get("/files/{id}/contents", partial(file_contents, bank)),
            web.get("/downloads/{id}", partial(download, bank)),
            web.route("*", "/{rest:.*}", partial(unknown_operation, bank)),
        ]
    )
    return app


@contextlib.asynccontextmanager
async def running_bank(
    folder: Path,
    keys: Mapping[str, May],
    *,
    port: int = 0,
    conduct: Conduct | None = None,
    public_url: str | None = None,
) -> AsyncIterator[RunningBank]:
    """A bank on a port of the loopback interface, with what it remembers in `folder`."""
    store = Store(folder)
    try:
        programs.prepare(store)
        bank = Bank(store, keys, conduct or Conduct())
        runner = web.AppRunner(
            application(bank), access_log=None, shutdown_timeout=STOP_SECONDS, keepalive_timeout=75
        )
        await runner.setup()
        clock = asyncio.create_task(_clock(bank), name="increase bank: clock")
        try:
            site = web.TCPSite(runner, HOST, port, backlog=1024)
            await site.start()
            url = f"http://{HOST}:{runner.addresses[0][1]}"
            bank.conduct.public_url = public_url or url
            yield RunningBank(bank, url)
        finally:
            clock.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await clock
            await runner.cleanup()
    finally:
        store.close()


async def _clock(bank: Bank) -> None:
    while True:
        moved = advance(bank)
        await asyncio.sleep(0 if moved == AT_ONCE else TICK_SECONDS)


def advance(bank: Bank) -> int:
    """Move on what is due; how many objects that were."""
    due = bank.store.overdue(AT_ONCE)
    if not due:
        return 0
    with bank.store.writing():
        for object_id in due:
            bank.store.settled(object_id)
            if kind_of(object_id) == wires.KIND:
                wires.advance(bank.store, bank.conduct, object_id)
            else:
                entities.decide(bank.store, object_id)
    return len(due)
