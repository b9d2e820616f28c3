"""Providers that fail in every way, in the middle of every write: both or neither, once or not at all."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.support.api import Answer
from tests.support.live import CUSTOMERS, ONBOARDED, Live
from tests.support.people import application, bank_account, new_key
from tests.support.waiting import eventually

PASSING = ["error", "accept_then_drop", "fail_after_success", "duplicate_reply", "latency"]
"""Kinds of faults after which everything ends as if there had been none."""
ONBOARDING = [
    ("identity", "create_customer"),
    ("core", "create_customer"),
    ("core", "create_external_account"),
    ("core", "open_account"),
]
DECIDED = {"200", "outcome_pending", "unavailable"}


def more_of(live: Live, kind: str, times: float = 1.3) -> dict[str, Any]:
    """Of a latency: so many times what the services wait for a provider."""
    return live.beyond_timeout(times) if kind == "latency" else {}


def assert_decided(answer: Answer) -> None:
    assert answer.code in DECIDED, f"{answer.status} {answer.body}"
    assert answer.status in {200, 503, 504}


@pytest.mark.parametrize("kind", PASSING)
@pytest.mark.parametrize(("api", "operation"), ONBOARDING)
async def test_an_onboarding_passes_a_provider_that_fails_for_a_while(
    live: Live, api: str, operation: str, kind: str, idempotency_key: str
) -> None:
    body = application()
    await live.bank.fault(api, operation, kind, times=2, **more_of(live, kind))

    answer = await live.partner.post(CUSTOMERS, body, idempotency_key)
    await live.bank.heal()

    assert_decided(answer)
    if kind == "duplicate_reply":
        assert answer.status == 200, "the caller notices nothing"
    final = await live.final("POST", CUSTOMERS, body, idempotency_key)
    assert final.is_replayed == (answer.status != 503)
    assert final.data["status"] == "approved"
    if answer.status == 200:
        assert final.raw == answer.raw
    await live.exists_once(final.data)


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        *(("identity", kind) for kind in ("error", "latency")),
        *(
            ("core", kind)
            for kind in ("error", "accept_then_drop", "fail_after_success", "latency")
        ),
    ],
)
async def test_a_provider_that_is_down_keeps_nobody_waiting_and_loses_nothing(
    live: Live, api: str, kind: str
) -> None:
    bodies = {new_key(): application() for _ in range(3)}
    await live.bank.fault(api, "*", kind, **more_of(live, kind, 2.5))

    answers = await asyncio.gather(
        *(live.partner.post(CUSTOMERS, body, key) for key, body in bodies.items())
    )
    again = [await live.partner.post(CUSTOMERS, body, key) for key, body in bodies.items()]
    await live.bank.heal()

    for answer in answers:
        assert_decided(answer)
        assert answer.status != 200
    for answer in again:
        assert answer.code in {"idempotency_in_progress", "unavailable", "outcome_pending"}
        assert answer.headers.get("Retry-After") or answer.code == "outcome_pending"
    for key, body in bodies.items():
        final = await live.final("POST", CUSTOMERS, body, key)
        assert final.data["status"] == "approved"
        await live.exists_once(final.data)


@pytest.mark.parametrize(("api", "operation"), ONBOARDING)
async def test_a_definite_refusal_undoes_what_was_done(
    live: Live, api: str, operation: str, idempotency_key: str
) -> None:
    body = application()
    await live.bank.fault(api, operation, "refuse")

    answer = await live.partner.post(CUSTOMERS, body, idempotency_key)
    await live.bank.heal()

    assert (answer.status, answer.code) == (409, "provider_refused")
    await nothing_is_left(live, body)
    replay = await live.partner.post(CUSTOMERS, body, idempotency_key)
    assert (replay.status, replay.code, replay.is_replayed) == (409, "provider_refused", True)
    anew = await live.partner.post(CUSTOMERS, body)
    assert anew.data["status"] == "approved", "the EIN was given back"


@pytest.mark.parametrize("kind", PASSING)
async def test_undoing_passes_a_provider_that_fails_too(
    live: Live, kind: str, idempotency_key: str
) -> None:
    body = application()
    await live.bank.fault("core", "open_account", "refuse", times=1)
    for api, operation in (
        ("core", "close_customer"),
        ("core", "close_external_account"),
        ("identity", "cancel_customer"),
    ):
        await live.bank.fault(api, operation, kind, times=1, **more_of(live, kind))

    answer = await live.partner.post(CUSTOMERS, body, idempotency_key)
    await live.bank.heal()

    assert answer.code in {"provider_refused", "outcome_pending"}
    final = await live.final("POST", CUSTOMERS, body, idempotency_key)
    assert (final.status, final.code) == (409, "provider_refused")
    await nothing_is_left(live, body)


async def nothing_is_left(live: Live, body: Any) -> None:
    """No open account, nothing active, nobody told that there is a customer who is approved."""
    ein = body["business"]["ein"]
    tins = {person["tin"] for person in body["persons"]}
    rows = await live.bank.customers()
    mine = [row for row in rows if row["fields"].get("ein") == ein]
    mine += [row for row in rows if row["fields"].get("tin") in tins]
    assert {row["status"] for row in mine} <= {"canceled", "closed", "denied"}
    if not mine:
        return
    owners = {row["customer_id"] for row in mine}
    assert await live.bank.external_accounts(*owners) == []
    accounts = await live.bank.accounts(*owners)
    assert [row for row in accounts if row["status"] != "closed"] == []


async def test_many_onboardings_under_all_faults_at_once(live: Live) -> None:
    bodies = {new_key(): application() for _ in range(12)}
    for api in ("identity", "core"):
        for kind in PASSING:
            more = {"milliseconds": 200} if kind == "latency" else {}
            await live.bank.fault(api, "*", kind, probability=0.15, **more)

    answers = await asyncio.gather(
        *(live.partner.post(CUSTOMERS, body, key) for key, body in bodies.items())
    )
    await live.bank.heal()

    for answer in answers:
        assert_decided(answer)
    for key, body in bodies.items():
        final = await live.final("POST", CUSTOMERS, body, key)
        assert final.data["status"] == "approved"
        await live.exists_once(final.data)


@pytest.mark.parametrize("kind", PASSING)
@pytest.mark.parametrize("api", ["identity", "core"])
async def test_an_update_passes_a_provider_that_fails_for_a_while(
    live: Live, api: str, kind: str
) -> None:
    data = await live.onboarded()
    customer_id, person_id = data["business"]["customer_id"], data["persons"][0]["customer_id"]
    await live.bank.fault(api, "update_customer", kind, times=2, **more_of(live, kind))
    calls = [
        (f"{CUSTOMERS}/business/{customer_id}", {"business": {"dba": "After"}}, new_key()),
        (f"{CUSTOMERS}/person/{person_id}", {"last_name": "After"}, new_key()),
    ]

    answers = await asyncio.gather(*(live.partner.patch(*call) for call in calls))
    await live.bank.heal()

    for call, answer in zip(calls, answers, strict=True):
        assert_decided(answer)
        assert (await live.final("PATCH", *call)).data is None
    assert await named(live, customer_id, person_id) == {"After"}
    await live.has_events(
        customer_id, ONBOARDED + Counter({"customer.updated": 1, "person.updated": 1})
    )


@pytest.mark.parametrize("api", ["identity", "core"])
async def test_an_update_that_one_provider_refuses_is_made_at_neither(live: Live, api: str) -> None:
    body = application()
    body["business"]["dba"] = body["persons"][0]["last_name"] = "Before"
    data = await live.onboarded(body)
    customer_id, person_id = data["business"]["customer_id"], data["persons"][0]["customer_id"]
    await live.bank.fault(api, "update_customer", "refuse", times=2)
    calls = [
        (f"{CUSTOMERS}/business/{customer_id}", {"business": {"dba": "After"}}, new_key()),
        (f"{CUSTOMERS}/person/{person_id}", {"last_name": "After"}, new_key()),
    ]

    answers = [await live.partner.patch(*call) for call in calls]

    assert [answer.code for answer in answers] == ["provider_refused"] * 2
    assert await named(live, customer_id, person_id) == {"Before"}
    await live.has_events(customer_id, ONBOARDED)
    shown = await live.customer(customer_id)
    assert shown["business"]["dba"] == shown["persons"][0]["last_name"] == "Before"
    for target, update, _ in calls:
        assert (await live.partner.patch(target, update)).status == 200


async def named(live: Live, customer_id: str, person_id: str) -> set[str]:
    """The names at both providers of a business (dba) and its person."""
    rows = await live.bank.customers(customer_id, person_id)
    assert len(rows) == 4
    return {row["fields"]["dba" if row["kind"] == "business" else "last_name"] for row in rows}


async def test_a_later_update_waits_for_an_unknown_earlier_one(live: Live) -> None:
    data = await live.onboarded()
    customer_id = data["business"]["customer_id"]
    target = f"{CUSTOMERS}/business/{customer_id}"
    keys = [new_key(), new_key()]
    await live.bank.fault("core", "update_customer", "error")

    first = await live.partner.patch(target, {"business": {"dba": "First"}}, keys[0])
    second = await live.partner.patch(target, {"business": {"dba": "Second"}}, keys[1])
    await live.bank.heal()

    assert [first.code, second.code] == ["outcome_pending"] * 2
    for key, name in zip(keys, ("First", "Second"), strict=True):
        final = await live.final("PATCH", target, {"business": {"dba": name}}, key)
        assert final.status == 200
    rows = await live.bank.customers(customer_id)
    assert {row["fields"]["dba"] for row in rows} == {"Second"}
    assert (await live.customer(customer_id))["business"]["dba"] == "Second"


@pytest.mark.parametrize("kind", [*PASSING, "refuse"])
async def test_adding_an_external_account_passes_or_leaves_nothing(live: Live, kind: str) -> None:
    data = await live.onboarded()
    customer_id = data["business"]["customer_id"]
    old = data["external_bank_account"]["external_bank_account_id"]
    target = f"{CUSTOMERS}/external_bank_account/{old}"
    body, key = {"external_bank_account": bank_account()}, new_key()
    await live.bank.fault("core", "create_external_account", kind, times=2, **more_of(live, kind))

    answer = await live.partner.post(target, body, key)
    await live.bank.heal()

    final = await live.final("POST", target, body, key)
    linked = {
        row["external_account_id"]: row["primary"]
        for row in await live.bank.external_accounts(customer_id)
    }
    if kind == "refuse":
        assert (answer.code, final.code) == ("provider_refused", "provider_refused")
        assert linked == {old: True}
        await live.has_events(customer_id, ONBOARDED)
        assert (await live.partner.post(target, body)).status == 200
        return
    assert_decided(answer)
    new = final.data["external_bank_account_id"]
    assert linked == {new: True, old: False}

    async def told() -> bool:
        types = Counter(event["type"] for event in await live.events.of(customer_id))
        return types["external_account.created"] == 2

    await eventually("the account is told once", told)


@pytest.mark.parametrize("kind", ["error", "accept_then_drop", "latency"])
async def test_a_read_of_a_provider_that_fails_is_told_as_such(live: Live, kind: str) -> None:
    account_id = (await live.onboarded())["business"]["account_id"]
    target = f"/partner/reseller/accounts/balance/{account_id}"
    await live.bank.fault("financial", "get_balance", kind, **more_of(live, kind, 2.5))

    failed = await live.partner.get(target)
    await live.bank.heal()

    expected = {"error": "provider_error", "latency": "provider_timeout"}
    codes = {expected.get(kind, "provider_error"), "unavailable"}
    assert failed.code in codes

    async def again() -> bool:
        return (await live.partner.get(target)).status == 200

    await eventually("the provider is asked again", again)


async def test_a_decision_is_carried_out_when_core_banking_is_back(live: Live) -> None:
    data = (await live.partner.post(CUSTOMERS, application("0002"))).data
    customer_id = data["business"]["customer_id"]
    await live.bank.fault("core", "*", "fail_after_success", times=4)

    await live.bank.decide(customer_id, "approved")
    customer = await live.has_account(customer_id)

    accounts = await live.bank.accounts(customer_id)
    assert [row["account_id"] for row in accounts] == [customer["accounts"][0]["id"]]
    assert len(await live.bank.external_accounts(customer_id)) == 1
