"""One read of the financial provider, its answer validated and its refusals translated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.sandbox.http import ProviderClient
from services.ledger_read.adapters.sandbox.financial_answers import AnswerT, read_answer

Params = Sequence[tuple[str, str]]


class NotKnown(Exception):
    """The provider answered 404."""


class Reader:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client
        self._log = structlog.get_logger("financial")

    async def read(
        self,
        operation: str,
        path: str,
        shape: type[AnswerT],
        deadline: float,
        params: Params = (),
        headers: Mapping[str, str] | None = None,
    ) -> AnswerT:
        """
        Raises:
            NotKnown: 404.
            ProviderTimeout, Unavailable, ProviderError: there is no usable answer.
        """
        try:
            answer = await self._client.read(
                operation, path, params, deadline=deadline, headers=headers
            )
        except ProviderRefusal as refusal:
            if refusal.status == 404:
                raise NotKnown from refusal
            self._log.error(
                "provider_refused_a_read",
                operation=operation,
                status=refusal.status,
                code=refusal.code,
            )
            raise ProviderError from refusal
        return read_answer(operation, shape, answer)

    def lost(self, account_ids: Sequence[str]) -> ProviderError:
        """Onboarding owns what the provider does not know: that must not hide an account, so it is an error."""
        self._log.error(
            "accounts_unknown_to_provider", account_ids=account_ids[:10], count=len(account_ids)
        )
        return ProviderError()
