"""The story checks what it shows."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from rich.console import Console

from libs.client.credentials import Credentials
from libs.client.errors import OperatorError
from libs.contracts.binding import bind
from libs.contracts.exact_json import decode, encode
from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from libs.demo import ledger, story
from libs.demo.scene import StoryBroken
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

ACCOUNT = "acc_1"
HAPPY: dict[str, Any] = {"onboarded": success(ONBOARDED), "accounts": success(ACCOUNTS)}


@dataclass
class Bank:
    """The gateway and the sandbox in one, with books of their own; what a test sets is told instead."""

    onboarded: Answer = field(default_factory=lambda: HAPPY["onboarded"])
    accounts: Answer = field(default_factory=lambda: HAPPY["accounts"])
    missing: Decimal = Decimal(0)
    """Of every balance."""
    unswept: Decimal = Decimal(0)
    document: bytes = b"%PDF-1.7"
    newest_first: bool = True
    server: Gateway = field(init=False)
    posted: list[tuple[Decimal, str]] = field(default_factory=list)

    def answer(self) -> web.Response:
        sent = self.server.received[-1]
        body = decode(sent.body) if sent.body else {}
        match sent.target.partition("?")[0]:
            case "/partner/reseller/customers":
                return self.onboarded()
            case "/partner/reseller/accounts":
                return self.accounts()
            case "/simulate/deposits" | "/simulate/transactions":
                amount = Decimal(body["amount"])
                signed = -amount if body.get("direction") == "debit" else amount
                self.posted.append((signed, body["counterparty_name"]))
            case "/partner/reseller/accounts/balance/acc_1":
                return balance(self.total - self.missing)()
            case "/customer/accounts/transactions/acc_1":
                page = {"limit": 50, "total": len(self.posted), "page": 1}
                return success(self.transactions(), pagination=page)()
            case "/partner/reseller/accounts/statements/acc_1":
                return success([statement(self.server.base_url)])()
            case "/documents/s.pdf":
                return web.Response(body=self.document, content_type="application/pdf")
            case "/customer/accounts/deposit-locations/acc_1":
                return self.locations()
        return web.Response(body=b"{}", content_type="application/json")

    @property
    def total(self) -> Decimal:
        return sum((amount for amount, _ in self.posted), Decimal(0))

    def transactions(self) -> list[dict[str, Any]]:
        rows = [transaction(*posted, second) for second, posted in enumerate(self.posted)]
        return rows[::-1] if self.newest_first else rows

    def locations(self) -> web.Response:
        full, rest = divmod(self.total - self.unswept, 250_000)
        balances = [Decimal(250_000)] * int(full) + [rest]
        rows = [
            {"location_id": number, "name": "A bank", "city_and_state": "Bath, ME", "balance": held}
            for number, held in enumerate(balances)
        ]
        page = {"limit": 50, "total": len(rows), "offset": 0}
        return success(rows, pagination=page, as_of_date="2026-01-30")()


def balance(total: Decimal) -> Answer:
    money = {"amount": total, "currency": "USD"}
    return success(
        {
            "account_id": ACCOUNT,
            "account_number": "000000000001",
            "available_balance": money,
            "held_balance": {"amount": 0, "currency": "USD"},
            "total_balance": money,
            "system_timestamp": "2026-01-31T12:00:00.000000Z",
        }
    )


def transaction(signed: Decimal, counterparty: str, second: int) -> dict[str, Any]:
    return {
        "transaction_id": f"txn_{second}",
        "account_number": "000000000001",
        "account_group": "deposit",
        "type": "withdrawal" if signed < 0 else "deposit",
        "settled_at": f"2026-01-31T12:00:0{second}.000000Z",
        "counterparty_name": counterparty,
        "counterparty_id": None,
        "amount": abs(signed),
        "debit_credit_flag": signed < 0,
        "tx_uuid": f"0197a1c2-5a3e-7c11-9d54-{second:012}",
    }


def statement(base_url: str) -> dict[str, Any]:
    return {
        "statement_id": "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77",
        "start_date": "2026-01-01",
        "end_date": "2026-01-31",
        "year": 2026,
        "month": 1,
        "generated_at": "2026-01-31T12:00:00.000000Z",
        "formats": {
            "format": "pdf",
            "url": f"{base_url}/documents/s.pdf?signature=hush",
            "url_expires_at": "2026-01-31T12:15:00.000000Z",
        },
    }


async def made_key(customer_id: str) -> Credentials:
    assert customer_id == "c-1"
    return KEY


async def played(monkeypatch: pytest.MonkeyPatch, folder: Path, **told: Any) -> str:
    """The story's output, on a stack of which `told` is said."""
    bank = Bank(**told)
    async with gateway(bank.answer) as server:
        bank.server = server
        monkeypatch.setattr(story, "CHAPTERS", story.CHAPTERS[:-2])  # wires have tests of their own
        monkeypatch.setenv("BANKSIDE_BASE_URL", server.base_url)
        monkeypatch.setenv("BANKSIDE_SANDBOX_URL", server.base_url)
        monkeypatch.setenv("BANKSIDE_SUBSCRIPTION_KEY", KEY.subscription_key)
        monkeypatch.setenv("BANKSIDE_SECRET", KEY.secret)
        monkeypatch.setattr(ledger, "customer_credentials", made_key)
        (folder / ".local").mkdir()
        own = {"base_url": server.base_url, "operator_url": server.base_url}
        (folder / ".local" / "credentials.json").write_text(json.dumps(own))
        monkeypatch.delenv("BANKSIDE_OPERATOR_URL", raising=False)
        monkeypatch.chdir(folder)
        output = io.StringIO()
        await story.play(Console(file=output, soft_wrap=True))
    return output.getvalue()


