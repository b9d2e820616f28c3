"""Numbers and errors reach the caller exactly as the service told them, and the handler as the caller did."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from libs.contracts import ledger_read_operations as ledger_read
from libs.contracts import onboarding_operations as onboarding
from libs.contracts.accounts import GetBalance
from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import NotFound
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.handling.commands import Drive
from tests.integration.gateway.desk import (
    Desk,
    a_balance,
    answering,
    carrying_out,
    running_gateway,
    until,
    verdict,
)
from tests.support.infrastructure import Environment

PERSON = "/partner/reseller/customers/person/5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"
ACCOUNT = "/partner/reseller/accounts/acct_1"


@pytest.mark.parametrize(
    "amount", ["1234567890123456.78", "0.10", "-0.01", "100", "99999999999999999999.99"]
)
async def test_money_is_the_same_number_out_as_in(desk: Desk, amount: str) -> None:
    async def balance(_p: Principal, command: GetBalance, _deadline: float) -> Result:
        return Result(a_balance(command.account_id, Decimal(amount)))

    api = await desk.new_api()
    async with answering(desk.environment, "ledger_read", {ledger_read.GET_BALANCE.name: balance}):
        answer = await api.get("/partner/reseller/accounts/balance/acct_1")

    assert answer.status == 200
    assert f'"available_balance":{{"amount":{amount},"currency":"USD"}}'.encode() in answer.raw
    assert answer.data["system_timestamp"] == "2026-01-01T00:00:00.000001Z"


async def test_a_number_in_a_body_reaches_the_handler_exactly(desk: Desk) -> None:
    seen: list[Decimal] = []

    async def update(_drive: Drive, command: UpdatePerson) -> Result:
        seen.append(command.ownership_percentage)
        return Result()

    api = await desk.new_api()
    async with carrying_out(desk.environment, {onboarding.UPDATE_PERSON.name: update}):
        for text in (b"12.345678901234567890123", b"1e1", b"50"):
            answer = await api.call("PATCH", PERSON, b'{"ownership_percentage":' + text + b"}")
            assert answer.body == {"message": "Person updated", "data": None}

    assert [str(number) for number in seen] == ["12.345678901234567890123", "1E+1", "50"]


async def test_an_answer_of_a_service_is_told_as_it_is(desk: Desk) -> None:
    """404 of the service, with the rate of the family and the caller's request id."""

    async def nothing(principal: Principal, command: Any, deadline: float) -> Result:
        assert principal.tenant == api.key.tenant
        assert principal.family is Family.PARTNER
        assert deadline > time.time()
        raise NotFound

    api = await desk.new_api(per_minute=100)
    async with answering(desk.environment, "ledger_read", {ledger_read.GET_ACCOUNT.name: nothing}):
        answer = await api.get(ACCOUNT)

    assert verdict(answer) == (404, "not_found")
    assert answer.headers["RateLimit-Remaining"] == "99"


async def test_what_still_waits_when_a_gateway_stops_is_answered_as_at_its_deadline(
    gateway_environment: Environment, tmp_path: Path, nothing_left: None
) -> None:
    waiting, is_over = set[str](), asyncio.Event()

    async def update(_drive: Drive, _command: UpdatePerson) -> Result:
        waiting.add("write")
        await is_over.wait()
        return Result()

    async def account(_p: Principal, _command: Any, _deadline: float) -> Result:
        waiting.add("read")
        await is_over.wait()
        raise NotFound

    async def both_wait() -> bool:
        return len(waiting) == 2

    handled = {ledger_read.GET_ACCOUNT.name: account}
    async with (
        running_gateway(
            gateway_environment, tmp_path, BANKSIDE_GATEWAY_SHUTDOWN_SECONDS="6"
        ) as desk,
        carrying_out(gateway_environment, {onboarding.UPDATE_PERSON.name: update}),
        answering(gateway_environment, "ledger_read", handled),
    ):
        api = await desk.new_api()
        write = asyncio.create_task(api.patch(PERSON, {"ownership_percentage": 50}))
        read = asyncio.create_task(api.get(ACCOUNT))
        await until(both_wait)

        code = await desk.stack.services["gateway"].stop()

        answers = await asyncio.gather(write, read)
        is_over.set()  # or these services would wait for their handlers as they end

    assert code == 0
    assert [verdict(answer) for answer in answers] == [
        (504, "outcome_pending"),
        (503, "unavailable"),
    ]
    assert all(answer.headers["X-Request-Id"] for answer in answers)
