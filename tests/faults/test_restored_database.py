"""Our database goes back to an earlier moment under load; the bank's does not: nothing is sent twice.

It is restored as deploy/PRODUCTION.md says: a base backup, and the archived WAL up to the moment.
What was done since then
is known to the bank, and no longer to us. Half of the callers send again under their Idempotency-Keys, as they do who
have lost an answer: each gets an answer that agrees with the bank. What the other half sent exists at the bank only,
and is what reconciliation has to list.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from deploy.local.ports import LOOPBACK
from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from tests.e2e.wires.hands import WIRES
from tests.faults.load import TRANSIT, Command, Kind, Load, new_load, waits
from tests.faults.test_forgotten_keys import keys_are_forgotten
from tests.support.api import Answer
from tests.support.infrastructure import Environment
from tests.support.live import CUSTOMERS, Deployment, hands_on
from tests.support.own_servers import OwnPostgres, own_postgres
from tests.support.reconciling import reconcile
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import running_stack
from tests.support.waiting import eventually

BACK_SECONDS = 60.0
FINAL_SECONDS = 60.0
"""For all that is sent again: longer than the longest pause between two drives of a command."""
AT_ONCE = 16
PAUSE_SECONDS = 3.0
"""Of callers. Shorter than elsewhere: one of two commands counts, and there is one caller of updates."""
ASKED_EVERY_SECONDS = 1.0
FORGETFUL = {
    "BANKSIDE_SANDBOX_KEY_HOURS": "0.001",
    "BANKSIDE_ONBOARDING_CORE_KEY_HOURS": "0.0008",
}
"""About 4 s at core banking; onboarding is told a little less, as an operator would set it."""


@dataclass
class Restorable:
    load: Load
    postgres: OwnPostgres
    remembers_keys: bool

    @property
    def carried_by_themselves(self) -> Collection[Kind]:
        """A wire is found by its id for ever; the rest only under a key that the bank remembers."""
        return tuple(Kind) if self.remembers_keys else (Kind.WIRE,)


@pytest_asyncio.fixture(
    params=[
        pytest.param(True, id="keys remembered", marks=pytest.mark.recovery),
        pytest.param(False, id="keys forgotten"),
    ],
)
async def restorable(
    fresh_environment: Environment, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Restorable]:
    """A load on a stack whose PostgreSQL is its own; the bank's is another."""
    async with AsyncExitStack() as opened:
        postgres = await opened.enter_async_context(own_postgres(fresh_environment, archives=True))
        bank = {"provider_sandbox": fresh_environment.database_urls["provider_sandbox"]}
        environment = fresh_environment.with_urls(database_urls={**postgres.database_urls, **bank})
        events = RecordedEvents(environment.amqp_url)
        await events.begin()
        settings = waits() | TRANSIT | ({} if request.param else FORGETFUL)
        stack = await opened.enter_async_context(running_stack(environment, tmp_path, **settings))
        live = await opened.enter_async_context(hands_on(Deployment(stack, events)))
        load = await opened.enter_async_context(new_load(live, "restored", PAUSE_SECONDS))
        yield Restorable(load, postgres, request.param)


async def test_a_database_that_goes_back_under_load_sends_nothing_twice(
    restorable: Restorable,
) -> None:
    load = restorable.load

    async with load.running():
        await load.is_on()
        await restorable.postgres.back_up()
        backed_up = time.monotonic()
        load.hurry()
        await eventually("some of each kind are done", partial(leaves_each_kind, load, backed_up))
        kept = [c for c in load.commands if c.is_done and backed_up < c.sent_at]
        moment = await restorable.postgres.now()
        after = time.monotonic()
        load.hurry()
        await eventually("some of each kind are done later", partial(leaves_each_kind, load, after))
        lost_until = time.monotonic()
        await restorable.postgres.restore(moment)
        # What may be sent without an operator is carried out again.
        await load.is_on(restorable.carried_by_themselves, BACK_SECONDS)
    if not restorable.remembers_keys:
        await keys_are_forgotten(load.live)
    left = [c for c in left_since(load, after) if c.answered_at < lost_until]
    again = [
        command
        for command in load.of(Kind.WIRE) + load.of(Kind.ONBOARDING)
        if command not in left and not command.is_given_up
    ]
    unfinished = await send_again(load, again)

    await wires_are_sent_once(load)
    await onboardings_are_done_once(load)
    assert not (restorable.remembers_keys and unfinished)
    await are_known(kept)
    await differences_are_listed(load, left)
    if not restorable.remembers_keys:
        await operators_close_the_case(load)
        async with load.running():
            # An update of the same customers waits until the operator has resolved the one before.
            await load.is_on((Kind.WIRE, Kind.ONBOARDING))


def left_since(load: Load, since: float) -> list[Command]:
    """What was done since then, and whose callers do not send again."""
    return [c for c in load.commands if c.is_done and since < c.sent_at and c.number % 2]


async def leaves_each_kind(load: Load, since: float) -> bool:
    return {command.kind for command in left_since(load, since)} == set(Kind)


