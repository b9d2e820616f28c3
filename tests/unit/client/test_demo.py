"""The story checks what it shows."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from aiohttp import web
from rich.console import Console

from libs.client import demo
from libs.contracts.binding import bind
from libs.contracts.exact_json import decode, encode
from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from tests.unit.client.answering import KEY, Gateway, gateway, problem, success

Answer = Callable[[], web.Response]

ONBOARDED: dict[str, Any] = {
    "status": "approved",
    "business": {
        "customer_id": "c-1",
        "account_id": "acc_1",
        "account_number": "000000000001",
    },
    "external_bank_account": {"external_bank_account_id": "ext_1"},
    "persons": [],
}
ACCOUNTS: dict[str, Any] = {
    "name": "Demo partner",
    "dba_name": None,
    "accounts": [
        {
            "id": "acc_1",
            "account_number": "000000000001",
            "account_group": "deposit",
            "account_title": "Tidewater Goods LLC",
            "status": "open",
            "interest_earned_year_to_date": 0,
            "annual_percentage_yield_earned": 0,
            "close_date": None,
        }
    ],
}

HAPPY_ONBOARDING, HAPPY_ACCOUNTS = success(ONBOARDED), success(ACCOUNTS)


def balance(deposited: Decimal) -> Answer:
    money = {"amount": deposited, "currency": "USD"}
    return success(
        {
            "account_id": "acc_1",
            "account_number": "000000000001",
            "available_balance": money,
            "held_balance": {"amount": 0, "currency": "USD"},
            "total_balance": money,
            "system_timestamp": "2026-01-31T12:00:00.000000Z",
        }
    )


async def played(
    monkeypatch: pytest.MonkeyPatch,
    *,
    onboarded: Answer = HAPPY_ONBOARDING,
    accounts: Answer = HAPPY_ACCOUNTS,
    missing: Decimal = Decimal(0),
) -> str:
    """The story's output, on a stack that answers so and loses `missing` of the deposit."""
    server: Gateway

    def balance_of_the_deposit() -> web.Response:
        amount = decode(server.received[-2].body)["amount"]
        return balance(Decimal(amount) - missing)()

    deposited: Answer = lambda: web.Response(body=b"{}", content_type="application/json")  # noqa: E731
    async with gateway(onboarded, accounts, deposited, balance_of_the_deposit) as server:
        monkeypatch.setenv("BANKSIDE_BASE_URL", server.base_url)
        monkeypatch.setenv("BANKSIDE_SANDBOX_URL", server.base_url)
        monkeypatch.setenv("BANKSIDE_SUBSCRIPTION_KEY", KEY.subscription_key)
        monkeypatch.setenv("BANKSIDE_SECRET", KEY.secret)
        output = io.StringIO()
        await demo.play(Console(file=output, soft_wrap=True))
    return output.getvalue()


async def test_the_story_shows_each_request_and_is_plain_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = await played(monkeypatch)

    assert "POST /partner/reseller/customers  200" in shown
    assert "POST /simulate/deposits at the sandbox  200" in shown
    assert "GET /partner/reseller/accounts/balance/acc_1  200" in shown
    assert "\x1b" not in shown


async def test_a_balance_that_is_not_the_deposit_breaks_the_story(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(demo.StoryBroken, match=r"not the .* deposited"):
        await played(monkeypatch, missing=Decimal("0.01"))


async def test_an_account_that_is_not_listed_breaks_the_story(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(demo.StoryBroken, match="listed 0 times"):
        await played(monkeypatch, accounts=success(ACCOUNTS | {"accounts": []}))


async def test_a_business_that_is_not_approved_breaks_the_story(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(demo.StoryBroken, match="denied"):
        await played(monkeypatch, onboarded=success(ONBOARDED | {"status": "denied"}))


async def test_a_refusal_breaks_the_story_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(demo.StoryBroken, match="failed: 409 already_exists"):
        await played(monkeypatch, onboarded=problem(409, "already_exists"))


def test_every_application_is_valid_and_another_one() -> None:
    applications = [demo.application() for _ in range(50)]

    for application in applications:
        bind(ONBOARD_CUSTOMER, {}, body=encode(application))
    assert len({str(application["business"]) for application in applications}) == 50
