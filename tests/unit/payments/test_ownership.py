"""Asking onboarding whose the accounts of a wire are."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from libs.contracts.errors import (
    ExternalAccountNotLinked,
    InternalError,
    InvalidState,
    NotFound,
    ProviderError,
    ProviderTimeout,
    Unavailable,
)
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.ownership import FindAccountOwner, FindCustomer, FindExternalAccount
from libs.contracts.principal import Family, Principal
from libs.handling.query_client import QueryClient
from services.payments.adapters.ownership import OPEN_SECONDS, OnboardingOwnership
from services.payments.models import Creditor, Payee, PostalAddress
from tests.support.pace import pace
from tests.support.waiting import eventually

ADDRESS = {
    "street_1": "1 Main Street",
    "street_2": None,
    "city": "Norfolk",
    "country": "US",
    "state": "VA",
    "zip_code": "23510",
}
HOLDER = {
    "name_on_account": "Tidewater Goods LLC",
    "address_on_account": ADDRESS,
    "linked_at": "2026-11-01T00:00:00Z",
}
CREDITOR = Creditor(
    "Tidewater Goods LLC", PostalAddress("1 Main Street", "Norfolk", "VA", "23510", "US")
)
LINKED_AT = datetime(2026, 11, 1, tzinfo=UTC)
PAYEE = Payee(CREDITOR, LINKED_AT)
MINE = Principal("t_1", "Tenant", Family.CUSTOMER, "sub_1", "c_1")
OTHER = Principal("t_1", "Tenant", Family.CUSTOMER, "sub_2", "c_2")


@dataclass
class Onboarding:
    """Everything belongs to `c_1`."""

    known: set[str] = field(default_factory=lambda: {"acc_1", "ext_1"})
    is_final: bool | None = False
    """None: as an earlier release, which does not say it."""
    failure: Exception | None = None
    reply: Any = None
    """In place of the right one."""
    asked: Counter[str] = field(default_factory=Counter)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    async def query(
        self, operation: Operation, principal: Principal, command: Command, deadline: float
    ) -> Any:
        self.asked[operation.name] += 1
        answer = self._answer(operation, principal, command)
        try:
            async with asyncio.timeout(deadline - time.time()):
                await self.may_answer.wait()
        except TimeoutError:
            raise ProviderTimeout from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _answer(self, operation: Operation, principal: Principal, command: Command) -> Any:
        if self.failure is not None:
            return self.failure
        if self.reply is not None:
            return self.reply
        match command:
            case (
                FindAccountOwner(account_id=found) | FindExternalAccount(external_account_id=found)
            ):
                if principal != MINE or found not in self.known:
                    return NotFound()
                name = next(iter(type(command).model_fields))
                answer = {name: found, "customer_id": "c_1"}
                return {"data": answer | (HOLDER if name == "external_account_id" else {})}
            case FindCustomer(customer_id="c_1"):
                final = {} if self.is_final is None else {"is_final": self.is_final}
                owner = {"customer_id": "c_1", "tenant": "t_1", "business_name": "A", "dba": None}
                return {"data": owner | final}
            case FindCustomer():
                return NotFound()
            case _:
                raise AssertionError(operation.name)


def ownership(
    onboarding: Onboarding, clock: Callable[[], float] = time.monotonic
) -> OnboardingOwnership:
    query_client = QueryClient(onboarding, patience_seconds=1)
    return OnboardingOwnership(query_client, capacity=10, clock=clock)


async def test_what_is_ones_own_is_asked_once_and_remembered_for_its_owner_alone() -> None:
    onboarding = Onboarding()
    asked = ownership(onboarding)
    deadline = time.time() + 5 * pace()

    for _ in range(2):
        await asked.require_account(MINE, "acc_1", deadline)
        assert await asked.require_external_account(MINE, "ext_1", deadline) == PAYEE

    assert set(onboarding.asked.values()) == {1}
    with pytest.raises(NotFound):
        await asked.require_account(OTHER, "acc_1", deadline)
    with pytest.raises(ExternalAccountNotLinked):
        await asked.require_external_account(OTHER, "ext_1", deadline)


async def until_asked(onboarding: Onboarding, times: int) -> None:
    async def asked() -> bool:
        return onboarding.asked.total() == times

    await eventually(f"onboarding was asked {times} times", asked)


async def test_a_crowd_that_wants_to_know_the_same_asks_once() -> None:
    onboarding = Onboarding()
    onboarding.may_answer.clear()
    asked = ownership(onboarding)
    deadline = time.time() + 5 * pace()
    crowd = [asyncio.create_task(asked.require_account(MINE, "acc_1", deadline)) for _ in range(64)]
    await until_asked(onboarding, 1)
    crowd[0].cancel()
    onboarding.may_answer.set()

    outcomes = await asyncio.gather(*crowd, return_exceptions=True)
    await asked.require_account(MINE, "acc_1", deadline)

    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert outcomes[1:] == [None] * 63
    assert onboarding.asked.total() == 1


@pytest.mark.parametrize("what", ["account", "external_account", "open_customer"])
async def test_a_look_up_goes_on_for_those_with_time_left_when_its_first_caller_has_none(
    what: str,
) -> None:
    onboarding = Onboarding()
    onboarding.may_answer.clear()
    query_client = QueryClient(onboarding, patience_seconds=5 * pace())
    asked = OnboardingOwnership(query_client, capacity=10)
    require: Any = getattr(asked, f"require_{what}")
    which = {"account": "acc_1", "external_account": "ext_1", "open_customer": "c_1"}[what]
    first = asyncio.create_task(require(MINE, which, time.time() + 0.1))
    await until_asked(onboarding, 1)
    joined = asyncio.create_task(require(MINE, which, time.time() + 5 * pace()))

    with pytest.raises(Unavailable):
        await first
    onboarding.may_answer.set()

    await joined
    assert onboarding.asked.total() == 1


async def test_all_concurrent_requests_fail_when_onboarding_is_away() -> None:
    onboarding = Onboarding(failure=Unavailable())
    onboarding.may_answer.clear()
    asked = ownership(onboarding)
    crowd = [
        asyncio.create_task(asked.require_account(MINE, "acc_1", time.time() + 5 * pace()))
        for _ in range(8)
    ]
    await until_asked(onboarding, 1)
    onboarding.may_answer.set()

    outcomes = await asyncio.gather(*crowd, return_exceptions=True)

    assert {type(outcome) for outcome in outcomes} == {Unavailable}
    assert onboarding.asked.total() == 1


async def test_what_is_linked_while_an_earlier_question_is_under_way_is_asked_about_anew() -> None:
    onboarding = Onboarding(known=set())
    onboarding.may_answer.clear()
    asked = ownership(onboarding)
    deadline = time.time() + 5 * pace()
    early = asyncio.create_task(asked.require_external_account(MINE, "ext_1", deadline))
    await until_asked(onboarding, 1)
    onboarding.known.add("ext_1")
    late = [
        asyncio.create_task(asked.require_external_account(MINE, "ext_1", deadline))
        for _ in range(8)
    ]
    await asyncio.sleep(0)
    onboarding.may_answer.set()

    outcomes = await asyncio.gather(early, *late, return_exceptions=True)

    assert isinstance(outcomes[0], ExternalAccountNotLinked)
    assert outcomes[1:] == [PAYEE] * 8
    assert onboarding.asked.total() == 2


async def test_what_is_not_linked_now_may_be_in_a_moment() -> None:
    onboarding = Onboarding(known=set())
    asked = ownership(onboarding)
    with pytest.raises(ExternalAccountNotLinked):
        await asked.require_external_account(MINE, "ext_1", time.time() + 5 * pace())
    onboarding.known.add("ext_1")

    await asked.require_external_account(MINE, "ext_1", time.time() + 5 * pace())


@pytest.mark.parametrize(
    "failure", [Unavailable(), ProviderTimeout(), ProviderError(), InternalError()]
)
async def test_an_onboarding_that_cannot_tell_is_unavailable(failure: Exception) -> None:
    asked = ownership(Onboarding(failure=failure))

    with pytest.raises(Unavailable):
        await asked.require_account(MINE, "acc_1", time.time() + 5 * pace())
    with pytest.raises(Unavailable):
        await asked.require_external_account(MINE, "ext_1", time.time() + 5 * pace())


async def test_a_reply_that_makes_no_sense_is_unavailable() -> None:
    asked = ownership(Onboarding(reply={"data": {"owner": "c_1"}}))

    with pytest.raises(Unavailable):
        await asked.require_account(MINE, "acc_1", time.time() + 5 * pace())


async def test_a_negative_answer_reaches_the_caller() -> None:
    asked = ownership(Onboarding(failure=InvalidState()))

    with pytest.raises(InvalidState):
        await asked.require_account(MINE, "acc_1", time.time() + 5 * pace())


async def test_a_denial_counts_within_seconds_and_is_told_for_as_long_as_it_stands() -> None:
    onboarding, now = Onboarding(), 0.0
    asked = ownership(onboarding, lambda: now)
    deadline = time.time() + 5 * pace()
    for _ in range(2):
        await asked.require_open_customer(MINE, "c_1", deadline)
    assert onboarding.asked.total() == 1, "the answer is cached for seconds"
    onboarding.is_final = True
    now += OPEN_SECONDS

    for _ in range(2):
        with pytest.raises(InvalidState):
            await asked.require_open_customer(MINE, "c_1", deadline)

    onboarding.is_final = False  # by a backup of onboarding from before the denial
    await asked.require_open_customer(MINE, "c_1", deadline)


async def test_an_onboarding_that_does_not_say_who_was_denied_stops_no_wires() -> None:
    of_an_earlier_release = ownership(Onboarding(is_final=None))
    went_back = ownership(Onboarding())

    await of_an_earlier_release.require_open_customer(MINE, "c_1", time.time() + 5 * pace())
    await went_back.require_open_customer(MINE, "c_2", time.time() + 5 * pace())


async def test_each_wire_that_waits_for_the_same_answer_has_a_refusal_of_its_own() -> None:
    asked = ownership(Onboarding(is_final=True))
    deadline = time.time() + 5 * pace()

    refusals = await asyncio.gather(
        *(asked.require_open_customer(MINE, "c_1", deadline) for _ in range(2)),
        return_exceptions=True,
    )

    assert [type(refusal) for refusal in refusals] == [InvalidState, InvalidState]
    assert refusals[0] is not refusals[1], "each names its own wire"
