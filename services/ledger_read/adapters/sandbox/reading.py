"""One read of the financial provider, its answer validated and its refusals translated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from libs.providers.errors import ProviderRefusal
from libs.providers.sandbox.http import ProviderClient
from services.ledger_read.adapters.refused_reads import refused_read
from services.ledger_read.adapters.sandbox.financial_answers import AnswerT, read_answer

Params = Sequence[tuple[str, str]]


class Reader:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

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
            is_not_known = refusal.status == 404
            raise refused_read(operation, refusal, is_not_known=is_not_known) from refusal
        return read_answer(operation, shape, answer)
