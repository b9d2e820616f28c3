"""Whose an external account is: asked by payments before it sends a wire."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import Address
from libs.contracts.errors import NotFound
from libs.contracts.ownership import (
    FindAccountHolders,
    FindExternalAccount,
    ListLinkedExternalAccounts,
)
from libs.contracts.principal import SERVICE, Family, Principal
from tests.integration.onboarding.desk import Desk, address, application, partner

pytestmark = pytest.mark.asyncio(loop_scope="session")


def customer(customer_id: str, tenant: str = "demo") -> Principal:
    return Principal(tenant, tenant.title(), Family.CUSTOMER, "sub_test", customer_id)


async def test_a_linked_external_account_is_its_customers_alone(desk: Desk) -> None:
    first, second = await desk.onboard(application()), await desk.onboard(application())
    customer_id = first["business"]["customer_id"]
    linked = first["external_bank_account"]["external_bank_account_id"]
    command = FindExternalAccount(external_account_id=linked)

    found = await desk.ask(table.FIND_EXTERNAL_ACCOUNT, command, customer(customer_id))
    of_partner = await desk.ask(table.FIND_EXTERNAL_ACCOUNT, command, partner())

    linked_at = found["data"].pop("linked_at")
    assert of_partner["data"].pop("linked_at") == linked_at
    assert (
        timedelta(0) <= datetime.now(UTC) - datetime.fromisoformat(linked_at) < timedelta(hours=1)
    )
    assert found["data"] == {
        "external_account_id": linked,
        "customer_id": customer_id,
        "name_on_account": "Acme Tools",
        "address_on_account": Address(**address()).model_dump(),
    }
    assert of_partner == found
    for stranger in (
        customer(second["business"]["customer_id"]),
        customer(customer_id, "other"),
        partner("other"),
    ):
        with pytest.raises(NotFound):
            await desk.ask(table.FIND_EXTERNAL_ACCOUNT, command, stranger)
    unknown = FindExternalAccount(external_account_id=f"ext_{uuid.uuid4().hex}")
    with pytest.raises(NotFound):
        await desk.ask(table.FIND_EXTERNAL_ACCOUNT, unknown, customer(customer_id))


async def test_what_of_accounts_is_ours_is_told_to_services_that_know_their_ids_only(
    desk: Desk,
) -> None:
    first, second = await desk.onboard(application()), await desk.onboard(application())
    ids = [one["business"]["account_id"] for one in (first, second)]
    customer_id = first["business"]["customer_id"]
    linked = first["external_bank_account"]

    found = await desk.ask(
        table.FIND_ACCOUNT_HOLDERS,
        FindAccountHolders(account_ids=[*ids, "acc_of_others"]),
        SERVICE,
    )
    external = await desk.ask(
        table.LIST_LINKED_EXTERNAL_ACCOUNTS,
        ListLinkedExternalAccounts(customer_id=customer_id),
        SERVICE,
    )
    unknown = await desk.ask(
        table.LIST_LINKED_EXTERNAL_ACCOUNTS,
        ListLinkedExternalAccounts(customer_id=str(uuid.uuid4())),
        SERVICE,
    )

    holders = {row["account_id"]: row for row in found["data"]["holders"]}
    assert set(holders) == set(ids)
    assert holders[ids[0]]["customer_id"] == customer_id
    assert holders[ids[0]]["business_name"]
    [row] = external["data"]["external_accounts"]
    assert row["external_account_id"] == linked["external_bank_account_id"]
    assert (row["primary"], len(row["account_number"])) == (True, 4)
    assert unknown["data"] == {"external_accounts": []}
