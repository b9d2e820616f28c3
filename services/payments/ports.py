"""What the handlers need: onboarding, which knows who owns what, and core banking, which carries wires out.

Deadlines are Unix seconds.
"""

from __future__ import annotations

from typing import Protocol

from libs.contracts.principal import Principal
from libs.providers.writing import ProviderWrite
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


class Acceptance(Protocol):
    """What core banking says of a wire that it accepted."""

    @property
    def transaction_id(self) -> str: ...


class CoreBanking(Protocol):
    def send_wire(self, wire: WireRecord) -> ProviderWrite[Acceptance]:
        """The write that has the wire carried out. Its idempotency key is the wire's transaction id."""
        ...
