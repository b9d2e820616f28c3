"""`kill -9` of onboarding: what was begun is finished once, by the next process.

An onboarding is killed once in each phase, at one point after the other: each process takes over what the one before it
had begun, and dies at the next point. Other commands are killed in the midst of what they alone do. The leases of the
dead are ended rather than waited for; that they run out by themselves is in
tests/integration/onboarding/test_outages.py. Every crash point is passed, within one process, in test_crashes.py beside
it.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.live import CUSTOMERS, ONBOARDED, Live
from tests.support.people import PENDING_REVIEW, application, bank_account, new_key
from tests.support.waiting import eventually
from tests.support.waits import leases_end

KILLED = -signal.SIGKILL
TAKEN_OVER_SECONDS = 40.0
LINKING = f"{CUSTOMERS}/external_bank_account"


async def killed_at(
    live: Live, point: str, provoke: Coroutine[Any, Any, Any], service: str = "onboarding"
) -> asyncio.Task[Any]:
    """Arm the service, do what leads to the point, and see it die; what was provoked goes on waiting."""
    try:
        await live.stack.restart(service, BANKSIDE_CRASH_AT=point)
    except AssertionError:
        # An older command, taken over, may have led it there before it was ready.
        assert not live.stack.services[service].is_running
    provoked = asyncio.create_task(provoke)
    await dies(live, point, service)
    return provoked


async def killed_again_at(live: Live, *points: str) -> None:
    """At each point dies a process of onboarding that took over what the one before it had begun."""
    for point in points:
        await leases_end(live.stack.environment, "onboarding")
        live.stack.services["onboarding"].spawn(BANKSIDE_CRASH_AT=point)
        await dies(live, point, "onboarding")


async def dies(live: Live, point: str, service: str) -> None:
    try:
        code = await live.stack.services[service].ended()
    except AssertionError:
        log = live.stack.log(service)[-3000:]
        await live.stack.kill(service)
        raise AssertionError(f"{service} did not reach {point}\n{log}") from None
    assert code == KILLED, f"{service} at {point}: {code}"


async def taken_over(live: Live) -> None:
    """The next process of onboarding lives."""
    await leases_end(live.stack.environment, "onboarding")
    await live.stack.restart("onboarding")


async def test_an_onboarding_survives_a_kill_in_each_phase(live: Live) -> None:
    body, key = application(), new_key()
    caller = await killed_at(live, "onboarding.driving", live.partner.post(CUSTOMERS, body, key))
    await killed_again_at(
        live,
        "onboarding.application.committing",
        "onboarding.verify_person.intended",
        "onboarding.create_core_business.called",
        "onboarding.link_external_account.recorded",
        "onboarding.opened.committed",
        "onboarding.concluding",
    )
    await taken_over(live)

    told = await caller
    final = await live.final("POST", CUSTOMERS, body, key, TAKEN_OVER_SECONDS)

    assert told.code in {"200", "outcome_pending", "unavailable"}
    assert final.data["status"] == "approved"
    await live.exists_once(final.data)


async def test_a_decision_survives_a_kill_as_it_is_made_and_of_each_feed(live: Live) -> None:
    """The bank opens a reserve account meanwhile, which does not pass for the one being opened."""
    live.bank.needs("has_reserves")
    undecided = (await live.partner.post(CUSTOMERS, application(PENDING_REVIEW))).data
    customer_id = undecided["business"]["customer_id"]
    records = await live.bank.customers(customer_id)
    born = (
        "customer.created",
        "customer.pending_review",
        *2 * ("person.created", "person.updated"),
    )
    await live.has_events(customer_id, Counter(born))

    decision = live.bank.decide(customer_id, "approved")
    await (await killed_at(live, "feed.identity.before_commit", decision))
    await killed_again_at(live, "onboarding.opened.committing")
    (deposit,) = await live.bank.accounts(customer_id)
    reserve = await live.bank.simulate(f"accounts/{deposit['account_id']}/reserve")
    await killed_again_at(live, "feed.financial.after_commit")
    await taken_over(live)

    async def both() -> set[str]:
        found = (await live.customer(customer_id))["accounts"]
        return {account["id"] for account in found if len(found) == 2}

    owned = await eventually("both accounts are the customer's", both, TAKEN_OVER_SECONDS)
    assert undecided["status"] == "pending_review"
    assert len(records) == 1
    assert owned == {deposit["account_id"], reserve["account_id"]}
    assert {row["account_id"] for row in await live.bank.accounts(customer_id)} == owned
    assert len(await live.bank.external_accounts(customer_id)) == 1
    assert (await live.customer(customer_id))["status"] == "approved"
    told_too = Counter({"customer.pending_review": 1, "account.opened": 1})
    await live.has_events(customer_id, ONBOARDED + told_too)


async def test_taking_back_and_restoring_survive_a_kill_in_their_midst(live: Live) -> None:
    if len(live.bank.knowing) == 1:
        pytest.skip(
            "this bank has one record of each customer: a refused change leaves none to restore"
        )
    before, refused, key = application(), application(), new_key()
    data = await live.onboarded(before)
    await live.bank.fault("core", "update_customer", "refuse")
    await live.bank.fault("core", "open_account", "refuse")
    target = f"{CUSTOMERS}/business/{data['business']['customer_id']}"
    update = (target, {"business": {"dba": "After"}}, new_key())
    callers = [
        await killed_at(live, "onboarding.restore_identity.called", live.partner.patch(*update))
    ]
    await leases_end(live.stack.environment, "onboarding")
    onboarding = live.partner.post(CUSTOMERS, refused, key)
    callers.append(await killed_at(live, "onboarding.close_core_person.intended", onboarding))
    await taken_over(live)

    told = await asyncio.gather(*callers)
    finals = await asyncio.gather(
        live.final("PATCH", *update, TAKEN_OVER_SECONDS),
        live.final("POST", CUSTOMERS, refused, key, TAKEN_OVER_SECONDS),
    )

    assert {answer.code for answer in told} <= {"provider_refused", "outcome_pending"}
    assert {final.code for final in finals} == {"provider_refused"}
    restored = await live.bank.customers(data["business"]["customer_id"])
    assert [row["fields"]["dba"] for row in restored] == [before["business"]["dba"]] * 2
    await live.has_events(data["business"]["customer_id"], ONBOARDED)
    rows = await live.bank.customers()
    numbers = {refused["business"]["ein"], *(person["tin"] for person in refused["persons"])}
    left = [row for row in rows if numbers & {row["fields"].get(n) for n in ("ein", "tin")}]
    owners = {row["customer_id"] for row in left}
    assert len(owners) == 1 + len(refused["persons"])
    assert {row["status"] for row in left} == {"canceled", "closed"}
    assert await live.bank.accounts(*owners) == []
    assert await live.bank.external_accounts(*owners) == []


async def test_changes_of_a_customer_survive_a_kill_in_their_midst(live: Live) -> None:
    data = await live.onboarded()
    customer_id, person_id = data["business"]["customer_id"], data["persons"][0]["customer_id"]
    old = data["external_bank_account"]["external_bank_account_id"]
    updates = [
        (
            f"{CUSTOMERS}/business/{customer_id}",
            {"business": {"business_name": "After"}},
            new_key(),
        ),
        (f"{CUSTOMERS}/person/{person_id}", {"last_name": "After"}, new_key()),
    ]
    link = (f"{LINKING}/{old}", {"external_bank_account": bank_account()}, new_key())
    of_business, of_person = (live.partner.patch(*update) for update in updates)
    callers = [await killed_at(live, "onboarding.update_identity.called", of_business)]
    callers.append(asyncio.create_task(of_person))
    await leases_end(live.stack.environment, "onboarding")
    callers.append(
        await killed_at(live, "onboarding.add_external_account.called", live.partner.post(*link))
    )
    await taken_over(live)

    told = await asyncio.gather(*callers)
    *updated, linked = await asyncio.gather(
        *(live.final("PATCH", *update, TAKEN_OVER_SECONDS) for update in updates),
        live.final("POST", *link, TAKEN_OVER_SECONDS),
    )

    assert {answer.code for answer in told} <= {"200", "outcome_pending"}
    assert {final.status for final in updated} == {200}
    assert await live.bank.names(data) == {"After"}
    at_bank = await live.bank.primaries(await live.customer(customer_id))
    assert at_bank == {old: False, linked.data["external_bank_account_id"]: True}
    changes = {
        "customer.updated": 1,
        "person.updated": 1,
        "external_account.created": 1,
        "external_account.primary_changed": 1,
    }
    await live.has_events(customer_id, ONBOARDED + Counter(changes))


async def test_a_provider_that_is_killed_within_a_call(live: Live) -> None:
    live.bank.needs("has_crash_points")
    body, key = application(), new_key()

    async def started() -> str | None:
        """Until the services notice that the provider was started, they answer 503."""
        answer = await live.partner.post(CUSTOMERS, body, key)
        return None if answer.status == 503 else answer.code

    provoke = eventually("the onboarding is started", started, TAKEN_OVER_SECONDS)
    caller = await killed_at(live, "sandbox.uncommitted", provoke, service="provider_sandbox")
    live.stack.services["provider_sandbox"].spawn(BANKSIDE_CRASH_AT="sandbox.committed")
    await dies(live, "sandbox.committed", "provider_sandbox")
    await live.stack.restart("provider_sandbox")

    assert (await caller) in {"200", "outcome_pending", "idempotency_in_progress"}
    final = await live.final("POST", CUSTOMERS, body, key, TAKEN_OVER_SECONDS)
    await live.exists_once(final.data)
