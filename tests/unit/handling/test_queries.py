"""How long the answer to a query may take, how many costly ones run, and what becomes of one that looks expired."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any, NoReturn
from unittest.mock import MagicMock
from uuid import uuid4

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from libs.contracts.errors import NotFound
from libs.contracts.onboarding_operations import FIND_CUSTOMER, LIST_CUSTOMERS
from libs.contracts.operation import Operation
from libs.contracts.principal import SERVICE, Family, Principal
from libs.contracts.table import OPERATIONS
from libs.handling import queries
from libs.handling.queries import (
    COSTLY_AT_ONCE,
    COSTLY_OF_TENANT_AT_ONCE,
    COSTLY_WAITING,
    QueryAnswerer,
    QueryHandler,
    seconds_for,
)
from libs.messaging.envelope import Envelope, Reply, raw
from libs.messaging.replier import Replier
from tests.unit.messaging.test_service_client import NoSealer


class Replies(Replier):
    """The codes of the errors that were answered."""

    def __init__(self) -> None:
        super().__init__("onboarding")
        self.codes: list[str] = []

    async def reply(self, _: str, reply: Reply) -> None:
        assert reply.error is not None
        self.codes.append(reply.error.code)


@pytest.fixture(autouse=True)
def some_handlers_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "prepare", lambda *_, **__: None)


def envelope_of(
    operation: Operation, principal: Principal = SERVICE, *, left: float = 60, **values: Any
) -> Envelope:
    return Envelope(
        id=str(uuid4()),
        message_id=str(uuid4()),
        request_id="request",
        operation=operation.name,
        principal=principal,
        deadline=time.time() + left,
        body=raw(values),
    )


def partner(tenant: str) -> Principal:
    return Principal(tenant, "Tenant", Family.PARTNER, "sub_test")


@pytest.mark.parametrize(("left", "seconds"), [(25, 22), (5, 2.5), (2, 1), (-1, 0.05)])
def test_an_answer_may_take_what_is_left_but_for_a_margin(left: float, seconds: float) -> None:
    assert seconds_for(left) == seconds


async def test_costly_queries_leave_the_service_to_others_and_are_turned_away_when_too_many_wait() -> (
    None
):
    replies, running, let_go = Replies(), Counter[str](), asyncio.Event()

    async def listed(principal: Principal, _: object, __: float) -> NoReturn:
        running[principal.tenant] += 1
        await let_go.wait()
        raise NotFound

    async def found(*_: object) -> NoReturn:
        raise NotFound

    handlers: dict[str, QueryHandler] = {LIST_CUSTOMERS.name: listed, FIND_CUSTOMER.name: found}
    answerer = QueryAnswerer("onboarding", handlers, NoSealer(), replies)

    def ask(operation: Operation, tenant: str, **values: Any) -> asyncio.Task[None]:
        envelope = envelope_of(operation, partner(tenant), **values)
        return asyncio.create_task(answerer.answer(envelope, "gateway.replies.1"))

    of_a_tenant = COSTLY_OF_TENANT_AT_ONCE + COSTLY_WAITING // 2
    lists = [ask(LIST_CUSTOMERS, tenant) for tenant in ["anvil", "bolt"] * of_a_tenant]
    await asyncio.sleep(0)

    await ask(LIST_CUSTOMERS, "cog")
    await ask(FIND_CUSTOMER, "anvil", customer_id=str(uuid4()))

    assert running == {"anvil": COSTLY_OF_TENANT_AT_ONCE, "bolt": COSTLY_OF_TENANT_AT_ONCE}
    assert running.total() == COSTLY_AT_ONCE
    assert replies.codes == ["unavailable", "not_found"]
    let_go.set()
    await asyncio.gather(*lists)
    assert Counter(replies.codes) == {"unavailable": 1, "not_found": 2 * of_a_tenant + 1}


async def test_the_time_that_a_costly_query_waits_is_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, let_go, deadlines = MagicMock(wraps=time), asyncio.Event(), list[float]()
    monkeypatch.setattr(queries, "time", clock)

    async def listed(_: Principal, __: object, deadline: float) -> NoReturn:
        deadlines.append(deadline)
        await let_go.wait()
        raise NotFound

    handlers: dict[str, QueryHandler] = {LIST_CUSTOMERS.name: listed}
    answerer = QueryAnswerer("onboarding", handlers, NoSealer(), Replies())
    envelope = envelope_of(LIST_CUSTOMERS, partner("anvil"), left=60)
    lists = [
        asyncio.create_task(answerer.answer(envelope, "gateway.replies.1"))
        for _ in range(COSTLY_OF_TENANT_AT_ONCE + 1)
    ]
    await asyncio.sleep(0)
    clock.time.return_value = time.time() + 30

    let_go.set()
    await asyncio.gather(*lists)

    assert len(deadlines) == len(lists)
    assert all(one < envelope.deadline for one in deadlines)


def test_paged_lists_that_the_bank_does_not_answer_and_all_of_a_partners_accounts_are_costly() -> (
    None
):
    paged = {row.name for row in OPERATIONS if row.pagination is not None}

    costly = {row.name for row in OPERATIONS if row.costly}

    assert costly == {name for name in paged if not name.startswith("ledger_read.")} | {
        "ledger_read.list_partner_accounts",
        "onboarding.list_owned_accounts",
    }
    assert all(row.is_query for row in OPERATIONS if row.costly)


async def test_queries_that_look_expired_are_counted_and_one_line_says_how_late_they_were() -> None:
    """As those of a caller whose clock is some seconds behind."""
    answerer = QueryAnswerer("onboarding", {}, NoSealer(), Replier("onboarding"))
    late = envelope_of(FIND_CUSTOMER, left=-7)
    labels = {"operation": FIND_CUSTOMER.name, "outcome": "expired"}
    before = REGISTRY.get_sample_value("bankside_handled_seconds_count", labels) or 0

    with capture_logs() as logs:
        for _ in range(3):
            await answerer.answer(late, "payments.replies.1")

    after = REGISTRY.get_sample_value("bankside_handled_seconds_count", labels)
    assert after == before + 3
    [line] = logs
    assert line.pop("late_seconds") >= 7
    assert line == {
        "event": "query_expired",
        "log_level": "warning",
        "operation": FIND_CUSTOMER.name,
        "left_out": 0,
    }
