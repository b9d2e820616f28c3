"""Clients of Increase's fake for tests, and the customers that they make there."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from increase import AsyncIncrease, DefaultAioHttpClient, omit
from increase.types import Account, AccountNumber, Entity, ExternalAccount, WireTransfer

from libs.tls import client_context

Fields = dict[str, Any]

ADDRESS = {
    "line1": "21 Harbor Street",
    "city": "Portland",
    "state": "ME",
    "zip": "04101",
    "country": "US",
}


def client_of(url: str, key: str) -> AsyncIncrease:
    """The SDK's client as the services use it: no retries of its own, answers validated."""
    return AsyncIncrease(
        api_key=key,
        base_url=url,
        max_retries=0,
        # One context for all: each would read the system's CAs again.
        http_client=DefaultAioHttpClient(verify=client_context()),
        _strict_response_validation=True,
    )


def owner(number: str = "078051120", **more: Any) -> Fields:
    individual = {
        "name": "Ada Marsh",
        "date_of_birth": "1980-05-17",
        "address": dict(ADDRESS),
        "identification": {"method": "social_security_number", "number": number},
    }
    return {"individual": individual, "prongs": ["control", "ownership"], **more}


async def make_entity(
    increase: AsyncIncrease,
    ein: str = "602214076",
    *,
    description: str | None = None,
    key: str | None = None,
    **corporation: Any,
) -> Entity:
    fields: Fields = {
        "name": "Tidewater Goods LLC",
        "address": dict(ADDRESS),
        "beneficial_owners": [owner()],
        "legal_identifier": {"value": ein},
        "industry_code": "4539",
        "incorporation_state": "ME",
    }
    return await increase.entities.create(
        structure="corporation",
        corporation=fields | corporation,  # type: ignore[arg-type] # built from parts
        description=omit if description is None else description,
        idempotency_key=key or uuid4().hex,
    )


async def open_account(
    increase: AsyncIncrease, entity: Entity | None = None, *, program_id: str | None = None
) -> Account:
    entity = entity or await make_entity(increase)
    return await increase.accounts.create(
        name="Operating",
        entity_id=entity.id,
        program_id=omit if program_id is None else program_id,
        idempotency_key=uuid4().hex,
    )


async def give_number(increase: AsyncIncrease, account: Account) -> AccountNumber:
    return await increase.account_numbers.create(
        account_id=account.id, name="Main", idempotency_key=uuid4().hex
    )


async def fund(increase: AsyncIncrease, account: Account, cents: int) -> AccountNumber:
    """The number by which the money came."""
    number = await give_number(increase, account)
    await increase.simulations.inbound_wire_transfers.create(
        account_number_id=number.id, amount=cents, debtor_name="Harbor Café"
    )
    return number


async def link_external(increase: AsyncIncrease) -> ExternalAccount:
    return await increase.external_accounts.create(
        account_number="123456789012",
        routing_number="021000021",
        description="Supplier",
        account_holder="business",
        idempotency_key=uuid4().hex,
    )


async def send_wire(
    increase: AsyncIncrease, account: Account, external: ExternalAccount, cents: int, key: str
) -> WireTransfer:
    return await increase.wire_transfers.create(
        account_id=account.id,
        external_account_id=external.id,
        amount=cents,
        creditor={"name": "Supplier Inc"},
        remittance={"category": "unstructured", "unstructured": {"message": "Nets and buoys"}},
        idempotency_key=key,
    )
