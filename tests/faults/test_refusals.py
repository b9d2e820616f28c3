"""Refusals at any moment of any step, while the first send is slow: no caller is told what the bank then contradicts.

The first send of a step takes longer than it is waited for, and arrives all the same; what is sent after it is refused.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from tests.faults.test_crashes import KILLED, TAKEN_OVER_SECONDS
from tests.faults.test_provider_faults import answered
from tests.support.api import Answer
from tests.support.live import CUSTOMERS, Deployment, Live
from tests.support.people import application, bank_account, new_key
from tests.support.provider_calls import bearer
from tests.support.waiting import eventually
from tests.support.waits import connected, last_send_arrives, pauses_end

TRANSIT_SECONDS = 3
SLOW = {"milliseconds": 1900}
"""Longer than a provider is waited for (1 s), shorter than a request may be under way."""
ARRIVED_SECONDS = 2.0
FORGETFUL = {"BANKSIDE_SANDBOX_KEY_HOURS": "0.0006"}
"""Core banking knows a key for two seconds."""
FORGOTTEN = {"open_account": "called", "create_core_business": "intended"}
"""Steps, and where onboarding dies: the bank has carried out the first, and was never sent the second."""
FINAL_SECONDS = 60.0
COMMAND_POLL_SECONDS = 0.5

SETTINGS = {
    "BANKSIDE_PROVIDER_TIMEOUT_SECONDS": "1",
    "BANKSIDE_ONBOARDING_PROVIDER_TRANSIT_SECONDS": str(TRANSIT_SECONDS),
}
KNOWN_TO_FORGET = {**SETTINGS, "BANKSIDE_ONBOARDING_CORE_KEY_HOURS": "0.0006"}


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def short_transit(deployment: Deployment) -> AsyncIterator[None]:
    """Onboarding takes requests to arrive within seconds."""
    await deployment.stack.restart("onboarding", **SETTINGS)
    yield
    await deployment.stack.restart("onboarding")


@pytest_asyncio.fixture
async def forgetful(live: Live) -> AsyncIterator[Live]:
    """With a core banking that forgets keys within seconds."""
    live.bank.needs("forgets_what_keys_made")
    await live.stack.restart("provider_sandbox", **FORGETFUL)
    yield live
    await live.stack.restart("provider_sandbox")
    await live.stack.restart("onboarding", **SETTINGS)


@dataclass(frozen=True)
class Write:
    """One write of a caller, under its Idempotency-Key."""

    method: str
    target: str
    body: Any
    key: str

    async def send(self, live: Live) -> Answer:
        return await live.partner.call(
            self.method, self.target, self.body, idempotency_key=self.key
        )

    async def final(self, live: Live) -> Answer:
        """Once it is final and the slow sends have arrived, of which the bank tells nothing before they have."""
        answer = await live.final(self.method, self.target, self.body, self.key, FINAL_SECONDS)
        await asyncio.sleep(ARRIVED_SECONDS)
        return answer


async def slow_then_refused(live: Live, api: str, operation: str, refusals: int = 1) -> None:
    """The slow send is refused too when it arrives before the refusals are used up."""
    await live.bank.fault(api, operation, "latency", times=1, **SLOW)
    await live.bank.fault(api, operation, "refuse", times=refusals)


def is_settled(answer: Answer) -> None:
    """What callers may be told before the end: the truth, or that it is not known yet."""
    assert answer.code in {"200", "provider_refused", "outcome_pending"}, answer.body


async def onboarding_agrees(live: Live, body: Any, final: Answer) -> None:
    """A customer that was approved is at the bank, whole and once; of a refused one nothing is open there."""
    customer_ids = await live.bank.businesses(body)
    if final.status == 200:
        assert final.data["status"] == "approved"
        await live.exists_once(final.data)
        customer_id = final.data["business"]["customer_id"]
        assert customer_ids == {customer_id}
        (ours,) = (await live.customer(customer_id))["accounts"]
        accounts = await live.bank.accounts(customer_id)
        assert [row["account_id"] for row in accounts if row["status"] == "open"] == [ours["id"]]
        return
    assert final.code == "provider_refused", final.body
    await live.bank.has_nothing_open(body)
    for customer_id in customer_ids:
        assert (await live.customer(customer_id))["status"] == "denied"


async def test_an_onboarding_is_not_refused_while_its_first_send_is_on_its_way(live: Live) -> None:
    """One for each write, side by side. They begin with the last write, so that none meets the faults of another."""
    writes = [Write("POST", CUSTOMERS, application(), new_key()) for _ in live.bank.onboarding]
    # Were one taken back, the slow send would arrive before the customer is closed.
    await live.bank.fault(
        "core", "close_external_account", "latency", times=len(writes), milliseconds=900
    )

    callers = []
    for write, (api, operation) in zip(writes, reversed(live.bank.onboarding), strict=True):
        await slow_then_refused(live, api, operation)
        callers.append(asyncio.create_task(write.send(live)))
        await eventually(f"{operation} is on its way", partial(only_closing_is_slow, live))
    told = await asyncio.gather(*callers)
    finals = await asyncio.gather(*(write.final(live) for write in writes))
    left = [rule for rule in await live.bank.faults() if rule["kind"] == "refuse"]
    await live.bank.heal()

    assert left == [], "each was refused"
    for write, first, final in zip(writes, told, finals, strict=True):
        is_settled(first)
        if first.code != "outcome_pending":
            assert first.code == final.code
        await onboarding_agrees(live, write.body, final)


async def only_closing_is_slow(live: Live) -> bool:
    """The slow send of the write that is begun has struck; that of closing an external account is left."""
    slow = [rule for rule in await live.bank.faults() if rule["kind"] == "latency"]
    return len(slow) <= 1


async def test_refusals_and_slow_sends_in_any_order_end_in_agreement(live: Live) -> None:
    dice = random.Random(0)
    bodies = [application() for _ in range(4)]
    writes = [Write("POST", CUSTOMERS, body, new_key()) for body in bodies]
    for api, operation in [*live.bank.onboarding, *live.bank.undoing]:
        await live.bank.fault(
            api, operation, "latency", times=1, milliseconds=dice.choice([0, 1200, 1900])
        )
        if (api, operation) in live.bank.onboarding:
            await live.bank.fault(
                api, operation, "refuse", times=dice.randint(1, 2), probability=0.5
            )

    told = await asyncio.gather(*(write.send(live) for write in writes))
    await live.bank.heal()
    finals = await asyncio.gather(*(write.final(live) for write in writes))

    for body, first, final in zip(bodies, told, finals, strict=True):
        is_settled(first)
        if first.code != "outcome_pending":
            assert first.code == final.code
        await onboarding_agrees(live, body, final)


@pytest.mark.parametrize(("api", "refusals"), [("identity", 1), ("core", 6)])
async def test_a_change_is_told_refused_only_where_the_bank_does_not_have_it(
    live: Live, api: str, refusals: int
) -> None:
    before, after = "https://before.example/", "https://after.example/"
    body = application()
    body["business"]["website"] = before
    updated_id = (await live.onboarded(body))["business"]["customer_id"]
    other = application()
    data = await live.onboarded(other)
    linked_id = data["business"]["customer_id"]
    old = data["external_bank_account"]["external_bank_account_id"]
    change = {"business": {"website": after}}
    account = {"external_bank_account": bank_account()}
    update = Write("PATCH", f"{CUSTOMERS}/business/{updated_id}", change, new_key())
    link = Write("POST", f"{CUSTOMERS}/external_bank_account/{old}", account, new_key())
    await slow_then_refused(live, api, "update_customer", refusals)
    await slow_then_refused(live, "core", "create_external_account", refusals)

    told = await asyncio.gather(update.send(live), link.send(live))
    # The slow sends have arrived or been refused by now: what is left are refusals.
    updated, linked = await answered(live, update.final(live), link.final(live))

    for answer in told:
        is_settled(answer)
    expected = after if updated.status == 200 else before
    assert {held["website"] for held in await live.bank.held(updated_id)} == {expected}
    assert (await live.customer(updated_id))["business"]["website"] == expected
    numbers = [sent["external_bank_account"]["account_number"] for sent in (other, account)]
    at_bank = await live.bank.linked(linked_id, numbers)
    shown = {
        row["external_bank_account_id"]: row["primary"]
        for row in (await live.customer(linked_id))["external_bank_accounts"]
    }
    assert Counter(row["external_account_id"] for row in at_bank) == dict.fromkeys(shown, 1)
    assert all(row.get("primary") in (None, shown[row["external_account_id"]]) for row in at_bank)
    assert (linked.status == 200) == (len(at_bank) == 2)


async def test_steps_that_core_banking_forgot_are_sent_once_and_left_to_an_operator(
    forgetful: Live,
) -> None:
    live, service = forgetful, forgetful.stack.services["onboarding"]
    writes = {step: Write("POST", CUSTOMERS, application(), new_key()) for step in FORGOTTEN}
    callers = []
    for step, moment in FORGOTTEN.items():
        crash = {"BANKSIDE_CRASH_AT": f"onboarding.{step}.{moment}"}
        await live.stack.restart("onboarding", **crash, **KNOWN_TO_FORGET)
        callers.append(asyncio.create_task(writes[step].send(live)))
        assert await service.ended() == KILLED
    await service.start(**KNOWN_TO_FORGET)

    async def listed() -> Any:
        await pauses_end(connection)
        attempted = [x for x in service.log.splitlines() if "write_needs_an_operator" in x]
        if not all(any(step in line for line in attempted) for step in FORGOTTEN):
            return None
        shown = await live.stack.command("sagas", "list", "--unknown")
        found = {row["step"]: row for row in shown["unknown_steps"]}
        return found if found.keys() >= FORGOTTEN.keys() else None

    async with connected(live.stack.environment, "onboarding") as connection:
        unknown = await eventually(
            "the steps are listed", listed, TAKEN_OVER_SECONDS, COMMAND_POLL_SECONDS
        )
    await asyncio.gather(*callers)
    sent = {
        step: await live.bank.accounts(row["customer_id"])
        for step, row in unknown.items()
        if step in FORGOTTEN
    }
    (account,) = sent["open_account"]
    result = json.dumps(await looked_up(live, account["account_id"]))
    await resolved(live, unknown["open_account"], "done", "--result", result)
    await resolved(live, unknown["create_core_business"], "absent")
    finals = await asyncio.gather(*(write.final(live) for write in writes.values()))

    assert sent["create_core_business"] == []
    for final in finals:
        assert final.data["status"] == "approved"
        await live.exists_once(final.data)


async def resolved(live: Live, unknown: Any, decision: str, *result: str) -> None:
    """By an operator, once no process drives it; the command goes on."""

    async def recorded() -> bool:
        await last_send_arrives(live.stack.environment, "onboarding", unknown["saga_id"])
        try:
            await live.stack.command(
                *("sagas", "resolve", unknown["saga_id"], unknown["step"], "--as", decision),
                *("--reason", "looked up at the bank", *result, "--yes"),
            )
        except AssertionError as error:
            if "right now" not in str(error) and "may still arrive" not in str(error):
                raise
            return False
        return True

    await eventually("no process drives it", recorded, TAKEN_OVER_SECONDS, COMMAND_POLL_SECONDS)
    await live.stack.command("commands", "retry", unknown["command_id"], "--reason", "x")


async def looked_up(live: Live, account_id: str) -> dict[str, Any]:
    """What the bank answers to the opening of an account, as an operator finds it."""
    url = f"{live.stack.sandbox_url}/financial/accounts/{account_id}"
    token = live.stack.environment.secrets.provider_tokens["ledger_read"]["financial"]
    async with live.session.get(url, headers=bearer(token)) as response:
        account = await response.json()
    return {"account_id": account_id, "account_number": account["account_number"]}
