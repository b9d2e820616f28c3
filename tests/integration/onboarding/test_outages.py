"""Providers that fail in every way, and commands that another process takes over: one effect each, in the end."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import (
    ListCustomers,
    OnboardCustomer,
    UpdateBusiness,
)
from libs.contracts.errors import BanksideError, OutcomePending, ProviderRefused, Unavailable
from tests.integration.onboarding.desk import (
    Desk,
    application,
    eventually,
    partner,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOON_SECONDS = 4.5
"""A deadline so near that the service answers after a second and a half."""


async def only_customer(desk: Desk, tenant: str) -> str:
    listed = await desk.ask(table.LIST_CUSTOMERS, ListCustomers(), partner(tenant))
    (customer,) = listed["data"]
    assert customer["status"] == "approved"
    return str(customer["customer_id"])


async def first_customer(desk: Desk, tenant: str) -> str | None:
    """Once its application is recorded, which may be after its caller was told that it is pending."""
    listed = await desk.ask(table.LIST_CUSTOMERS, ListCustomers(), partner(tenant))
    return listed["data"][0]["customer_id"] if listed["data"] else None


async def assert_onboarded_once(desk: Desk, customer_id: str) -> None:
    """Exactly one of everything, at both providers, here, and among the events."""
    await desk.until_quiet()
    records = await desk.truth("customers", customer_id)
    assert sorted((r["api"], r["status"]) for r in records) == [
        ("core", "active"),
        ("identity", "approved"),
    ]
    tenant = await tenant_of(desk, customer_id)
    for row in await desk.rows("SELECT person_id FROM persons WHERE tenant = $1", tenant):
        assert len(await desk.truth("customers", str(row["person_id"]))) == 2
    (account,) = await desk.truth("accounts", customer_id)
    (external,) = await desk.truth("external-accounts", customer_id)
    seen = await desk.customer(customer_id, partner(tenant))
    assert [a["id"] for a in seen["accounts"]] == [account["account_id"]]
    assert [a["external_bank_account_id"] for a in seen["external_bank_accounts"]] == [
        external["external_account_id"]
    ]
    assert sorted(set(event_ids(desk, customer_id))) == [
        "customer.approved",
        "customer.created",
        "external_account.created",
        "person.created",
        "person.updated",
    ]


def event_ids(desk: Desk, customer_id: str) -> list[str]:
    """The types of the distinct events: a relay that is killed may send one twice, under one id."""
    distinct = {e["id"]: e["type"] for e in desk.events if e["customer_id"] == customer_id}
    types = sorted(distinct.values())
    assert len(types) == len(set(types)), types
    return types


async def tenant_of(desk: Desk, customer_id: str) -> str:
    (row,) = await desk.rows("SELECT tenant FROM customers WHERE customer_id = $1", customer_id)
    return str(row["tenant"])


async def answer(desk: Desk, command: OnboardCustomer, tenant: str) -> object:
    """What the caller is told, whatever it is."""
    try:
        return await desk.onboard(command, principal=partner(tenant), wait_seconds=SOON_SECONDS)
    except BanksideError as error:
        return error


async def finished(desk: Desk, tenant: str) -> bool:
    rows = await desk.rows(
        "SELECT status FROM customers WHERE tenant = $1 AND status <> 'pending'", tenant
    )
    return bool(rows)


async def test_a_lease_that_runs_out_is_taken_over_without_help(desk: Desk) -> None:
    service, tenant = desk.stack.services["onboarding"], f"t{uuid4().hex[:8]}"
    await service.stop()
    await service.start(BANKSIDE_ONBOARDING_CRASH_AT="onboarding.open_account.called")
    caller = asyncio.create_task(desk.onboard(application(), principal=partner(tenant)))
    await service.ended()

    await service.start()

    result = await caller
    assert result["status"] == "approved", "the process that resumed it answered the caller"
    assert len(await desk.truth("accounts", result["business"]["customer_id"])) == 1


@pytest.mark.parametrize("kind", ["error", "fail_after_success", "accept_then_drop"])
async def test_providers_that_fail_for_a_while_end_with_one_of_everything(
    desk: Desk, kind: str
) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    for api in ("identity", "core"):
        await desk.fault(api, "*", kind, times=4)

    told = await answer(desk, application(), tenant)

    await eventually(lambda: finished(desk, tenant))
    assert isinstance(told, dict | OutcomePending), told
    customer_id = await only_customer(desk, tenant)
    await assert_onboarded_once(desk, customer_id)


async def test_a_request_that_a_provider_handles_twice_has_one_effect(desk: Desk) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    for api in ("identity", "core"):
        await desk.fault(api, "*", "duplicate_reply")

    await desk.onboard(application(), principal=partner(tenant))

    await assert_onboarded_once(desk, await only_customer(desk, tenant))


async def test_core_down_after_approval_is_pending_and_finished_when_it_is_back(
    desk: Desk,
) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    await desk.fault("core", "*", "error")

    told = await answer(desk, application(), tenant)
    assert isinstance(told, OutcomePending)
    await desk.no_faults()

    await eventually(lambda: finished(desk, tenant))
    await assert_onboarded_once(desk, await only_customer(desk, tenant))


async def test_an_account_that_is_closed_before_it_is_known_here_is_shown_as_closed(
    desk: Desk,
) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    await desk.fault("core", "open_account", "accept_then_drop", times=1)
    await desk.fault("core", "get_operation", "error")
    assert isinstance(await answer(desk, application(), tenant), OutcomePending)
    customer_id = await eventually(lambda: first_customer(desk, tenant))
    (account,) = await eventually(lambda: desk.truth("accounts", customer_id))

    await desk.bank("POST", f"/simulate/accounts/{account['account_id']}/close")
    await eventually(lambda: news_is_read(desk))
    await desk.no_faults()

    await eventually(lambda: finished(desk, tenant))
    (seen,) = (await desk.customer(customer_id, partner(tenant)))["accounts"]
    assert (seen["id"], seen["status"]) == (account["account_id"], "closed")


async def news_is_read(desk: Desk) -> bool:
    """Whether the financial provider's feed holds nothing beyond our position."""
    cursors = await desk.rows("SELECT position FROM feed_cursor WHERE feed = 'financial'")
    position = cursors[0]["position"] if cursors else 0
    url = f"{desk.stack.sandbox_url}/financial/events?after={position}&limit=1"
    token = desk.stack.environment.secrets.provider_tokens["onboarding"]["financial"]
    async with desk.http.get(url, headers={"Authorization": f"Bearer {token}"}) as response:
        assert response.status == 200
        return not (await response.json())["events"]


