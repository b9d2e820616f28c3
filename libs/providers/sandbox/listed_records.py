"""A list of the sandbox, newest first: the ids of ours in it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import msgspec

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.feed_entries import FETCH_SECONDS
from libs.providers.newest_records import NewestPage
from libs.providers.sandbox.http import ProviderClient


@dataclass(frozen=True)
class ListedRecords:
    """One list of the sandbox.

    Args:
        rows: the list's path and the name of its rows in the answer; it takes `order=newest`, `before` and `limit`.
        our_id: the field of a row that has our id.
    """

    client: ProviderClient
    rows: str
    our_id: str

    async def fetch(self, after: str | None, limit: int) -> NewestPage:
        """See `newest_records.FetchNewest`."""
        params = [("order", "newest"), ("limit", str(limit))]
        if after is not None:
            params.append(("before", after))
        deadline = time.time() + FETCH_SECONDS
        try:
            answer = await self.client.read(
                f"list_{self.rows}", f"/{self.rows}", params, deadline=deadline
            )
            rows = msgspec.convert(answer[self.rows], list[dict[str, object]])
            ids = [msgspec.convert(row[self.our_id], str) for row in rows]
            following = msgspec.convert(answer["next"], int | None)
        except (ProviderRefusal, msgspec.ValidationError, KeyError, TypeError) as error:
            raise ProviderError from error
        return NewestPage(ids, None if following is None else str(following))
