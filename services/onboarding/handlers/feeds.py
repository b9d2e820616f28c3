"""What providers report later: decisions on identities become commands, reports of accounts update their status."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid5

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.ids import parse_id
from libs.contracts.principal import Family, Principal
from libs.handling.feed_tail import Record
from libs.persistence import inbox_acceptance
from services.onboarding.handlers.apply_decision import OPERATION
from services.onboarding.models import RESERVE, AccountEntry, IdentityEntry
from services.onboarding.ordering import ordering_key
from services.onboarding.repository import accounts, verifications
from services.onboarding.repository.customers import tenants_of

IDENTITY_FEED = "identity"
FINANCIAL_FEED = "financial"
DECISIONS = UUID("6f0c2f5e-3d0b-5b53-9d0c-0e6a4f8f2a11")
"""Namespace of the command ids of decisions: one feed position, one command, however often it is read."""


async def prepare_identity(entries: Sequence[IdentityEntry]) -> Record:
    """Each entry about a customer of ours, and not known yet, becomes a command of that customer's.

    The entry may be read before we have committed the id of its record; the customer's own id was committed before the
    provider was called. So the command is recorded by the customer, and finds the record when its turn comes.
    """

    async def record(connection: AsyncConnection) -> None:
        ours = [(entry, _business_of(entry)) for entry in entries]
        tenants = await tenants_of(connection, {c for _, c in ours if c is not None})
        known = await verifications.known_versions(
            connection, [entry.identity_id for entry in entries]
        )
        for entry, customer_id in ours:
            is_news = not entry.status or known.get(entry.identity_id, 0) < entry.version
            if customer_id in tenants and is_news:
                await _enqueue(connection, entry, customer_id, tenants[customer_id])

    return record


def _business_of(entry: IdentityEntry) -> UUID | None:
    if entry.type != "customer.status_changed":
        return None
    return parse_id(entry.business_customer_id or entry.customer_id)


async def _enqueue(
    connection: AsyncConnection, entry: IdentityEntry, customer_id: UUID, tenant: str
) -> None:
    await inbox_acceptance.enqueue(
        connection,
        inbox_acceptance.InternalCommand(
            command_id=uuid5(DECISIONS, f"{IDENTITY_FEED}/{entry.position}"),
            operation=OPERATION,
            ordering_key=ordering_key(tenant, customer_id),
            principal=Principal(
                tenant=tenant,
                tenant_name="",
                family=Family.PARTNER,
                subscription_key=f"feed:{IDENTITY_FEED}",
            ),
            body={
                "customer_id": str(customer_id),
                "verification": _verification_in(entry),
            },
        ),
    )


def _verification_in(entry: IdentityEntry) -> dict[str, object] | None:
    if not entry.status:
        return None
    return {
        "identity_id": entry.identity_id,
        "status": entry.status,
        "version": entry.version,
        "issues": msgspec.to_builtins(entry.issues),
    }


def _account_id(entry: AccountEntry) -> str:
    return entry.account_id


async def prepare_financial(entries: Sequence[AccountEntry]) -> Record:
    """The status of each account, known to be ours or not yet, and whose a reserve account is.

    A customer's deposit account is opened by us, a reserve account by the bank, which reports it by its feed only.
    Reports are applied in the order of their accounts, as the commit of openings is, so that the two do not deadlock;
    those of one account keep the order of the feed.
    """

    async def record(connection: AsyncConnection) -> None:
        reports = [
            entry for entry in entries if entry.type.startswith("account.") and entry.account_id
        ]
        tenants = await tenants_of(
            connection, {c for entry in reports if (c := parse_id(entry.customer_id)) is not None}
        )
        for entry in sorted(reports, key=_account_id):
            status, number = entry.data.get("status"), entry.data.get("account_number")
            if isinstance(status, str):
                await accounts.set_status(connection, entry.account_id, status)
            customer_id = parse_id(entry.customer_id)
            is_reserve = entry.data.get("account_group") == RESERVE
            if is_reserve and customer_id in tenants and isinstance(number, str):
                await accounts.own(
                    connection, tenants[customer_id], customer_id, entry.account_id, number, RESERVE
                )

    return record
