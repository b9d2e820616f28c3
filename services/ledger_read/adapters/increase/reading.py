"""One read of Increase, its refusals translated."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.increase.client import AnswerT, Call, IncreaseClient
from libs.providers.increase.refusals import NOT_FOUND


class NotKnown(Exception):
    """Increase has no such object."""


class Reader:
    def __init__(self, client: IncreaseClient) -> None:
        self.client = client
        self._log = structlog.get_logger("financial")

    async def read(self, operation: str, call: Call[AnswerT], deadline: float) -> AnswerT:
        """
        Raises:
            NotKnown: there is no such object.
            ProviderTimeout, Unavailable, ProviderError: there is no usable answer.
        """
        try:
            return await self.client.read(operation, call, deadline=deadline)
        except ProviderRefusal as refusal:
            if refusal.code == NOT_FOUND:
                raise NotKnown from refusal
            self._log.error(
                "provider_refused_a_read",
                operation=operation,
                status=refusal.status,
                code=refusal.code,
            )
            raise ProviderError from refusal

    async def of_account(
        self, account_id: str, operation: str, call: Call[AnswerT], deadline: float
    ) -> AnswerT:
        """As `read`, of an account that has to be there."""
        try:
            return await self.read(operation, call, deadline)
        except NotKnown:
            raise self.lost([account_id]) from None

    def lost(self, account_ids: Sequence[str]) -> ProviderError:
        """Onboarding owns what Increase does not know: that must not hide an account, so it is an error."""
        self._log.error(
            "accounts_unknown_to_provider", account_ids=account_ids[:10], count=len(account_ids)
        )
        return ProviderError()

    def broken(self, operation: str, how: str) -> ProviderError:
        self._log.error("provider_pages_broken", operation=operation, how=how)
        return ProviderError()
