"""Operators' operations that the gateway itself handles. A handler may query services over the broker (`asking.py`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from libs.contracts.gateway_table import GATEWAY_OPERATIONS
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.handling.queries import QueryHandler, answered_error

MARGIN_SECONDS = 1.0
"""Handlers end this long before the caller's deadline."""


class Answering:
    """Raises RuntimeError when a row has no handler: such a process must not start."""

    def __init__(self, handlers: Mapping[str, QueryHandler]) -> None:
        missing = sorted({row.name for row in GATEWAY_OPERATIONS} - set(handlers))
        if missing:
            raise RuntimeError(f"the gateway has no handler for {', '.join(missing)}")
        self._handlers = handlers

    async def answer(
        self,
        operation: Operation,
        principal: Principal,
        command: Command,
        deadline: float,
    ) -> dict[str, Any]:
        """The payload of the answer.

        Raises:
            OutcomePending: a write may have been done, and its handler cannot tell.
            BanksideError: of the handler, or what its failure is answered with.
        """
        left = max(0.05, deadline - MARGIN_SECONDS - time.time())
        try:
            async with asyncio.timeout(left):
                result = await self._handlers[operation.name](
                    principal, command, time.time() + left
                )
        except Exception as error:
            raise answered_error(error, operation) from error
        return result.payload(operation)