async def test_the_story_shows_each_request_and_is_plain_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = await played(monkeypatch, tmp_path)

    assert "POST /partner/reseller/customers  200" in shown
    assert "POST /simulate/deposits at the sandbox  200" in shown
    assert "GET /partner/reseller/accounts/balance/acc_1  200" in shown
    assert "GET /customer/accounts/deposit-locations/acc_1  200" in shown
    assert "\x1b" not in shown


async def test_the_story_is_played_at_no_other_gateway_than_that_of_the_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".local").mkdir()
    monkeypatch.chdir(tmp_path)
    async with gateway(problem(500, "internal_error")) as remote:
        monkeypatch.setenv("BANKSIDE_BASE_URL", remote.base_url)
        monkeypatch.setenv("BANKSIDE_SUBSCRIPTION_KEY", KEY.subscription_key)
        monkeypatch.setenv("BANKSIDE_SECRET", KEY.secret)

        with pytest.raises(OperatorError, match="BANKSIDE_BASE_URL"):
            await story.play(Console(file=io.StringIO()))

        assert not remote.received


async def test_the_statement_is_saved_for_its_owner_and_its_url_is_not_shown_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = await played(monkeypatch, tmp_path, document=b"%PDF-1.7 and more")

    (saved,) = (tmp_path / ".local" / "demo").iterdir()
    assert saved.read_bytes() == b"%PDF-1.7 and more"
    assert saved.stat().st_mode & 0o777 == 0o600
    assert str(saved) in shown
    assert "hush" not in shown


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"missing": Decimal("0.01")}, r"not the .* deposited"),
        ({"accounts": success(ACCOUNTS | {"accounts": []})}, "listed 0 times"),
        ({"onboarded": success(ONBOARDED | {"status": "denied"})}, "denied"),
        ({"onboarded": problem(409, "already_exists")}, "failed: 409 already_exists"),
        ({"newest_first": False}, "not the ones that were made"),
        ({"document": b"<html>"}, "not a PDF"),
        ({"unswept": Decimal("0.01")}, "add up to"),
    ],
    ids=lambda told: told if isinstance(told, str) else next(iter(told)),
)
async def test_what_is_not_as_it_should_be_breaks_the_story_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(StoryBroken, match=sentence):
        await played(monkeypatch, tmp_path, **told)


def test_every_application_is_valid_and_another_one() -> None:
    applications = [story.application() for _ in range(50)]

    for application in applications:
        bind(ONBOARD_CUSTOMER, {}, body=encode(application))
    assert len({str(application["business"]) for application in applications}) == 50
