"""`kill -9` at every named point: whatever was begun is finished once, by whoever comes next.

A killed process's commands are taken over when their leases run out. Nobody waits for that here before the next point:
each point is hit by a new customer (or by an older one's second life), and all of them are looked at in the end.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from tests.support.live import CUSTOMERS, ONBOARDED, Live
from tests.support.people import PENDING_REVIEW, application, bank_account, new_key
from tests.support.waiting import eventually

KILLED = -signal.SIGKILL
TAKEN_OVER_SECONDS = 40.0
LINKING = f"{CUSTOMERS}/external_bank_account"


def step(name: str) -> list[str]:
    return [f"{name}.intended", f"{name}.called", f"{name}.recorded"]


def commit(name: str) -> list[str]:
    return [f"{name}.committing", f"{name}.committed"]


ONBOARDING = {
    "command": ["accepted", "driving", *commit("application"), "concluding", "concluded"],
    "verification": [*step("verify_business"), *step("verify_person")],
    "core customers": [*step("create_core_business"), *step("create_core_person")],
    "account": [*step("link_external_account"), *step("open_account"), *commit("opened")],
}
REFUSAL = {
    "account and persons": [*step("close_external_account"), *step("close_core_person")],
    "business": [*step("close_core_business"), *step("cancel_identity_business")],
    "persons and end": [*step("cancel_identity_person"), *commit("denied")],
}


@pytest_asyncio.fixture(autouse=True)
async def unarmed(live: Live) -> AsyncIterator[None]:
    """Whatever a test did, the next one gets processes that live, and providers that are called again."""
    yield
    for name, process in live.stack.services.items():
        if not process.is_running:
            await live.stack.restart(name)
    await live.bank.heal()
    await eventually("providers are called again", partial(onboards, live))


async def onboards(live: Live) -> bool:
    return (await live.partner.post(CUSTOMERS, application())).status == 200


async def killed_at(
    live: Live, point: str, provoke: Coroutine[Any, Any, Any], service: str = "onboarding"
) -> asyncio.Task[Any]:
    """Arm the service, do what leads to the point, and see it die; what was provoked goes on waiting."""
    try:
        await live.stack.restart(service, BANKSIDE_CRASH_AT=point)
    except AssertionError:
        # An older customer's command, taken over, may have led it there before it was ready.
        assert not live.stack.services[service].is_running
    provoked = asyncio.create_task(provoke)
    try:
        code = await live.stack.services[service].ended()
    except AssertionError:
        log = live.stack.log(service)[-3000:]
        await live.stack.kill(service)
        raise AssertionError(f"{service} did not reach {point}\n{log}") from None
    assert code == KILLED, f"{service} at {point}: {code}"
    return provoked


async def all_finals(live: Live, sent: dict[str, Any]) -> list[Any]:
    """The final answers of onboardings by their keys."""
    return await asyncio.gather(
        *(
            live.final("POST", CUSTOMERS, body, key, TAKEN_OVER_SECONDS)
            for key, body in sent.items()
        )
    )


@pytest.mark.parametrize("points", ONBOARDING.values(), ids=ONBOARDING.keys())
async def test_an_onboarding_survives_a_kill_at_each_point(live: Live, points: list[str]) -> None:
    sent = {new_key(): application() for _ in points}
    callers = [
        await killed_at(live, f"onboarding.{point}", live.partner.post(CUSTOMERS, body, key))
        for point, (key, body) in zip(points, sent.items(), strict=True)
    ]
    await live.stack.restart("onboarding")

    told = await asyncio.gather(*callers)
    finals = await all_finals(live, sent)

    for answer in told:
        assert answer.code in {"200", "outcome_pending", "unavailable"}
    for final in finals:
        assert final.data["status"] == "approved"
        await live.exists_once(final.data)


async def test_an_undecided_one_survives_a_kill_at_each_point(live: Live) -> None:
    points = commit("verified")
    sent = {new_key(): application(PENDING_REVIEW) for _ in points}
    callers = [
        await killed_at(live, f"onboarding.{point}", live.partner.post(CUSTOMERS, body, key))
        for point, (key, body) in zip(points, sent.items(), strict=True)
    ]
    await live.stack.restart("onboarding")

    await asyncio.gather(*callers)
    finals = await all_finals(live, sent)

    for final in finals:
        assert final.data["status"] == "pending_review"
        customer_id = final.data["business"]["customer_id"]
        assert len(await live.bank.customers(customer_id)) == 1
        born = Counter({"customer.created": 1, "customer.pending_review": 1, "person.created": 2})
        await live.has_events(customer_id, born)


@pytest.mark.parametrize("feed", ["identity", "financial"])
async def test_a_feed_has_its_effect_once_whoever_dies(live: Live, feed: str) -> None:
    data = []
    for point in ("before_commit", "after_commit"):
        answer = (await live.partner.post(CUSTOMERS, application(PENDING_REVIEW))).data
        customer_id = answer["business"]["customer_id"]
        approval = live.bank.decide(customer_id, "approved")
        await (await killed_at(live, f"feed.{feed}.{point}", approval))
        await live.stack.restart("onboarding")
        data.append(customer_id)

    for customer_id in data:
        await live.has_account(customer_id)
        assert len(await live.bank.accounts(customer_id)) == 1
        expected = ONBOARDED + Counter({"customer.pending_review": 1})
        await live.has_events(customer_id, expected)


async def test_a_decision_survives_a_kill_at_each_point(live: Live) -> None:
    ids = []
    for point in ("decision.committing", "decision.committed", *commit("opened")):
        if not live.stack.services["onboarding"].is_running:
            await live.stack.restart("onboarding")
        answer = (await live.partner.post(CUSTOMERS, application(PENDING_REVIEW))).data
        ids.append(answer["business"]["customer_id"])
        await (await killed_at(live, f"onboarding.{point}", live.bank.decide(ids[-1], "approved")))
    await live.stack.restart("onboarding")

    for customer_id in ids:

        async def opened(customer_id: str = customer_id) -> bool:
            return bool((await live.customer(customer_id))["accounts"])

        await eventually("the account is opened", opened, TAKEN_OVER_SECONDS)
        assert len(await live.bank.accounts(customer_id)) == 1
        assert len(await live.bank.external_accounts(customer_id)) == 1
        expected = ONBOARDED + Counter({"customer.pending_review": 1})
        await live.has_events(customer_id, expected)


async def test_a_reserve_account_does_not_pass_for_the_one_being_opened(live: Live) -> None:
    answer = (await live.partner.post(CUSTOMERS, application(PENDING_REVIEW))).data
    customer_id = answer["business"]["customer_id"]
    decision = live.bank.decide(customer_id, "approved")
    await (await killed_at(live, "onboarding.opened.committing", decision))
    (deposit,) = await live.bank.accounts(customer_id)
    reserve = await live.bank.simulate(f"accounts/{deposit['account_id']}/reserve")
    await live.stack.restart("onboarding")

    async def both() -> set[str]:
        found = (await live.customer(customer_id))["accounts"]
        return {account["id"] for account in found if len(found) == 2}

    owned = await eventually("both accounts are the customer's", both, TAKEN_OVER_SECONDS)

    assert owned == {deposit["account_id"], reserve["account_id"]}
    assert (await live.customer(customer_id))["status"] == "approved"


@pytest.mark.parametrize("points", REFUSAL.values(), ids=REFUSAL.keys())
async def test_taking_back_survives_a_kill_at_each_point(live: Live, points: list[str]) -> None:
    sent = {new_key(): application() for _ in points}
    await live.bank.fault("core", "open_account", "refuse")
    callers = [
        await killed_at(live, f"onboarding.{point}", live.partner.post(CUSTOMERS, body, key))
        for point, (key, body) in zip(points, sent.items(), strict=True)
    ]
    await live.stack.restart("onboarding")

    told = await asyncio.gather(*callers)
    finals = await all_finals(live, sent)

    assert {answer.code for answer in told} <= {"provider_refused", "outcome_pending"}
    assert {final.code for final in finals} == {"provider_refused"}
    rows = await live.bank.customers()
    eins = {body["business"]["ein"] for body in sent.values()}
    owners = {row["customer_id"] for row in rows if row["fields"].get("ein") in eins}
    assert len(owners) == len(points)
    tins = {person["tin"] for body in sent.values() for person in body["persons"]}
    persons = {row["customer_id"] for row in rows if row["fields"].get("tin") in tins}
    left = [row for row in rows if row["customer_id"] in owners | persons]
    assert {row["status"] for row in left} == {"canceled", "closed"}
    assert await live.bank.accounts(*owners) == []
    assert await live.bank.external_accounts(*owners) == []


async def test_an_update_survives_a_kill_at_each_point(live: Live) -> None:
    points = [*step("update_identity"), *step("update_core")]
    of_business = [*points, *commit("business_updated")]
    of_person = [points[1], points[4], *commit("person_updated")]
    customers = [await live.onboarded() for _ in range(len(of_business) + len(of_person))]
    calls: list[tuple[str, Any, str]] = []
    callers = []
    for number, point in enumerate(of_business + of_person):
        data = customers[number]
        if number < len(of_business):
            target = f"{CUSTOMERS}/business/{data['business']['customer_id']}"
            call: tuple[str, Any, str] = (target, {"business": {"dba": "After"}}, new_key())
        else:
            target = f"{CUSTOMERS}/person/{data['persons'][0]['customer_id']}"
            call = (target, {"last_name": "After"}, new_key())
        calls.append(call)
        callers.append(await killed_at(live, f"onboarding.{point}", live.partner.patch(*call)))
    await live.stack.restart("onboarding")

    told = await asyncio.gather(*callers)
    finals = await asyncio.gather(
        *(live.final("PATCH", *call, TAKEN_OVER_SECONDS) for call in calls)
    )

    assert {answer.code for answer in told} <= {"200", "outcome_pending"}
    assert {final.status for final in finals} == {200}
    for number, data in enumerate(customers):
        is_business = number < len(of_business)
        owner = data["business" if is_business else "persons"]
        subject = owner["customer_id"] if is_business else owner[0]["customer_id"]
        rows = await live.bank.customers(subject)
        name = "dba" if is_business else "last_name"
        assert [row["fields"][name] for row in rows] == ["After"] * 2
        told_once = "customer.updated" if is_business else "person.updated"
        await live.has_events(data["business"]["customer_id"], ONBOARDED + Counter({told_once: 1}))


async def test_restoring_survives_a_kill_at_each_point(live: Live) -> None:
    points = step("restore_identity")
    bodies = [application() for _ in points]
    customers = [await live.onboarded(body) for body in bodies]
    await live.bank.fault("core", "update_customer", "refuse")
    calls = [
        (
            f"{CUSTOMERS}/business/{data['business']['customer_id']}",
            {"business": {"dba": "After"}},
            new_key(),
        )
        for data in customers
    ]
    callers = [
        await killed_at(live, f"onboarding.{point}", live.partner.patch(*call))
        for point, call in zip(points, calls, strict=True)
    ]
    await live.stack.restart("onboarding")

    await asyncio.gather(*callers)
    finals = await asyncio.gather(
        *(live.final("PATCH", *call, TAKEN_OVER_SECONDS) for call in calls)
    )

    assert {final.code for final in finals} == {"provider_refused"}
    for data, body in zip(customers, bodies, strict=True):
        rows = await live.bank.customers(data["business"]["customer_id"])
        assert {row["fields"]["dba"] for row in rows} == {body["business"]["dba"]}


async def test_linking_survives_a_kill_at_each_point(live: Live) -> None:
    points = [*step("add_external_account"), *commit("external_account_added")]
    customers = [await live.onboarded() for _ in points]
    calls = [
        (
            f"{LINKING}/{data['external_bank_account']['external_bank_account_id']}",
            {"external_bank_account": bank_account()},
            new_key(),
        )
        for data in customers
    ]
    callers = [
        await killed_at(live, f"onboarding.{point}", live.partner.post(*call))
        for point, call in zip(points, calls, strict=True)
    ]
    await live.stack.restart("onboarding")

    await asyncio.gather(*callers)
    finals = await asyncio.gather(
        *(live.final("POST", *call, TAKEN_OVER_SECONDS) for call in calls)
    )

    for data, final in zip(customers, finals, strict=True):
        new = final.data["external_bank_account_id"]
        customer_id = data["business"]["customer_id"]
        linked = await live.bank.external_accounts(customer_id)
        assert len(linked) == 2
        assert [row["external_account_id"] for row in linked if row["primary"]] == [new]
        more = {"external_account.created": 1, "external_account.primary_changed": 1}
        await live.has_events(customer_id, ONBOARDED + Counter(more))


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
async def test_an_opened_account_is_told_once_whoever_dies(live: Live, point: str) -> None:
    onboarding = live.onboarded()

    data = await (
        await killed_at(live, f"feed.financial.{point}", onboarding, service="ledger_read")
    )
    await live.stack.restart("ledger_read")

    await live.exists_once(data)


@pytest.mark.parametrize("point", ["sandbox.uncommitted", "sandbox.committed"])
async def test_a_provider_that_is_killed_within_a_call(live: Live, point: str) -> None:
    body, key = application(), new_key()

    async def started() -> str | None:
        """Until the services notice that the provider was started, they answer 503."""
        answer = await live.partner.post(CUSTOMERS, body, key)
        return None if answer.status == 503 else answer.code

    provoke = eventually("the onboarding is started", started, TAKEN_OVER_SECONDS)
    caller = await killed_at(live, point, provoke, service="provider_sandbox")
    await live.stack.restart("provider_sandbox")

    assert (await caller) in {"200", "outcome_pending", "idempotency_in_progress"}
    final = await live.final("POST", CUSTOMERS, body, key)
    await live.exists_once(final.data)
