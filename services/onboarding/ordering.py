"""In which order commands are driven: those of one customer one at a time, as they were recorded.

An onboarding has no ordering key. A command about its customer that arrives before the onboarding is over ends
`outcome_pending` and is driven again.
"""

from __future__ import annotations

from uuid import UUID

from libs.contracts.ids import parse_id
from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from libs.handling.acceptance import Arriving
from libs.persistence.async_engine import AsyncConnection
from services.onboarding.repository.store import Store

UNORDERED = frozenset({ONBOARD_CUSTOMER.name})


class CustomerOrdering:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, connection: AsyncConnection, command: Arriving) -> str | None:
        customer_id = await self._customer_of(connection, command)
        return ordering_key(command.principal.tenant, customer_id) if customer_id else None

    async def _customer_of(self, connection: AsyncConnection, command: Arriving) -> UUID | None:
        """The customer that the command is about; None when there is none, and so nothing to order."""
        tenant, body = command.principal.tenant, command.body
        match command.operation:
            case "onboarding.update_business":
                return parse_id(body["customer_id"])
            case "onboarding.update_person":
                person_id = parse_id(body["person_id"])
                if person_id is None:
                    return None
                return await self._store.persons.customer_of(connection, tenant, person_id)
            case "onboarding.add_external_bank_account":
                return await self._store.external_accounts.customer_of(
                    connection, tenant, body["external_bank_account_id"]
                )
            case _:
                return None


def ordering_key(tenant: str, customer_id: UUID) -> str:
    """With the tenant: a stranger who names the customer neither waits for its commands nor delays them."""
    return f"{tenant}/{customer_id}"
