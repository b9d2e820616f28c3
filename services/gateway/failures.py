"""Addresses that keep failing to authenticate: counted over all gateway processes.

Beyond the limit, further failures of the address are answered 429 for the rest of the minute. A request that is signed
correctly never is: other callers may share the address, and a 429 would say that nothing was started, where a copy of a
request whose first copy was admitted is to read `nonce_reused`.

Counts are exchanged with the other processes once a second, so an address may get a second's worth more than its limit.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import NoReturn

from libs.contracts.errors import RateLimited
from libs.handling.periodic import repeat
from libs.persistence.engine import Database

EXCHANGE_SECONDS = 1.0
ADDRESSES = 50_000
"""Addresses remembered in a minute at most; those beyond are not counted until the next."""

# In the order of addresses, so that two processes cannot wait for each other.
_ADD = """
    INSERT INTO failures AS f (address, minute, count)
    SELECT address, $1, count FROM unnest($2::text[], $3::bigint[]) AS a (address, count) ORDER BY address
    ON CONFLICT (address, minute) DO UPDATE SET count = f.count + excluded.count
    """
_FORGET = "DELETE FROM failures WHERE minute < $1"
_MOST = "SELECT address, count FROM failures WHERE minute = $1 ORDER BY count DESC LIMIT $2"


class Failures:
    """Failed authentications of this minute, by address."""

    def __init__(self, database: Database, per_minute: int) -> None:
        self._database = database
        self._per_minute = per_minute
        self._minute = 0
        self._known: Counter[str] = Counter()
        self._new: Counter[str] = Counter()

    def are_too_many(self, address: str) -> bool:
        self._turn()
        return self._known[address] + self._new[address] > self._per_minute

    def count(self, address: str) -> None:
        """Count a failure."""
        self._turn()
        if address in self._new or len(self._new) < ADDRESSES:
            self._new[address] += 1

    def check(self, address: str) -> None:
        """Raises RateLimited when the address has failed too often."""
        if self.are_too_many(address):
            wait = 60 - int(time.time()) % 60
            raise RateLimited(
                "Too many failed authentications from this address.",
                headers={"Retry-After": str(wait)},
            )

    def _turn(self) -> None:
        minute = int(time.time()) // 60
        if minute != self._minute:
            self._minute = minute
            self._known.clear()
            self._new.clear()

    async def exchange_for_ever(self) -> NoReturn:
        await repeat("failures", self._exchange, EXCHANGE_SECONDS)

    async def _exchange(self) -> None:
        self._turn()
        minute, sent = self._minute, Counter(self._new)
        async with self._database.driver_transaction() as connection:
            if sent:
                await connection.execute(_ADD, minute, list(sent), list(sent.values()))
                await connection.execute(_FORGET, minute - 1)
            rows = await connection.fetch(_MOST, minute, ADDRESSES)
            known = Counter({row["address"]: row["count"] for row in rows})
        if minute == self._minute:
            self._known = known
            self._new -= sent
