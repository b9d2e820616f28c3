"""Increase fails in each of its ways at each write, while payments and onboarding are killed: all is done once.

Kills come in the midst of what the bank is asked for: it says how often it was. `make test` has a small load on a stack
of this module's own; `make test BANK=increase-fake` has larger ones on the stack that fault tests share.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from deploy.local import banks
from deploy.local.services import SERVICES
from tests.e2e.wires.hands import Sender, sender_of
from tests.faults.load import UNLIMITED, onboarded_in_the_end
from tests.faults.test_provider_faults import driven
from tests.support.api import Answer
from tests.support.bank_at_increase import BankAtIncrease
from tests.support.infrastructure import Infrastructure
from tests.support.live import CUSTOMERS, Deployment, Live, hands_on, short_waits
from tests.support.people import application, new_key
from tests.support.reconciling import assert_reconciled
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import BANK, running_stack
from tests.support.waiting import eventually
from tests.support.waits import leases_end

KINDS = (
    "latency",
    "rate_limit",
    "error",
    "drop",
    "duplicate_reply",
    "key_conflict",
    "fail_after_success",
    "accept_then_drop",
)
"""All of the fake but definite refusals."""
WRITES = ("create_customer", "create_external_account", "open_account", "send_wire")
KILLED = {"payments": ("send_wire",), "onboarding": WRITES[:3]}
"""The services, and what they ask of the bank."""
ENDINGS = {"66": "rejected", "68": "returned"}
"""What becomes of wires, by their cents; all others are completed."""
FINAL_SECONDS = 60.0
SIZES = [(seed, 6, 24) for seed in range(3)] if BANK == banks.INCREASE_FAKE else [(0, 4, 8)]
"""Seeds, onboardings, wires."""
UNNEEDED = ("webhook_dispatcher", "console")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own(infrastructure: Infrastructure) -> AsyncIterator[Deployment]:
    environment = infrastructure.create()
    events = RecordedEvents(environment.amqp_url)
    await events.begin()
    services = [service for service in SERVICES if service.name not in UNNEEDED]
    with tempfile.TemporaryDirectory(prefix="bankside-test-") as folder:
        async with running_stack(
            environment, Path(folder), services, bank=banks.INCREASE_FAKE, **short_waits()
        ) as stack:
            yield Deployment(stack, events)
    infrastructure.drop(environment)


@pytest.fixture
def stack_at_increase(request: pytest.FixtureRequest) -> Deployment:
    found: Deployment = request.getfixturevalue(
        "deployment" if BANK == banks.INCREASE_FAKE else "own"
    )
    return found


@pytest_asyncio.fixture
async def at_increase(stack_at_increase: Deployment) -> AsyncIterator[Live]:
    async with hands_on(stack_at_increase) as hands:
        await hands.bank.heal()
        yield hands
        await hands.bank.heal()


@dataclass
class Crowd:
    """Callers who send everything at once, each under a key of its own."""

    live: Live
    sender: Sender
    applications: dict[str, Any]
    amounts: dict[str, str]

    def begin(self) -> dict[str, asyncio.Task[Answer]]:
        """What each is told first but for 503, of which nothing comes: then it is sent again."""
        return {
            key: asyncio.create_task(self._taken(key))
            for key in (*self.amounts, *self.applications)
        }

    async def _taken(self, key: str) -> Answer:
        async def taken() -> Answer | None:
            answer = await self._sent(key)
            return None if answer.status == 503 else answer

        return await eventually("the command is taken", taken, FINAL_SECONDS)

    async def _sent(self, key: str) -> Answer:
        if key in self.amounts:
            return await self.sender.send(self.amounts[key], key)
        return await self.live.partner.post(CUSTOMERS, self.applications[key], key)

    async def final(self, key: str) -> Answer:
        if key in self.amounts:
            return await self.sender.final(key, self.amounts[key], FINAL_SECONDS)
        body = self.applications[key]
        return await self.live.final("POST", CUSTOMERS, body, key, FINAL_SECONDS)


@pytest.mark.parametrize(("seed", "onboardings", "wires"), SIZES)
async def test_all_is_done_once_under_every_fault_and_kills(
    at_increase: Live, seed: int, onboardings: int, wires: int
) -> None:
    dice = random.Random(seed)
    bank = at_increase.bank
    assert isinstance(bank, BankAtIncrease)
    partner = await at_increase.of_tenant(f"t_{uuid.uuid4().hex}", *UNLIMITED)
    live = Live(at_increase.deployment, at_increase.session, at_increase.interface, partner, bank)
    sender = await sender_of(live, await onboarded_in_the_end(live))
    amounts = [f"{number}.{dice.choice(['00', *ENDINGS])}" for number in range(1, wires + 1)]
    crowd = Crowd(
        live,
        sender,
        {new_key(): application() for _ in range(onboardings)},
        {new_key(): amount for amount in amounts},
    )
    await bank.deposit(sender.account_id, sum(map(Decimal, amounts), Decimal(0)))
    for operation in WRITES:
        for kind in KINDS:
            more = live.beyond_timeout() if kind == "latency" else {}
            await bank.fault("", operation, kind, times=1, **more)

    asked = {name: await bank.asked(*KILLED[name]) for name in KILLED}
    callers = crowd.begin()
    await asyncio.gather(*(killed(live, name, asked[name] + dice.randint(1, 4)) for name in KILLED))
    told = {key: await caller for key, caller in callers.items()}
    for name in KILLED:
        await driven(live, name)
    left = await bank.faults()
    await bank.heal()
    finals = {key: await crowd.final(key) for key in callers}

    assert left == [], "all have struck"
    for key, answer in told.items():
        assert answer.code in {"200", "outcome_pending"}, answer.body
        if answer.status == 200:
            assert answer.raw == finals[key].raw
    await wires_agree(sender, crowd, finals)
    for key in crowd.applications:
        await live.exists_once(finals[key].data)
    await nothing_is_there_twice(bank)
    await live.events.fetch()
    live.events.check()
    await assert_reconciled(live.stack)
    assert await bank.violations() == []


async def killed(live: Live, service: str, requests: int) -> None:
    """`kill -9` once the bank was asked for the service's writes so many times in all; the next process takes over."""
    bank = live.bank
    assert isinstance(bank, BankAtIncrease)

    async def is_asked() -> bool:
        return await bank.asked(*KILLED[service]) >= requests

    await eventually(f"the bank is asked by {service}", is_asked, poll_seconds=0.01)
    await live.stack.kill(service)
    await leases_end(live.stack.environment, service)
    await live.stack.restart(service)


