"""Batches of deliveries that commands change, of a subscription that is recovered or has another status: few run at a
time, since each uses a connection for as long as a second, and the commands and queries of all tenants share these.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.contracts.errors import OutcomePending, Unavailable
from libs.handling.bulkhead import Bulkhead, Turn

BATCHES_AT_ONCE, BATCHES_WAITING, BATCHES_OF_TENANT_AT_ONCE = 4, 32, 2
"""How many batches run at a time, and how many commands wait with theirs, half of them of one tenant at most: each
holds a drive. The engine leaves 11 connections of the default. Beyond that the command is driven again later.
"""


class Batches:
    """Admits commands, and gives each a turn for each of its batches."""

    def __init__(self) -> None:
        self._bulkhead = Bulkhead(
            BATCHES_AT_ONCE, BATCHES_WAITING, at_once_of_tenant=BATCHES_OF_TENANT_AT_ONCE
        )

    @asynccontextmanager
    async def place(self, tenant: str) -> AsyncIterator[Turn]:
        """The body is a drive of one command, which enters the turn for each batch, before it takes a connection.

        Raises:
            OutcomePending: as many commands as may have a place, in all or of this tenant.
        """
        try:
            async with self._bulkhead.place(tenant) as turn:
                yield turn
        except Unavailable:  # which would say that nothing was started
            raise OutcomePending from None

    def is_full(self, tenant: str) -> bool:
        """Whether a further command of the tenant would be driven again later."""
        return self._bulkhead.is_full(tenant)
