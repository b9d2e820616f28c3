"""Requests a run of reconciliation when a database turns out to have been restored (`libs.persistence.continuity`)."""

from __future__ import annotations

import time

from libs.contracts.principal import SERVICE
from libs.contracts.reconciliation import RequestedRun, StartRun
from libs.contracts.reconciliation_operations import START_RUN
from libs.handling.query_client import QueryClient, QuerySender

PATIENCE_SECONDS = 5.0


class RequestedReconciliation:
    """Requests a run from reconciliation, for `Continuity.went_back`."""

    def __init__(self, caller: QuerySender, service: str) -> None:
        self._query_client = QueryClient(caller, patience_seconds=PATIENCE_SECONDS)
        self._cause = f"the database of {service} went back"

    async def __call__(self) -> None:
        """Raises BanksideError: the request was not answered, and is to be repeated."""
        deadline = time.time() + PATIENCE_SECONDS
        command = StartRun(cause=self._cause)
        await self._query_client.query(START_RUN, SERVICE, command, RequestedRun, deadline)