async def wires_agree(sender: Sender, crowd: Crowd, finals: dict[str, Answer]) -> None:
    """Callers, our API, the bank's list and its postings have each wire once, with one end."""
    expected = {
        finals[key].data["transaction_id"]: ENDINGS.get(amount[-2:], "completed")
        for key, amount in crowd.amounts.items()
    }
    assert len(expected) == len(crowd.amounts)

    async def at_the_end() -> bool:
        found = await sender.at_bank()
        assert found == expected
        return True

    await eventually("the bank is done with the wires", at_the_end)
    rows = await sender.live.bank.wires(sender.account_id)
    assert {row["transaction_id"]: row["amount"] for row in rows} == {
        finals[key].data["transaction_id"]: amount for key, amount in crowd.amounts.items()
    }
    for transaction_id, state in expected.items():
        await sender.has_state(transaction_id, state)
    sent = {one for one, state in expected.items() if state != "rejected"}
    postings = await sender.posted()
    debits = Counter(row["transaction_id"] for row in postings if Decimal(row["amount"]) < 0)
    assert debits == dict.fromkeys(sent, 1)
    of_state = Counter(expected.values())
    received = [row for row in postings if Decimal(row["amount"]) > 0]
    assert len(received) == 1 + of_state["returned"], "the deposit, and what came back"
    paid = sum(
        Decimal(amount)
        for key, amount in crowd.amounts.items()
        if expected[finals[key].data["transaction_id"]] == "completed"
    )
    funds = sum(map(Decimal, crowd.amounts.values()))
    assert set((await sender.account.balance()).values()) == {funds - paid, Decimal(0)}
    for state, count in of_state.items():
        assert await sender.total(state=state) == count


async def nothing_is_there_twice(bank: BankAtIncrease) -> None:
    """No business has two entities, none of them two accounts, and no external account is there twice."""
    entities = await bank.truth("entities")
    accounts = await bank.truth("accounts")
    external = await bank.truth("external-accounts")
    assert max(Counter(row["description"] for row in entities).values()) == 1
    assert max(Counter(row["entity_id"] for row in accounts).values()) == 1
    active = [row for row in external if row["status"] == "active"]
    assert max(Counter(row["account_number"] for row in active).values()) == 1