def target_of(command: Command) -> str:
    """Where what the command made is read."""
    assert command.answer is not None
    if command.kind is Kind.WIRE:
        return f"{WIRES}/{command.answer.data['transaction_id']}"
    return f"{CUSTOMERS}/{command.answer.data['business']['customer_id']}"


async def are_known(commands: list[Command]) -> None:
    """What was done between the backup and the moment is there, although its callers did not send it again."""
    for command in commands:
        if command.kind is not Kind.UPDATE:
            assert (await command.api.get(target_of(command))).status == 200


async def operators_close_the_case(load: Load) -> None:
    """Until then onboarding asks an operator about each command that may have been sent under a forgotten key."""
    bankside = load.live.stack.command

    port = load.live.stack.services["onboarding"].admin_port

    async def is_compared() -> bool:
        async with load.live.session.get(f"http://{LOOPBACK}:{port}/metrics") as response:
            return "bankside_database_unchecked 0.0" in await response.text()

    async def is_open() -> bool:
        return bool((await bankside("restores", "list"))["onboarding"])

    # A drive that finds a record opens a case before all is compared, which may then open another.
    await eventually("all is compared", is_compared, FINAL_SECONDS)
    await eventually("the case is open", is_open, FINAL_SECONDS, ASKED_EVERY_SECONDS)
    await bankside("restores", "close", "onboarding", "--reason", "restored on purpose", "--yes")


async def send_again(load: Load, commands: list[Command]) -> list[Command]:
    """Under the same keys, until each has a final answer or is left to an operator; those that are left."""
    at_once = asyncio.Semaphore(AT_ONCE)

    async def send(command: Command) -> None:
        async with at_once:
            answer = await command.send()
            if answer.status < 500 and answer.code != "idempotency_in_progress":
                command.final = answer

    def without_answer() -> list[Command]:
        return [command for command in commands if command.final is None]

    async def is_done() -> bool:
        await asyncio.gather(*map(send, without_answer()))
        return not without_answer() or await are_left_to_operators(load, without_answer())

    await eventually("all are final, or left to an operator", is_done, FINAL_SECONDS)
    return without_answer()


async def are_left_to_operators(load: Load, commands: list[Command]) -> bool:
    """Onboardings of which the bank has forgotten the keys are parked; wires can be asked about for ever."""
    assert {command.kind for command in commands} <= {Kind.ONBOARDING}
    listed = await load.live.stack.command("commands", "list", "--parked", "--limit", "1000")
    parked = [c for c in listed["commands"] if c["operation"] == ONBOARD_CUSTOMER.name]
    return len(parked) >= len(commands)


def final_answers(command: Command) -> list[Answer]:
    """What callers were told for good: before the restore, and after it."""
    answers = (command.answer, command.final)
    return [answer for answer in answers if answer is not None and answer.status < 500]


async def wires_are_sent_once(load: Load) -> None:
    """Each wire is at the bank once, and debited once, under the id that every answer names."""
    rows = await load.live.bank.wires(load.sender.account_id)
    at_bank = {row["amount"]: row["transaction_id"] for row in rows}
    assert len(at_bank) == len(rows), "a wire was sent twice"
    await load.sender.completed_at_bank(len(rows))
    debits = [row for row in await load.sender.posted() if row["type"] == "wire"]
    assert Counter(row["transaction_id"] for row in debits) == Counter(at_bank.values())
    for command in load.of(Kind.WIRE):
        assert not (command.is_given_up and command.mark in at_bank), "told 503, and sent"
        for answer in final_answers(command):
            assert answer.data["transaction_id"] == at_bank[command.mark]


async def onboardings_are_done_once(load: Load) -> None:
    """One record of each business and person at each provider, one account, and the ids that every answer names."""
    customers = await load.live.bank.customers()
    accounts = await load.live.bank.accounts()
    for command in load.of(Kind.ONBOARDING):
        tins = {person["tin"] for person in command.body["persons"]}
        records = [row for row in customers if row["fields"].get("ein") == command.mark]
        persons = [row for row in customers if row["fields"].get("tin") in tins]
        ids = {row["customer_id"] for row in records}
        opened = [row["account_id"] for row in accounts if row["customer_id"] in ids]
        apis = Counter(row["api"] for row in records)
        assert apis <= Counter({"identity": 1, "core": 1}), f"onboarded twice: {apis}"
        assert Counter(row["api"] for row in persons) <= Counter({"identity": 2, "core": 2})
        assert len(opened) <= 1, "two accounts were opened"
        assert not (command.is_given_up and records), "told 503, and onboarded"
        for answer in final_answers(command):
            business = answer.data["business"]
            assert {business["customer_id"]} == ids
            assert [business["account_id"]] == opened


async def differences_are_listed(load: Load, left: list[Command]) -> None:
    """What only the bank has since our database went back is unknown to our API, and listed by reconciliation."""
    assert {command.kind for command in left} == set(Kind), "the load left some of each kind"
    _, found = await reconcile(load.live.stack)
    listed = {value for difference in found for value in difference.ids.values()}
    for command in left:
        if command.kind is not Kind.UPDATE:
            target = target_of(command)
            assert (await command.api.get(target)).status == 404
            assert target.rpartition("/")[2] in listed
