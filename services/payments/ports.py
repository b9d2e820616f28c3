"""The ports of the handlers: onboarding, which knows the owners of accounts, and core banking, which carries wires out.

Deadlines are Unix seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from libs.contracts.principal import Principal
from libs.contracts.wires import WireState
from libs.providers.feed_entries import Fetch
from libs.providers.newest_records import FetchNewest
from libs.providers.writing import ProviderWrite
from services.payments.models import FeedEntry, Payee, WireAtBank, WireRecord

OWNERSHIP_SECONDS = 10.0
"""The deadline of a command's questions about ownership, from their beginning."""


class Ownership(Protocol):
    """The owners of accounts. All methods raise Unavailable when onboarding cannot be asked."""

    async def require_account(self, principal: Principal, account_id: str, deadline: float) -> None:
        """Return when the account is one of the principal's. Raises NotFound."""
        ...

    async def require_external_account(
        self, principal: Principal, external_account_id: str, deadline: float
    ) -> Payee:
        """The account, which is linked to the principal's customer. Raises ExternalAccountNotLinked."""
        ...

    async def require_open_customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> None:
        """Return when the customer was neither denied nor canceled; a denial counts within seconds. Raises
        InvalidState. The principal, in whose share of onboarding's queries it is asked, may act for the customer.
        """
        ...

    async def require_customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> None:
        """Return when the customer is one of the principal's tenant. Raises NotFound."""
        ...


class Acceptance(Protocol):
    """Core banking's answer for a wire that it accepted. One that was found may be in a later state by now."""

    @property
    def transaction_id(self) -> str: ...

    @property
    def state(self) -> WireState | None:
        """None: the bank's word for it is not one that we know."""
        ...

    @property
    def reason(self) -> str | None:
        """The bank's words for why the wire is in its state, where it gives some."""
        ...


class CoreBanking(Protocol):
    def send_wire(self, wire: WireRecord) -> ProviderWrite[Acceptance]:
        """The write that orders the wire. Its idempotency key is the wire's transaction id."""
        ...

    async def look_up(self, transaction_id: UUID, deadline: float) -> WireAtBank | None:
        """The wire as the bank shows it now; None when the bank knows no such wire.

        Raises:
            ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
        """
        ...

    async def transaction_id_of(self, bank_id: str, deadline: float) -> UUID | None:
        """The id of ours that a wire has under the bank's own id; None where the bank has no wire of ours under it.

        Raises as `look_up`, where the bank has to be asked: not for text that is no such id of the bank.
        """
        ...


@dataclass(frozen=True, slots=True)
class Core:
    """The core banking role. `newest`: the transaction ids of wires."""

    writes: CoreBanking
    feed: Fetch[FeedEntry]
    newest: FetchNewest


@dataclass(frozen=True, slots=True)
class Providers:
    core: Core


class Adapters(Protocol):
    """One company's adapters."""

    def core(self) -> Core: ...
