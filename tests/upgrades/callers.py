"""Callers during an upgrade: the wires, onboardings and updates of a load, and beside them reads, subscriptions, wires
that a second key approves, and an operator. No call may fail.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from functools import partial

import aiohttp

from libs.contracts.principal import Role
from tests.e2e.wires.hands import WIRES, Sender, sender_of
from tests.faults.load import Load, new_load, onboarded_in_the_end
from tests.support.api import Answer, Api, Key, fetch_interface
from tests.support.live import ACCOUNTS, CUSTOMERS, Live
from tests.support.operators import new_operator
from tests.support.pace import waiting_pace
from tests.support.receivers import Receiver, receiver
from tests.support.subscribers import PARTNER, subscribed
from tests.support.waiting import eventually

PAUSE_SECONDS = 0.75
"""Of each caller, on a quiet machine. On a busy one it is longer, so that services that start get the processor."""
READERS = 3
KNOCK_SECONDS = 0.05
OPERATED = (
    *("overview", "traffic", "wires", "customers", "subscriptions", "commands"),
    *("audit?service=payments", "feeds", "dead-letters", "differences", "restores"),
)
"""What an operator reads: each of these asks a service, or all of them."""
THRESHOLD = 50
"""Wires of so many dollars wait for a second key."""

NEW_EVENTS = Counter({"person.updated": 2})
"""Of an onboarding: the release before tells no verdicts on persons. Nothing, once the release before does."""


class Callers:
    """The callers of one upgrade: a load, reads, subscriptions, approved wires, and an operator.

    Args:
        payer: has a policy, by which its wires wait for an approval.
        approver: another key of that customer.
        operator: at the listener for operators.
        endpoint: of subscriptions that come and go.
    """

    def __init__(
        self, load: Load, payer: Sender, approver: Api, operator: Api, endpoint: Receiver
    ) -> None:
        self.load = load
        self._failures: list[str] = []
        self._operator = operator
        self._payer = payer
        self._approver = approver
        self._endpoint = endpoint
        self._waiting: list[str] = []
        self._approved = 0
        self._pause_seconds = PAUSE_SECONDS * waiting_pace()
        self._is_on = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """They call until the block ends, which then waits for their last answers."""
        self._is_on = True
        async with asyncio.TaskGroup() as group, self.load.running():
            for _ in range(READERS):
                group.create_task(self._read_on(), name="reader")
            group.create_task(self._subscribe_on(), name="subscriber")
            group.create_task(self._knock_on(), name="knocking")
            try:
                yield
            finally:
                self._is_on = False

    async def go_on(self, phase: str) -> None:
        """Return when all that is asked for from now on was done, and no call of the phase has failed."""
        await asyncio.gather(self.load.is_on(), self._hand_over(), self._operate())
        self._check(phase)

    async def agree(self) -> None:
        """No call has failed, and what callers were told, our API and the bank agree; see `Load.agrees`."""
        self._check("at the end")
        await self._approve()
        await self._payer.completed_at_bank(self._approved)
        await self.load.finish()
        await self.load.agrees(NEW_EVENTS)

    def _check(self, phase: str) -> None:
        failed = [c for c in self.load.commands if c.answer is not None and not c.is_done]
        assert not failed, f"{phase}: {[(c.kind, c.answer) for c in failed]}"
        assert not self._failures, f"{phase}: {self._failures}"

    async def _hand_over(self) -> None:
        """Approve the wire that was asked for in the phase before, and ask for another."""
        await self._approve()
        await self.set_policy()
        sent = await self._payer.send(f"{THRESHOLD}.00")
        assert sent.body.get("message") == "Wire waiting for approval", sent.body
        self._waiting.append(sent.data["transaction_id"])

    async def _approve(self) -> None:
        while self._waiting:
            path = f"{WIRES}/{self._waiting.pop()}/approve"
            approved = await self._approver.call("POST", path)
            assert approved.body.get("message") == "Wire submitted", approved.body
            self._approved += 1

    async def set_policy(self) -> None:
        customer_id = self._payer.account.customer_id
        path = f"{CUSTOMERS}/{customer_id}/wire-policy"
        policy = {"approval_threshold": THRESHOLD}
        assert (await self._payer.live.partner.call("PUT", path, policy)).status == 200

    async def _operate(self) -> None:
        for target in OPERATED:
            found = (await self._operator.get(f"/operator/{target}")).data
            unreachable = found.get("unreachable", []) if isinstance(found, dict) else []
            assert unreachable == [], target

    async def _read_on(self) -> None:
        account, customer_id = self.load.sender.account_id, self.load.sender.account.customer_id
        reads = itertools.cycle(
            [
                (self.load.live.partner, f"{ACCOUNTS}/balance/{account}"),
                (self.load.sender.api, f"{WIRES}?limit=5"),
                (self.load.live.partner, f"{CUSTOMERS}/{customer_id}"),
                (self.load.sender.api, "/customer/accounts"),
                (self.load.live.partner, f"{PARTNER}/events?limit=5"),
            ]
        )
        while self._is_on:
            api, target = next(reads)
            await self._ask(f"GET {target}", partial(api.get, target), 200)
            await asyncio.sleep(self._pause_seconds / 2)

    async def _knock_on(self) -> None:
        """Open a connection for each request, so that some come at any moment of a gateway's end."""
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            url = f"{self.load.live.stack.base_url}/nowhere"
            while self._is_on:
                await self._ask("POST /nowhere", partial(_answer_of, session, url), 404)
                await asyncio.sleep(KNOCK_SECONDS)

    async def _subscribe_on(self) -> None:
        live = self.load.live
        for number in itertools.count():
            if not self._is_on:
                return
            target = f"/short/{number}"
            async with subscribed(live.partner, self._endpoint, "account", target=target) as one:
                await one.do("test")
                await one.do("secret/rotate")
                await one.change(event_types="wire")

                async def came() -> bool:
                    return bool(one.requests)

                await eventually("the test event", came)
            await asyncio.sleep(self._pause_seconds)

    async def _ask(self, what: str, call: Callable[[], Awaitable[Answer]], expected: int) -> None:
        try:
            answer = await call()
        except (aiohttp.ClientError, TimeoutError) as error:
            self._failures.append(f"{what}: {error!r}")
            return
        if answer.status != expected:
            self._failures.append(f"{what}: {answer.status} {answer.body}")


async def _answer_of(session: aiohttp.ClientSession, url: str) -> Answer:
    async with session.post(url) as response:
        return Answer(response.status, None, response.headers, await response.read())


@asynccontextmanager
async def new_callers(live: Live, tenant: str) -> AsyncIterator[Callers]:
    """Of a partner of their own."""
    pause_seconds = PAUSE_SECONDS * waiting_pace()
    async with new_load(live, tenant, pause_seconds) as load, receiver() as endpoint:
        live = load.live
        onboarded = await onboarded_in_the_end(live)
        payer = await sender_of(live, onboarded)
        await live.bank.deposit(payer.account_id, Decimal(100_000))
        customer_id = payer.account.customer_id
        made = await live.stack.command(
            *("keys", "create", "--family", "customer", "--customer", customer_id)
        )
        approver = live.api(Key(made["subscription_key"], made["secret"], made["tenant"]))
        operators_url = live.stack.operator_url
        operator = Api(
            live.session,
            operators_url,
            await fetch_interface(live.session, operators_url),
            await new_operator(live.stack.environment, Role.VIEWER),
        )
        callers = Callers(load, payer, approver, operator, endpoint)
        await callers.set_policy()
        yield callers
