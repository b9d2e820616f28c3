"""The bank forgets idempotency keys while a service is down: what it has carried out is not sent again.

Each process dies between the call of the bank and the record of its answer, and comes back when the bank has forgotten
the key. Asked by key, the bank then says that it never had it.
"""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.wires.hands import WIRE, sender_of
from tests.faults.load import UNLIMITED, onboarded_in_the_end
from tests.faults.test_crashes import LINKING, killed_at
from tests.support.api import Answer, Api
from tests.support.infrastructure import Environment, Infrastructure
from tests.support.live import CUSTOMERS, Deployment, Live, hands_on
from tests.support.people import application, bank_account, new_key
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import running_stack
from tests.support.waiting import eventually

SETTINGS = {
    "BANKSIDE_GATEWAY_DEADLINE_SECONDS": "6",
    "BANKSIDE_SANDBOX_KEY_HOURS": "0.0006",
    "BANKSIDE_ONBOARDING_CORE_KEY_HOURS": "0.0004",
}
"""About 2 s at core banking; onboarding is told a little less, as an operator would set it."""
DRIVEN_SECONDS = 15.0
"""Longer than a lease of 3 s, the sweep that takes the command over, and two calls that time out after 5 s."""
CORE_STEPS = ("create_core_business", "create_core_person", "link_external_account", "open_account")
SENDS = ("payments.called", "payments.recording")


@dataclass(frozen=True)
class Call:
    """A command whose service dies in the middle of it."""

    api: Api
    target: str
    body: Any
    key: str

    async def send(self) -> Answer:
        return await self.api.post(self.target, self.body, self.key)


@pytest.fixture(scope="module")
def forgetful_environment(infrastructure: Infrastructure) -> Iterator[Environment]:
    environment = infrastructure.create()
    yield environment
    infrastructure.drop(environment)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def forgetful(forgetful_environment: Environment) -> AsyncIterator[Deployment]:
    """A stack whose bank forgets keys after seconds."""
    events = RecordedEvents(forgetful_environment.amqp_url)
    await events.begin()
    with tempfile.TemporaryDirectory(prefix="bankside-test-") as folder:
        async with running_stack(forgetful_environment, Path(folder), **SETTINGS) as stack:
            yield Deployment(stack, events)


@pytest_asyncio.fixture
async def live(forgetful: Deployment) -> AsyncIterator[Live]:
    """With a partner of its own, who may ask as often as it takes."""
    async with hands_on(forgetful) as hands:
        partner = await hands.of_tenant(f"t_{uuid.uuid4().hex}", *UNLIMITED)
        yield replace(hands, partner=partner)


async def killed_in_each(
    live: Live, service: str, points: dict[str, Call]
) -> dict[str, Answer | None]:
    """The service dies at each point in its call, and comes back when the bank has forgotten all of their keys.

    Returns the answers that are final, by point; None for a call that is left to an operator.
    """
    callers = [
        await killed_at(live, point, call.send(), service=service) for point, call in points.items()
    ]
    await keys_are_forgotten(live)
    await live.stack.restart(service)
    await asyncio.gather(*callers)
    return dict(
        zip(points, await asyncio.gather(*(final(live, c) for c in points.values())), strict=True)
    )


async def keys_are_forgotten(live: Live) -> None:
    """Return when core banking has forgotten a key that it is given now, and so every earlier one."""
    core = f"{live.stack.sandbox_url}/core"
    key = new_key()
    headers = {"Authorization": f"Bearer {live.stack.environment.secrets.provider_token}"}

    async def is_forgotten() -> bool:
        async with live.session.get(f"{core}/operations/{key}", headers=headers) as answer:
            return answer.status == 404

    target = f"{core}/external-accounts/none/close"
    async with live.session.post(
        target, json={}, headers=headers | {"Idempotency-Key": key}
    ) as refused:
        assert refused.status == 404
    assert not await is_forgotten()
    await eventually("core banking forgets a key", is_forgotten)


async def final(live: Live, call: Call) -> Answer | None:
    try:
        return await live.final("POST", call.target, call.body, call.key, DRIVEN_SECONDS, call.api)
    except AssertionError:
        return None


async def test_no_customer_and_no_account_is_made_anew_at_a_bank_that_forgot_the_key(
    live: Live,
) -> None:
    calls = {
        f"onboarding.{step}.called": Call(live.partner, CUSTOMERS, application(), new_key())
        for step in CORE_STEPS
    }

    finals = await killed_in_each(live, "onboarding", calls)

    customers = [row for row in await live.bank.customers() if row["api"] == "core"]
    accounts = Counter(row["customer_id"] for row in await live.bank.accounts())
    linked = Counter(row["customer_id"] for row in await live.bank.external_accounts())
    for number, (point, call) in enumerate(calls.items()):
        body = call.body
        tins = {person["tin"] for person in body["persons"]}
        ids = [
            r["customer_id"] for r in customers if r["fields"].get("ein") == body["business"]["ein"]
        ]
        persons = [row for row in customers if row["fields"].get("tin") in tins]
        assert len(ids) == 1, point
        found = (len(persons), linked[ids[0]], accounts[ids[0]])
        answer = finals[point]
        if answer is not None:
            assert answer.data["status"] == "approved"
            assert found == (2, 1, 1), point
        else:
            at_least = (int(number > 0), int(number > 1), int(number > 2))
            assert at_least <= found, point
            assert all(one <= most for one, most in zip(found, (2, 1, 1), strict=True)), point


async def test_no_external_account_is_linked_anew_at_a_bank_that_forgot_the_key(live: Live) -> None:
    data = await onboarded_in_the_end(live)
    customer_id = data["business"]["customer_id"]
    old = data["external_bank_account"]["external_bank_account_id"]
    body = {"external_bank_account": bank_account()}
    point = "onboarding.add_external_account.called"
    call = Call(live.partner, f"{LINKING}/{old}", body, new_key())

    finals = await killed_in_each(live, "onboarding", {point: call})

    linked = [row["external_account_id"] for row in await live.bank.external_accounts(customer_id)]
    assert len(linked) == 2
    answer = finals[point]
    assert answer is None or answer.data["external_bank_account_id"] in set(linked) - {old}


async def test_no_wire_is_sent_anew_to_a_bank_that_forgot_the_key(live: Live) -> None:
    sender = await sender_of(live, await onboarded_in_the_end(live))
    await live.bank.deposit(sender.account_id, Decimal(100))
    calls = {point: Call(sender.api, WIRE, sender.order(), new_key()) for point in SENDS}

    finals = await killed_in_each(live, "payments", calls)

    answers = [answer for answer in finals.values() if answer is not None]
    states = await sender.completed_at_bank(len(SENDS))
    assert {answer.data["transaction_id"] for answer in answers} == states.keys()
    debits = Counter(r["transaction_id"] for r in await sender.posted() if r["type"] == "wire")
    assert debits == dict.fromkeys(states, 1)
    await sender.has_told(states, "created", "submitted", "completed")
