"""A load of wires, onboardings and updates, and whether callers, our API and the bank agree about it afterwards.

Every command has a mark of its own by which the bank's records lead back to it: a wire its amount, an onboarding its
EIN, an update the name that it sets. So a command that was carried out twice shows at the bank under any id.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any

from tests.e2e.wires.hands import RATE, WIRE, Sender, sender_of
from tests.support.api import Answer, Api
from tests.support.bank import Row
from tests.support.live import CUSTOMERS, NONE, ONBOARDED, Live
from tests.support.pace import pace, waiting_pace
from tests.support.people import application, new_key
from tests.support.receivers import receiver
from tests.support.reconciling import assert_reconciled
from tests.support.recorded_events import business_of
from tests.support.subscribers import Subscriber, subscribed
from tests.support.waiting import eventually

WIRE_CALLERS, ONBOARDING_CALLERS, UPDATE_CALLERS = 2, 1, 1
PAUSE_SECONDS = 6.0
"""While nothing is about to fail; see `Load.in_flight`."""
PAUSE_AFTER_FAILURE_SECONDS = 3.0
"""At most, so that callers soon notice that they are served again."""
TRANSIT = {"BANKSIDE_PROVIDER_TRANSIT_SECONDS": "5"}
"""So long after a start of the database, and one attempt more, records are compared with the bank's, and until then
wires of before are not sent; see `libs.persistence.continuity`. The bank is on this machine: nothing is on its way to
it for longer.
"""
FUNDS = Decimal(100_000_000)
DEADLINE_SECONDS = 6.0
"""Of the gateway, on a quiet machine: callers are told `outcome_pending` after 3 s."""
MARGIN_SECONDS = 4.0
"""Beyond the gateway's deadline, for the machine may be busy."""
FINAL_SECONDS = 40.0
"""Longer than the longest pause between two drives of a command, and between two attempts of a delivery."""
FINALS_AT_ONCE = 16
ON_SECONDS = 60.0
"""Says nothing about the stack, for nothing has happened to it: the machine may be busy."""
UNLIMITED = ("--writes-per-minute", "1000000", "--reads-per-minute", "1000000")


def waits() -> dict[str, str]:
    """Settings of a stack that a load runs on. At the longest, they are the product's defaults."""
    slower = waiting_pace()
    return {
        "BANKSIDE_GATEWAY_DEADLINE_SECONDS": str(DEADLINE_SECONDS * slower),
        "BANKSIDE_PROVIDER_TIMEOUT_SECONDS": str(1.5 * slower),
    }


class Kind(Enum):
    WIRE = "wire"
    ONBOARDING = "onboarding"
    UPDATE = "update"


TOLD: dict[Kind, set[str]] = {
    Kind.WIRE: {"wire.created", "wire.completed"},
    Kind.ONBOARDING: {"account.opened"},
    Kind.UPDATE: {"customer.updated"},
}
"""By which events a command that is done is told."""


@dataclass
class Command:
    """What a caller sends, its first answer, and the answer that is final."""

    number: int
    """Among those of its kind: callers may send in turns, of which an update would always have the same one."""
    kind: Kind
    api: Api
    method: str
    target: str
    body: Any
    mark: str
    key: str = field(default_factory=new_key)
    sent_at: float = 0.0
    """Of the monotonic clock."""
    answered_at: float = 0.0
    answer: Answer | None = None
    final: Answer | None = None

    async def send(self) -> Answer:
        return await self.api.call(self.method, self.target, self.body, idempotency_key=self.key)

    @property
    def is_done(self) -> bool:
        """Whether the first answer was a success."""
        return self.answer is not None and self.answer.status == 200

    @property
    def is_given_up(self) -> bool:
        """Half of the callers who are told 503 never send again: what they sent must never be carried out."""
        assert self.answer is not None, f"{self.kind.value} {self.key} was not answered"
        return self.answer.status == 503 and self.number % 2 == 0

    @property
    def data(self) -> Any:
        """Of the final answer, which is a success."""
        assert self.final is not None, f"{self.kind.value} {self.key} has no final answer"
        return self.final.data