async def test_with_the_bank_away_nothing_is_started_and_nothing_is_left(desk: Desk) -> None:
    tenant, command = f"t{uuid4().hex[:8]}", application()
    await desk.stack.services["provider_sandbox"].stop()

    with pytest.raises(Unavailable):
        await desk.onboard(command, principal=partner(tenant))

    for name in ("customers", "persons", "external_accounts", "ein_holds", "saga_steps"):
        assert await desk.rows(f"SELECT 1 FROM {name} WHERE tenant = $1", tenant) == []
    await desk.stack.services["provider_sandbox"].start()

    async def accepted() -> object:
        try:
            return await desk.onboard(command, principal=partner(tenant))
        except Unavailable:
            return None  # the circuit is still open

    result = await eventually(accepted)
    assert isinstance(result, dict)
    assert result["status"] == "approved"
    await desk.until_quiet()
    assert event_ids(desk, result["business"]["customer_id"]).count("customer.created") == 1


async def test_an_application_that_goes_on_without_a_provider_is_carried_out_when_there_is_one(
    desk: Desk,
) -> None:
    service, tenant = desk.stack.services["onboarding"], f"t{uuid4().hex[:8]}"
    await service.stop()
    await service.start(BANKSIDE_ONBOARDING_CRASH_AT="onboarding.accepted")
    caller = asyncio.create_task(desk.onboard(application(), principal=partner(tenant)))
    assert await service.ended() == -9
    await desk.stack.services["provider_sandbox"].stop()
    await desk.expire_leases()

    await service.start()
    await eventually(lambda: postponed(desk))
    await desk.stack.services["provider_sandbox"].start()

    result = await caller
    assert result["status"] == "approved", "it was never told that nothing was started"
    await assert_onboarded_once(desk, result["business"]["customer_id"])


