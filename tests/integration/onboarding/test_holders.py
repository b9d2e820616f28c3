"""Whose the records of providers are: asked by reconciliation, whose providers may not know our ids."""

from __future__ import annotations

import uuid

import pytest

from libs.contracts import onboarding_operations as table
from libs.contracts.principal import SERVICE
from libs.contracts.reconciliation import FindHolders
from tests.integration.onboarding.desk import Desk, application

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_records_of_every_kind_lead_to_their_business_and_party(desk: Desk) -> None:
    onboarded = await desk.onboard(application())
    customer_id = onboarded["business"]["customer_id"]
    [person_id] = [person["customer_id"] for person in onboarded["persons"]]
    held = await desk.database.fetch(
        "SELECT identity_id, core_id FROM customers WHERE customer_id = $1"
        " UNION ALL SELECT identity_id, core_id FROM persons WHERE customer_id = $1"
        " ORDER BY 1",
        uuid.UUID(customer_id),
    )
    records = {one for row in held for one in row}
    accounts = {
        onboarded["business"]["account_id"],
        onboarded["external_bank_account"]["external_bank_account_id"],
    }

    steps = await desk.database.fetch(
        "SELECT idempotency_key FROM saga_steps WHERE customer_id = $1", uuid.UUID(customer_id)
    )
    keys = {str(row["idempotency_key"]) for row in steps}

    command = FindHolders(ids=[*records, *accounts, *keys, "unknown", str(uuid.uuid4())])
    found = (await desk.ask(table.FIND_HOLDERS, command, SERVICE))["data"]["holders"]

    parties = {one["record_id"]: one["party_id"] for one in found}
    assert keys
    assert parties.keys() == records | accounts | keys
    assert {one["customer_id"] for one in found} == {customer_id}
    assert {parties[one] for one in records} == {customer_id, person_id}
    assert {parties[one] for one in accounts | keys} == {customer_id}
