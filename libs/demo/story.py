"""A business's story on the running stack: `make demo`, or `python -m libs.demo.story`.

Every chapter does something, shows it and checks it. A chapter is a function in CHAPTERS; what it learns, the following
ones find in the scene.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
from collections.abc import Awaitable, Callable
from decimal import Decimal

import aiohttp
from rich.console import Console

from libs.client import settings
from libs.client.client import Client
from libs.client.credentials import look_up
from libs.client.errors import OperatorError
from libs.client.transport import Transport
from libs.contracts import patterns
from libs.contracts.accounts import GetBalance, ListPartnerAccounts
from libs.contracts.customers import CustomerStatus, OnboardCustomer
from libs.contracts.exact_json import decode, encode
from libs.demo import approvals, ledger, webhooks
from libs.demo.scene import Scene, StoryBroken, expect
from libs.providers.simulation import SimulationFailed

DECIDED_BY_LAST_DIGITS = ("0001", "0002", "0003")
"""Numbers that end so are not simply approved at a simulated bank."""


async def onboard_a_business(scene: Scene) -> None:
    scene.title("A reseller onboards a business")
    command = OnboardCustomer.model_validate(decode(encode(application())))

    answer = await scene.call(scene.client.onboard_customer, command)

    result = answer.data
    scene.show("status", result.status)
    scene.show("customer", result.business.customer_id)
    scene.show("account", f"{result.business.account_number} ({result.business.account_id})")
    expect(result.status is CustomerStatus.APPROVED, f"The business is {result.status}.")
    expect(result.business.account_id is not None, "The business has no account.")
    scene.facts["customer_id"] = result.business.customer_id
    scene.facts["account_id"] = str(result.business.account_id)
    linked = result.external_bank_account.external_bank_account_id
    scene.facts["external_account_id"] = str(linked)


async def list_the_accounts(scene: Scene) -> None:
    scene.title("Its account is there at once")

    answer = await scene.call(scene.client.list_partner_accounts, ListPartnerAccounts())

    found = [item for item in answer.data.accounts if item.id == scene.facts["account_id"]]
    scene.show("partner", answer.data.name)
    scene.show("accounts", len(answer.data.accounts))
    expect(len(found) == 1, f"The new account is listed {len(found)} times.")
    scene.show("the new one", f"{found[0].account_title}, {found[0].status}")
    expect(found[0].status == "open", f"The new account is {found[0].status}.")


async def receive_a_deposit(scene: Scene) -> None:
    scene.title("A customer of the business pays")
    amount = Decimal(random.randint(100_00, 9_999_99)) / 100  # noqa: S311 - an amount is no secret

    await scene.bank.deposit(scene.facts["account_id"], amount, "Harbor Café")

    scene.show("amount", f"{amount:,.2f} USD")
    scene.facts["deposited"] = str(amount)


async def read_the_balance(scene: Scene) -> None:
    scene.title("The balance says so")

    answer = await scene.call(
        scene.client.get_balance, GetBalance(account_id=scene.facts["account_id"])
    )

    balance = answer.data
    for name, money in (
        ("available", balance.available_balance),
        ("held", balance.held_balance),
        ("total", balance.total_balance),
    ):
        scene.show(name, f"{money.amount:,.2f} {money.currency}")
    deposited = Decimal(scene.facts["deposited"])
    expect(
        balance.available_balance.amount == balance.total_balance.amount == deposited,
        f"The balance is not the {deposited:,.2f} that were deposited.",
    )


CHAPTERS: tuple[Callable[[Scene], Awaitable[None]], ...] = (
    onboard_a_business,
    list_the_accounts,
    receive_a_deposit,
    read_the_balance,
    ledger.give_the_business_a_key,
    ledger.do_business,
    ledger.read_the_transactions,
    ledger.fetch_the_statement,
    ledger.see_where_deposits_lie,
    webhooks.receive_events_of_a_wire,
    approvals.approve_a_wire,
)


def application() -> dict[str, object]:
    """A new business, with persons and a bank account of its own."""
    address = {
        "street_1": "21 Harbor Street",
        "city": "Portland",
        "state": "ME",
        "zip_code": "04101",
    }
    person = {
        "date_of_birth": "1980-05-17",
        "home_address": address,
        "email": "office@tidewater.example.com",
        "phone": "(207) 555-0143",
    }
    return {
        "business": {
            "business_name": "Tidewater Goods LLC",
            "naics_code": "4539",
            "formation_state": "ME",
            "formation_date": "2019-04-01",
            "ein": _fresh_number(patterns.EIN),
            "phone": "(207) 555-0142",
            "email": "office@tidewater.example.com",
            "business_address": address,
        },
        "persons": [
            person
            | {"first_name": "Ada", "last_name": "Marsh", "tin": _fresh_number(patterns.SSN)}
            | {"controller": True, "ownership_percentage": 60},
            person
            | {"first_name": "Noor", "last_name": "Hale", "tin": _fresh_number(patterns.SSN)}
            | {"ownership_percentage": 40},
        ],
        "external_bank_account": {
            "bank_name": "First Harbor Bank",
            "name_on_account": "Tidewater Goods LLC",
            "routing_number": "021000021",
            "account_number": f"{random.randrange(10**11, 10**12)}",  # noqa: S311 - made up
            "address_on_account": address,
        },
    }


def _fresh_number(pattern: str) -> str:
    while True:
        number = f"{random.randrange(10**9):09}"  # noqa: S311 - made up
        if re.fullmatch(pattern, number) and not number.endswith(DECIDED_BY_LAST_DIGITS):
            return number


async def play(out: Console) -> None:
    """Play every chapter, on the stack of this checkout. Raises StoryBroken, SimulationFailed or OperatorError."""
    settings.require_own_stack()
    base_url, credentials = settings.base_url(), look_up()
    out.print(f"[bold]Bankside[/] at {base_url}")
    async with aiohttp.ClientSession(trust_env=False) as session:
        client = Client(Transport(base_url, credentials, session))
        scene = Scene(client, session, base_url, settings.bank_url, out)
        for chapter in CHAPTERS:
            await chapter(scene)
    out.print("\n[bold green]✓[/] Everything is as it should be.")
    out.print(
        "  Next: .venv/bin/bankside call GET /partner/reseller/accounts, or the document at "
        + base_url
        + "/docs"
    )


def main() -> int:
    try:
        settings.load_stack_environment()
        asyncio.run(play(Console(highlight=False, soft_wrap=True)))
    except (StoryBroken, SimulationFailed) as broken:
        print(f"The story broke: {broken}", file=sys.stderr)
        return 1
    except OperatorError as mistake:
        print(mistake, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
