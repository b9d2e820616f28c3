"""The core banking provider over HTTP."""

from __future__ import annotations

from uuid import UUID

import msgspec

from libs.providers.answers import read_answer, read_entries
from libs.providers.errors import ProviderUnknown
from libs.providers.http import ProviderClient
from services.payments.models import WireEntry, WireRecord


class SentWire(msgspec.Struct, frozen=True):
    """The part of the answer that says which wire it is about."""

    transaction_id: str


class HttpCoreBanking:
    """See `ports.CoreBanking`. The idempotency key of a wire is its transaction id."""

    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def send_wire(self, wire: WireRecord, deadline: float, *, resumed: bool) -> None:
        body = {
            "account_id": wire.sending_account_id,
            "external_account_id": wire.external_account_id,
            "amount": f"{wire.amount:.2f}",
            "purpose": wire.purpose,
        }
        answer = await self._client.write(
            "send_wire",
            "POST",
            "/wires",
            body,
            idempotency_key=str(wire.transaction_id),
            deadline=deadline,
            resumed=resumed,
        )
        _check(answer, wire.transaction_id)

    async def has_wire(self, transaction_id: UUID, deadline: float) -> bool:
        known, answer = await self._client.earlier(str(transaction_id), deadline=deadline)
        if known:
            _check(answer, transaction_id)
        return known


def _check(answer: object, transaction_id: UUID) -> None:
    """Raises ProviderUnknown when the answer is not about this wire."""
    if read_answer(answer, SentWire).transaction_id != str(transaction_id):
        raise ProviderUnknown("the answer is about another wire")


class CoreFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: int, limit: int) -> list[WireEntry]:
        """The entries after a position.

        Raises:
            ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
        """
        return await read_entries(self._client, WireEntry, after, limit)
