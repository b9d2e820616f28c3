"""One read of Increase, its refusals translated."""

from __future__ import annotations

import structlog

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.increase.client import AnswerT, Call, IncreaseClient
from libs.providers.increase.refusals import NOT_FOUND, PRIVATE_FEATURE
from services.ledger_read.adapters.refused_reads import NotKnown, lost_accounts, refused_read


class Reader:
    def __init__(self, client: IncreaseClient) -> None:
        self.client = client
        self._log = structlog.get_logger("financial")

    async def read(
        self,
        operation: str,
        call: Call[AnswerT],
        deadline: float,
        *,
        is_feature_optional: bool = False,
    ) -> AnswerT:
        """
        Args:
            is_feature_optional: where Increase has not enabled the feature, there are none of its objects: NotKnown.

        Raises:
            NotKnown: there is no such object.
            ProviderTimeout, Unavailable, ProviderError: there is no usable answer.
        """
        try:
            return await self.client.read(operation, call, deadline=deadline)
        except ProviderRefusal as refusal:
            lacks_feature = is_feature_optional and refusal.code == PRIVATE_FEATURE
            if lacks_feature:
                self._log.warning("feature_not_enabled", operation=operation, code=refusal.code)
            is_not_known = refusal.code == NOT_FOUND or lacks_feature
            raise refused_read(operation, refusal, is_not_known=is_not_known) from refusal

    async def of_account(
        self, account_id: str, operation: str, call: Call[AnswerT], deadline: float
    ) -> AnswerT:
        """As `read`, of an account that has to be there."""
        try:
            return await self.read(operation, call, deadline)
        except NotKnown:
            raise lost_accounts([account_id]) from None

    def broken(self, operation: str, how: str) -> ProviderError:
        self._log.error("provider_pages_broken", operation=operation, how=how)
        return ProviderError()
