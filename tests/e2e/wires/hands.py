"""A customer who sends wires, and what the bank and the readers of events know of them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import Any

from tests.e2e.ledger.hands import Account
from tests.support.api import Answer, Api
from tests.support.bank import Row
from tests.support.live import Live
from tests.support.people import new_key
from tests.support.waiting import eventually

WIRE = "/customer/wire"
WIRES = "/customer/wires"
CONNECTIONS = 64
"""So many callers are waited for at the same time."""
STATE_POLL_SECONDS = 0.15
"""The bank takes two seconds to complete a wire, and each look takes 7 ms of processor time."""
RATE = ("--wires-per-minute", "100000")


@dataclass(frozen=True)
class Sender:
    live: Live
    api: Api
    """Of the customer's own key, with a rate that no test reaches."""
    account: Account
    external_account_id: str

    @property
    def account_id(self) -> str:
        return self.account.account_id

    def order(self, amount: str = "10.00", **changes: Any) -> bytes:
        """The body of a wire; `amount` stands in it as it is."""
        fields = {
            "sending_account_id": self.account_id,
            "external_account_id": self.external_account_id,
            "purpose": "Invoice 2047",
        }
        return f'{json.dumps(fields | changes)[:-1]}, "amount": {amount}}}'.encode()

    async def send(
        self, amount: str = "10.00", idempotency_key: str | None = None, **changes: Any
    ) -> Answer:
        body = self.order(amount, **changes)
        return await self.api.call("POST", WIRE, body, idempotency_key=idempotency_key)

    async def final(self, key: str, amount: str = "10.00", seconds: float = 30) -> Answer:
        """Sent under this key, and asked for again under it until there is a final answer."""
        return await self.live.final("POST", WIRE, self.order(amount), key, seconds, self.api)

    async def sent(self, amount: str = "10.00") -> str:
        """The transaction id of a wire that was accepted."""
        return str((await self.final(new_key(), amount)).data["transaction_id"])

    async def sent_at_once(self, keys: Iterable[str]) -> dict[str, Answer]:
        """What the callers of many wires, one for each key, are told first."""
        connections = asyncio.Semaphore(CONNECTIONS)

        async def caller(key: str) -> tuple[str, Answer]:
            async with connections:
                return key, await self.send(idempotency_key=key)

        return dict(await asyncio.gather(*map(caller, keys)))

    async def finals(self, told: Mapping[str, Answer], seconds: float = 30) -> dict[str, Answer]:
        """The final answers: those that are, and of the rest what comes of asking again."""
        connections = asyncio.Semaphore(CONNECTIONS)

        async def caller(key: str, answer: Answer) -> tuple[str, Answer]:
            if answer.status < 500 and answer.code != "idempotency_in_progress":
                return key, answer
            async with connections:
                return key, await self.final(key, seconds=seconds)

        return dict(await asyncio.gather(*(caller(*each) for each in told.items())))

    async def wire(self, transaction_id: str) -> Any:
        return (await self.api.get(f"{WIRES}/{transaction_id}")).data

    async def has_state(self, transaction_id: str, state: str) -> Any:
        async def reached() -> Any:
            found = await self.wire(transaction_id)
            assert found["state"] == state, found["state"]
            return found

        what = f"{transaction_id} is {state}"
        return await eventually(what, reached, poll_seconds=STATE_POLL_SECONDS)

    async def total(self, **filters: str) -> int:
        """How many wires the customer's list has."""
        query = "&".join(f"{name}={value}" for name, value in {**filters, "limit": "1"}.items())
        found = await self.api.get(f"{WIRES}?{query}")
        assert found.status == 200
        return int(found.body["pagination"]["total"])

    async def at_bank(self) -> dict[str, str]:
        """The states of the wires that the bank has, by their transaction ids, each of which it has once."""
        rows = await self.live.bank.wires(self.account_id)
        assert len({row["transaction_id"] for row in rows}) == len(rows)
        return {row["transaction_id"]: row["state"] for row in rows}

    async def completed_at_bank(self, count: int) -> dict[str, str]:
        """As `at_bank`, once so many have been completed and no other is there."""

        async def done() -> dict[str, str]:
            states = await self.at_bank()
            assert Counter(states.values()) == {"completed": count}, Counter(states.values())
            return states

        return await eventually("the bank completed them", done)

    async def posted(self) -> list[Row]:
        """The account's postings at the bank, in order. None took it below zero."""
        postings = await self.live.bank.ledger(self.account_id)
        running = list(accumulate(Decimal(row["amount"]) for row in postings))
        assert min(running, default=Decimal(0)) >= 0
        return postings

    async def has_told(self, transaction_ids: Collection[str], *expected: str) -> None:
        """Of each of these wires exactly these events were published, in this order."""

        async def published() -> bool:
            told: dict[str, list[tuple[int, str]]] = defaultdict(list)
            for event in await self.live.events.of(self.account.customer_id):
                if event["data"]["object"] == "wire":
                    kind = event["type"].removeprefix("wire.")
                    told[event["data"]["transaction_id"]].append((event["sequence"], kind))
            for transaction_id in transaction_ids:
                assert told[transaction_id] == list(enumerate(expected, start=1))
            return True

        await eventually("the events of the wires", published)


async def sender_of(live: Live, onboarded: Any) -> Sender:
    business = onboarded["business"]
    names = ("account_id", "account_number", "customer_id")
    api = await live.of_customer(business["customer_id"], *RATE)
    linked = onboarded["external_bank_account"]["external_bank_account_id"]
    return Sender(live, api, Account(live, *(business[name] for name in names)), linked)


async def new_sender(live: Live, funds: str) -> Sender:
    """A customer of the partner's, with so much in the account."""
    sender = await sender_of(live, await live.onboarded())
    await live.bank.deposit(sender.account_id, Decimal(funds))
    return sender