async def postponed(desk: Desk) -> bool:
    return bool(await desk.rows("SELECT 1 FROM inbox WHERE last_error = 'unavailable'"))


async def test_a_later_update_waits_for_an_unknown_earlier_one(desk: Desk) -> None:
    customer_id = (await desk.onboard(application()))["business"]["customer_id"]
    await desk.fault("core", "update_customer", "error")

    async def update(name: str) -> object:
        command = UpdateBusiness.model_validate(
            {"customer_id": customer_id, "business": {"dba": name}}
        )
        return await desk.send(table.UPDATE_BUSINESS, command)

    first = asyncio.create_task(update("First"))
    await eventually(lambda: accepted_count(desk, 1))
    second = asyncio.create_task(update("Second"))
    await eventually(lambda: accepted_count(desk, 2))
    await eventually(lambda: has_struck(desk))
    await desk.no_faults()
    await asyncio.gather(first, second)

    records = await desk.truth("customers", customer_id)
    assert [row["fields"]["dba"] for row in records] == ["Second"] * 2
    assert (await desk.customer(customer_id))["business"]["dba"] == "Second"


async def has_struck(desk: Desk) -> bool:
    return any(fault["applied"] for fault in await desk.bank("GET", "/faults"))


async def accepted_count(desk: Desk, count: int) -> bool:
    rows = await desk.rows("SELECT 1 FROM inbox WHERE finished_at IS NULL")
    return len(rows) >= count


async def test_an_identity_provider_that_refuses_an_application_denies_it(desk: Desk) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    await desk.fault("identity", "create_customer", "refuse", times=1)

    with pytest.raises(ProviderRefused):
        await desk.onboard(application(), principal=partner(tenant))

    listed = await desk.ask(table.LIST_CUSTOMERS, ListCustomers(), partner(tenant))
    (customer,) = listed["data"]
    assert customer["status"] == "denied"
    assert [issue["code"] for issue in customer["issues"]] == ["provider_refused"]
    await desk.until_quiet()
    assert event_ids(desk, customer["customer_id"]) == [
        "customer.created",
        "customer.denied",
        "person.created",
    ]


async def test_a_wrong_provider_token_denies_nobody(desk: Desk) -> None:
    service, tenant = desk.stack.services["onboarding"], f"t{uuid4().hex[:8]}"
    await service.stop()
    await service.start(BANKSIDE_ONBOARDING_IDENTITY_TOKEN="x" * 32)

    told = await answer(desk, application(), tenant)
    await service.stop()
    await service.start()

    assert isinstance(told, OutcomePending), "a proxy may answer 401 to what it has passed on"
    await eventually(lambda: finished(desk, tenant))
    await assert_onboarded_once(desk, await only_customer(desk, tenant))


async def test_an_update_of_a_customer_that_is_still_being_onboarded_waits_for_that(
    desk: Desk,
) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    await desk.fault("core", "create_customer", "error")
    assert isinstance(await answer(desk, application(), tenant), OutcomePending)
    customer_id = await eventually(lambda: first_customer(desk, tenant))
    command = UpdateBusiness.model_validate(
        {"customer_id": customer_id, "business": {"business_name": "Later"}}
    )

    update = asyncio.create_task(desk.send(table.UPDATE_BUSINESS, command, partner(tenant)))
    await eventually(lambda: accepted_count(desk, 2))
    await desk.no_faults()
    await update

    await desk.until_quiet()
    records = await desk.truth("customers", customer_id)
    assert sorted((r["api"], r["fields"]["business_name"]) for r in records) == [
        ("core", "Later"),
        ("identity", "Later"),
    ]
    assert event_ids(desk, customer_id) == [
        "customer.approved",
        "customer.created",
        "customer.updated",
        "external_account.created",
        "person.created",
        "person.updated",
    ]
