"""The chapters of the story about what is in the business's ledger."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Literal, NamedTuple

from libs.client.credentials import LOCAL, Credentials, local_folder
from libs.client.errors import OperatorError
from libs.contracts.accounts import GetBalance
from libs.contracts.bank_days import BANK_ZONE
from libs.contracts.deposit_locations import ListDepositLocations
from libs.contracts.exact_json import NotExactJson, decode
from libs.contracts.statements import ListStatements
from libs.contracts.transactions import ListTransactions
from libs.demo.scene import Scene, StoryBroken, expect

KEY_SECONDS = 120.0
INSURED = Decimal(250_000)
"""No program bank holds more of one account."""


class Payment(NamedTuple):
    amount: Decimal
    direction: Literal["credit", "debit"]
    counterparty: str


BUSINESS = (
    Payment(Decimal("612345.67"), "credit", "Casco Bay Cooperative"),
    Payment(Decimal("1840.00"), "debit", "Wharf Properties"),
    Payment(Decimal("96.50"), "debit", "Lighthouse Power"),
)


async def give_the_business_a_key(scene: Scene) -> None:
    scene.title("The business gets a key of its own")

    credentials = await customer_credentials(scene.facts["customer_id"])

    scene.customer = scene.client_of(credentials)
    scene.show("key", credentials.subscription_key)


async def do_business(scene: Scene) -> None:
    scene.title("Money comes and goes")
    for payment in BUSINESS:
        await scene.bank.move(scene.facts["account_id"], *payment)


async def read_the_transactions(scene: Scene) -> None:
    scene.title("The transactions, newest first")
    account_id = scene.facts["account_id"]

    answer = await scene.call(
        scene.customer.list_transactions, ListTransactions(account_id=account_id)
    )

    found = answer.data
    for item in found:
        signed = -item.amount if item.debit_credit_flag else item.amount
        scene.show(item.type, f"{signed:>14,.2f} USD  {item.counterparty_name}")
    expected = [payment.counterparty for payment in reversed(BUSINESS)]
    names = [item.counterparty_name for item in found]
    expect(names[: len(expected)] == expected, "The transactions are not the ones that were made.")
    moments = [item.settled_at for item in found]
    expect(moments == sorted(moments, reverse=True), "The transactions are not newest first.")
    scene.facts["day"] = moments[0].astimezone(BANK_ZONE).date().isoformat()
    total = sum(-item.amount if item.debit_credit_flag else item.amount for item in found)
    balance = await _balance(scene)
    scene.show("balance", f"{balance:>14,.2f} USD")
    expect(total == balance, f"The transactions add up to {total:,.2f}, which is not the balance.")


async def fetch_the_statement(scene: Scene) -> None:
    scene.title("The month's statement as a document")
    day = date.fromisoformat(scene.facts["day"])
    account_id = scene.facts["account_id"]
    await scene.bank.make_statement(account_id, day)

    answer = await scene.call(
        scene.client.list_statements, ListStatements(account_id=account_id, start_date=day)
    )

    expect(len(answer.data) == 1, f"There are {len(answer.data)} statements of this month.")
    statement = answer.data[0]
    document = await scene.download(statement.formats.url)
    expect(document.startswith(b"%PDF-"), "The statement is not a PDF.")
    path = _save(f"statement-{statement.year}-{statement.month:02}-{account_id}.pdf", document)
    scene.show("period", f"{statement.start_date} to {statement.end_date}")
    scene.show("saved as", f"{path} ({len(document):,} bytes)")


async def see_where_deposits_lie(scene: Scene) -> None:
    scene.title("Where the deposits lie")
    account_id = scene.facts["account_id"]
    await scene.bank.sweep(account_id)

    answer = await scene.call(
        scene.customer.list_deposit_locations, ListDepositLocations(account_id=account_id)
    )

    for location in answer.data:
        scene.show(f"{location.balance:>14,.2f} USD", f"{location.name}, {location.city_and_state}")
    balance = await _balance(scene)
    swept = sum(location.balance for location in answer.data)
    scene.show("as of", answer.as_of_date)
    scene.show("in all", f"{swept:,.2f} USD")
    expect(answer.as_of_date is not None, "The load has no day.")
    expect(swept == balance, f"The deposits add up to {swept:,.2f}, not to {balance:,.2f}.")
    expect(
        all(location.balance <= INSURED for location in answer.data),
        f"A bank holds more than {INSURED:,}.",
    )


async def _balance(scene: Scene) -> Decimal:
    command = GetBalance(account_id=scene.facts["account_id"])
    return (await scene.call(scene.client.get_balance, command)).data.total_balance.amount


async def customer_credentials(customer_id: str) -> Credentials:
    """A new key of this customer, made as an operator would.

    Raises:
        OperatorError: it cannot be made from here.
    """
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("bankside")),
        *("keys", "create", "--family", "customer", "--customer", customer_id, "--json"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(KEY_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise StoryBroken("`bankside keys create` did not end.") from None
    if process.returncode != 0:
        raise OperatorError(errors.decode("utf-8", "replace").strip())
    try:
        made = decode(output)
        return Credentials(made["subscription_key"], made["secret"])
    except (NotExactJson, KeyError, TypeError):
        raise StoryBroken("`bankside keys create` did not say which key it made.") from None


def _save(name: str, content: bytes) -> Path:
    """In `.local/demo` of the checkout, readable by its owner only."""
    folder = (local_folder() or Path(LOCAL)) / "demo"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)
    except OSError as error:
        raise OperatorError(f"The document could not be saved: {error.strerror}.") from None
    return path
