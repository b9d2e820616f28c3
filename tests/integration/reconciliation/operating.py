"""An operator at reconciliation's handlers, and the command line with its questions answered by them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Principal
from libs.persistence.engine import Database
from services.reconciliation.handlers.operating import OperatingDifferences
from tests.support.pace import pace

ADA = Principal(
    tenant="",
    tenant_name="",
    family=Family.OPERATOR,
    subscription_key="sub_ada",
    operator="ada",
    address="203.0.113.7",
    request_id="req-1",
)
WAIT_SECONDS = 20.0


async def answer(database: Database, row: Operation, command: Command) -> Any:
    """The data of the answer to an operator. Raises as the handler does."""
    handler = OperatingDifferences(database).by_operation()[row.name]
    return (await handler(ADA, command, time.time() + WAIT_SECONDS * pace())).data


def asking(database: Database) -> Callable[[Operation, Command], Any]:
    """In place of the command line's `ask`, which runs in a thread of its own."""
    loop = asyncio.get_running_loop()

    def ask(row: Operation, command: Command) -> Any:
        answering = answer(database, row, command)
        return asyncio.run_coroutine_threadsafe(answering, loop).result(WAIT_SECONDS * pace())

    return ask
