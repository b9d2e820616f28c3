"""The bank forgets idempotency keys while a service is down: what it has carried out is not sent again.

Each process dies between the call of the bank and the record of its answer, and comes back when the bank has forgotten
the key. Asked by key, the bank then says that it never had it.
"""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
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
from tests.support.provider_calls import bearer
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import running_stack
from tests.support.waiting import eventually

SETTINGS = {
    "BANKSIDE_GATEWAY_DEADLINE_SECONDS": "6",
    "BANKSIDE_SANDBOX_KEY_HOURS": "0.0006",
    "BANKSIDE_ONBOARDING_CORE_KEY_HOURS": "0.0004",
}
"""About 2 s at core banking; onboarding is told a little less, as an operator would set it. Both are less than a
lease, so that no command goes on in a service that is armed to die in another.
"""
DRIVEN_SECONDS = 40.0
"""Longer than a lease of 3 s, the sweep that takes the command over, and the attempts before it is parked."""
CORE_STEPS = ("create_core_business", "create_core_person", "link_external_account", "open_account")
LINKING_CALLED = "onboarding.add_external_account.called"
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
    return await finals(live, points)


async def keys_are_forgotten(live: Live) -> None:
    """Return when core banking has forgotten a key that it is given now, and so every earlier one."""
    core = f"{live.stack.sandbox_url}/core"
    headers = bearer(live.stack.environment.secrets.provider_tokens["onboarding"]["core"])

    async def is_forgotten(key: str) -> bool:
        async with live.session.get(f"{core}/operations/{key}", headers=headers) as answer:
            return answer.status == 404

    async def is_known() -> str | None:
        """A key that is: on a busy machine it may be forgotten before it is asked about."""
        key, target = new_key(), f"{core}/external-accounts/none/close"
        async with live.session.post(
            target, json={}, headers=headers | {"Idempotency-Key": key}
        ) as refused:
            assert refused.status == 404
        return None if await is_forgotten(key) else key

    key = await eventually("core banking knows a key", is_known)
    await eventually("core banking forgets the key", partial(is_forgotten, key))


async def finals(live: Live, calls: dict[str, Call]) -> dict[str, Answer | None]:
    answers: dict[str, Answer] = {}

    async def are_over() -> bool:
        missing = [point for point in calls if point not in answers]
        replies = await asyncio.gather(*(calls[point].send() for point in missing))
        answers.update(
            (point, reply)
            for point, reply in zip(missing, replies, strict=True)
            if reply.status < 500 and reply.code != "idempotency_in_progress"
        )
        left = [call for point, call in calls.items() if point not in answers]
        return not left or await are_left_to_operators(live, left)

    await eventually("each is final, or left to an operator", are_over, DRIVEN_SECONDS)
    return {point: answers.get(point) for point in calls}


async def are_left_to_operators(live: Live, calls: Collection[Call]) -> bool:
    """By the number of commands of their tenants that are parked; each test has tenants of its own."""
    tenants = {call.api.key.tenant for call in calls}
    listed = (await live.stack.command("commands", "list", "--parked"))["commands"]
    parked = [command for command in listed if command["tenant"] in tenants]
    assert len(parked) >= len(calls), f"{len(calls)} have no answer, {len(parked)} are parked"
    return True


async def test_no_customer_and_no_account_is_made_anew_at_a_bank_that_forgot_the_key(
    live: Live,
) -> None:
    customer = await onboarded_in_the_end(live)
    customer_id = customer["business"]["customer_id"]
    old = customer["external_bank_account"]["external_bank_account_id"]
    onboardings = {
        f"onboarding.{step}.called": Call(live.partner, CUSTOMERS, application(), new_key())
        for step in CORE_STEPS
    }
    linking = Call(
        live.partner,
        f"{LINKING}/{old}",
        {"external_bank_account": bank_account()},
        new_key(),
    )

    finals = await killed_in_each(live, "onboarding", {LINKING_CALLED: linking, **onboardings})

    customers = [row for row in await live.bank.customers() if row["api"] == "core"]
    accounts = Counter(row["customer_id"] for row in await live.bank.accounts())
    external = await live.bank.external_accounts()
    linked = Counter(row["customer_id"] for row in external)
    for number, (point, call) in enumerate(onboardings.items()):
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
    added = {
        row["external_account_id"] for row in external if row["customer_id"] == customer_id
    } - {old}
    assert (linked[customer_id], len(added)) == (2, 1)
    answer = finals[LINKING_CALLED]
    assert answer is None or answer.data["external_bank_account_id"] in added


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