class Load:
    """Callers of one partner and of one of its customers, each of whom sends one command after the other."""

    def __init__(
        self,
        live: Live,
        sender: Sender,
        customer_ids: list[str],
        subscriber: Subscriber,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        """Prepare the callers; none calls yet.

        Args:
            customer_ids: of customers that are updated, each by a caller of its own.
            pause_seconds: between an answer and the caller's next command.
        """
        self.live = live
        self.sender = sender
        self.subscriber = subscriber
        self.commands: list[Command] = []
        self._answer_seconds = live.deadline_seconds + MARGIN_SECONDS * pace()
        self._customer_ids = customer_ids
        self._delivered: list[Any] = []
        self._numbers = itertools.count(1)
        self._is_on = False
        self._pause_seconds = pause_seconds
        self._without_pause = asyncio.Event()
        self._hurried_at = 0.0
        """By the monotonic clock: callers who have sent nothing since then do not pause."""

    def of(self, kind: Kind) -> list[Command]:
        return [command for command in self.commands if command.kind is kind]

    def wire(self) -> Command:
        amount = f"{next(self._numbers)}.00"
        return self._command(
            Kind.WIRE, self.sender.api, "POST", WIRE, self.sender.order(amount), amount
        )

    def onboarding(self) -> Command:
        body = application()
        ein = body["business"]["ein"]
        return self._command(Kind.ONBOARDING, self.live.partner, "POST", CUSTOMERS, body, ein)

    def update(self, customer_id: str) -> Command:
        name = f"Name {next(self._numbers)}"
        target = f"{CUSTOMERS}/business/{customer_id}"
        body = {"business": {"dba": name}}
        return self._command(Kind.UPDATE, self.live.partner, "PATCH", target, body, name)

    def _command(self, kind: Kind, *fields: Any) -> Command:
        command = Command(len(self.of(kind)), kind, *fields)
        self.commands.append(command)
        return command

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Callers send until the block ends, which then waits for their last answers."""
        callers: list[Callable[[], Command]] = [
            *[self.wire] * WIRE_CALLERS,
            *[self.onboarding] * ONBOARDING_CALLERS,
            *(partial(self.update, customer_id) for customer_id in self._customer_ids),
        ]
        self._is_on = True
        async with asyncio.TaskGroup() as group:
            for new_command in callers:
                group.create_task(self._send_on(new_command), name="caller")
            try:
                yield
            finally:
                self._is_on = False

    async def _send_on(self, new_command: Callable[[], Command]) -> None:
        while self._is_on:
            command = new_command()
            command.sent_at = time.monotonic()
            command.answer = await command.send()
            command.answered_at = time.monotonic()
            seconds = command.answered_at - command.sent_at
            shown = f"{command.kind.value}: {command.answer.status} {command.answer.body}"
            assert command.answer.code in {"200", "unavailable", "outcome_pending"}, shown
            assert seconds < self._answer_seconds, f"{shown} after {seconds:.1f} s"
            if command.sent_at >= self._hurried_at:
                await self._pause(command)

    async def _pause(self, command: Command) -> None:
        seconds = self._pause_seconds
        if not command.is_done:
            seconds = min(seconds, PAUSE_AFTER_FAILURE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._without_pause.wait()

    def hurry(self) -> None:
        """Each caller sends its next command without a pause before it."""
        self._hurried_at = time.monotonic()
        self._without_pause.set()
        self._without_pause.clear()  # those who wait for it go on nevertheless

    async def in_flight(self) -> None:
        """Return while commands of each kind are under way. Until then callers send without a pause."""
        since = time.monotonic()

        async def is_in_flight() -> bool:
            sent = [command for command in self.commands if command.sent_at > since]
            answered = {command.kind for command in sent if command.answer is not None}
            under_way = {command.kind for command in sent if command.answer is None}
            return bool(answered) and under_way == set(Kind)

        self._without_pause.set()
        try:
            await eventually("each kind is in flight", is_in_flight)
        finally:
            self._without_pause.clear()

    async def is_carried(self, since: float, kinds: Collection[Kind] = tuple(Kind)) -> bool:
        """Whether commands of each kind that were sent `since` then are done, and their events delivered."""
        done = [c for c in self.commands if c.is_done and c.sent_at > since and c.kind in kinds]
        missing = set(kinds) - {command.kind for command in done}
        assert not missing, f"none is answered 200: {missing}"
        subjects = {subject for command in done if (subject := _subject_of(command))}
        for request in self.subscriber.requests[len(self._delivered) :]:
            self._delivered.append(json.loads(request.body))
        types = {e["type"] for e in self._delivered if subjects & _subjects_in(e["data"])}
        awaited = set().union(*(TOLD[kind] for kind in kinds))
        assert types >= awaited, f"not delivered: {awaited - types}"
        return True

    async def is_on(
        self, kinds: Collection[Kind] = tuple(Kind), seconds: float = ON_SECONDS
    ) -> None:
        """Return when commands of each kind that are sent from now on are done, and their events delivered."""
        since = time.monotonic()
        self.hurry()
        await eventually(
            "everything is carried out", partial(self.is_carried, since, kinds), seconds
        )

    async def finish(self) -> None:
        """Await the final answer of every command that was not given up."""
        at_once = asyncio.Semaphore(FINALS_AT_ONCE)

        async def finish(command: Command) -> None:
            if command.is_done:
                command.final = command.answer
            elif not command.is_given_up:
                async with at_once:
                    command.final = await self._final(command)

        await asyncio.gather(*map(finish, self.commands))
        for customer_id in self._customer_ids:
            last = self.update(customer_id)
            last.answer = last.final = await self._final(last)

    async def _final(self, command: Command) -> Answer:
        return await self.live.final(
            command.method, command.target, command.body, command.key, FINAL_SECONDS, command.api
        )

    async def agrees(self, new_events: Counter[str] = NONE) -> None:
        """What callers were told, our API and the bank agree, and each event was published and delivered.

        Args:
            new_events: of an onboarding, which services of the release before do not record.
        """
        await self._wires_agree()
        await self._onboardings_agree(new_events)
        await self._updates_agree(new_events)
        await self.live.events.fetch()
        self.live.events.check()
        await eventually("every event is delivered", self._all_delivered, FINAL_SECONDS)
        await assert_reconciled(self.live.stack)

    async def _wires_agree(self) -> None:
        commands = [command for command in self.of(Kind.WIRE) if not command.is_given_up]
        marks = {command.data["transaction_id"]: command.mark for command in commands}
        assert len(marks) == len(commands), "two wires have the same transaction id"
        rows = await self.live.bank.wires(self.sender.account_id)
        assert Counter(row["amount"] for row in rows) == Counter(marks.values())
        assert {row["transaction_id"]: row["amount"] for row in rows} == marks
        await self.sender.completed_at_bank(len(marks))
        debits = [row for row in await self.sender.posted() if row["type"] == "wire"]
        assert Counter(row["transaction_id"] for row in debits) == Counter(marks.keys())
        paid = sum(map(Decimal, marks.values()))
        assert sum(Decimal(row["amount"]) for row in debits) == -paid
        assert set((await self.sender.account.balance()).values()) == {FUNDS - paid, Decimal(0)}
        await self.sender.has_told(marks, "created", "submitted", "completed")
        assert await self.sender.total(state="completed") == await self.sender.total() == len(marks)

    async def _onboardings_agree(self, new_events: Counter[str]) -> None:
        customers = await self.live.bank.customers()
        accounts = await self.live.bank.accounts()
        linked = await self.live.bank.external_accounts()
        records = Counter(row["fields"].get("ein") for row in customers)
        for command in self.of(Kind.ONBOARDING):
            if command.is_given_up:
                assert records[command.mark] == 0, "told 503, and at the bank"
                continue
            assert records[command.mark] == 2, "one record of the business at each provider"
            business, persons = command.data["business"], command.data["persons"]
            customer_id, account_id = business["customer_id"], business["account_id"]
            ids = [customer_id, *(person["customer_id"] for person in persons)]
            external_id = command.data["external_bank_account"]["external_bank_account_id"]
            found = [(row["api"], row["status"], row["customer_id"]) for row in _of(customers, ids)]
            expected = (("identity", "approved"), ("core", "active"))
            assert Counter(found) == Counter((*e, one) for e in expected for one in ids)
            assert [(r["account_id"], r["status"]) for r in _of(accounts, ids)] == [
                (account_id, "open")
            ]
            assert [(r["external_account_id"], r["primary"]) for r in _of(linked, ids)] == [
                (external_id, True)
            ]
            shown = await self.live.customer(customer_id)
            assert [account["id"] for account in shown["accounts"]] == [account_id]
            await self.live.has_events(customer_id, ONBOARDED, new_events)

    async def _updates_agree(self, new_events: Counter[str]) -> None:
        for customer_id in self._customer_ids:
            target = f"{CUSTOMERS}/business/{customer_id}"
            commands = [command for command in self.commands if command.target == target]
            carried_out = [command for command in commands if not command.is_given_up]
            assert all(command.data is None for command in carried_out)
            rows = await self.live.bank.customers(customer_id)
            assert [row["fields"]["dba"] for row in rows] == [commands[-1].mark] * 2
            shown = await self.live.customer(customer_id)
            assert shown["business"]["dba"] == commands[-1].mark
            updates = Counter({"customer.updated": len(carried_out)})
            await self.live.has_events(customer_id, ONBOARDED + updates, new_events)

    async def _all_delivered(self) -> bool:
        ours = {self.sender.account.customer_id, *self._customer_ids} | {
            command.data["business"]["customer_id"]
            for command in self.of(Kind.ONBOARDING)
            if not command.is_given_up
        }
        published = {e["id"]: e["type"] for e in self.live.events.events if business_of(e) in ours}
        missing = published.keys() - set(self.subscriber.ids)
        assert not missing, Counter(published[event_id] for event_id in missing)
        return True


def _of(rows: Iterable[Row], customer_ids: list[str]) -> list[Row]:
    return [row for row in rows if row["customer_id"] in customer_ids]


def _subject_of(command: Command) -> str | None:
    """By which events of a command that is done are found."""
    assert command.answer is not None
    match command.kind:
        case Kind.WIRE:
            return str(command.answer.data["transaction_id"])
        case Kind.ONBOARDING:
            return str(command.answer.data["business"]["customer_id"])
        case Kind.UPDATE:
            return command.mark


def _subjects_in(data: Any) -> set[str]:
    names = {data[name] for name in ("transaction_id", "customer_id") if name in data}
    return names | {data["business"]["dba"]} if data["object"] == "customer" else names


async def onboarded_in_the_end(live: Live) -> Any:
    """The data of an onboarding; on a busy machine its first answer may be that it goes on."""
    final = await live.final("POST", CUSTOMERS, application(), new_key(), ON_SECONDS)
    assert final.data["status"] == "approved"
    return final.data


@asynccontextmanager
async def new_load(
    live: Live, tenant: str, pause_seconds: float = PAUSE_SECONDS
) -> AsyncIterator[Load]:
    """A partner of its own that subscribes to everything, and customers of it: one with funds, others to update."""
    partner = await live.of_tenant(tenant, *UNLIMITED)
    live = replace(live, partner=partner)
    async with receiver() as endpoint, subscribed(partner, endpoint) as subscriber:
        onboarded = [await onboarded_in_the_end(live) for _ in range(1 + UPDATE_CALLERS)]
        sending, *updated = [data["business"]["customer_id"] for data in onboarded]
        await live.of_customer(sending, *RATE, *UNLIMITED)
        sender = await sender_of(live, onboarded[0])
        await live.bank.deposit(sender.account_id, FUNDS)
        yield Load(live, sender, updated, subscriber, pause_seconds)
