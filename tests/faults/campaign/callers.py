"""Partners, their customers, and the callers who send for them, at a rate and with a seed.

A caller who gets no answer, or is told that the outcome is not known, sends again under the same key later on, through
any gateway. Some give up: of what they were told 503 about nothing may ever be carried out; of what they never heard of
at most once. Some go away before the answer comes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from decimal import Decimal
from typing import Any

import aiohttp

from tests.e2e.wires.hands import RATE, WIRES
from tests.faults.campaign.deliveries import endpoint
from tests.faults.campaign.operations import (
    CUT_OFF,
    NO_ANSWER,
    NOT_DONE,
    READ_REFUSALS,
    UNDECIDED,
    WENT_AWAY,
    WRITES,
    Attempt,
    Kind,
    Operation,
    WrongAnswer,
    now,
)
from tests.faults.campaign.replicas import Fleet
from tests.faults.campaign.wishes import SUBSCRIPTIONS, Customer, Partner, Wishes
from tests.support.api import Answer, Api, Interface, Key, public_interface
from tests.support.bank import Bank
from tests.support.waiting import eventually

PARTNERS = 2
CUSTOMERS_EACH = 2
FUNDS = Decimal(10_000_000_000)
UNLIMITED = ("--writes-per-minute", "1000000", "--reads-per-minute", "1000000")
IN_FLIGHT = 48
"""Callers who wait for an answer at once; more wait for their turn to send."""
VANISHING, GIVING_UP = 0.02, 0.25
"""Of the writes: whose caller goes away before the answer; of those without an answer: whose caller gives up."""
ASKING_AGAIN = 0.03
"""Of the writes that are done: whose caller sends again under the same key, and has to get the same answer."""
GIVEN_UP = frozenset({Kind.WIRE, Kind.ONBOARDING})
"""Of the rest the last one counts, or there is a limit to how many there may be."""
RESEND_SECONDS = (0.5, 4.0)
ANSWER_SECONDS = 15.0
"""After which a caller counts a request as unanswered. The gateway answers earlier, unless it stands still."""
SETTLE_SECONDS = 90.0
START_SECONDS = 60.0


class Callers:
    def __init__(
        self,
        fleet: Fleet,
        session: aiohttp.ClientSession,
        interface: Interface,
        bank: Bank,
        seed: int,
    ) -> None:
        self.fleet = fleet
        self.bank = bank
        self.operations: list[Operation] = []
        self.wrong: list[str] = []
        """What was answered wrongly, with the operation's history."""
        self._session = session
        self._interface = interface
        self._random = random.Random(seed)
        self.wishes = Wishes(self._random)
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._sending: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException] = []

    @property
    def partners(self) -> list[Partner]:
        return self.wishes.partners

    # How operations are sent

    async def send_at(self, rate: Callable[[], float]) -> None:
        """Send so many operations a second, at random moments, until cancelled. Those under way go on."""
        while True:
            await asyncio.sleep(self._random.expovariate(rate()))
            if (operation := self.wishes.next()) is not None:
                await self.begin(operation)

    async def begin(self, operation: Operation) -> None:
        """Send it as soon as there is a free slot, and go on until there is an answer or its caller gives up."""
        await self._slots.acquire()
        self.operations.append(operation)
        self.wishes.begun(operation)
        task = asyncio.create_task(self._carry(operation), name=operation.kind.value)
        self._sending.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        if error := task.exception():
            self._failures.append(error)

    def raise_failure(self) -> None:
        """Raises what a caller failed with, which is an error of the test's own."""
        if self._failures:
            raise self._failures[0]

    async def _carry(self, operation: Operation) -> None:
        """Send it until it is done or given up."""
        try:
            await self._attempt(operation, vanishes=self._random.random() < VANISHING)
        finally:
            self._slots.release()
        while self._is_unfinished(operation):
            if operation.kind in GIVEN_UP and self._random.random() < GIVING_UP:
                operation.is_given_up = True
                return
            await asyncio.sleep(self._random.uniform(*RESEND_SECONDS))
            await self._attempt(operation)
        if operation.kind in WRITES and self._random.random() < ASKING_AGAIN:
            await self._attempt(operation)
        if (following := self.wishes.ended(operation)) is not None:
            await self.begin(following)

    def _is_unfinished(self, operation: Operation) -> bool:
        return operation.kind in WRITES and not operation.is_done

    async def _attempt(self, operation: Operation, *, vanishes: bool = False) -> None:
        sent_at = now()
        through = ""
        try:
            async with asyncio.timeout(
                self._random.uniform(0.001, 0.1) if vanishes else ANSWER_SECONDS
            ):
                through, answer = await self._through_a_gateway(operation)
        except TimeoutError:
            code = WENT_AWAY if vanishes else NO_ANSWER
        except (aiohttp.ClientError, ConnectionError):
            code = CUT_OFF
        except AssertionError as error:  # of the interface's document
            code = "wrong"
            self._is_wrong(operation, str(error))
        else:
            code = answer.code
            self._take(operation, answer)
        operation.attempts.append(Attempt(sent_at, now(), code, through))

    async def _through_a_gateway(self, operation: Operation) -> tuple[str, Answer]:
        """By one that takes the connection, as load balancers choose. Raises ClientConnectorError: none does."""
        gateways = self.fleet.gateways
        names = self._random.sample(sorted(gateways), len(gateways))
        for name in names[:-1]:
            with suppress(aiohttp.ClientConnectorError):
                return name, await self._call(gateways[name], operation)
        return names[-1], await self._call(gateways[names[-1]], operation)

    async def _call(self, base_url: str, operation: Operation) -> Answer:
        api = Api(self._session, base_url, self._interface, self._key(operation.owner))
        key = operation.key if operation.kind in WRITES else None
        return await api.call(
            operation.method, operation.target, operation.body or None, idempotency_key=key
        )

    def _key(self, owner: str) -> Key:
        for partner in self.partners:
            if partner.tenant == owner:
                return partner.key
            for customer in partner.customers:
                if customer.customer_id == owner:
                    return customer.key
        raise LookupError(owner)

    # What the answers may be

    def _take(self, operation: Operation, answer: Answer) -> None:
        if answer.code == "200":
            try:
                self._check(operation, answer)
            except WrongAnswer as wrong:
                self._is_wrong(operation, str(wrong))
            return
        allowed = READ_REFUSALS if operation.kind is Kind.READ else NOT_DONE | UNDECIDED
        if answer.code not in allowed:
            self._is_wrong(operation, f"{answer.status} {answer.body}")

    def _check(self, operation: Operation, answer: Answer) -> None:
        """Raises WrongAnswer."""
        data = answer.data
        if operation.kind is Kind.READ:
            self._check_read(operation, data)
            return
        if operation.is_done and operation.data != data:
            raise WrongAnswer(f"another answer than before: {operation.data}, {data}")
        operation.data = data
        if operation.kind is Kind.WIRE and not operation.is_done:
            self._customer(operation.owner).sent.append(operation)
        if operation.kind is Kind.ONBOARDING and data["status"] != "approved":
            raise WrongAnswer(f"the bank approves of everybody: {data['status']}")

    def _check_read(self, operation: Operation, data: Any) -> None:
        if operation.target == "/customer/accounts":
            expected = {self._customer(operation.owner).account_id}
            if (found := {row["id"] for row in data["accounts"]}) != expected:
                raise WrongAnswer(f"accounts {found} rather than {expected}")
        elif operation.target.startswith(WIRES):
            if Decimal(str(data["amount"])) != Decimal(operation.mark):
                raise WrongAnswer(f"a wire of {data['amount']} rather than {operation.mark}")
        elif data["account_id"] != operation.target.rpartition("/")[2]:
            raise WrongAnswer(f"the balance of {data['account_id']}")

    def _is_wrong(self, operation: Operation, what: str) -> None:
        self.wrong.append(f"{what}\n  {operation.history()}")

    def _customer(self, customer_id: str) -> Customer:
        return next(
            customer
            for partner in self.partners
            for customer in partner.customers
            if customer.customer_id == customer_id
        )

    # The beginning and the end

    async def settle(self) -> None:
        """Return when every operation under way is done or given up. Raises AssertionError after SETTLE_SECONDS."""

        async def are_done() -> bool:
            assert not self._sending, [task.get_name() for task in self._sending]
            return True

        await eventually("everything that was sent is answered", are_done, SETTLE_SECONDS)
        for partner in self.partners:
            for customer_id in partner.updated:
                await self.begin(self.wishes.update_of(partner, customer_id))
        await eventually("the last updates are answered", are_done, SETTLE_SECONDS)

    async def set_up(self, opened: AsyncExitStack) -> None:
        """Make the partners and customers, while all is well."""
        for number in range(PARTNERS):
            tenant = f"partner{number}"
            key = await self.fleet.stack.new_key("partner", "--tenant", tenant, *UNLIMITED)
            listening = await opened.enter_async_context(endpoint())
            partner = Partner(tenant, key, [], [], listening)
            self.partners.append(partner)
            api = self.api(partner.key)
            body = {"event_types": "*", "callback_url": listening.url}
            made = (await api.post(SUBSCRIPTIONS, body)).data["subscription_id"]
            listening.secret = (await api.get(f"{SUBSCRIPTIONS}/{made}/secret")).data["secret"]
            for _ in range(CUSTOMERS_EACH):
                partner.customers.append(await self._new_customer(partner))
            partner.updated = [customer.customer_id for customer in partner.customers]
            partner.account_ids = {customer.account_id for customer in partner.customers}

    def api(self, key: Key) -> Api:
        base_url = next(iter(self.fleet.gateways.values()))
        return Api(self._session, base_url, self._interface, key)

    async def _new_customer(self, partner: Partner) -> Customer:
        operation = self.wishes.onboarding()
        operation.owner = partner.tenant
        self.operations.append(operation)

        async def is_done() -> bool:
            await self._attempt(operation)
            return operation.is_done

        await eventually("a customer is onboarded", is_done, START_SECONDS)
        business = operation.data["business"]
        key = await self.fleet.stack.new_key(
            "customer", "--customer", business["customer_id"], *RATE, *UNLIMITED
        )
        await self.bank.deposit(business["account_id"], FUNDS)
        linked = operation.data["external_bank_account"]["external_bank_account_id"]
        return Customer(business["customer_id"], business["account_id"], linked, key)


@asynccontextmanager
async def new_callers(fleet: Fleet, seed: int) -> AsyncIterator[Callers]:
    async with AsyncExitStack() as opened:
        session = await opened.enter_async_context(
            aiohttp.ClientSession(
                auto_decompress=False, connector=aiohttp.TCPConnector(limit=4 * IN_FLIGHT)
            )
        )
        bank = Bank(session, fleet.stack.sandbox_url)
        callers = Callers(fleet, session, public_interface(), bank, seed)
        await callers.set_up(opened)
        yield callers
