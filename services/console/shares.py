"""Each operator's share of the rates of the console's one key.

All operators share these rates at the gateway. Without a bound here, one of them, such as a viewer whose browser asks
in a loop, would use them up for all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeVar

from cachetools import TTLCache

from libs.contracts.errors import RateLimited
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from services.console.gateway import OperatorApi

C = TypeVar("C", bound=Command)
R = TypeVar("R")

SECONDS = 60
OPERATORS = 10_000
"""Counted at most; beyond, the one that was seen least recently is forgotten."""
READS_PER_MINUTE = 1500
WRITES_PER_MINUTE = 150
"""A quarter each of what the gateway allows a console's key."""


class Shares:
    """Counts what each operator asks in a minute, in one process."""

    def __init__(self) -> None:
        # The minute of an operator begins with its first question and is not renewed, since none is stored anew.
        self._counts: TTLCache[str, Counter[bool]] = TTLCache(OPERATORS, SECONDS)

    def of(self, operator: str, api: OperatorApi) -> OperatorApi:
        """The API, which raises RateLimited for what is beyond the operator's share."""
        return _Shared(self, operator, api)

    def take(self, operator: str, *, is_read: bool) -> None:
        """Raises RateLimited, with Retry-After."""
        count = self._counts.get(operator)
        if count is None:
            count = self._counts[operator] = Counter()
        if count[is_read] >= (READS_PER_MINUTE if is_read else WRITES_PER_MINUTE):
            raise RateLimited(headers={"Retry-After": str(SECONDS)})
        count[is_read] += 1


@dataclass(frozen=True, slots=True)
class _Shared:
    shares: Shares
    operator: str
    api: OperatorApi

    async def ask(self, operation: Operation[C, R], command: C) -> R:
        self.shares.take(self.operator, is_read=operation.is_read)
        return await self.api.ask(operation, command)
