"""What the handlers need: onboarding, which knows who owns what, and core banking, which carries wires out.

Deadlines are Unix seconds.
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from libs.contracts.principal import Principal
from services.payments.models import WireRecord


class Ownership(Protocol):
    """Who owns what. Every method raises Unavailable when onboarding cannot be asked."""

    async def require_account(self, principal: Principal, account_id: str, deadline: float) -> None:
        """Return when the account is one of the principal's. Raises NotFound."""
        ...

    async def require_external_account(
        self, principal: Principal, external_account_id: str, deadline: float
    ) -> None:
        """Return when it is linked to the principal's customer. Raises ExternalAccountNotLinked."""
        ...


class CoreBanking(Protocol):
    """Every method raises ProviderRefusal, a definite no, and ProviderUnknown."""

    async def send_wire(self, wire: WireRecord, deadline: float, *, resumed: bool) -> None:
        """Return when the provider has accepted the wire, which it carries out once, however often it is sent.

        Args:
            resumed: an earlier send may have happened. It is asked about first.

        Raises:
            ProviderNotReached: certainly nothing was sent; never when `resumed`.
        """
        ...

    async def has_wire(self, transaction_id: UUID, deadline: float) -> bool:
        """Whether the provider has accepted the wire; nothing is sent. False says only that it does not know of it."""
        ...
