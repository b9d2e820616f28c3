"""What `libs.persistence.continuity` needs of others: the records that providers have of ours, and reconciliation."""

from __future__ import annotations

import time
from dataclasses import dataclass

import msgspec

from libs.contracts.errors import ProviderError
from libs.contracts.principal import SERVICE
from libs.contracts.reconciliation import RequestedRun, StartRun
from libs.contracts.reconciliation_operations import START_RUN
from libs.handling.query_client import QueryClient, QuerySender
from libs.persistence.continuity import Compare, Page
from libs.providers.errors import ProviderRefusal
from libs.providers.feed_entries import FETCH_SECONDS
from libs.providers.http import ProviderClient


@dataclass(frozen=True)
class ListedRecords:
    """See `continuity.NewestRecords`.

    Args:
        operation, path: the provider's list, which takes `order=newest`, `before` and `limit`.
        rows: the name of the list's rows in the answer.
        our_id: the field of a row that has our id.
        compare: with the records of this database.
    """

    provider: str
    client: ProviderClient
    operation: str
    path: str
    rows: str
    our_id: str
    compare: Compare

    async def fetch(self, after: str | None, limit: int) -> Page:
        """Raises BanksideError: the provider cannot be asked."""
        params = [("order", "newest"), ("limit", str(limit))]
        if after is not None:
            params.append(("before", after))
        deadline = time.time() + FETCH_SECONDS
        try:
            answer = await self.client.read(self.operation, self.path, params, deadline=deadline)
            rows = msgspec.convert(answer[self.rows], list[dict[str, object]])
            ids = [msgspec.convert(row[self.our_id], str) for row in rows]
            following = msgspec.convert(answer["next"], int | None)
        except (ProviderRefusal, msgspec.ValidationError, KeyError, TypeError) as error:
            raise ProviderError from error
        return Page(ids, None if following is None else str(following))


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
