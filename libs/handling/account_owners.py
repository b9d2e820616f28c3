"""Whether a principal may use an account: a query to onboarding, which has the accounts' owners.

Onboarding scopes its answer by the principal. The owner of an account never changes, so positive answers are cached
(LRU cache). Negative answers are not cached, since an unknown account may be opened in a moment.
"""

from __future__ import annotations

import math

from cachetools import LRUCache

from libs.contracts.onboarding_operations import FIND_ACCOUNT_OWNER
from libs.contracts.ownership import AccountOwner, FindAccountOwner
from libs.contracts.principal import Principal
from libs.handling.query_client import QueryClient
from libs.handling.single_flight import SingleFlight


class AccountOwners:
    """Checks that an account belongs to a principal.

    Args:
        capacity: the most answers that are cached.
    """

    def __init__(self, query_client: QueryClient, *, capacity: int) -> None:
        self._query_client = query_client
        self._allowed: LRUCache[tuple[str, str | None, str], bool] = LRUCache(capacity)
        self._calls: SingleFlight[None] = SingleFlight()

    async def require(self, principal: Principal, account_id: str, deadline: float) -> None:
        """Return when the account is the principal's.

        Args:
            deadline: Unix seconds.

        Raises:
            NotFound: there is no such account in the principal's scope.
            Unavailable: onboarding did not answer.
        """
        key = (principal.tenant, principal.customer_id, account_id)
        if self._allowed.get(key):
            return

        async def look_up() -> None:
            await self._query_client.query(
                FIND_ACCOUNT_OWNER,
                principal,
                FindAccountOwner(account_id=account_id),
                AccountOwner,
                math.inf,
            )
            self._allowed[key] = True

        await self._calls.run(key, look_up, deadline)
